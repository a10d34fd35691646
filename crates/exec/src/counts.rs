//! What a server has done, for `hotstart server status`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use hotstart_launch::Statistics;

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
    killed: u64,
}

impl Counts {
    pub(crate) fn warm(&self) {
        self.state.lock().expect("no panic while locked").warm += 1;
    }

    pub(crate) fn cold(&self, why: Refusal) {
        *self.state.lock().expect("no panic while locked").cold.entry(why).or_default() += 1;
    }

    /// A job was ended because its client was gone.
    pub(crate) fn killed(&self) {
        self.state.lock().expect("no panic while locked").killed += 1;
    }

    /// Whether anything was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state.lock().expect("no panic while locked");
        state.warm == 0 && state.cold.is_empty()
    }

    /// The counts as lines of text.
    pub(crate) fn of_jobs(&self) -> String {
        let state = self.state.lock().expect("no panic while locked");
        let mut text = String::new();
        let cold: u64 = state.cold.values().sum();
        let _ = writeln!(text, "started warm {}, left to the client (cold) {cold}", state.warm);
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

    /// The same, and the tools from the launcher's point of view behind it.
    pub(crate) fn text(&self, tools: &Statistics) -> String {
        let mut text = self.of_jobs();
        if !tools.tools.is_empty() {
            text.push_str("     warm      cold      saved  tool\n");
        }
        for tool in &tools.tools {
            let saved = tool.saved().as_secs_f64();
            let (warm, cold, name) = (tool.warm_total(), tool.cold_total(), tool.program.display());
            let _ = writeln!(text, "{warm:>9} {cold:>9} {saved:>8.2} s  {name}");
        }
        text
    }
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
