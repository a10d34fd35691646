//! Facts for the HTML page of a run beside its tests: the phases, the tools, and how processes were started.

use std::cmp::Reverse;

use hotstart_bench::command::line;
use hotstart_launch::{Launcher, ToolStatistics};
use hotstart_lit::load::Discovered;
use hotstart_report::files::{Facts, StartRow};
use hotstart_run::ToolTimes;

use super::conclude::tool_rows;

/// Collects the facts of a finished run that are known here.
pub(super) fn facts(launcher: &Launcher, discovered: &Discovered, tool_times: Option<&ToolTimes>) -> Facts {
    let timing = &discovered.timing;
    let command: Vec<_> = std::env::args_os().collect();
    let mut starts: Vec<_> = launcher.statistics().tools.iter().map(start).collect();
    starts.retain(|row| row.resets + row.forks + row.cold > 0);
    starts.sort_by_key(|row| (Reverse(row.resets + row.forks + row.cold), row.program.clone()));
    Facts {
        command: line(&command),
        workers: 0,
        phases: vec![
            ("evaluating configs (Python)", timing.waited),
            ("finding and selecting tests", timing.total.saturating_sub(timing.waited)),
        ],
        tools: tool_times.map(tool_rows).unwrap_or_default(),
        starts,
    }
}

fn start(tool: &ToolStatistics) -> StartRow {
    let mut cold: Vec<_> = tool.cold.iter().collect();
    cold.sort_by_key(|(reason, count)| (Reverse(**count), **reason));
    StartRow {
        program: tool.program.display().to_string(),
        resets: tool.resets,
        forks: tool.forks,
        cold: tool.cold_total(),
        saved: tool.saved(),
        reasons: cold.into_iter().map(|(reason, count)| (reason.to_string(), *count)).collect(),
    }
}
