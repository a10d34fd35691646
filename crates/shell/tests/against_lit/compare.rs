//! The observable result of a script's run, in one form for both sides.

use hotstart_model::{Fault, Step, Transcript};
use serde_json::Value;

/// One stage.
#[derive(Debug)]
#[allow(dead_code, reason = "only shown")]
pub struct SeenStage {
    args: Vec<String>,
    status: i64,
    stdout: String,
    stderr: String,
    redirected: Vec<(String, String)>,
}

/// A run.
#[derive(Debug)]
#[allow(dead_code, reason = "only shown")]
pub struct Seen {
    end: String,
    stages: Vec<SeenStage>,
}

impl Seen {
    /// Converts our result.
    pub fn of_transcript(transcript: &Transcript) -> Seen {
        let end = match (&transcript.fault, transcript.exit_code) {
            (Some(Fault::Parse { command, .. }), _) => format!("parse error in {command}"),
            (Some(Fault::Exception { kind, message }), _) => exception(kind, message),
            (Some(other), _) => format!("{other:?}"),
            (None, code) => format!("exit {code:?}"),
        };
        // lit shows no stages if there was an exception.
        let steps = if transcript.fault.is_some() { &[][..] } else { &transcript.steps[..] };
        let stages = steps.iter().filter_map(|step| match step {
            Step::Begin(_) => None,
            Step::Stage(stage) => Some(SeenStage {
                args: stage.args.clone(),
                status: stage.status.into(),
                stdout: shorten(&stage.stdout),
                stderr: shorten(&stage.stderr),
                redirected: stage
                    .redirected
                    .iter()
                    .map(|file| (file.name.clone(), shorten(&String::from_utf8_lossy(&file.data))))
                    .collect(),
            }),
        });
        Seen { end, stages: stages.collect() }
    }

    /// Converts lit's result, as the driver sends it.
    pub fn of_answer(answer: &Value) -> Seen {
        assert!(answer.get("broken").is_none(), "the driver failed: {answer}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let end = if let Some(index) = answer.get("parse") {
            format!("parse error in {index}")
        } else if let Some(kind) = answer.get("exception") {
            exception(&text(kind), &text(&answer["message"]))
        } else {
            format!("exit {:?}", answer["exit"].as_i64())
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let stage = |stage: &Value| SeenStage {
            args: list(&stage["args"]).iter().map(text).collect(),
            status: stage["status"].as_i64().unwrap_or_default(),
            stdout: shorten(&text(&stage["stdout"])),
            stderr: shorten(&text(&stage["stderr"])),
            redirected: list(&stage["redirected"])
                .iter()
                .map(|pair| (text(&pair[0]), shorten(&text(&pair[1]))))
                .collect(),
        };
        Seen { end, stages: list(&answer["stages"]).iter().map(stage).collect() }
    }
}

fn exception(kind: &str, message: &str) -> String {
    // The driver knows only the last part of the type's name.
    let kind = kind.rsplit('.').next().unwrap_or(kind);
    format!("{kind}: {message}")
}

/// A Python traceback names lines of lit's source, so only its first and last line count.
fn shorten(output: &str) -> String {
    let Some(start) = output.find("Traceback (most recent call last):\n") else { return output.to_owned() };
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    format!("{}Traceback ... {last}", &output[..start])
}

/// Returns the lines that differ, with a few around them.
pub fn difference(expected: &str, got: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (expected.lines().collect(), got.lines().collect());
    let same_start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let most = a.len().min(b.len()) - same_start;
    let same_end = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let from = same_start.saturating_sub(8);
    let show = |lines: &[&str]| lines[from..lines.len() - same_end].join("\n");
    format!("--- lit\n{}\n--- ours\n{}\n", show(&a), show(&b))
}
