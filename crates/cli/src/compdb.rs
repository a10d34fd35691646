//! `hotstart exec --compdb`: runs every entry of a compilation database, warm.
//!
//! The format is clang's (JSON Compilation Database). Entries start in their order, several at a time. Failures are listed
//! at the end, with their commands.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use hotstart_exec::{Batch, Command, Outcome};
use hotstart_launch::signals;
use hotstart_model::Status;
use hotstart_python::re::Pattern;
use hotstart_python::shlex;
use hotstart_report::Sink;
use serde_json::Value;

use crate::exit_code;

/// One entry.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    command: Command,
    file: String,
}

#[derive(Debug, PartialEq)]
struct Options {
    database: PathBuf,
    jobs: usize,
    filter: Option<String>,
}

/// Runs the entries that the words after `--compdb` select.
pub fn run(words: &[OsString]) -> ExitCode {
    let read = parse(words).and_then(|options| Ok((read(&options)?, options)));
    match read {
        Ok((entries, options)) => run_all(&entries, options.jobs),
        Err(error) => {
            let mut err = Sink::stderr();
            err.line(&format!("hotstart exec: {error}"));
            err.flush();
            exit_code::exit(exit_code::ERROR)
        }
    }
}

fn parse(words: &[OsString]) -> Result<Options, String> {
    let [database, rest @ ..] = words else { return Err("--compdb: which file?".to_owned()) };
    let jobs = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut options = Options { database: database.into(), jobs, filter: None };
    let mut rest = rest.iter().map(|word| word.to_string_lossy());
    while let Some(word) = rest.next() {
        let (name, attached) = match word.strip_prefix("-j").filter(|count| !count.is_empty()) {
            Some(count) => ("-j", Some(count.to_owned())),
            None => (&*word, None),
        };
        let value = || attached.or_else(|| rest.next().map(|value| value.into_owned()));
        match name {
            "-j" => {
                let count = value().and_then(|text| text.parse().ok()).filter(|count| *count > 0);
                options.jobs = count.ok_or("-j: how many at a time?")?;
            }
            "--filter" => options.filter = Some(value().ok_or("--filter: which files?")?),
            other => return Err(format!("--compdb: there is no option '{other}'; see --help")),
        }
    }
    Ok(options)
}

fn read(options: &Options) -> Result<Vec<Entry>, String> {
    let name = options.database.display();
    let text = std::fs::read(&options.database).map_err(|error| format!("cannot read '{name}': {error}"))?;
    // Tools on Windows begin their files with a byte order mark.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("'{name}': {error}"))?;
    let list = value.as_array().ok_or_else(|| format!("'{name}' is not a list of entries"))?;
    let pattern = options.filter.as_deref().map(Pattern::new).transpose();
    let pattern = pattern.map_err(|error| format!("--filter: {error}"))?;
    let mut entries = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let entry = entry(value).ok_or_else(|| {
            format!("'{name}', entry {at}: it needs 'directory', 'file', and a program in 'command' or 'arguments'")
        })?;
        let wanted = pattern.as_ref().map_or(Ok(true), |pattern| pattern.is_match(&entry.file));
        if wanted.map_err(|error| format!("--filter: {error}"))? {
            entries.push(entry);
        }
    }
    Ok(entries)
}

fn entry(value: &Value) -> Option<Entry> {
    let directory = std::path::absolute(value["directory"].as_str()?).ok()?;
    let argv: Vec<OsString> = match value["arguments"].as_array() {
        Some(words) => words.iter().map(|word| word.as_str().map(OsString::from)).collect::<Option<_>>()?,
        None => shlex::split(OsStr::new(value["command"].as_str()?)).ok()?,
    };
    let file = value["file"].as_str()?.to_owned();
    (!argv.is_empty()).then_some(Entry { command: Command { directory, argv }, file })
}

/// The progress shown while the entries run.
struct Progress<'e> {
    entries: &'e [Entry],
    err: Sink,
    is_terminal: bool,
    done: usize,
    failed: Vec<(usize, String)>,
}

