//! What is counted while tests run, for those who asked: the time of tools, and who ran scripts for bash.

use std::cmp::Reverse;
use std::fmt::Write;
use std::sync::Arc;

use hotstart_report::time_by::TimeBy;
use hotstart_run::{ShellCounts, Shells, ToolTimes};

use crate::args::LitOptions;

/// The counts that are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub tool_times: Option<Arc<ToolTimes>>,
    pub shells: Option<Arc<Shells>>,
}

impl Tally {
    pub(super) fn wanted(options: &LitOptions) -> Self {
        let by_tool = options.own.time_by.contains(&TimeBy::Tool) || options.reports.html.is_some();
        Tally {
            tool_times: by_tool.then(Arc::default),
            shells: options.own.native_shell.unwrap_or(false).then(Arc::default),
        }
    }

    /// Who ran scripts that ask for an external shell: one line, and the reasons if `explain`. Empty if there were
    /// none.
    pub(super) fn told(&self, explain: bool) -> String {
        let counts = self.shells.as_ref().map(|shells| shells.counts()).unwrap_or_default();
        shells(&counts, explain)
    }
}

fn shells(counts: &ShellCounts, explain: bool) -> String {
    let ShellCounts { native, confirmed, differing, refused } = counts;
    if native + confirmed + counts.refused_total() == 0 {
        return String::new();
    }
    let mut text = format!(
        "hotstart: scripts for an external shell: {native} run natively, {} by that shell, {confirmed} by both as \
         they failed\n",
        counts.refused_total()
    );
    if *differing > 0 {
        let _ = writeln!(text, "hotstart: of these, {differing} failed natively only");
    }
    if explain {
        let mut reasons: Vec<_> = refused.iter().collect();
        reasons.sort_by_key(|(reason, count)| (Reverse(**count), **reason));
        for (reason, count) in reasons {
            let _ = writeln!(text, "{count:>9}  by that shell: {reason}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_for_those_who_ask() {
        let refused = [("a", 1), ("b", 3)].into();
        let counts = ShellCounts { native: 5, confirmed: 2, differing: 0, refused };
        let line = "hotstart: scripts for an external shell: 5 run natively, 4 by that shell, 2 by both as they failed\n";
        assert_eq!(shells(&counts, false), line);
        let reasons = "        3  by that shell: b\n        1  by that shell: a\n";
        assert_eq!(shells(&counts, true), format!("{line}{reasons}"));
        assert_eq!(shells(&ShellCounts::default(), true), "");
        let differing = ShellCounts { differing: 1, ..counts };
        assert!(shells(&differing, false).ends_with("hotstart: of these, 1 failed natively only\n"));
    }
}
