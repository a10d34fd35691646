//! The phases of one tool's start, and their costs.

use std::time::Duration;

use hotstart_launch::Exit;

use super::patience::{Patience, Share};
use super::timeline::{self, Timeline, Wait};
use super::{Finding, Table, ways};
use crate::command::Command;
use crate::measure::describe;
use crate::render::{bytes_from_kib, seconds};
use crate::stats::summary::median_of;

/// Most time for one of a tool's four parts.
const TIME: Duration = Duration::from_millis(1000);
/// Returns the command that a request names. The error says where its program was looked for.
pub(super) fn command(line: &str) -> Result<Command, crate::measure::Failure> {
    let mut words: Vec<std::ffi::OsString> = line.split_whitespace().map(Into::into).collect();
    if words.len() == 1 {
        words.push("--version".into());
    }
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    Command::find(words, std::env::var_os("PATH").as_deref(), &cwd)
}

/// Measures the sections of one tool within `time`.
pub(super) fn measure(line: &str, patience: &Patience, time: Duration) -> Vec<(Table, Vec<Finding>)> {
    let patience = patience.part(time);
    let share = patience.share(TIME.min(time / 4));
    let mut table = Table::new(&format!("{line}: where a cold start goes"), &["", "time", "share"]);
    let command = match command(line) {
        Ok(command) => command,
        Err(error) => {
            table.gap(line, error);
            return vec![(table, Vec::new())];
        }
    };
    let mut findings = match timeline::run(&command, &[], Wait::Sleep) {
        Ok((exit, _)) => {
            note_exit(&command, &exit, &mut table);
            split(&command, &mut table, &share)
        }
        Err(why) => {
            table.gap(line, why);
            return vec![(table, Vec::new())];
        }
    };
    let (warm, found) = ways::compare(&command, line, &share);
    findings.extend(found);
    vec![(table, findings), (warm, Vec::new())]
}

fn note_exit(command: &Command, exit: &Exit, table: &mut Table) {
    table.note(format!("`{}` {}", command.name, describe(exit.status)));
    table.note(format!(
        "{} minor and {} major faults, {} peak memory",
        exit.usage.minor_faults,
        exit.usage.major_faults,
        bytes_from_kib(exit.usage.max_rss_kib as f64)
    ));
}

/// Returns the third of all runs with the most pieces. The others were read too late to separate the events.
fn timelines(command: &Command, share: &Share<'_>) -> Result<Vec<Timeline>, String> {
    let pairs = share.repeat(|| {
        Ok([timeline::timeline(command, Wait::Sleep)?, timeline::timeline(command, Wait::Spin)?])
    })?;
    let mut all = pairs.concat();
    all.sort_by_key(|timeline| std::cmp::Reverse(timeline.pieces));
    all.truncate(all.len().div_ceil(3));
    Ok(all)
}

fn split(command: &Command, table: &mut Table, share: &Share<'_>) -> Vec<Finding> {
    let runs = match timelines(command, share) {
        Ok(runs) => runs,
        Err(why) => {
            table.gap("where its start goes", why);
            return Vec::new();
        }
    };
    let statistics = timeline::statistics(command, &[]).map_err(|why| table.gap("relocation", why)).ok();
    let (exec, whole) = (median_of(&runs, |t| t.loader), median_of(&runs, |t| t.end));
    let loader = median_of(&runs, |t| t.constructors - t.loader);
    let mut row = |label: &str, time: f64| {
        table.row(label, [seconds(time), format!("{:.0} %", time / whole * 100.0)]);
    };
    row("exec, until ld.so has begun", exec);
    // The rest of ld.so's time, mostly its own start, counts as loading.
    let relocation = statistics.map(|s| loader * s.relocation.min(1.0));
    row(
        if statistics.is_some() { "loading libraries" } else { "loading and relocation" },
        loader - relocation.unwrap_or(0.0),
    );
    relocation.into_iter().for_each(|time| row("relocation", time));
    row("constructors", median_of(&runs, |t| t.main - t.constructors));
    let ends = |t: &Timeline| t.exit.unwrap_or(t.end);
    row("main", median_of(&runs, |t| ends(t) - t.main));
    if runs.iter().any(|t| t.exit.is_some()) {
        row("exit, destructors and taking down", median_of(&runs, |t| t.end - ends(t)));
    } else {
        table.note("it ends without exit(): taking down is within main");
    }
    let mut row = |label: &str, time: f64| table.row(label, [seconds(time), "100 %".to_owned()]);
    row("in all, while ld.so reports", whole);
    table.note(format!(
        "{} libraries with constructors; medians of the {} best readings",
        runs[0].libraries,
        runs.len()
    ));
    let Some(s) = statistics else { return Vec::new() };
    describe_relocations(command, table, &s, share)
}

fn describe_relocations(
    command: &Command,
    table: &mut Table,
    s: &timeline::Statistics,
    share: &Share<'_>,
) -> Vec<Finding> {
    table.note(format!(
        "{} symbols looked up at start, {} more while it runs, {} relative relocations",
        s.relocations,
        s.final_relocations.saturating_sub(s.relocations),
        s.relative
    ));
    let wall = |exit: Exit| exit.wall.as_secs_f64();
    // Interleaved, so that a busy moment affects both.
    let pairs = share.repeat(|| {
        let (lazy, _) = timeline::run(command, &[], Wait::Sleep)?;
        let (now, _) = timeline::run(command, &[("LD_BIND_NOW", "1")], Wait::Sleep)?;
        Ok([wall(lazy), wall(now)])
    });
    if let Ok(pairs) = pairs {
        let (lazy, now) = (median_of(&pairs, |pair| pair[0]), median_of(&pairs, |pair| pair[1]));
        table.note(format!("cold, all in: {} as it is, {} with LD_BIND_NOW=1", seconds(lazy), seconds(now)));
    }
    vec![Finding::Relocation { tool: command.name.clone(), share: s.relocation }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Vec<(Table, Vec<Finding>)> {
        measure(line, &Patience::new(Duration::from_secs(60)), Duration::from_secs(2))
    }

    #[test]
    fn a_tool_that_is_missing_is_a_gap() {
        assert!(of("no-such-tool")[0].0.gaps[0].contains("there is no program 'no-such-tool' along PATH"));
    }

    #[test]
    fn a_start_is_split_into_its_parts() {
        let (table, _) = of("/bin/true").remove(0);
        let labels: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert!(labels.contains(&"constructors") && labels.contains(&"relocation"), "{table:#?}");
    }
}
