//! Compares the matcher with real FileChecks on calls that `bench/filecheck-record` recorded, and on mutants of them.
//!
//! Only passes of the matcher are compared: everything else runs in FileCheck anyway. The exit status reports wrong
//! passes.
#![forbid(unsafe_code)]

#[path = "../../tests/oracle/client.rs"]
mod client;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use client::Oracle;
use hotstart_filecheck::{Certain, Request, Undecided};

const USAGE: &str = "usage: filecheck-compare CALLS [--filecheck PATH]... [--oracle PATH]... [--mutants N] [--seed N]
       [--part I/N]

CALLS is the directory `calls` that bench/filecheck-record has written. Each call is judged by the matcher. What the
matcher passes is judged by each FileCheck, too, and by each oracle (tests/oracle/oracle.cpp). With --mutants, N variants
of each call as well: a line dropped, doubled or swapped, a byte changed, in the input or in the check file.";

/// A recorded call.
struct Call {
    args: Vec<String>,
    opts: String,
    check: Vec<u8>,
    input: Vec<u8>,
}

#[derive(Default)]
struct Counts {
    calls: u64,
    passed: u64,
    real_passes: u64,
    compared: u64,
    mutants: u64,
    mutants_passed: u64,
    wrong: u64,
    undecided: BTreeMap<&'static str, u64>,
}

