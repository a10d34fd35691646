//! What one tool's start is made of, and what starting it warm saves.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use hotstart_launch::{Choice, EnvBlock, Exit, Group, Launcher, Policy, ProcessGroup, Spec, Via};

use super::timeline::{self, Timeline};
use super::{Finding, Table};
use crate::command::Command;
use crate::measure::describe;
use crate::render::{bytes_from_kib, seconds};
use crate::stats::summary::median;

/// Time for each of the four parts of a tool's section, and for all tools together; and the runs that this allows.
const PATIENCE: Duration = Duration::from_millis(1000);
const PATIENCE_ALL: Duration = Duration::from_secs(24);
const RUNS: std::ops::Range<usize> = 5..60;

/// The sections of one tool out of `tools`.
pub(super) fn measure(line: &str, tools: usize) -> Vec<(Table, Vec<Finding>)> {
    let mut words: Vec<std::ffi::OsString> = line.split_whitespace().map(Into::into).collect();
    if words.len() == 1 {
        words.push("--version".into());
    }
    let mut table = Table::new(&format!("{line}: where a cold start goes"), &["", "time", "share"]);
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let command = match Command::find(words, std::env::var_os("PATH").as_deref(), &cwd) {
        Ok(command) => command,
        Err(error) => {
            table.gap(line, error);
            return vec![(table, Vec::new())];
        }
    };
    let exit = match timeline::run(&command, &[]) {
        Ok((exit, _)) => exit,
        Err(why) => {
            table.gap(line, why);
            return vec![(table, Vec::new())];
        }
    };
    table.note(format!("`{}` {}", command.name, describe(exit.status)));
    table.note(format!(
        "{} minor and {} major faults, {} peak memory",
        exit.usage.minor_faults,
        exit.usage.major_faults,
        bytes_from_kib(exit.usage.max_rss_kib as f64)
    ));
    let patience = PATIENCE.min(PATIENCE_ALL / (4 * tools.max(1)) as u32);
    let mut findings = split(&command, &mut table, patience);
    let (warm, found) = warm(&command, line, patience);
    findings.extend(found);
    vec![(table, findings), (warm, Vec::new())]
}

/// Repeats a measurement as often as time allows.
fn repeat<T>(patience: Duration, mut once: impl FnMut() -> Result<T, String>) -> Result<Vec<T>, String> {
    let begun = Instant::now();
    let mut all = Vec::new();
    while all.len() < RUNS.start || (begun.elapsed() < patience && all.len() < RUNS.end) {
        all.push(once()?);
    }
    Ok(all)
}

fn middle<T>(all: &[T], value: impl Fn(&T) -> f64) -> f64 {
    median(&all.iter().map(value).collect::<Vec<_>>())
}

fn split(command: &Command, table: &mut Table, patience: Duration) -> Vec<Finding> {
    let runs = match repeat(patience, || timeline::timeline(command)) {
        Ok(runs) => runs,
        Err(why) => {
            table.gap("where its start goes", why);
            return Vec::new();
        }
    };
    let statistics = timeline::statistics(command, &[]).map_err(|why| table.gap("relocation", why)).ok();
    let (exec, whole) = (middle(&runs, |t| t.loader), middle(&runs, |t| t.end));
    let loader = middle(&runs, |t| t.constructors - t.loader);
    let mut row = |label: &str, time: f64| {
        table.row(label, [seconds(time), format!("{:.0} %", time / whole * 100.0)]);
    };
    row("exec, until ld.so has begun", exec);
    match statistics {
        Some(s) => {
            // What of ld.so's time is neither: its own start, mostly, is put to loading.
            let relocation = loader * s.relocation.min(1.0);
            row("loading libraries", loader - relocation);
            row("relocation", relocation);
        }
        None => row("loading and relocation", loader),
    }
    row("constructors", middle(&runs, |t| t.main - t.constructors));
    let ends = |t: &Timeline| t.exit.unwrap_or(t.end);
    row("main", middle(&runs, |t| ends(t) - t.main));
    row("exit, destructors and taking down", middle(&runs, |t| t.end - ends(t)));
    row("in all, while ld.so reports", whole);
    table.note(format!("{} libraries with constructors; medians of {} runs", runs[0].libraries, runs.len()));
    if runs.iter().all(|t| t.exit.is_none()) {
        table.note("it ends without exit(): taking down is within main");
    }
    let Some(s) = statistics else { return Vec::new() };
    describe_relocations(command, table, &s, patience)
}

