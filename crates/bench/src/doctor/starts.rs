//! The cost of the four ways to start a process, by the parent's size and its threads.
//!
//! The child is a program of two instructions, so that the figures show the start itself and not a tool's work.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hotstart_launch::probe::{self, Ballast, StartCost, Way};

use super::patience::Patience;
use super::{Curve, Finding, MIB, Table, affordable, cell};
use crate::stats::summary::median;

/// Starts of each kind, and the time after which the lower bound is enough.
const TIMES: std::ops::RangeInclusive<usize> = 3..=15;
const TIME: Duration = Duration::from_millis(300);
/// Sizes of the parent in MiB, in addition to its own few.
const SIZES: [usize; 5] = [0, 64, 256, 450, 1024];

/// The program that children run. If this process wrote it, it is removed when dropped.
struct Program {
    path: PathBuf,
    own: bool,
}

impl Program {
    fn new() -> Program {
        let path = std::env::temp_dir().join(format!("hotstart-doctor-{}", std::process::id()));
        let made = tiny_elf().is_some_and(|elf| {
            let executable = || std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700));
            std::fs::write(&path, elf).and_then(|()| executable()).is_ok()
        });
        if made && probe::start(Way::PosixSpawn, &path).is_ok() {
            return Program { path, own: true };
        }
        // The directory forbids execution, or the instructions of this processor are unknown here.
        std::fs::remove_file(&path).ok();
        Program { path: "/bin/true".into(), own: false }
    }

    fn note(&self, table: &mut Table) {
        let what = if self.own { "a static program of two instructions" } else { "/bin/true" };
        table.note(format!(
            "the child is {what}; medians of up to {} starts, until the child was waited for",
            TIMES.end()
        ));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.own {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Builds an ELF file whose only code is exit(0).
fn tiny_elf() -> Option<Vec<u8>> {
    let (machine, code): (u16, &[u8]) = match std::env::consts::ARCH {
        "x86_64" => (62, &[0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]),
        "aarch64" => (183, &[0, 0, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4]),
        _ => return None,
    };
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let size = HEADERS + code.len() as u64;
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // Executable, machine, version; entry; offsets of program and section headers; flags; sizes and counts.
    elf.extend([2u16, machine].iter().flat_map(|v| v.to_le_bytes()));
    elf.extend(1u32.to_le_bytes());
    elf.extend([BASE + HEADERS, 64, 0].iter().flat_map(|v| v.to_le_bytes()));
    elf.extend(0u32.to_le_bytes());
    elf.extend([64u16, 56, 1, 64, 0, 0].iter().flat_map(|v| v.to_le_bytes()));
    // One segment to load, readable and executable: offset, addresses, sizes, alignment.
    elf.extend([1u32, 5].iter().flat_map(|v| v.to_le_bytes()));
    elf.extend([0, BASE, BASE, size, size, 4096].iter().flat_map(|v: &u64| v.to_le_bytes()));
    elf.extend(code);
    Some(elf)
}

fn label(way: Way) -> &'static str {
    match way {
        Way::PosixSpawn => "posix_spawn",
        Way::Vfork => "vfork + exec",
        Way::ForkExec => "fork + exec",
        Way::Fork => "fork alone",
    }
}

/// Returns the median seconds from a start until the child was waited for.
fn cost(way: Way, program: &Path, patience: &Patience) -> Result<f64, String> {
    let once = || probe::start(way, program).map_err(|error| error.to_string());
    // The first start finds cold caches.
    once()?;
    let starts: Vec<StartCost> = patience.repeat(TIMES, TIME, once)?;
    Ok(median(&starts.iter().map(|start| start.ended.as_secs_f64()).collect::<Vec<_>>()))
}

/// Measures each way by the size of the parent.
pub(super) fn by_size(patience: &Patience) -> (Table, Vec<Finding>) {
    let program = Program::new();
    let heads: Vec<String> = SIZES.iter().map(|&mib| size_label(mib)).collect();
    let heads: Vec<&str> = std::iter::once("parent").chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new("starting a process, by size of the parent", &heads);
    program.note(&mut table);
    let mut costs = vec![Vec::new(); Way::ALL.len()];
    for mib in SIZES {
        let ballast = ballast(mib);
        for (way, costs) in Way::ALL.into_iter().zip(&mut costs) {
            let found =
                ballast.as_ref().map_err(String::clone).and_then(|_| cost(way, &program.path, patience));
            if let Err(why) = &found {
                table.gap(&format!("{} from {}", label(way), size_label(mib)), why);
            }
            costs.push(found.ok());
        }
    }
    for (way, costs) in Way::ALL.into_iter().zip(&costs) {
        table.row(label(way), costs.iter().map(|&c| cell(c)));
        let points = SIZES.iter().zip(costs).filter_map(|(&mib, c)| Some((mib as f64, (*c)?))).collect();
        table.curves.push(Curve { name: label(way).to_owned(), points });
    }
    table.across = "memory of the parent in MiB, in 4 KiB pages".to_owned();
    let found = match (costs[0][3], costs[2][3]) {
        (Some(spawn), Some(fork)) => vec![Finding::ForkOfLargeProcess { spawn, fork }],
        _ => Vec::new(),
    };
    (table, found)
}

fn size_label(mib: usize) -> String {
    if mib == 0 { "own size".to_owned() } else { format!("{mib} MiB") }
}

fn ballast(mib: usize) -> Result<Option<Ballast>, String> {
    if mib == 0 {
        return Ok(None);
    }
    affordable(mib * MIB, mib * MIB)?;
    Ballast::take(mib * MIB).map(Some).map_err(|error| error.to_string())
}

/// Threads beside the one that forks: their number, and whether they write to memory all the time.
const THREADS: [(usize, bool); 5] = [(0, false), (4, false), (16, false), (1, true), (2, true)];

/// Measures forking and spawning while other threads exist, from a parent of 64 MiB.
pub(super) fn with_threads(patience: &Patience) -> (Table, Vec<Finding>) {
    let program = Program::new();
    let heads = ["other threads", "none", "4 idle", "16 idle", "1 writing", "2 writing"];
    let mut table = Table::new("starting a process from 64 MiB, by threads of the parent", &heads);
    program.note(&mut table);
    table.note("writing threads touch the parent's 64 MiB: each page once more after each fork, by a copy");
    for way in [Way::PosixSpawn, Way::ForkExec, Way::Fork] {
        let mut cells = Vec::new();
        for (count, busy) in THREADS {
            let found = ballast(64)
                .and_then(|b| with(count, busy, b.as_ref(), || cost(way, &program.path, patience)));
            if let Err(why) = &found {
                table.gap(&format!("{} with {count} threads", label(way)), why);
            }
            cells.push(cell(found.ok()));
        }
        table.row(label(way), cells);
    }
    (table, Vec::new())
}

/// Returns the result of `measure`, called while `count` other threads exist.
fn with<T>(count: usize, busy: bool, ballast: Option<&Ballast>, measure: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    let ready = std::sync::Barrier::new(count + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    ready.wait();
                    while !over.load(Ordering::Relaxed) {
                        match ballast {
                            Some(ballast) if busy => ballast.touch(),
                            _ => std::thread::park(),
                        }
                    }
                })
            })
            .collect();
        ready.wait();
        let found = measure();
        over.store(true, Ordering::Relaxed);
        threads.iter().for_each(|thread| thread.thread().unpark());
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiny_program_runs_or_has_a_replacement() {
        let program = Program::new();
        let patience = Patience::new(Duration::from_secs(60));
        assert!(cost(Way::PosixSpawn, &program.path, &patience).unwrap() > 0.0);
        let path = program.path.clone();
        let own = program.own;
        drop(program);
        assert_eq!(path.exists(), !own);
        if let Some(elf) = tiny_elf() {
            assert!(elf.len() < 140 && elf.starts_with(b"\x7fELF"));
        }
    }

    #[test]
    fn threads_end_when_the_measurement_does() {
        assert_eq!(with(3, false, None, || 7), 7);
        let ballast = Ballast::take(MIB).unwrap();
        assert_eq!(with(2, true, Some(&ballast), || 8), 8);
    }
}
