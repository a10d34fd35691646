//! `hotstart filecheck`: passes without starting FileCheck where FileCheck would certainly pass.
//!
//! Everything else goes to the real FileCheck, with the same arguments and input, so its messages and status are exact. That
//! FileCheck is tested first, once, as in a run of tests.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;

use hotstart_launch::{Choice, Launcher, Policy, cache_directory};
use hotstart_model::Environment;
use hotstart_python::which;
use hotstart_report::Sink;
use hotstart_shell::FileChecks;

use crate::exit_code;

pub(crate) const HELP: &str = "\
usage: hotstart filecheck [--filecheck PATH] ARGUMENTS

Passes silently where FileCheck would with these arguments. For everything else, FileCheck itself is run: the one at PATH, or
the first on PATH. Takes FileCheck's arguments; those that hotstart does not know are left to it.

  --filecheck PATH         the FileCheck to be used; must be the first argument
  --filecheck PATH --test  put it to the test, and tell whether it is believed; then no further arguments

Exit code: FileCheck's.
";

/// Runs `hotstart filecheck` with the arguments after `filecheck`.
pub fn run(args: &[OsString]) -> ExitCode {
    let joined = |option: &OsString| option.to_str()?.strip_prefix("--filecheck=").map(OsString::from);
    let (named, rest) = match args {
        [option, path, rest @ ..] if option == "--filecheck" => (Some(path.clone()), rest),
        [option] if option == "--filecheck" => return told(Sink::stderr(), HELP, exit_code::ERROR),
        [option, rest @ ..] if joined(option).is_some() => (joined(option), rest),
        [help] if help == "--help" || help == "-h" => return told(Sink::stdout(), HELP, exit_code::SUCCESS),
        rest => (None, rest),
    };
    let (env, cwd) =
        (Environment::from_iter(std::env::vars_os()), std::env::current_dir().unwrap_or_default());
    let name = named.unwrap_or_else(|| "FileCheck".into());
    let Some(program) = which::program(&name, env.get("PATH"), &cwd) else {
        let text = format!(
            "hotstart filecheck: there is no '{}'; name one with --filecheck PATH\n",
            name.to_string_lossy()
        );
        return told(Sink::stderr(), &text, exit_code::ERROR);
    };
    // As in a run of tests: only a warm run shows whether a program does more than FileCheck.
    let choice = Choice::Only(vec![program.file_name().unwrap_or_default().to_string_lossy().into_owned()]);
    let policy = Policy { choice, cache: cache_directory(), ..Policy::default() };
    let mut launcher = Launcher::new().with_policy(policy);
    launcher.prepare_warm();
    let filechecks = FileChecks::new(Arc::new(launcher), cache_directory());
    let filechecks = filechecks.observing(hotstart_run::inputs_of_program);
    let is_believed = filechecks.test_now(&program, &env);
    if matches!(rest, [option] if option == "--test") {
        let answer = match filechecks.counts().refused.first() {
            Some((_, why)) => format!("'{}' is always run: {why}\n", program.display()),
            None if is_believed => format!("'{}' answers the test cases as expected\n", program.display()),
            None => format!("'{}' is always run: its runs cannot be watched\n", program.display()),
        };
        return told(
            Sink::stdout(),
            &answer,
            if is_believed { exit_code::SUCCESS } else { exit_code::FAILURE },
        );
    }
    decide(&filechecks, &program, rest, &env, &cwd, is_believed)
}

fn decide(
    filechecks: &FileChecks,
    program: &Path,
    args: &[OsString],
    env: &Environment,
    cwd: &Path,
    is_believed: bool,
) -> ExitCode {
    let words: Option<Vec<String>> = args.iter().map(|arg| Some(arg.to_str()?.to_owned())).collect();
    let mut read = None;
    if let (true, Some(words), Some(cwd)) = (is_believed, words, cwd.to_str()) {
        let mut stdin = || {
            let mut input = Vec::new();
            let most = hotstart_shell::MAX_FILECHECK_INPUT as u64 + 1;
            // If reading fails here, it fails for FileCheck too, which then gets the input before the failure.
            let _ = io::stdin().lock().take(most).read_to_end(&mut input);
            read.insert(input).clone()
        };
        if filechecks.passes(program, &words, env, cwd, &mut stdin) {
            return exit_code::exit(exit_code::SUCCESS);
        }
    }
    match start(program.to_owned(), args, read) {
        Ok(status) => {
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            exit_code::exit(code.map_or(exit_code::ERROR, |code| code as u8))
        }
        Err(error) => {
            let text = format!("hotstart filecheck: cannot run '{}': {error}\n", program.display());
            told(Sink::stderr(), &text, exit_code::ERROR)
        }
    }
}

/// Executes the real FileCheck if nothing was read. Otherwise runs it with the read bytes and the rest as its input.
fn start(program: PathBuf, args: &[OsString], read: Option<Vec<u8>>) -> io::Result<ExitStatus> {
    let mut command = Command::new(program);
    command.args(args);
    let Some(read) = read else { return Err(command.exec()) };
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // FileCheck may stop reading early.
        let _ = stdin.write_all(&read).and_then(|()| io::copy(&mut io::stdin().lock(), &mut stdin));
    }
    child.wait()
}

fn told(mut to: Sink, text: &str, code: u8) -> ExitCode {
    to.put(text);
    exit_code::written(&mut to, code)
}
