//! `hotstart exec` and `hotstart server`: run commands through a per-user server of warm tools.
//!
//! Both are entered before this process changes its signal handling: `exec` becomes the client, which passes on what it
//! inherited, and the server's tools inherit it too.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hotstart_exec::{Answer, Met, ServeError, Settings, SocketDir, SocketDirError};
use hotstart_launch::{Choice, Policy, signals};

use crate::exit_code::said;
use crate::{compdb, exit_code};

pub(crate) const EXEC_HELP: &str = "\
usage: hotstart exec [--] COMMAND [ARGUMENTS]
       hotstart exec --compdb FILE [-j N] [--filter RE]
       hotstart exec --install DIRECTORY [TOOL...] | --uninstall DIRECTORY

Runs COMMAND warm through the user's server, which is started on first use, or as it is where that would not be the
same. Exit status, signals, output, descriptors and environment are the command's own. `hotstart server status` tells
what was started how, and why.

  --compdb FILE            run every command of a compilation database (compile_commands.json), N at a time, of those
                           files whose names RE (Python's) matches; tell at the end which have failed. A jobserver of
                           make in MAKEFLAGS is heeded
  --install DIRECTORY      write the client, hotstart-exec, to DIRECTORY; it does the same with less start of its own.
                           With TOOLs (clang, clang++, ...), also links by their names: with DIRECTORY first in PATH,
                           builds use them
  --uninstall DIRECTORY    remove what --install has made there
  -h, --help               print this

Environment: HOTSTART_EXEC=cold runs everything as it is, HOTSTART_EXEC=explain says on standard error why a command
is run so; HOTSTART_EXEC_DIR names another directory for the server's socket.
";

pub(crate) const SERVER_HELP: &str = "\
usage: hotstart server status [--json] | warm TOOL... | stop | run

  status                   what the user's server has started, warm and cold, and why; --json: for programs
  warm TOOL...             before a build: start a server if none runs, and have these tools (clang, gcc, ...), and what
                           they start themselves, warm from their first start on
  stop                     end it, after the jobs that run; the next `hotstart exec` starts another
  run                      be the server, until SIGTERM or idle; `hotstart exec` does this by itself
  -h, --help               print this

Environment of the first `hotstart exec`, or of `run`: HOTSTART_SERVER_IDLE=SECONDS without use until it ends (600);
HOTSTART_SERVER_MEMORY=MIB for the halted tools (512); HOTSTART_SERVER_START=auto|fork|rewind, warm once it pays, or
from the first start in that way; HOTSTART_SERVER_COLD=TOOL,... are never started warm; with
HOTSTART_SERVER_PYTHON=1, scripts that Python runs with PYTHONHASHSEED are warm as well, with =share-seed all of them.
";

/// Runs `exec` or `server` if the arguments name one of them. The first argument is the program's name.
pub fn enter(args: &[OsString]) -> Option<ExitCode> {
    let rest = args.get(2..).unwrap_or_default();
    match args.get(1)?.to_str()? {
        "exec" => Some(exec(rest)),
        "server" => Some(server(rest)),
        _ => None,
    }
}

fn exec(args: &[OsString]) -> ExitCode {
    match args.first().and_then(|word| word.to_str()) {
        Some("-h" | "--help") => said(EXEC_HELP, exit_code::SUCCESS),
        Some("--compdb") => compdb::run(&args[1..]),
        Some("--install") => install(&args[1..]),
        Some("--uninstall") => uninstall(&args[1..]),
        Some(option) if option.starts_with('-') && option != "--" => {
            warn("exec", &format!("there is no option '{option}'; see --help"))
        }
        _ if args.iter().all(|word| word == "--") => warn("exec", "which command? see --help"),
        _ => {
            let error = hotstart_exec::become_client(args);
            warn("exec", &format!("cannot run the command: {error}"));
            exit_code::exit(127)
        }
    }
}

fn install(args: &[OsString]) -> ExitCode {
    let [directory, tools @ ..] = args else { return warn("exec", "--install: into which directory?") };
    match hotstart_exec::install(directory.as_ref(), tools) {
        Ok(made) => said(
            &made.iter().map(|path| format!("{}\n", path.display())).collect::<String>(),
            exit_code::SUCCESS,
        ),
        Err(error) => {
            warn("exec", &format!("cannot install into '{}': {error}", directory.to_string_lossy()))
        }
    }
}

fn uninstall(args: &[OsString]) -> ExitCode {
    let [directory] = args else { return warn("exec", "--uninstall: from which directory?") };
    match hotstart_exec::uninstall(directory.as_ref()) {
        Ok(gone) => said(
            &gone.iter().map(|path| format!("removed {}\n", path.display())).collect::<String>(),
            exit_code::SUCCESS,
        ),
        Err(error) => {
            warn("exec", &format!("cannot uninstall from '{}': {error}", directory.to_string_lossy()))
        }
    }
}

fn warm(tools: &[OsString]) -> ExitCode {
    let warmed = SocketDir::find()
        .map_err(|error| error.to_string())
        .and_then(|socket_dir| hotstart_exec::warm_up(&socket_dir, tools).map_err(|error| error.to_string()));
    match warmed {
        Ok(met) => said(&met.iter().map(line).collect::<String>(), exit_code::SUCCESS),
        Err(error) => warn("server", &error),
    }
}

fn line(met: &Met) -> String {
    let program = met.program.display();
    met.cold.as_ref().map_or_else(|| format!("warm  {program}\n"), |why| format!("cold  {program}: {why}\n"))
}

fn server(args: &[OsString]) -> ExitCode {
    match args {
        [first, tools @ ..] if first == "warm" && !tools.is_empty() => return warm(tools),
        _ => {}
    }
    let words: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
    match words.iter().map(|word| &**word).collect::<Vec<_>>()[..] {
        ["status"] => ask(|socket_dir| hotstart_exec::status(socket_dir, false)),
        ["status", "--json"] => ask(|socket_dir| hotstart_exec::status(socket_dir, true)),
        ["stop"] => ask(|socket_dir| {
            let ended = |_| Answer::Text("the server ended\n".into());
            hotstart_exec::stop(socket_dir, |text| _ = said(text, exit_code::SUCCESS)).map(|answer| {
                match answer {
                    Answer::Text(text) => ended(text),
                    none => none,
                }
            })
        }),
        ["run"] => run(false),
        ["run", "--detached"] => run(true),
        ["-h" | "--help"] => said(SERVER_HELP, exit_code::SUCCESS),
        _ => warn("server", "say status, warm, stop or run; see --help"),
    }
}

fn ask(question: impl FnOnce(&SocketDir) -> std::io::Result<Answer>) -> ExitCode {
    let none =
        |directory: &Path| said(&format!("no server runs in {}\n", directory.display()), exit_code::FAILURE);
    let socket_dir = match SocketDir::existing() {
        Ok(socket_dir) => socket_dir,
        Err(SocketDirError::Io(directory, error)) if error.kind() == ErrorKind::NotFound => {
            return none(&directory);
        }
        Err(error) => return warn("server", &error.to_string()),
    };
    match question(&socket_dir) {
        Ok(Answer::Text(text)) => said(&text, exit_code::SUCCESS),
        Ok(Answer::None) => none(socket_dir.directory()),
        Err(error) => warn("server", &format!("cannot ask it: {error}")),
    }
}

/// Runs the server. With `detached`, a client has started it for later ones, and it is no error if one already runs.
fn run(detached: bool) -> ExitCode {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(error) => return warn("server", &error),
    };
    signals::serve();
    match hotstart_exec::serve(&settings) {
        Ok(()) => exit_code::exit(exit_code::SUCCESS),
        Err(ServeError::Running) if detached => exit_code::exit(exit_code::SUCCESS),
        Err(error) => warn("server", &error.to_string()),
    }
}

