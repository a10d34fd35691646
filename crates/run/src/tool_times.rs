//! Adds up the time that tests spent in each tool.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use hotstart_model::{Interpreter, Script, Step, Transcript};

/// Adds up the times in transcripts. Called from all workers.
#[derive(Debug, Default)]
pub struct ToolTimes(Mutex<HashMap<String, ToolTime>>);

/// The time of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolTime {
    /// Number of its runs.
    pub runs: u64,
    /// CPU time, including that of child processes for which it waited.
    pub cpu: Duration,
    /// Time from the start of its pipeline to its end. The stages of one pipeline share it.
    pub wall: Duration,
}

impl ToolTimes {
    /// Adds the times of an attempt that took `wall`.
    pub(crate) fn add(&self, script: &Script, transcript: &Transcript, wall: Duration) {
        let add = |name: &str, cpu, wall| self.add_run(Path::new(name), cpu, wall);
        for step in &transcript.steps {
            match step {
                Step::Stage(stage) if stage.process.is_some() => {
                    add(tool(&stage.args), stage.cpu, stage.wall)
                }
                _ => {}
            }
        }
        let whole = match &script.interpreter {
            Interpreter::External(shell) if transcript.steps.is_empty() => shell.shell.to_str(),
            Interpreter::Program(program) => program.argv.first().and_then(|name| name.to_str()),
            _ => None,
        };
        if let Some(program) = whole {
            add(file_name(program), transcript.cpu, wall);
        }
    }

    /// Adds a run of `program` that is in no transcript.
    pub fn add_run(&self, program: &Path, cpu: Duration, wall: Duration) {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let mut times = self.0.lock().expect("no panic while locked");
        let time = match times.get_mut(&*name) {
            Some(time) => time,
            None => times.entry(name.into_owned()).or_default(),
        };
        (time.runs, time.cpu, time.wall) = (time.runs + 1, time.cpu + cpu, time.wall + wall);
    }

    /// Returns all tools, sorted by CPU time, largest first.
    pub fn sorted(&self) -> Vec<(String, ToolTime)> {
        let times = self.0.lock().expect("no panic while locked");
        let mut times: Vec<_> = times.iter().map(|(name, time)| (name.clone(), *time)).collect();
        times.sort_by(|(a, one), (b, other)| other.cpu.cmp(&one.cpu).then_with(|| a.cmp(b)));
        times
    }
}

/// Returns the name of the program after the words that the shell itself interprets.
fn tool(args: &[String]) -> &str {
    let mut words = args.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        match word {
            "!" => {}
            "not" => drop(words.next_if_eq(&"--crash")),
            "env" => {
                while let Some(word) =
                    words.next_if(|word| word.contains('=') || matches!(*word, "-u" | "-i"))
                {
                    if word == "-u" {
                        words.next();
                    }
                }
            }
            program => return file_name(program),
        }
    }
    args.first().map_or("", String::as_str)
}

fn file_name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shells_own_words_are_no_tools() {
        let of = |text: &str| {
            let args: Vec<_> = text.split(' ').map(str::to_owned).collect();
            tool(&args).to_owned()
        };
        assert_eq!(of("/bin/opt -S"), "opt");
        assert_eq!(of("not --crash env -u A B=1 not llc x=y"), "llc");
        assert_eq!((of("! ! a"), of("env A=1"), of("not")), ("a".into(), "env".into(), "not".into()));
    }
}