impl Progress<'_> {
    fn note(&mut self, outcome: Outcome) {
        self.done += 1;
        let (entry, total) = (&self.entries[outcome.index], self.entries.len());
        let line = format!("[{}/{total}] {}", self.done, entry.file);
        if self.is_terminal {
            self.err.put(&format!("\r{line}\x1b[K"));
        }
        if !outcome.output.is_empty() {
            let front = if self.is_terminal { "\n".to_owned() } else { format!("{line}\n") };
            self.err.put(&format!("{front}{}", String::from_utf8_lossy(&outcome.output)));
        }
        self.err.flush();
        let how = match outcome.status {
            Some(Status::Exited(0)) => return,
            Some(Status::Exited(code)) => format!("exit status {code}"),
            Some(Status::Signaled(signal)) => format!("signal {signal}"),
            None => "not started".to_owned(),
        };
        self.failed.push((outcome.index, how));
    }

    /// Lists the failures, in the order of the database.
    fn end(mut self) -> ExitCode {
        if self.is_terminal && self.done > 0 {
            self.err.put("\n");
        }
        self.failed.sort();
        for (index, how) in &self.failed {
            let Entry { command, file } = &self.entries[*index];
            let words: Vec<String> =
                command.argv.iter().map(|word| shlex::quote(&word.to_string_lossy()).into_owned()).collect();
            let directory = shlex::quote(&command.directory.to_string_lossy()).into_owned();
            self.err.line(&format!("failed: {file}: {how}\n  cd {directory} && {}", words.join(" ")));
        }
        let (failed, total) = (self.failed.len(), self.entries.len());
        if failed > 0 {
            self.err.line(&format!("{failed} of {total} failed"));
        }
        self.err.flush();
        exit_code::exit(if failed > 0 { exit_code::FAILURE } else { exit_code::SUCCESS })
    }
}

/// How long the writing of output may take after a stop, before it is given up.
const TO_WRITE: Duration = Duration::from_secs(1);

fn run_all(entries: &[Entry], jobs: usize) -> ExitCode {
    signals::hold_unignored();
    let batch = Arc::new(Batch::default());
    let stop = Arc::clone(&batch);
    let stopped = Arc::new(Mutex::new(None));
    let (told, watch) = (Arc::clone(&stopped), std::thread::Builder::new().name("signals".into()));
    let (all_ended, have_all_ended) = mpsc::channel::<()>();
    let watched = watch.spawn(move || {
        let how = signals::wait_for_stop();
        *told.lock().expect("no panic while locked") = Some(how);
        let stopped = Arc::clone(&stop);
        let stopping = std::thread::Builder::new().name("stop".into()).spawn(move || {
            stopped.stop(how.signal());
            drop(all_ended);
            // Nobody may read what a thread is still writing. If make's token goes with it, make has one less.
            std::thread::sleep(TO_WRITE);
            signals::die_of(how.signal());
        });
        // Who sends another one does not want to wait.
        let how = if stopping.is_ok() { signals::wait_for_stop() } else { how };
        // The main thread may be the first to see that all have ended.
        *told.lock().expect("no panic while locked") = Some(how);
        stop.kill();
        signals::die_of(how.signal());
    });
    let is_terminal = std::io::stderr().is_terminal();
    let progress = Progress { entries, err: Sink::stderr(), is_terminal, done: 0, failed: Vec::new() };
    let progress = Mutex::new(progress);
    let commands: Vec<Command> = entries.iter().map(|entry| entry.command.clone()).collect();
    let ended = |outcome| {
        // A command that a stop has ended has not failed.
        if stopped.lock().expect("no panic while locked").is_none() {
            progress.lock().expect("no panic while locked").note(outcome);
        }
    };
    let ran = watched.map(drop).and_then(|()| batch.run(&commands, jobs, &ended));
    let how = || *stopped.lock().expect("no panic while locked");
    if let Some(first) = how() {
        // The other thread may still end what the commands have left. It sends nothing.
        let _ = have_all_ended.recv();
        signals::die_of(how().unwrap_or(first).signal());
    }
    let mut progress = progress.into_inner().expect("no panic while locked");
    if let Err(error) = ran {
        progress.err.line(&format!("hotstart exec: cannot run the entries: {error}"));
        progress.err.flush();
        return exit_code::exit(exit_code::ERROR);
    }
    progress.end()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use serde_json::json;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_follow_the_file() {
        let options = parse(&words("db.json -j3 --filter a.*b")).unwrap();
        assert_eq!((options.database.as_path(), options.jobs), (Path::new("db.json"), 3));
        assert_eq!(options.filter.as_deref(), Some("a.*b"));
        assert_eq!(parse(&words("db -j 2")).unwrap().jobs, 2);
        for wrong in ["db -j", "db -j0", "db -jx", "db --filter", "db --else"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn an_entry_has_a_line_or_a_list() {
        let line = json!({"directory": "/d", "file": "a.c", "command": "cc -DX=\"a b\" -c a.c"});
        let list = json!({"directory": "/d", "file": "a.c", "arguments": ["cc", "-DX=a b", "-c", "a.c"]});
        assert_eq!(entry(&line).unwrap(), entry(&list).unwrap());
        assert_eq!(entry(&line).unwrap().command.argv[1], "-DX=a b");
        for (name, wrong) in [("directory", json!(1)), ("file", json!(null)), ("arguments", json!([]))] {
            let mut value = list.clone();
            value[name] = wrong;
            assert_eq!(entry(&value), None, "{name}");
        }
    }
}
