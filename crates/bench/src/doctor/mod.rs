//! The cost of starting processes on this machine, and advice to lower it.
//!
//! Each part measures one thing. It returns a [`Table`], which also says what could not be measured and why, and the
//! findings on which [`advice`] is based. Everything runs as an ordinary user, in this process or in its children.

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

/// Time for everything. It leaves some seconds below a minute for a measurement that is running at the end.
const PATIENCE: Duration = Duration::from_secs(44);
/// At most this part of it is for all tools together.
const PATIENCE_TOOLS: Duration = Duration::from_secs(20);

/// The tools and allocators to measure.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Command lines of tools, each with arguments by which it does next to nothing. A lone name gets `--version`.
    pub tools: Vec<String>,
    /// Allocators beside those found: names and shared libraries.
    pub allocators: Vec<(String, PathBuf)>,
    /// This program's own binary, for measurements in separate processes.
    pub own_binary: PathBuf,
}

/// A measured table, or the reasons why there is none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Heads of the columns, the first above the labels.
    pub head: Vec<String>,
    /// Labels and cells, row by row.
    pub rows: Vec<Vec<String>>,
    /// Notes for the reader of the table.
    pub notes: Vec<String>,
    /// Lines `X could not be measured because Y`.
    pub gaps: Vec<String>,
    /// Curves for the HTML page.
    pub curves: Vec<Curve>,
    /// Label of the curves' x axis.
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

    /// Notes, at most once, that something could not be measured.
    fn gap(&mut self, what: &str, why: impl std::fmt::Display) {
        let line = format!("{what} could not be measured because {why}");
        if !self.gaps.contains(&line) {
            self.gaps.push(line);
        }
    }
}

/// The result of a diagnosis.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// The machine it ran on.
    pub machine: Machine,
    /// How quiet the machine was.
    pub quiet: Quiet,
    /// The measured tables.
    pub tables: Vec<Table>,
    /// The changes to make.
    pub advice: Vec<String>,
    /// Elapsed time in seconds.
    pub elapsed_s: f64,
}

/// Returns why a tool cannot be measured at all: there is no such program.
pub fn check(request: &Request) -> Result<(), String> {
    request
        .tools
        .iter()
        .try_for_each(|line| tool::command(line).map(|_| ()).map_err(|error| error.to_string()))
}

/// Measures everything. Calls `progress` with the name of each part before it begins.
pub fn diagnose(request: &Request, mut progress: impl FnMut(&str)) -> Diagnosis {
    let begun = std::time::Instant::now();
    let machine = Machine::read();
    let (watch, used) = (Watch::start(), processor_time());
    let patience = Patience::new(PATIENCE);
    let mut parts = Vec::new();
    // Measure the tools first: a child begins with its parent's peak memory, which the other parts raise to a gigabyte.
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

/// Returns the seconds of processor time that this process and its children have used so far.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may contain anything, come the state and numbers; 11 to 14 are the four times.
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: u64 = rest.split(' ').skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Formats a cell: the time, or a dash for a gap that is explained below the table.
fn cell(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), seconds)
}

const MIB: usize = 1 << 20;

/// Returns how much of `wanted` bytes can be used without harm: at most half of the free memory. An error if even `least` is too much.
fn affordable(wanted: usize, least: usize) -> Result<usize, String> {
    let free = crate::machine::meminfo("MemAvailable").unwrap_or(256) as usize * MIB;
    let usable = (free / 2).min(wanted) / (2 * MIB) * (2 * MIB);
    if usable >= least { Ok(usable) } else { Err(format!("only {} MiB of memory are free", free / MIB)) }
}
