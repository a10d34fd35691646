//! `hotstart --version`. With `--verbose`, also the versions of what takes part, features of the kernel, and the kinds of start that
//! work. Each kind is tried, since a list of features could miss an obstacle (a container's filter, an old glibc, another loader).

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use hotstart_launch::{
    Choice, EnvBlock, Group, Launcher, OnDoubt, Policy, ProcessGroup, Spec, Via, glibc_version,
    has_syscall_user_dispatch, needed_glibc,
};
use hotstart_lit::probe::{Probe, ProbeError};
use hotstart_lit::settings::Settings;
use hotstart_model::Environment;
use hotstart_python::which;
use rustix::fs::MemfdFlags;

/// A tool that does nothing and that every system has.
const TOOL: &str = "true";
/// The first starts of a tool may be cold or forks, until the launcher knows it.
const STARTS: usize = 4;

/// Returns the version alone.
pub fn short() -> String {
    format!("hotstart {}\n", env!("CARGO_PKG_VERSION"))
}

/// Returns the version, the system, and the kinds of start.
pub fn verbose() -> String {
    let mut text = short();
    let system = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let _ = writeln!(
        text,
        "system: {} {}, {}, glibc {}",
        part(system.sysname()),
        part(system.release()),
        part(system.machine()),
        glibc_version()
    );
    let _ = writeln!(text, "lit: {}", lit());
    let memory = |name, flags| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | flags).map(drop);
    line(&mut text, "sealed memory files", answer(memory("a", MemfdFlags::ALLOW_SEALING)));
    line(&mut text, "executable memory files (Linux 6.3)", answer(memory("b", MemfdFlags::EXEC)));
    let dispatch = if has_syscall_user_dispatch() { "yes" } else { "no" };
    line(&mut text, "system calls handed to the process (Linux 5.11; rewind needs it)", dispatch.to_owned());
    let needed = match needed_glibc() {
        Some((major, minor)) => format!("{major}.{minor} or newer"),
        None => "none will do on this kind of processor".to_owned(),
    };
    line(&mut text, "glibc for warm starts", needed);
    let search = std::env::var_os("PATH");
    let found = which::program(OsStr::new(TOOL), search.as_deref(), Path::new("/"));
    let Some(tool) = found.filter(|tool| which::is_executable(tool)) else {
        let _ = writeln!(text, "kinds of start: not tried, as there is no program '{TOOL}' along PATH");
        return text;
    };
    let _ = writeln!(text, "kinds of start, tried with {}:", tool.display());
    for (kind, resets) in [("fork", false), ("rewind", true)] {
        line(&mut text, kind, tried(&tool, resets).unwrap_or_else(|error| format!("no: {error}")));
    }
    line(&mut text, "cold", "yes".to_owned());
    text
}

/// Describes the lit that evaluates configs for tests in the working directory.
fn lit() -> String {
    let settings = Settings { cwd: std::env::current_dir().unwrap_or_default(), ..Settings::default() };
    let (launcher, group) = (Launcher::new(), Group::new());
    match Probe::start(&settings, &launcher, &group) {
        Ok(probe) => {
            let about = probe.about();
            let package = about.package_dir.display();
            format!("{} in '{package}', run by '{}'", about.lit_version_text, about.python.display())
        }
        Err(ProbeError::Nowhere(_)) => {
            "none; a run of `hotstart lit` lists the places that it searches".to_owned()
        }
        Err(error) => format!("none; {error}"),
    }
}

fn line(text: &mut String, what: &str, answer: String) {
    let _ = writeln!(text, "  {what}: {answer}");
}

fn answer(result: rustix::io::Result<()>) -> String {
    result.map_or_else(|error| format!("no: {error}"), |()| "yes".to_owned())
}

/// Starts the tool by fork, or in a persistent process. Says whether that worked, or why not.
fn tried(tool: &Path, resets: bool) -> io::Result<String> {
    let choice = Choice::Only(vec![TOOL.to_owned()]);
    let launcher = Launcher::new().with_policy(Policy {
        choice,
        resets,
        on_doubt: OnDoubt::Repeat,
        ..Policy::default()
    });
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let mut why = String::new();
    for _ in 0..STARTS {
        match start(&launcher, tool, &null)? {
            Via::Reset => return Ok("yes".to_owned()),
            Via::Fork if !resets => return Ok("yes".to_owned()),
            Via::Fork => {}
            Via::Cold(reason) => why = reason.to_string(),
        }
    }
    let tools = launcher.statistics().tools;
    let retired = tools.iter().flat_map(|tool| tool.retired.keys()).next().map(ToString::to_string);
    let stopped = tools.iter().find_map(|tool| tool.only_forked.as_ref()).map(ToString::to_string);
    Ok(format!("no: {}", stopped.or(retired).unwrap_or(why)))
}

fn start(launcher: &Launcher, tool: &Path, null: &File) -> io::Result<Via> {
    let group = Group::new();
    let env = EnvBlock::new(&Environment::new());
    let spec = Spec { process_group: ProcessGroup::New, ..Spec::plain(tool, TOOL.into(), env, null) };
    let child = launcher.start(&spec, &group).map_err(io::Error::other)?;
    Ok(child.wait().via)
}
