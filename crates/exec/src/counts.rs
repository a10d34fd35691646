//! Counts of a server's starts, for `hotstart server status`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Duration;

use hotstart_launch::{CpuTime, Statistics, ToolStatistics};
use serde_json::{Map, Value, json};

use crate::refusal::Refusal;

/// Starts, counted by all workers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    warm: u64,
    cold: BTreeMap<Refusal, u64>,
    compared: u64,
    killed: u64,
}

impl Counts {
    pub(crate) fn warm(&self) {
        self.state.lock().expect("no panic while locked").warm += 1;
    }

    pub(crate) fn cold(&self, why: Refusal) {
        *self.state.lock().expect("no panic while locked").cold.entry(why).or_default() += 1;
    }

    /// Counts a job that the server started cold, to compare it with warm ones.
    pub(crate) fn compared(&self) {
        self.state.lock().expect("no panic while locked").compared += 1;
    }

    /// Counts a job that was ended because its client was gone.
    pub(crate) fn killed(&self) {
        self.state.lock().expect("no panic while locked").killed += 1;
    }

    /// Returns the counts as lines of text.
    fn of_jobs(&self) -> String {
        let state = self.state.lock().expect("no panic while locked");
        let mut text = String::new();
        let cold: u64 = state.cold.values().sum();
        let _ = writeln!(text, "started warm {}, left to the client (cold) {cold}", state.warm);
        if state.compared > 0 {
            let _ = writeln!(text, "run cold by the server, to compare {}", state.compared);
        }
        if state.killed > 0 {
            let _ = writeln!(text, "ended with their client {}", state.killed);
        }
        let mut reasons: Vec<_> = state.cold.iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(a.1));
        for (why, count) in reasons {
            let _ = writeln!(text, "{count:>9} cold: {why}");
        }
        text
    }

    /// Returns the same text, followed by the launcher's statistics of each tool.
    pub(crate) fn text(&self, tools: &Statistics) -> String {
        let mut text = self.of_jobs();
        if !tools.tools.is_empty() {
            text.push_str("    reset    forked      cold      saved  tool\n");
        }
        for tool in &tools.tools {
            let saved = format!("{:.2} s", tool.cpu.saved());
            let ToolStatistics { forks, resets, program, .. } = tool;
            let _ = writeln!(
                text,
                "{resets:>9} {forks:>9} {:>9} {saved:>10}  {}",
                tool.cold_total(),
                program.display()
            );
            notes(tool).iter().for_each(|note| _ = writeln!(text, "{:42}{note}", ""));
        }
        text
    }

    /// Returns all of it as one JSON object, after the fields of `head`.
    pub(crate) fn json(&self, head: Value, tools: &Statistics) -> String {
        let state = self.state.lock().expect("no panic while locked");
        let mut value = head;
        value["warm"] = state.warm.into();
        value["cold"] = state.cold.values().sum::<u64>().into();
        value["compared"] = state.compared.into();
        value["ended_with_client"] = state.killed.into();
        let reasons = state.cold.iter().map(|(why, count)| (why.to_string(), json!(count)));
        value["reasons"] = reasons.collect::<Map<_, _>>().into();
        value["tools"] = tools.tools.iter().map(tool_json).collect();
        format!("{value:#}\n")
    }
}

/// Says why a tool is not reset, or not warm.
fn notes(tool: &ToolStatistics) -> Vec<String> {
    let mut notes: Vec<_> = tool.cold.iter().map(|(why, count)| format!("cold {count}: {why}")).collect();
    if let Some((reason, detail)) = &tool.constructors {
        notes.push(format!("before main: {reason} ({detail})"));
    }
    notes.extend(tool.halts_at.iter().map(|line| format!("halts at {line}")));
    notes.extend(tool.retired.iter().map(|(why, count)| format!("not used again {count}: {why}")));
    notes.extend(tool.only_forked.iter().map(|why| format!("forked only: {why}")));
    notes.extend(cpu_time(&tool.cpu));
    notes
}

/// Says what a start takes either way, once both have been measured.
fn cpu_time(cpu: &CpuTime) -> Option<String> {
    let ms = |(runs, each): (u64, Duration)| format!("{:.2} ms ({runs} runs)", each.as_secs_f64() * 1000.0);
    (cpu.cold.0 > 0).then(|| format!("CPU time: cold {}, warm {}", ms(cpu.cold), ms(cpu.warm)))
}

fn tool_json(tool: &ToolStatistics) -> Value {
    let cold = tool.cold.iter().map(|(why, count)| (why.to_string(), json!(count)));
    let retired = tool.retired.iter().map(|(why, count)| (why.to_string(), json!(count)));
    json!({
        "program": tool.program.to_string_lossy(),
        "reset": tool.resets,
        "forked": tool.forks,
        "cold": tool.cold_total(),
        "zygotes": tool.zygotes,
        "observations": tool.observed,
        "saved_seconds": tool.cpu.saved(),
        "cpu_time": {
            "cold_runs": tool.cpu.cold.0,
            "cold_seconds": tool.cpu.cold.1.as_secs_f64(),
            "warm_runs": tool.cpu.warm.0,
            "warm_seconds": tool.cpu.warm.1.as_secs_f64(),
            "overhead_seconds": tool.cpu.overhead.as_secs_f64(),
        },
        "cold_reasons": cold.collect::<Map<_, _>>(),
        "before_main": tool.constructors.as_ref().map(|(reason, detail)| format!("{reason} ({detail})")),
        "halts_at": tool.halts_at.as_ref(),
        "retired": retired.collect::<Map<_, _>>(),
        "forked_only": tool.only_forked.as_ref().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Aspect;

    #[test]
    fn reasons_come_with_their_counts_most_first() {
        let counts = Counts::default();
        counts.warm();
        counts.cold(Refusal::Busy);
        counts.cold(Refusal::Differs(Aspect::Root));
        counts.cold(Refusal::Differs(Aspect::Root));
        let text = counts.text(&Statistics::default());
        assert_eq!(
            text,
            "started warm 1, left to the client (cold) 3\n\
             \x20       2 cold: another root directory than the server's\n\
             \x20       1 cold: the server has too many jobs\n"
        );
    }
}