struct Options {
    calls: PathBuf,
    filechecks: Vec<PathBuf>,
    oracles: RefCell<Vec<Oracle>>,
    mutants: u64,
    seed: u64,
    part: (usize, usize),
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut names: Vec<PathBuf> = match fs::read_dir(&options.calls) {
        Ok(list) => list.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(error) => {
            eprintln!("filecheck-compare: {}: {error}", options.calls.display());
            return ExitCode::from(2);
        }
    };
    names.sort();
    let scratch = std::env::temp_dir().join(format!("filecheck-compare-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a directory for temporary files");
    let mut counts = Counts::default();
    let (part, parts) = options.part;
    for (index, name) in names.iter().enumerate().filter(|(index, _)| index % parts == part) {
        if let Some(call) = read(name) {
            judge(&call, name, options.seed ^ (index as u64) << 20, &options, &scratch, &mut counts);
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    report(&counts);
    if counts.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> Option<Options> {
    let mut words = std::env::args().skip(1);
    let calls = PathBuf::from(words.next().filter(|word| !word.starts_with('-'))?);
    let mut options = Options {
        calls,
        filechecks: Vec::new(),
        oracles: RefCell::default(),
        mutants: 0,
        seed: 1,
        part: (0, 1),
    };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--filecheck" => options.filechecks.push(value.into()),
            "--oracle" => options.oracles.get_mut().push(Oracle::new(value.into())),
            "--mutants" => options.mutants = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--part" => {
                let (part, parts) = value.split_once('/')?;
                options.part = (part.parse().ok()?, parts.parse().ok().filter(|&parts| parts > 0)?);
            }
            _ => return None,
        }
    }
    Some(options)
}

fn read(dir: &Path) -> Option<Call> {
    let args = fs::read(dir.join("args")).ok()?;
    let args = args.split(|&byte| byte == 0).map(|arg| String::from_utf8(arg.to_vec()));
    let mut args: Vec<String> = args.collect::<Result<_, _>>().ok()?;
    args.pop();
    Some(Call {
        args,
        opts: fs::read_to_string(dir.join("opts")).ok()?,
        check: fs::read(dir.join("check")).ok()?,
        input: fs::read(dir.join("input")).ok()?,
    })
}

fn judge(call: &Call, name: &Path, seed: u64, options: &Options, scratch: &Path, counts: &mut Counts) {
    counts.calls += 1;
    let request = Request::parse(&call.args, Some(&call.opts));
    let decision = request.clone().and_then(|request| request.decide(&call.check, &call.input));
    count(&decision, counts);
    let Ok(request) = request else { return };
    // The share of decided cases refers to passes.
    let passes = match options.oracles.borrow_mut().first_mut() {
        Some(oracle) => Some(oracle.passes(&request.options(), &call.check, &call.input)),
        None => options.filechecks.first().map(|tool| real(tool, call, &request, scratch)),
    };
    counts.real_passes += u64::from(passes == Some(true));
    if decision.is_ok() {
        counts.passed += 1;
        confirm(call, &request, name, options, scratch, counts);
    } else if passes == Some(true) && std::env::var_os("FILECHECK_COMPARE_SHOW").is_some() {
        println!("undecided pass: {}: {:?}", name.display(), decision);
    }
    let mut random = Random(seed | 1);
    for _ in 0..options.mutants {
        let mutant = mutate(call, &mut random);
        counts.mutants += 1;
        if request.decide(&mutant.check, &mutant.input).is_ok() {
            counts.mutants_passed += 1;
            confirm(&mutant, &request, name, options, scratch, counts);
        }
    }
}

fn count(decision: &Certain<()>, counts: &mut Counts) {
    if let Err(Undecided(why)) = decision {
        *counts.undecided.entry(why).or_default() += 1;
    }
}

/// Runs every FileCheck on a case that the matcher passes.
fn confirm(
    call: &Call,
    request: &Request,
    name: &Path,
    options: &Options,
    scratch: &Path,
    counts: &mut Counts,
) {
    for tool in &options.filechecks {
        let is_right = real(tool, call, request, scratch);
        note(call, name, tool, is_right, counts);
    }
    for oracle in options.oracles.borrow_mut().iter_mut() {
        let is_right = oracle.passes(&request.options(), &call.check, &call.input);
        note(call, name, &oracle.path, is_right, counts);
    }
}

/// Counts an answer, and stores the case if it shows that a pass was wrong.
fn note(call: &Call, name: &Path, tool: &Path, is_right: bool, counts: &mut Counts) {
    counts.compared += 1;
    if is_right {
        return;
    }
    counts.wrong += 1;
    let kept = std::env::temp_dir().join(format!("filecheck-wrong-{}-{}", std::process::id(), counts.wrong));
    println!("WRONG PASS: {} with {}; kept in {}", name.display(), tool.display(), kept.display());
    let _ = fs::create_dir_all(&kept);
    let _ = fs::write(kept.join("args"), call.args.join("\n"));
    let _ = fs::write(kept.join("check"), &call.check);
    let _ = fs::write(kept.join("input"), &call.input);
}

/// Whether a FileCheck passes without output.
fn real(tool: &Path, call: &Call, request: &Request, scratch: &Path) -> bool {
    let (check, input) = (scratch.join("check"), scratch.join("input"));
    fs::write(&check, &call.check).expect("a temporary file");
    fs::write(&input, &call.input).expect("a temporary file");
    let mut args: Vec<String> = Vec::new();
    for arg in &call.args {
        let named = request
            .input_file
            .as_ref()
            .filter(|file| arg.ends_with(file.as_str()) && arg.contains("input-file="));
        if *arg == request.check_file {
            args.push(check.display().to_string());
        } else if named.is_some() {
            args.push(format!("--input-file={}", input.display()));
        } else if Some(arg) == request.input_file.as_ref() {
            args.push(input.display().to_string());
        } else {
            args.push(arg.clone());
        }
    }
    let output = Command::new(tool)
        .args(&args)
        .env("FILECHECK_OPTS", &call.opts)
        .stdin(fs::File::open(&input).map_or_else(|_| Stdio::null(), Stdio::from))
        .output()
        .expect("FileCheck can be started");
    output.status.code() == Some(0) && output.stdout.is_empty() && output.stderr.is_empty()
}

/// A small generator of random numbers (xorshift), so that runs are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

fn mutate(call: &Call, random: &mut Random) -> Call {
    let mut mutant = Call {
        args: call.args.clone(),
        opts: call.opts.clone(),
        check: call.check.clone(),
        input: call.input.clone(),
    };
    let in_check = random.below(3) == 0;
    let text = if in_check { &mut mutant.check } else { &mut mutant.input };
    if random.below(3) == 0 {
        // Replaces a byte with another one of the same text.
        if !text.is_empty() {
            let (to, from) = (random.below(text.len()), random.below(text.len()));
            text[to] = text[from];
        }
        return mutant;
    }
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let is_check = |line: &Vec<u8>| memchr::memmem::find(line, b"CHECK").is_some();
    let mut at = random.below(lines.len());
    if in_check {
        at += lines.iter().skip(at).position(is_check).unwrap_or(0);
    }
    match random.below(3) {
        _ if lines.is_empty() => {}
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        _ => {
            let other = (at + 1 + random.below(3)) % lines.len();
            lines.swap(at, other);
        }
    }
    *text = lines.concat();
    mutant
}

fn report(counts: &Counts) {
    println!(
        "{} calls, {} decided as passes, {} pass with the first oracle or FileCheck",
        counts.calls, counts.passed, counts.real_passes
    );
    println!("{} mutants, {} decided as passes", counts.mutants, counts.mutants_passed);
    println!("{} passes compared, {} wrong", counts.compared, counts.wrong);
    for (why, count) in &counts.undecided {
        println!("undecided: {count:7} {why}");
    }
}
