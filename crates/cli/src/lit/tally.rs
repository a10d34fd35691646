//! Optional counts of a run: the time of tools, and the shells that ran scripts for bash.

use std::cmp::Reverse;
use std::fmt::Write;
use std::sync::Arc;

use hotstart_batch::Cluster;
use hotstart_report::time_by::TimeBy;
use hotstart_run::{Memory, ShellCounts, Shells, ToolTimes};
use hotstart_shell::{FileCheckCounts, FileChecks};

use crate::args::LitOptions;

/// The requested counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub tool_times: Option<Arc<ToolTimes>>,
    pub shells: Option<Arc<Shells>>,
    pub filechecks: Option<Arc<FileChecks>>,
    pub memory: Option<Arc<Memory>>,
    /// Other machines that run tests.
    pub cluster: Option<Arc<Cluster>>,
}

impl Tally {
    pub(super) fn wanted(options: &LitOptions) -> Self {
        let by_tool = options.own.time_by.contains(&TimeBy::Tool) || options.reports.html.is_some();
        Tally {
            tool_times: by_tool.then(Arc::default),
            shells: options.own.native_shell.unwrap_or(false).then(Arc::default),
            filechecks: None,
            memory: None,
            cluster: None,
        }
    }

    /// Reports remembered passes that FileCheck did not confirm. Empty if there were none.
    pub(super) fn contradictions(&self) -> String {
        let counts = self.filechecks.as_ref().map(|filechecks| filechecks.counts()).unwrap_or_default();
        contradictions(&counts)
    }

    /// Reports which shells ran scripts for an external shell, and which FileChecks needed no process: a line each, and the
    /// reasons if `explain`. Empty if there were none.
    pub(super) fn told(&self, explain: bool) -> String {
        let counts = self.shells.as_ref().map(|shells| shells.counts()).unwrap_or_default();
        let matches = self.filechecks.as_ref().map(|filechecks| filechecks.counts()).unwrap_or_default();
        shells(&counts, explain) + &filechecks(&matches, explain)
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

fn contradictions(counts: &FileCheckCounts) -> String {
    let line = |command: &String| {
        format!(
            "hotstart: fault of hotstart: a pass of FileCheck was remembered, but it fails now: {command}\n\
             hotstart: this FileCheck is always run from now on; please report this, with the test\n"
        )
    };
    counts.contradictions.iter().map(line).collect()
}

fn filechecks(counts: &FileCheckCounts, explain: bool) -> String {
    let FileCheckCounts { matched, remembered, left, refused, .. } = counts;
    let mut text = String::new();
    if *matched > 0 || (explain && !left.is_empty()) {
        let left = counts.left_total();
        let _ = writeln!(
            text,
            "hotstart: FileCheck: {matched} passes decided without it, {remembered} of them remembered; {left} runs \
             left to it"
        );
    }
    if explain {
        let mut reasons: Vec<_> = left.iter().collect();
        reasons.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        for (reason, count) in reasons {
            let _ = writeln!(text, "{count:>9}  left to it: {reason}");
        }
        for (program, why) in refused {
            let _ = writeln!(text, "hotstart: '{}' is always run: {why}", program.display());
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

    #[test]
    fn filechecks_are_told_of_if_any_was_matched() {
        let left = [("no match".into(), 2), ("a bound".into(), 3)].into();
        let counts = FileCheckCounts {
            matched: 7,
            left,
            refused: vec![("/FileCheck".into(), "x".to_owned())],
            ..FileCheckCounts::default()
        };
        let line =
            "hotstart: FileCheck: 7 passes decided without it, 0 of them remembered; 5 runs left to it\n";
        assert_eq!(filechecks(&counts, false), line);
        let reasons = "        3  left to it: a bound\n        2  left to it: no match\n";
        let refused = "hotstart: '/FileCheck' is always run: x\n";
        assert_eq!(filechecks(&counts, true), format!("{line}{reasons}{refused}"));
        assert_eq!(filechecks(&FileCheckCounts::default(), true), "");
    }
}
