//! Compares two runs of one script in everything visible: bytes, statuses, files.
//!
//! Nothing in the output is masked, such as addresses. Output that contains them differs between two cold runs as well, and the caller
//! makes more cold runs to find that out.

use std::fmt;

use hotstart_model::{Captured, Script, Stage, Step, Transcript};

use crate::own_files::Files;

/// The visible results of a run.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub transcript: Transcript,
    pub files: Files,
}

/// The first difference between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The differing item: `standard output of stage 1 of 2 (opt -S) of RUN: at line 3`.
    pub what: String,
    /// Its value in the first run.
    pub first: String,
    /// Its value in the second run.
    pub second: String,
}

/// Most bytes of a differing output that are shown.
const SHOWN: usize = 4096;

impl Difference {
    /// Returns whether a FileCheck that passed without a process may cause it. If files or the bytes between stages differ,
    /// none does.
    pub(crate) fn may_be_a_wrong_match(&self) -> bool {
        ["the status of", "standard error of", "how much of", "the end of"]
            .iter()
            .any(|start| self.what.starts_with(start))
    }

    fn new(what: impl Into<String>, first: impl fmt::Display, second: impl fmt::Display) -> Option<Self> {
        Some(Difference {
            what: what.into(),
            first: shorten(first.to_string()),
            second: shorten(second.to_string()),
        })
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > SHOWN {
        let end = (0..=SHOWN).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n...\n");
    }
    text
}

/// Returns the first difference between the runs; times do not count.
pub(crate) fn between(script: &Script, a: &Seen, b: &Seen) -> Option<Difference> {
    captured(script, &a.transcript, &b.transcript)
        .or_else(|| steps(script, &a.transcript, &b.transcript))
        .or_else(|| ends(&a.transcript, &b.transcript))
        .or_else(|| files(&a.files, &b.files))
}

fn captured(script: &Script, a: &Transcript, b: &Transcript) -> Option<Difference> {
    let pair = a.captured.iter().zip(&b.captured).find(|(a, b)| a != b);
    pair.and_then(|(one, other)| {
        let place = place(script, a, one);
        let text = |capture: &Captured| String::from_utf8_lossy(&capture.data).into_owned();
        Difference::new(format!("what is passed on by {place}"), text(one), text(other))
    })
}

/// Describes the stage whose pipe was captured.
fn place(script: &Script, transcript: &Transcript, capture: &Captured) -> String {
    let mut command = 0;
    for step in &transcript.steps {
        match step {
            Step::Begin(index) => command = *index,
            Step::Stage(stage) if stage.pipeline == capture.pipeline && stage.position.0 == capture.stage => {
                return name(script, command, stage);
            }
            Step::Stage(_) => {}
        }
    }
    "a stage".to_owned()
}

fn name(script: &Script, command: usize, stage: &Stage) -> String {
    let label = script.commands.get(command).map_or("a command", |command| command.label.as_str());
    let (position, count) = stage.position;
    format!("stage {} of {count} ({}) of {label}", position + 1, stage.args.join(" "))
}

/// Compares all statuses first. Output of earlier stages is shown only where a later one fails, and tells less.
fn steps(script: &Script, a: &Transcript, b: &Transcript) -> Option<Difference> {
    each_step(script, a, b, status).or_else(|| each_step(script, a, b, stages))
}

fn each_step(
    script: &Script,
    a: &Transcript,
    b: &Transcript,
    compare: fn(&str, &Stage, &Stage) -> Option<Difference>,
) -> Option<Difference> {
    let mut command = 0;
    for (one, other) in a.steps.iter().zip(&b.steps) {
        match (one, other) {
            (Step::Begin(index), Step::Begin(other)) if index == other => command = *index,
            (Step::Stage(one), Step::Stage(other)) => {
                let found = compare(&name(script, command, one), one, other);
                if found.is_some() {
                    return found;
                }
            }
            _ => return Difference::new("the order of what ran", format!("{one:?}"), format!("{other:?}")),
        }
    }
    (a.steps.len() != b.steps.len())
        .then(|| Difference::new("how much of the script ran", a.steps.len(), b.steps.len()))
        .flatten()
}

/// Compares the statuses of one command. Commands that differ are left to [`stages`].
fn status(name: &str, a: &Stage, b: &Stage) -> Option<Difference> {
    if a.args != b.args || (a.status, a.process) == (b.status, b.process) {
        return None;
    }
    Difference::new(format!("the status of {name}"), format!("{:?}", a.process), format!("{:?}", b.process))
}

fn stages(name: &str, a: &Stage, b: &Stage) -> Option<Difference> {
    let differs = |what: &str, a: &str, b: &str| Difference::new(format!("{what} of {name}"), a, b);
    if a.args != b.args {
        differs("the words", &a.args.join(" "), &b.args.join(" "))
    } else if a.stdout != b.stdout {
        differs("standard output", &a.stdout, &b.stdout)
    } else if a.stderr != b.stderr {
        differs("standard error", &a.stderr, &b.stderr)
    } else if a.redirected != b.redirected {
        differs("the redirected output", "(a file)", "(another content)")
    } else {
        None
    }
}

fn ends(a: &Transcript, b: &Transcript) -> Option<Difference> {
    if (a.exit_code, &a.fault, a.timed_out) != (b.exit_code, &b.fault, b.timed_out) {
        let end = |t: &Transcript| {
            format!("status {:?}, fault {:?}, timeout {}", t.exit_code, t.fault, t.timed_out)
        };
        return Difference::new("the end of the script", end(a), end(b));
    }
    if (&a.stdout, &a.stderr) != (&b.stdout, &b.stderr) {
        let text = |t: &Transcript| format!("{}{}", t.stdout, t.stderr);
        return Difference::new("the output of the script", text(a), text(b));
    }
    None
}

fn files(a: &Files, b: &Files) -> Option<Difference> {
    let path = a.keys().chain(b.keys()).find(|path| a.get(*path) != b.get(*path))?;
    let text =
        |files: &Files| files.get(path).map_or("not there".to_owned(), |content| format!("{content:?}"));
    Difference::new(format!("the file '{}'", path.display()), text(a), text(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_files::Content;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    fn script() -> Script {
        Script {
            commands: vec![hotstart_model::Command {
                label: "RUN: at line 7".into(),
                text: "opt | FileCheck".into(),
            }],
            dialect: hotstart_model::Dialect::V23,
            interpreter: hotstart_model::Interpreter::Internal,
            pipefail: true,
            cwd: PathBuf::from("/"),
            make_dirs: Vec::new(),
            env: Arc::default(),
            timeout: None,
            tmp_base: PathBuf::new(),
            captures: true,
            lit_package_dir: None,
            lit_python: None,
            cold: hotstart_model::ColdTools::None,
            wraps: Default::default(),
        }
    }

    fn seen(stdout: &str, capture: &str) -> Seen {
        let stage = Stage {
            args: vec!["opt".into()],
            stdout: stdout.into(),
            stderr: String::new(),
            status: 0,
            process: None,
            timed_out: false,
            redirected: Vec::new(),
            pipeline: 0,
            position: (0, 2),
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
        };
        let captured = vec![Captured { pipeline: 0, stage: 0, data: capture.into() }];
        let steps = vec![Step::Begin(0), Step::Stage(stage)];
        Seen {
            transcript: Transcript { steps, exit_code: Some(0), captured, ..Transcript::default() },
            files: Files::new(),
        }
    }

    #[test]
    fn equal_runs_do_not_differ_and_times_do_not_count() {
        let mut late = seen("a", "b");
        if let Step::Stage(stage) = &mut late.transcript.steps[1] {
            stage.wall = Duration::from_secs(5);
        }
        assert_eq!(between(&script(), &seen("a", "b"), &late), None);
    }

    #[test]
    fn what_is_passed_between_stages_counts() {
        let found = between(&script(), &seen("a", "b"), &seen("a", "c")).expect("a difference");
        assert_eq!(found.what, "what is passed on by stage 1 of 2 (opt) of RUN: at line 7");
        assert_eq!((found.first.as_str(), found.second.as_str()), ("b", "c"));
    }

    /// The first stage's output is shown only since the second one has failed.
    #[test]
    fn a_status_is_told_before_the_output_of_earlier_stages() {
        let pipeline = |output: &str, status: i32| {
            let mut seen = seen(output, "b");
            let Step::Stage(first) = seen.transcript.steps[1].clone() else { unreachable!() };
            let second = Stage {
                args: vec!["FileCheck".into()],
                status,
                position: (1, 2),
                stdout: String::new(),
                ..first
            };
            seen.transcript.steps.push(Step::Stage(second));
            seen
        };
        let found = between(&script(), &pipeline("", 0), &pipeline("shown", 1)).expect("a difference");
        assert_eq!(found.what, "the status of stage 2 of 2 (FileCheck) of RUN: at line 7");
        assert!(found.may_be_a_wrong_match());
    }

    #[test]
    fn a_missing_file_counts() {
        let mut more = seen("a", "b");
        more.files.insert("/t.tmp".into(), Content::Directory);
        assert_eq!(
            between(&script(), &seen("a", "b"), &more).expect("a difference").what,
            "the file '/t.tmp'"
        );
    }
}
