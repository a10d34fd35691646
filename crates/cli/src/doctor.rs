//! `hotstart doctor`: the cost of process start on this machine, as a table and as an HTML page.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use hotstart_bench::doctor::{self, Request};
use hotstart_bench::render;
use hotstart_launch::signals;
use hotstart_report::Sink;

use crate::exit_code;

pub(crate) const HELP: &str = "\
usage: hotstart doctor [OPTIONS] [TOOL...]

Measures what starting processes, page faults and allocations cost on this machine, and what the start of each TOOL
is made of. A TOOL is a name or path, run with --version, or one word with its arguments: 'opt -S -o - in.ll'.
Takes less than a minute with a few tools, and needs no privileges.

  --html FILE              write a page with plots there as well
  --allocator NAME=FILE    compare this shared library's malloc too
  -h, --help               print this

Exit code: 0 if it ran, even if something could not be measured; 2 if the command line or a file was wrong, or there is no such TOOL.
";

/// The request of a command line.
enum Asked {
    Help,
    /// Allocate in this process. The doctor starts itself so, with a library preloaded.
    Allocate(usize),
    Diagnose(Request, Option<PathBuf>),
}

/// Runs `hotstart doctor` with the arguments after `doctor`.
pub fn run(args: &[OsString]) -> ExitCode {
    match parse(args) {
        Err(error) => warn(&error),
        Ok(Asked::Help) => said(HELP),
        Ok(Asked::Allocate(threads)) => said(&doctor::allocate_here(threads)),
        Ok(Asked::Diagnose(request, html)) => match doctor::check(&request) {
            Err(error) => warn(&error),
            Ok(()) => diagnose(&request, html),
        },
    }
}

fn parse(args: &[OsString]) -> Result<Asked, String> {
    let own_binary = std::env::current_exe().map_err(|error| format!("cannot find this binary: {error}"))?;
    let mut request = Request { own_binary, ..Request::default() };
    let mut html = None;
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(OsString::from(value))),
            _ => (text.clone(), None),
        };
        let mut value =
            || attached.clone().or_else(|| words.next().cloned()).ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "-h" | "--help" => return Ok(Asked::Help),
            "--html" => html = Some(PathBuf::from(value()?)),
            "--allocate" => {
                let threads = value()?.to_str().and_then(|n| n.parse().ok()).filter(|n| (1..=64).contains(n));
                return Ok(Asked::Allocate(threads.ok_or("--allocate: not a number of threads")?));
            }
            "--allocator" => {
                let value = value()?.to_string_lossy().into_owned();
                let (name, file) = value.split_once('=').ok_or("--allocator: write NAME=FILE")?;
                request.allocators.push((name.to_owned(), file.into()));
            }
            other if other.starts_with('-') => {
                return Err(format!("there is no option '{other}'; see --help"));
            }
            _ => request.tools.push(text),
        }
    }
    Ok(Asked::Diagnose(request, html))
}

fn diagnose(request: &Request, html: Option<PathBuf>) -> ExitCode {
    // A stopped diagnosis leaves nothing to save; its children end by themselves at once.
    let attend = || signals::die_of(signals::wait_for_stop().signal());
    if let Err(error) = std::thread::Builder::new().spawn(attend) {
        return warn(&format!("cannot start a thread: {error}; allow more processes (ulimit -u)"));
    }
    let mut err = Sink::stderr();
    let shown = std::io::stderr().is_terminal();
    let diagnosis = doctor::diagnose(request, |what| {
        if shown {
            err.put(&format!("\r\x1b[K{what}"));
            err.flush();
        }
    });
    if shown {
        err.put("\r\x1b[K");
        err.flush();
    }
    let code = said(&render::doctor::text(&diagnosis));
    match html.map(|path| (std::fs::write(&path, render::doctor::html(&diagnosis)), path)) {
        Some((Err(error), path)) => warn(&format!("cannot write '{}': {error}", path.display())),
        _ => code,
    }
}

fn said(text: &str) -> ExitCode {
    let mut out = Sink::stdout();
    out.put(text);
    exit_code::written(&mut out, exit_code::SUCCESS)
}

fn warn(text: &str) -> ExitCode {
    let mut err = Sink::stderr();
    err.line(&format!("hotstart doctor: {text}"));
    err.flush();
    exit_code::exit(exit_code::ERROR)
}