fn settings() -> Result<Settings, String> {
    let mut settings = Settings {
        idle: Duration::from_secs(600),
        policy: Policy { cache: hotstart_launch::cache_directory(), ..Policy::default() },
    };
    if let Some(seconds) = number("HOTSTART_SERVER_IDLE")? {
        settings.idle = Duration::from_secs(seconds);
    }
    if let Some(mib) = number("HOTSTART_SERVER_MEMORY")? {
        settings.policy.memory = mib << 20;
    }
    if let Some(tools) = std::env::var_os("HOTSTART_SERVER_COLD") {
        settings.policy.never = tools.to_string_lossy().split(',').map(str::to_owned).collect();
    }
    (settings.policy.python, settings.policy.share_hash_seed) = match std::env::var("HOTSTART_SERVER_PYTHON")
        .as_deref()
    {
        Ok("1") => (true, false),
        Ok("share-seed") => (true, true),
        Ok("0") | Err(_) => (false, false),
        Ok(other) => return Err(format!("HOTSTART_SERVER_PYTHON: say 0, 1 or share-seed, not '{other}'")),
    };
    match std::env::var("HOTSTART_SERVER_START").as_deref() {
        Ok("auto") | Err(_) => {}
        Ok(how @ ("fork" | "rewind")) => {
            settings.policy.choice = Choice::Auto { after: 0 };
            settings.policy.resets = how == "rewind";
        }
        Ok(other) => return Err(format!("HOTSTART_SERVER_START: say auto, fork or rewind, not '{other}'")),
    }
    Ok(settings)
}

fn number(name: &str) -> Result<Option<u64>, String> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    let value = value.to_string_lossy();
    // The product with 2^20 must not overflow.
    let number = value.parse().ok().filter(|&number: &u64| number < 1 << 40);
    number.map(Some).ok_or_else(|| format!("{name}: '{value}' is not a number of that kind"))
}

fn warn(command: &str, text: &str) -> ExitCode {
    exit_code::refused(&format!("hotstart {command}: {text}\n"))
}
