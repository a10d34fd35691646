//! The cost of allocations with the system's allocator and with others, measured in separate processes.
//!
//! Other allocators are preloaded from the libraries that `hotstart lit --allocator` finds, so that they replace `malloc`
//! exactly as they would in a tool. Linking them in would measure something else, and every build would need them.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotstart_launch::allocator::{KNOWN, directories, find};
use hotstart_launch::{EnvBlock, Group, Launcher, ProcessGroup, Spec, probe};
use hotstart_model::Environment;

use super::patience::Patience;
use super::{Curve, Finding, Request, Table, cell};
use crate::stats::summary::median;

/// Allocations per thread.
const COUNT: usize = 400_000;
const THREADS: [usize; 3] = [1, 2, 4];
/// Number of repetitions, and the time after which the lower bound is enough.
const TIMES: std::ops::RangeInclusive<usize> = 1..=3;
const TIME: Duration = Duration::from_millis(500);

/// An allocator and the path of its library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// Its name.
    pub name: String,
    /// The library to preload; `None` is the system's own allocator.
    pub library: Option<PathBuf>,
}

/// Measures the time per allocation, by allocator and number of threads.
pub(super) fn measure(request: &Request, patience: &Patience) -> (Table, Vec<Finding>) {
    let heads = ["", "1 thread", "2 threads", "4 threads"];
    let mut table = Table::new("malloc and free: time for each of all threads together", &heads);
    table.note(format!(
        "{COUNT} blocks of 16 to 1039 bytes by each thread, 4096 alive; medians of up to {}",
        TIMES.end()
    ));
    let mut findings = Vec::new();
    let mut system = None;
    for allocator in allocators(request, &mut table) {
        let found: Vec<Option<f64>> = THREADS
            .iter()
            .map(|&threads| in_process(&allocator, threads, &request.own_binary, patience))
            .map(|found| found.map_err(|why| table.gap(&allocator.name, why)).ok())
            .collect();
        table.row(allocator.name.clone(), found.iter().map(|&c| cell(c)));
        let points = THREADS.iter().zip(&found).filter_map(|(&n, y)| Some((n as f64, (*y)?))).collect();
        table.curves.push(Curve { name: allocator.name.clone(), points });
        match (&allocator.library, found[0], system) {
            (None, time, _) => system = time,
            (Some(library), Some(time), Some(system)) => {
                findings.push(Finding::Allocator { library: library.clone(), system, time });
            }
            _ => {}
        }
    }
    table.across = "threads".to_owned();
    (table, findings)
}

fn allocators(request: &Request, table: &mut Table) -> Vec<Allocator> {
    let mut all = vec![Allocator { name: "system".to_owned(), library: None }];
    let dirs = directories();
    for known in KNOWN {
        if request.allocators.iter().any(|(other, _)| other == known.name) {
            continue;
        }
        match find(known, &dirs) {
            Some(path) => all.push(Allocator { name: known.name.to_owned(), library: Some(path) }),
            None => table.gap(known.name, known.missing()),
        }
    }
    for (name, path) in &request.allocators {
        if path.exists() {
            all.push(Allocator { name: name.clone(), library: Some(path.clone()) });
        } else {
            table.gap(name, format!("there is no file '{}'", path.display()));
        }
    }
    all
}

/// Runs [`allocate_here`] in another process with the allocator preloaded. Returns seconds per allocation.
fn in_process(
    allocator: &Allocator,
    threads: usize,
    own_binary: &Path,
    patience: &Patience,
) -> Result<f64, String> {
    let once = || {
        let text = ask(allocator, threads, own_binary)?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let [nanoseconds, maps @ ..] = &words[..] else { return Err("the process said nothing".to_owned()) };
        // ld.so skips a library that it cannot load, and only prints a warning.
        if allocator.library.is_some() && maps != ["preloaded"] {
            return Err("the library could not be preloaded".to_owned());
        }
        let nanoseconds: f64 = nanoseconds.parse().map_err(|_| "the process said no number".to_owned())?;
        Ok(nanoseconds * 1e-9 / (COUNT * threads) as f64)
    };
    Ok(median(&patience.repeat(TIMES, TIME, once)?))
}

fn ask(allocator: &Allocator, threads: usize, own_binary: &Path) -> Result<String, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut env: Environment = std::env::vars_os().collect();
    env.unset("LD_PRELOAD");
    if let Some(library) = &allocator.library {
        env.set("LD_PRELOAD", library.clone());
    }
    let (from, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| text(&e))?;
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").map_err(|e| text(&e))?;
    let spec = Spec {
        program: own_binary.to_owned(),
        argv: ["hotstart", "doctor", "--allocate", &threads.to_string()].map(Into::into).to_vec(),
        env: EnvBlock::new(&env),
        cwd: Path::new("/").into(),
        stdio: [null.as_fd(), to.as_fd(), null.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: true,
        process_group: ProcessGroup::New,
    };
    let (launcher, group) = (Launcher::new(), Group::new());
    let child = launcher.start(&spec, &group).map_err(|e| text(&e))?;
    drop(to);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut std::fs::File::from(from), &mut said).map_err(|e| text(&e))?;
    let exit = child.wait();
    if exit.status.success() { Ok(said) } else { Err(crate::measure::describe(exit.status)) }
}

/// Runs in the measured process. Returns as text the nanoseconds per allocation, and whether a preloaded allocator is mapped.
pub fn allocate_here(threads: usize) -> String {
    probe::allocate(threads, COUNT / 10);
    let time = probe::allocate(threads, COUNT);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let library = std::env::var_os("LD_PRELOAD").map(PathBuf::from).and_then(|path| path.canonicalize().ok());
    let loaded =
        library.is_some_and(|path| maps.lines().any(|line| line.ends_with(&*path.to_string_lossy())));
    format!("{} {}", time.as_nanos(), if loaded { "preloaded" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocating_here_gives_a_number() {
        let text = allocate_here(2);
        assert!(text.split(' ').next().unwrap().parse::<u64>().unwrap() > 0, "{text}");
    }

    #[test]
    fn a_named_library_that_is_missing_is_a_gap() {
        let mut table = Table::default();
        let request =
            Request { allocators: vec![("rpmalloc".into(), "/no/lib.so".into())], ..Request::default() };
        let names: Vec<String> = allocators(&request, &mut table).into_iter().map(|a| a.name).collect();
        assert!(!names.contains(&"rpmalloc".to_owned()));
        assert!(
            table
                .gaps
                .contains(&"rpmalloc could not be measured because there is no file '/no/lib.so'".into())
        );
    }
}