fn describe_relocations(
    command: &Command,
    table: &mut Table,
    s: &timeline::Statistics,
    patience: Duration,
) -> Vec<Finding> {
    table.note(format!(
        "{} symbols looked up at start, {} more while it runs, {} relative relocations",
        s.relocations,
        s.final_relocations.saturating_sub(s.relocations),
        s.relative
    ));
    let wall = |settings: &[(&str, &str)]| {
        repeat(patience, || timeline::run(command, settings))
            .map(|runs| middle(&runs, |(exit, _)| exit.wall.as_secs_f64()))
    };
    if let (Ok(lazy), Ok(now)) = (wall(&[]), wall(&[("LD_BIND_NOW", "1")])) {
        let (lazy, now) = (seconds(lazy), seconds(now));
        table.note(format!("cold, all in: {lazy} as it is, {now} with LD_BIND_NOW=1"));
    }
    vec![Finding::Relocation { tool: command.name.clone(), share: s.relocation }]
}

/// Cold against each warm way, by turns.
fn warm(command: &Command, line: &str, patience: Duration) -> (Table, Vec<Finding>) {
    let heads = ["", "median", "faults", "against cold"];
    let mut table = Table::new(&format!("{line}: started cold and warm, by turns"), &heads);
    let name = command.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let launchers = [
        Launcher::new(),
        Launcher::new().with_policy(Policy { choice: Choice::Only(vec![name.clone()]), ..Policy::default() }),
    ];
    let runs = repeat(patience, || {
        let each = |launcher| once(command, launcher);
        Ok([each(&launchers[0])?, each(&launchers[1])?])
    });
    let runs = match runs {
        // The first of each made the template or filled caches.
        Ok(runs) => runs[2.min(runs.len() - 1)..].to_vec(),
        Err(why) => {
            table.gap(line, why);
            return (table, Vec::new());
        }
    };
    let wall = |index: usize| middle(&runs, |pair: &[Exit; 2]| pair[index].wall.as_secs_f64());
    let faults = |index: usize| middle(&runs, |pair| pair[index].usage.minor_faults as f64).to_string();
    let cold = wall(0);
    table.row("cold", [seconds(cold), faults(0), String::new()]);
    let last = runs[runs.len() - 1][1];
    if let Via::Cold(reason) = last.via {
        table.gap("a warm start", format!("it cannot be warm: {reason}"));
        return (table, vec![Finding::NotWarm { tool: name, reason: reason.to_string() }]);
    }
    let warm = wall(1);
    let way = format!("{:?}", last.via).to_lowercase();
    table.row(format!("warm, by {way}"), [seconds(warm), faults(1), format!("{:.2} × faster", cold / warm)]);
    table.note(format!("medians of {} starts of each, until waited for", runs.len()));
    for tool in launchers[1].statistics().tools {
        if tool.templates > 0 {
            let each = tool.template_time.as_secs_f64() / tool.templates as f64;
            table.note(format!("making the template took {}", seconds(each)));
        }
    }
    (table, vec![Finding::Warm { tool: name, cold, warm }])
}

fn once(command: &Command, launcher: &Launcher) -> Result<Exit, String> {
    let null = File::options().read(true).write(true).open("/dev/null").map_err(|error| error.to_string())?;
    let spec = Spec {
        program: command.program.clone(),
        argv: command.argv.clone(),
        env: EnvBlock::new(&std::env::vars_os().collect()),
        cwd: Path::new("/").into(),
        stdio: [null.as_fd(); 3],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        keep_cold: false,
        process_group: ProcessGroup::New,
    };
    let group = Group::new();
    Ok(launcher.start(&spec, &group).map_err(|error| error.to_string())?.wait())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_missing_is_a_gap() {
        let sections = measure("no-such-tool", 1);
        assert!(sections[0].0.gaps[0].contains("there is no program 'no-such-tool' along PATH"));
    }

    #[test]
    fn a_start_is_split_into_its_parts() {
        let (table, _) = measure("/bin/true", 8).remove(0);
        let labels: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert!(labels.contains(&"constructors") && labels.contains(&"relocation"), "{table:#?}");
    }
}
