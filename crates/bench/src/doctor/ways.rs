//! The time saved by each way to start a tool warm, or the reason why it cannot be warm.

use std::fs::File;
use std::os::fd::AsFd;

use hotstart_launch::{
    Choice, EnvBlock, Exit, Group, Launcher, Policy, ProcessGroup, Spec, ToolStatistics, Via,
};

use super::patience::within;
use super::timeline::LIMIT;
use super::tool::{Share, middle};
use super::{Finding, Table};
use crate::command::Command;
use crate::render::seconds;

/// First rounds, not counted: they fill caches, make zygotes, and are audited.
const FIRST: usize = 4;

/// A way to start the tool.
struct Way {
    label: &'static str,
    launcher: Launcher,
    is_it: fn(Via) -> bool,
}

fn ways(name: &str) -> [Way; 3] {
    let policy = |resets| Policy {
        choice: Choice::Only(vec![name.to_owned()]),
        resets,
        audit_one_in: 0,
        ..Policy::default()
    };
    [
        Way { label: "cold", launcher: Launcher::new(), is_it: |via| !via.is_warm() },
        Way {
            label: "warm, forked",
            launcher: Launcher::new().with_policy(policy(false)),
            is_it: |via| via == Via::Fork,
        },
        Way {
            label: "warm, reset",
            launcher: Launcher::new().with_policy(policy(true)),
            is_it: |via| via == Via::Reset,
        },
    ]
}

/// Starts the tool in each way, interleaved, and compares the times.
pub(super) fn compare(command: &Command, line: &str, share: &Share<'_>) -> (Table, Vec<Finding>) {
    let heads = ["", "median", "faults", "against cold"];
    let mut table = Table::new(&format!("{line}: started cold and warm, interleaved"), &heads);
    let name = command.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ways = ways(&name);
    let round = || ways.iter().map(|way| once(command, &way.launcher)).collect::<Result<Vec<Exit>, _>>();
    let rounds = match share.repeat(round) {
        Ok(rounds) => rounds,
        Err(why) => {
            table.gap(line, why);
            return (table, Vec::new());
        }
    };
    let rounds = &rounds[FIRST.min(rounds.len() - 1)..];
    let mut medians = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        let fits = |exit: &&Exit| (way.is_it)(exit.via) && !exit.lost;
        let exits: Vec<Exit> = rounds.iter().map(|round| &round[index]).filter(fits).copied().collect();
        let last = rounds[rounds.len() - 1][index].via;
        if exits.is_empty() {
            let what = if last.is_warm() { way.label } else { "a warm start" };
            table.gap(what, why_not(last, &way.launcher));
            continue;
        }
        let wall = middle(&exits, |exit| exit.wall.as_secs_f64());
        let faults = middle(&exits, |exit| exit.usage.minor_faults as f64).to_string();
        let cold = medians.first().copied().unwrap_or(wall);
        let gain = if index > 0 { format!("{:.2} × faster", cold / wall) } else { String::new() };
        table.row(way.label, [seconds(wall), faults, gain]);
        medians.push(wall);
    }
    table.note(format!("medians of up to {} starts of each, until waited for", rounds.len()));
    ways.iter().for_each(|way| note_templates(way, &mut table));
    let found = conclude(name, &medians, rounds[rounds.len() - 1][1].via);
    (table, found)
}

/// Says why no run was started in the wanted way.
fn why_not(last: Via, launcher: &Launcher) -> String {
    if let Via::Cold(reason) = last {
        return format!("it cannot be warm: {reason}");
    }
    let tools = launcher.statistics().tools;
    let told =
        |tool: &ToolStatistics| tool.only_forked.as_ref().map(|why| format!("it cannot be reset: {why}"));
    tools.iter().find_map(told).unwrap_or_else(|| "no start was of this kind".to_owned())
}

fn note_templates(way: &Way, table: &mut Table) {
    for tool in way.launcher.statistics().tools {
        if tool.templates > 0 {
            let each = tool.template_time.as_secs_f64() / tool.templates as f64;
            table.note(format!("{}: making a zygote took {}", way.label, seconds(each)));
        }
    }
}

fn conclude(tool: String, medians: &[f64], via: Via) -> Vec<Finding> {
    match (medians, via) {
        (_, Via::Cold(reason)) => vec![Finding::NotWarm { tool, reason }],
        (&[cold, ref warm @ ..], _) => {
            let best = warm.iter().copied().min_by(f64::total_cmp);
            best.map(|warm| Finding::Warm { tool, cold, warm }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn once(command: &Command, launcher: &Launcher) -> Result<Exit, String> {
    let null = File::options().read(true).write(true).open("/dev/null").map_err(|error| error.to_string())?;
    let spec = Spec {
        program: command.program.clone(),
        argv: command.argv.clone(),
        env: EnvBlock::new(&std::env::vars_os().collect()),
        cwd: std::env::current_dir().map_err(|error| error.to_string())?.into(),
        stdio: [null.as_fd(); 3],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: false,
        process_group: ProcessGroup::New,
    };
    let group = Group::new();
    within(LIMIT, &group, || Ok(launcher.start(&spec, &group).map_err(|error| error.to_string())?.wait()))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotstart_launch::Reason;

    #[test]
    fn what_cannot_be_warm_says_why() {
        assert_eq!(why_not(Via::Cold(Reason::Go), &Launcher::new()), "it cannot be warm: built by Go");
        let found = conclude("t".into(), &[2.0], Via::Cold(Reason::Go));
        assert_eq!(found, [Finding::NotWarm { tool: "t".into(), reason: Reason::Go }]);
    }

    #[test]
    fn the_best_way_counts() {
        let found = conclude("t".into(), &[4.0, 2.0, 1.0], Via::Fork);
        assert_eq!(found, [Finding::Warm { tool: "t".into(), cold: 4.0, warm: 1.0 }]);
        assert_eq!(conclude("t".into(), &[4.0], Via::Fork), []);
    }
}
