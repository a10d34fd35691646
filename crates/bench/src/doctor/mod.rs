//! What starting processes costs on this machine, and what could make it cost less.
//!
//! Each part measures one thing and answers with a [`Table`] that says what it could not measure and why, and with
//! the findings on which [`advice`] is based. Everything is done as an ordinary user, by the process itself or by
//! children of it.

pub mod advice;
mod allocators;
mod faults;
mod patience;
mod starts;
mod timeline;
mod tool;
mod ways;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::machine::{Machine, Quiet, Watch};
use crate::render::seconds;

pub use advice::Finding;
pub use allocators::{Allocator, allocate_here};
use patience::Patience;

/// For everything, with some seconds left below a minute for what is under way when it ends.
const PATIENCE: Duration = Duration::from_secs(44);
/// Of it, at most, for all tools together.
const PATIENCE_TOOLS: Duration = Duration::from_secs(20);

/// What to measure.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Command lines of tools, each with what makes it do next to nothing; `--version` is added to a lone name.
    pub tools: Vec<String>,
    /// Allocators beside those found: a name and a shared library.
    pub allocators: Vec<(String, PathBuf)>,
    /// This very binary, for measuring in processes of their own.
    pub own_binary: PathBuf,
}

/// A measured table, or several lines of why there is none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Heads of the columns, the first above the labels.
    pub head: Vec<String>,
    /// Labels and cells.
    pub rows: Vec<Vec<String>>,
    /// What is to be known when reading it.
    pub notes: Vec<String>,
    /// Lines `X could not be measured because Y`.
    pub gaps: Vec<String>,
    /// Curves for the page.
    pub curves: Vec<Curve>,
    /// What the curves' x values are.
    pub across: String,
}

/// Named points; y in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

impl Table {
    fn new(title: &str, head: &[&str]) -> Self {
        let head = head.iter().map(|&text| text.to_owned()).collect();
        Table { title: title.to_owned(), head, ..Table::default() }
    }

    fn row(&mut self, label: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        self.rows.push(std::iter::once(label.into()).chain(cells).collect());
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Notes once that something could not be measured.
    fn gap(&mut self, what: &str, why: impl std::fmt::Display) {
        let line = format!("{what} could not be measured because {why}");
        if !self.gaps.contains(&line) {
            self.gaps.push(line);
        }
    }
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// Where.
    pub machine: Machine,
    /// How quiet it was.
    pub quiet: Quiet,
    /// What was measured.
    pub tables: Vec<Table>,
    /// What to change.
    pub advice: Vec<String>,
    /// How long it took.
    pub elapsed_s: f64,
}

/// Measures everything; `progress` is told what comes next.
pub fn diagnose(request: &Request, mut progress: impl FnMut(&str)) -> Diagnosis {
    let begun = std::time::Instant::now();
    let machine = Machine::read();
    let (watch, used) = (Watch::start(), processor_time());
    let patience = Patience::new(PATIENCE);
    let mut parts = Vec::new();
    // The tools first: a child begins with its parent's peak memory, which the other parts raise to a gigabyte.
    for line in &request.tools {
        progress(line);
        parts.extend(tool::measure(line, &patience, PATIENCE_TOOLS / request.tools.len() as u32));
    }
    let of_tools = parts.len();
    let mut add = |part: (Table, Vec<Finding>)| parts.push(part);
    progress("starting processes from parents of different size");
    add(starts::by_size(&patience));
    progress("forking with threads");
    add(starts::with_threads(&patience));
    progress("page faults");
    add(faults::by_kind(&patience));
    progress("filling memory");
    add(faults::filling(&patience));
    progress("allocating");
    add(allocators::measure(request, &patience));
    parts.rotate_left(of_tools);
    let (tables, findings): (Vec<Table>, Vec<Vec<Finding>>) = parts.into_iter().unzip();
    let findings: Vec<Finding> = findings.into_iter().flatten().collect();
    let advice = advice::advise(&findings, &machine);
    let quiet = watch.end(processor_time() - used);
    Diagnosis { machine, quiet, tables, advice, elapsed_s: begun.elapsed().as_secs_f64() }
}

/// Seconds that this process and its children have used so far.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may contain anything: the state, then numbers; 11 to 14 are the four times.
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: u64 = rest.split(' ').skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// A cell: the time, or a dash for what is explained below the table.
fn cell(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), seconds)
}

const MIB: usize = 1 << 20;

/// How much of `wanted` can be used without harm: half of what is free. Or why not even `least`.
fn affordable(wanted: usize, least: usize) -> Result<usize, String> {
    let free = crate::machine::meminfo("MemAvailable").unwrap_or(256) as usize * MIB;
    let usable = (free / 2).min(wanted) / (2 * MIB) * (2 * MIB);
    if usable >= least { Ok(usable) } else { Err(format!("only {} MiB of memory are free", free / MIB)) }
}
