//! Measures the phases of a dynamic tool's start, from the lines that ld.so prints while the tool runs.
//!
//! `LD_DEBUG=libs` makes ld.so print a line when it looks for a library, calls a constructor, hands over to the program and
//! calls a destructor. The time at which a line arrives is the time at which it happened, give or take the pipe.
//! `LD_DEBUG=statistics` says how loading and relocation share the time before the first constructor. Only the shares are
//! used, since the unit of its times differs between machines.
//! No debugger is attached, so an ordinary user may do this anywhere.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use hotstart_launch::{EnvBlock, Exit, Group, Launcher, ProcessGroup, Spec};
use hotstart_model::Environment;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use super::patience::within;
use crate::command::Command;

/// A tool that takes longer than this for next to nothing is ended.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// After this long without a line, the reader sleeps.
const SPIN: Duration = Duration::from_millis(20);

/// Points in the life of a process, in seconds since the request to start it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Timeline {
    /// The first line of ld.so.
    pub loader: f64,
    /// The first constructor.
    pub constructors: f64,
    /// The program's own start.
    pub main: f64,
    /// The first destructor, if the program ends through exit().
    pub exit: Option<f64>,
    /// The process was waited for.
    pub end: f64,
    /// Number of constructors called, one for each library and the program.
    pub libraries: usize,
    /// Number of pieces in which the lines arrived. More pieces separate the events better.
    pub pieces: usize,
}

/// How the reader waits. The better way depends on how busy the machine is: a sleeping reader wakes up late on an idle
/// machine, and a polling reader on a busy one loses its processor just when something arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Polls.
    Spin,
    /// Sleeps until something arrives.
    Sleep,
}

/// ld.so's own statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Statistics {
    /// Relocation's share of ld.so's time.
    pub relocation: f64,
    /// The share of finding and mapping libraries.
    pub loading: f64,
    /// Symbols looked up at the start.
    pub relocations: u64,
    /// Symbols looked up by the end, including those bound late.
    pub final_relocations: u64,
    /// Addresses adjusted without a lookup.
    pub relative: u64,
}

/// Runs the command with these variables. Returns its exit and the pieces of its standard error, each with its time.
pub(super) fn run(
    command: &Command,
    settings: &[(&str, &str)],
    wait: Wait,
) -> Result<(Exit, Vec<(f64, String)>), String> {
    let mut env: Environment = std::env::vars_os().collect();
    settings.iter().for_each(|(name, value)| env.set(name, value));
    let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.to_string())?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(|error| error.to_string())?;
    let spec = Spec {
        program: command.program.clone(),
        argv: command.argv.clone(),
        env: EnvBlock::new(&env),
        cwd: std::env::current_dir().map_err(|error| error.to_string())?.into(),
        stdio: [null.as_fd(), null.as_fd(), to.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: true,
        process_group: ProcessGroup::New,
    };
    let (launcher, group) = (Launcher::new(), Group::new());
    let begun = Instant::now();
    let child = launcher.start(&spec, &group).map_err(|error| error.to_string())?;
    drop(to);
    within(LIMIT, &group, || {
        let pieces = read(&from, begun, wait);
        (child.wait(), pieces)
    })
}

/// Reads until the end. Returns each piece with the time of its arrival.
fn read(from: &OwnedFd, begun: Instant, wait: Wait) -> Vec<(f64, String)> {
    let mut last = begun;
    let (mut pieces, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    rustix::io::ioctl_fionbio(from, true).ok();
    loop {
        match rustix::io::read(from, &mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                last = Instant::now();
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                pieces.push(((last - begun).as_secs_f64(), text));
            }
            Err(Errno::AGAIN) if wait == Wait::Spin && last.elapsed() < SPIN => std::hint::spin_loop(),
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::new(from, PollFlags::IN)];
                poll(&mut fds, None).ok();
            }
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    pieces
}

/// Returns the timeline of one run.
pub(super) fn timeline(command: &Command, wait: Wait) -> Result<Timeline, String> {
    let (exit, pieces) = run(command, &[("LD_DEBUG", "libs")], wait)?;
    read_timeline(&pieces, exit.wall.as_secs_f64())
}

