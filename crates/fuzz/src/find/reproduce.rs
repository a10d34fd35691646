//! Writes a finding so that it can run again, as a C program of its own and as the sequence, and replays it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Difference, Verdict, check};
use crate::generate::Sequence;
use crate::run::{Mode, Place, Session, Tally, Workshop, sources};

const PROGRAM: &str = "program.c";
const SEQUENCE: &str = "sequence.json";
const REPORT: &str = "report.txt";

/// Makes a directory below `out` with program, sequence and report. Returns its path.
pub fn write(
    out: &Path,
    name: &str,
    sequence: &Sequence,
    difference: &Difference,
    heading: &str,
) -> io::Result<PathBuf> {
    let dir = out.join(name);
    fs::create_dir_all(&dir)?;
    let acts: Vec<&str> = sequence.requests.iter().flat_map(|r| &r.acts).map(String::as_str).collect();
    let before: Vec<&str> = sequence.before.iter().map(String::as_str).collect();
    fs::write(dir.join(PROGRAM), sources::standalone(&acts, &before))?;
    let text = serde_json::to_string_pretty(sequence).map_err(io::Error::other)?;
    fs::write(dir.join(SEQUENCE), text + "\n")?;
    fs::write(dir.join(REPORT), format!("{heading}\n{difference}"))?;
    Ok(dir)
}

/// Describes a sequence, with one line for each run.
pub fn describe(sequence: &Sequence) -> String {
    let mut text = String::new();
    if !sequence.before.is_empty() {
        text += &format!("  before main: {}\n", sequence.before.join(" "));
    }
    for (number, request) in sequence.requests.iter().enumerate() {
        let mut around = serde_json::to_value(request).unwrap_or_default();
        if let Some(fields) = around.as_object_mut() {
            fields.remove("acts");
        }
        let plain = around.as_object().is_none_or(|fields| fields.is_empty());
        let around = if plain { String::new() } else { format!("  {around}") };
        text += &format!("  run {number}: {}{around}\n", request.acts.join(" "));
    }
    text
}

/// Replays a finding in each mode. Returns the differences.
pub fn replay(dir: &Path, modes: &[Mode]) -> Result<Vec<Difference>, String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{}: {error}", dir.join(what).display());
    let text = fs::read_to_string(dir.join(SEQUENCE)).map_err(|e| failed(SEQUENCE, &e))?;
    let sequence: Sequence = serde_json::from_str(&text).map_err(|e| failed(SEQUENCE, &e))?;
    let scratch = tempfile::tempdir().map_err(|e| format!("no scratch directory: {e}"))?;
    let mut workshop = Workshop::open(scratch.path())?;
    let program = workshop.program_of(&dir.join(PROGRAM))?;
    let session = Session::new(Place::new(&scratch.path().join("job")));
    let mut found = Vec::new();
    for mode in modes {
        let verdict = check(&session, &sequence, &program, &[*mode], &mut Tally::default());
        if let Verdict::Differs(difference) = verdict.map_err(|e| format!("cannot run it: {e}"))? {
            found.push(*difference);
        }
    }
    Ok(found)
}
