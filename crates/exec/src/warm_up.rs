//! `hotstart server warm`: prepares warm tools before a build begins.
//!
//! A server cannot know what a tool starts itself (gcc its cc1), nor how a build will call it. So each tool compiles and
//! links an empty file once through the client. Every program that the server has met then is warm from its next start on.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ask::{self, Answer};
use crate::image::{self, NAME};
use crate::socket_dir::SocketDir;

/// In a tool's first run it may turn out that it cannot be reset; its own starts are then cold. In the second run the server
/// meets the programs that the tool starts, and in the third they are warm.
const ROUNDS: usize = 3;
/// The time within which a server must answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between two checks for its answer.
const LOOK: Duration = Duration::from_millis(2);
/// Names of compilers that compile and link C with the options of cc.
const DRIVERS: [&str; 6] = ["clang", "clang++", "gcc", "g++", "cc", "c++"];

/// A program that the server has met during the preparation.
#[derive(Debug, PartialEq, Eq)]
pub struct Met {
    /// Its path.
    pub program: PathBuf,
    /// The reason if it is cold; `None` if it is warm.
    pub cold: Option<String>,
}

/// Starts a server if there is none, and prepares `tools` and the programs that they start. Names are looked up as the links
/// of an installation do.
pub fn warm_up(socket_dir: &SocketDir, tools: &[OsString]) -> io::Result<Vec<Met>> {
    let programs = tools.iter().map(|tool| resolve(tool)).collect::<io::Result<Vec<_>>>()?;
    await_server(socket_dir)?;
    ask::warm(socket_dir, &programs)?;
    let dir = std::env::temp_dir().join(format!("hotstart-warm-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let met = rounds(socket_dir, &programs, &dir);
    std::fs::remove_dir_all(&dir)?;
    met
}

fn rounds(socket_dir: &SocketDir, programs: &[PathBuf], dir: &Path) -> io::Result<Vec<Met>> {
    std::fs::write(dir.join("empty.c"), "")?;
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        programs.iter().try_for_each(|program| try_out(program, dir))?;
        found = met(socket_dir)?;
        let all: Vec<PathBuf> = found.iter().map(|met| met.program.clone()).collect();
        ask::warm(socket_dir, &all)?;
    }
    Ok(found)
}

fn resolve(tool: &OsStr) -> io::Result<PathBuf> {
    if Path::new(tool).components().count() > 1 {
        return std::path::absolute(tool);
    }
    image::find(tool).ok_or_else(|| image::nowhere(tool))
}

/// Waits for the server that a client starts for later ones.
fn await_server(socket_dir: &SocketDir) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut asked = false;
    while let Answer::None = ask::status(socket_dir, false)? {
        if !std::mem::replace(&mut asked, true) {
            client(&[OsStr::new("/bin/sh"), OsStr::new("-c"), OsStr::new(":")], Path::new("/"))?;
        }
        if Instant::now() > until {
            let log = socket_dir.directory().join("log");
            return Err(io::Error::other(format!("no server comes; see '{}'", log.display())));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Runs a tool with next to no work, as a build would start it: its output goes into pipes.
fn try_out(program: &Path, dir: &Path) -> io::Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let front = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let is_driver = DRIVERS.iter().any(|driver| front == *driver || front.ends_with(&format!("-{driver}")));
    let lines: &[&[&str]] = match is_driver {
        true => {
            &[&["-c", "empty.c", "-o", "empty.o"], &["-shared", "-nostdlib", "empty.o", "-o", "empty.so"]]
        }
        false => &[&["--version"]],
    };
    for line in lines {
        let words = line.iter().map(OsStr::new);
        client(&std::iter::once(program.as_os_str()).chain(words).collect::<Vec<_>>(), dir)?;
    }
    Ok(())
}

/// Runs a command through the client. Its status does not matter here.
fn client(words: &[&OsStr], dir: &Path) -> io::Result<()> {
    let (_image, path) = image::for_tools()?;
    let mut own = OsString::from("--hotstart=");
    own.push(std::env::current_exe()?);
    let mut command = Command::new(path);
    command.arg0(NAME).arg(own).arg("--").args(words).current_dir(dir).stdin(Stdio::null());
    command.output().map(|_| ())
}

fn met(socket_dir: &SocketDir) -> io::Result<Vec<Met>> {
    let Answer::Text(text) = ask::status(socket_dir, true)? else {
        return Err(io::Error::other("the server has ended meanwhile"));
    };
    let status: Value = serde_json::from_str(&text)?;
    let tools = status["tools"].as_array().into_iter().flatten();
    Ok(tools.filter_map(of_status).collect())
}

fn of_status(tool: &Value) -> Option<Met> {
    let is_warm = tool["reset"].as_u64()? + tool["forked"].as_u64()? > 0;
    let reason = || tool["cold_reasons"].as_object()?.keys().next_back().cloned();
    let cold = if is_warm { None } else { reason() };
    Some(Met { program: tool["program"].as_str()?.into(), cold })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_that_was_never_warm_has_its_last_reason() {
        let tool = |reset, reasons| json!({"program": "/bin/cc", "reset": reset, "forked": 0, "cold_reasons": reasons});
        let met = |tool: &Value| of_status(tool).unwrap().cold;
        assert_eq!(met(&tool(1, json!({"few": 2}))), None);
        assert_eq!(met(&tool(0, json!({"few": 2, "it is a script": 1}))), Some("it is a script".into()));
        assert_eq!(of_status(&json!({})), None);
    }
}
