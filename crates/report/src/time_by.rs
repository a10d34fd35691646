//! `--time-by`: the time of a run, by directory of the tests and by tool.

use std::collections::HashMap;
use std::time::Duration;

use crate::{Sink, TestRecord};

/// The key by which times are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBy {
    /// The tests' directories.
    Directory,
    /// The tools that tests run.
    Tool,
}

/// A tool and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRow {
    /// Its name.
    pub name: String,
    /// Number of its runs.
    pub runs: u64,
    /// CPU time.
    pub cpu: Duration,
    /// Time from the start of its pipeline to its end.
    pub wall: Duration,
}

/// Most rows of a table. One more row sums up the rest, which took less time.
const ROWS: usize = 30;

/// Writes the time of tests by directory, the slowest first.
pub fn write_directories(to: &mut Sink, records: &[TestRecord<'_>]) {
    let mut times: HashMap<(usize, &[String]), (&str, f64, u64)> = HashMap::new();
    for record in records.iter().filter(|record| record.outcome.elapsed.is_some()) {
        let directory = record.path.split_last().map_or(record.path, |(_, directory)| directory);
        let time = times.entry((record.suite.index, directory)).or_insert((record.suite.name, 0.0, 0));
        (time.1, time.2) = (time.1 + record.seconds(), time.2 + 1);
    }
    let mut rows: Vec<_> = times
        .into_iter()
        .map(|((_, directory), (suite, seconds, tests))| {
            (format!("{suite} :: {}", directory.join("/")).trim_end().to_owned(), seconds, tests)
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let add = |rest: &mut (String, f64, u64), more: (String, f64, u64)| {
        (rest.1, rest.2) = (rest.1 + more.1, rest.2 + more.2);
    };
    to.line("Time by Directory:");
    to.line(&format!("{:>10} {:>10} {:>8}  directory", "time", "per test", "tests"));
    for (name, seconds, tests) in folded(rows, add) {
        to.line(&format!("{seconds:>9.2}s {:>9.3}s {tests:>8}  {name}", seconds / tests as f64));
    }
    to.flush();
}

/// Writes the time of tools, sorted by the caller.
pub fn write_tools(to: &mut Sink, tools: Vec<ToolRow>) {
    if tools.is_empty() {
        return;
    }
    let rows = tools.into_iter().map(|tool| (tool.name, tool.cpu, tool.wall, tool.runs)).collect();
    to.line("Time by Tool:");
    to.line(&format!("{:>10} {:>10} {:>10} {:>8}  tool", "CPU", "CPU per run", "elapsed", "runs"));
    let add = |rest: &mut (String, Duration, Duration, u64), more: (String, Duration, Duration, u64)| {
        (rest.1, rest.2, rest.3) = (rest.1 + more.1, rest.2 + more.2, rest.3 + more.3);
    };
    for (name, cpu, wall, runs) in folded(rows, add) {
        let (cpu, wall) = (cpu.as_secs_f64(), wall.as_secs_f64());
        to.line(&format!("{cpu:>9.2}s {:>10.4}s {wall:>9.2}s {runs:>8}  {name}", cpu / runs.max(1) as f64));
    }
    to.flush();
}

/// Returns the rows to show. If there are more, a last row sums up all others.
fn folded<R: Named>(mut rows: Vec<R>, add: impl Fn(&mut R, R)) -> Vec<R> {
    if rows.len() <= ROWS {
        return rows;
    }
    let others = rows.split_off(ROWS);
    let count = others.len();
    if let Some(mut rest) = others.into_iter().reduce(|mut rest, more| {
        add(&mut rest, more);
        rest
    }) {
        rest.rename(format!("({count} others)"));
        rows.push(rest);
    }
    rows
}

/// A row whose name can be replaced.
trait Named {
    fn rename(&mut self, name: String);
}

impl Named for (String, f64, u64) {
    fn rename(&mut self, name: String) {
        self.0 = name;
    }
}

impl Named for (String, Duration, Duration, u64) {
    fn rename(&mut self, name: String) {
        self.0 = name;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SuiteName;
    use crate::sink::tests::Captured;
    use hotstart_model::{Outcome, Verdict};

    #[test]
    fn directories_add_up_and_the_slowest_comes_first() {
        let paths = [["a", "x"], ["b", "y"], ["b", "z"]].map(|path| path.map(str::to_owned));
        let outcomes = [1000, 800, 700].map(|millis| {
            let mut outcome = Outcome::decided(Verdict::PASS, "");
            outcome.elapsed = Some(Duration::from_millis(millis));
            outcome
        });
        let record = |(path, outcome)| TestRecord {
            full_name: String::new(),
            summary_name: None,
            suite: SuiteName { index: 0, name: "s" },
            path,
            previous: 0.0,
            outcome,
        };
        let records: Vec<_> = paths.iter().map(|path| &path[..]).zip(&outcomes).map(record).collect();
        let captured = Captured::default();
        write_directories(&mut captured.sink(), &records);
        assert_eq!(
            captured.text(),
            "Time by Directory:\n      time   per test    tests  directory\n\
             \u{20}    1.50s     0.750s        2  s :: b\n     1.00s     1.000s        1  s :: a\n"
        );
    }

    #[test]
    fn what_does_not_fit_is_summed_up() {
        let tools = (0..35).map(|n| ToolRow {
            name: format!("t{n}"),
            runs: 2,
            cpu: Duration::from_millis(100),
            wall: Duration::from_millis(200),
        });
        let captured = Captured::default();
        write_tools(&mut captured.sink(), tools.collect());
        let text = captured.text();
        assert_eq!(text.lines().count(), 2 + ROWS + 1);
        assert!(text.ends_with("     0.50s     0.0500s      1.00s       10  (5 others)\n"), "{text}");
    }
}