fn read_timeline(pieces: &[(f64, String)], end: f64) -> Result<Timeline, String> {
    let mut lines = pieces.iter().flat_map(|(time, text)| text.lines().map(move |line| (*time, line)));
    let silent = "ld.so says nothing: it is statically linked, a script, privileged, or not loaded by glibc";
    let loader = pieces.first().map(|(time, _)| *time).ok_or(silent)?;
    let (mut constructors, mut main, mut libraries, mut process) = (None, None, 0, None);
    for (time, line) in lines.by_ref() {
        let (number, text) = line.split_once(':').unwrap_or(("", line));
        if text.contains("calling init:") {
            // Children print the same lines under their own process numbers.
            if *process.get_or_insert(number) == number {
                constructors.get_or_insert(time);
                libraries += 1;
            }
        } else if text.contains("transferring control:") {
            main = Some(time);
            break;
        }
    }
    let main = main.ok_or(silent)?;
    let exit = lines.find(|(_, line)| line.contains("calling fini:")).map(|(time, _)| time);
    let constructors = constructors.unwrap_or(main);
    Ok(Timeline { loader, constructors, main, exit, end, libraries, pieces: pieces.len() })
}

/// Returns ld.so's statistics of one run.
pub(super) fn statistics(command: &Command, settings: &[(&str, &str)]) -> Result<Statistics, String> {
    let (_, pieces) = run(command, &[&[("LD_DEBUG", "statistics")], settings].concat(), Wait::Sleep)?;
    let text: String = pieces.into_iter().map(|(_, text)| text).collect();
    read_statistics(&text).ok_or_else(|| "ld.so gives no statistics".to_owned())
}

fn read_statistics(text: &str) -> Option<Statistics> {
    let after = |name: &str| {
        let line = text.lines().find(|line| line.contains(name))?;
        line.split_once(name)?.1.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    let cycles = after("total startup time in dynamic loader")?;
    let share = |name| Some(after(name)? as f64 / cycles.max(1) as f64);
    Some(Statistics {
        relocation: share("time needed for relocation")?,
        loading: share("time needed to load objects")?,
        relocations: after(" number of relocations").unwrap_or(0),
        final_relocations: after("final number of relocations").unwrap_or(0),
        relative: after("number of relative relocations").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_is_read_off_the_lines() {
        let pieces = [
            (0.1, "  7:\tfind library=libc.so.6 [0]; searching\n".to_owned()),
            (0.2, "  7:\tcalling init: /lib/ld.so\n  7:\n  7:\tcalling init: /lib/libc.so.6\n".to_owned()),
            (0.3, "  7:\tinitialize program: x\n  7:\n  7:\ttransferring control: x\n".to_owned()),
            (0.4, "tool's own words\n  7:\tcalling fini: x [0]\n".to_owned()),
        ];
        let found = read_timeline(&pieces, 0.5).unwrap();
        let expected = Timeline {
            loader: 0.1,
            constructors: 0.2,
            main: 0.3,
            exit: Some(0.4),
            end: 0.5,
            libraries: 2,
            pieces: 4,
        };
        assert_eq!(found, expected);
        assert!(read_timeline(&[], 0.5).unwrap_err().contains("statically linked"));
        assert!(read_timeline(&[(0.1, "own words\n".to_owned())], 0.5).is_err());
    }

    #[test]
    fn statistics_are_read() {
        let text = "  5:\truntime linker statistics:\n  5:\t  total startup time in dynamic loader: 1000 cycles\n\
                    5:\t  time needed for relocation: 600 cycles (60.0%)\n  5:\t   number of relocations: 75\n\
                    5:\t   number of relocations from cache: 3\n  5:\t   number of relative relocations: 1307\n\
                    5:\t   time needed to load objects: 300 cycles (30.0%)\n\
                    5:\truntime linker statistics:\n  5:\t  final number of relocations: 80\n";
        let found = read_statistics(text).unwrap();
        assert_eq!((found.relocation, found.loading), (0.6, 0.3));
        assert_eq!((found.relocations, found.final_relocations, found.relative), (75, 80, 1307));
        assert_eq!(read_statistics("nothing"), None);
    }
}
