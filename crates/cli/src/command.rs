//! hotstart's commands, and the names under which the binary is one of them.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use hotstart_report::Sink;

use crate::{ab, doctor, exit_code, lit, version};

const USAGE: &str = "\
usage: hotstart COMMAND [ARGUMENTS]

  hotstart lit [OPTIONS] PATH...   run tests in lit's place; `hotstart lit --help` lists the options
  hotstart ab [OPTIONS] -- A... -- B...
                                   compare what commands cost, run by turns; `hotstart ab --help` lists the options
  hotstart doctor [OPTIONS] [TOOL...]
                                   measure what starting processes costs here; `hotstart doctor --help` says more
  hotstart exec -- COMMAND...      run a command warm, through a server of the user's; `hotstart exec --help`
  hotstart server status|stop      look at that server, end it; `hotstart server --help` says more
  hotstart --version [--verbose]   print the version; also the system, and which kinds of start work on it
  hotstart --help                  print this

By the name of `lit`, `llvm-lit` or `hotstart-lit` (a link to hotstart), it is `hotstart lit`.
";

/// Runs the command that the arguments, the program's name first, ask for.
pub fn run(args: &[OsString]) -> ExitCode {
    let name = args.first().map(|name| Path::new(name).file_stem().unwrap_or_default().to_string_lossy());
    let name = name.unwrap_or_default();
    let rest = args.get(1..).unwrap_or_default();
    if matches!(&*name, "lit" | "llvm-lit" | "hotstart-lit") {
        return lit::run(&name, args.first().map(OsString::as_os_str), rest);
    }
    let first = rest.first().map(|word| word.to_string_lossy());
    match first.as_deref() {
        Some("lit") => lit::run("lit", None, &rest[1..]),
        Some("ab") => ab::run(&rest[1..]),
        Some("doctor") => doctor::run(&rest[1..]),
        Some("--version" | "-V") => match rest.get(1).map(|word| word.to_string_lossy()).as_deref() {
            Some("--verbose" | "-v") => said(&version::verbose()),
            _ => said(&version::short()),
        },
        Some("--help" | "-h" | "help") => said(USAGE),
        Some(other) => refused(&format!("hotstart: there is no command '{other}'\n\n{USAGE}")),
        None => refused(USAGE),
    }
}

fn said(text: &str) -> ExitCode {
    let mut out = Sink::stdout();
    out.put(text);
    exit_code::written(&mut out, exit_code::SUCCESS)
}

fn refused(text: &str) -> ExitCode {
    let mut err = Sink::stderr();
    err.put(text);
    err.flush();
    exit_code::exit(exit_code::ERROR)
}
