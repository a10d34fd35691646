//! How processes were started, in words.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use hotstart_launch::{Statistics, ToolStatistics};
use hotstart_run::CheckCounts;

/// The line at the end of a run; empty if nothing was started.
pub fn counts(statistics: &Statistics) -> String {
    let (warm, cold) = totals(statistics);
    let processes = if warm == 1 { "process" } else { "processes" };
    match (warm, cold) {
        (0, 0) => String::new(),
        _ => format!("hotstart: {warm} {processes} started warm, {cold} cold\n"),
    }
}

fn totals(statistics: &Statistics) -> (u64, u64) {
    let add = |(warm, cold), tool: &ToolStatistics| (warm + tool.forks, cold + tool.cold_total());
    statistics.tools.iter().fold((0, 0), add)
}

/// For each tool: starts cold and warm, reasons, time saved, most started first; then what was checked.
pub fn table(statistics: &Statistics, checks: CheckCounts) -> String {
    let starts = |tool: &ToolStatistics| tool.forks + tool.cold_total();
    let mut tools: Vec<_> = statistics.tools.iter().filter(|tool| starts(tool) > 0).collect();
    if tools.is_empty() {
        return "hotstart: no process was started\n".to_owned();
    }
    tools.sort_by_key(|tool| (Reverse(starts(tool)), &tool.program));
    let mut text = "hotstart: how processes were started, and why cold\n".to_owned();
    let _ = writeln!(text, "{:>9} {:>9} {:>10}  tool", "warm", "cold", "saved");
    for tool in &tools {
        row(&mut text, (tool.forks, tool.cold_total(), tool.saved()), &tool.program.display().to_string());
        let mut reasons: Vec<_> = tool.cold.iter().collect();
        reasons.sort_by_key(|(reason, count)| (Reverse(**count), **reason));
        for (reason, count) in reasons {
            let _ = writeln!(text, "{:32}cold {count}: {reason}", "");
        }
    }
    let (warm, cold) = totals(statistics);
    row(&mut text, (warm, cold, tools.iter().map(|tool| tool.saved()).sum()), "in all");
    let CheckCounts { confirmed, compared, unsteady, faults } = checks;
    let _ = writeln!(
        text,
        "hotstart: failures confirmed cold: {confirmed}; tests run both ways: {compared}; of these not \
         deterministic by themselves: {unsteady}; faults of hotstart: {faults}"
    );
    text
}

fn row(text: &mut String, (warm, cold, saved): (u64, u64, Duration), what: &str) {
    let saved = format!("{:.2} s", saved.as_secs_f64());
    let _ = writeln!(text, "{warm:>9} {cold:>9} {saved:>10}  {what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotstart_launch::Reason;

    fn statistics() -> Statistics {
        let opt = ToolStatistics {
            program: "/bin/opt".into(),
            cold: [(Reason::FewStarts, 2), (Reason::Busy, 3)].into(),
            forks: 1000,
            fork_time: Duration::from_secs(1),
            templates: 2,
            template_time: Duration::from_millis(40),
            ..ToolStatistics::default()
        };
        let sh = ToolStatistics {
            program: "/bin/sh".into(),
            cold: [(Reason::Policy, 1)].into(),
            ..ToolStatistics::default()
        };
        let unused = ToolStatistics { program: "/bin/no".into(), ..ToolStatistics::default() };
        Statistics { tools: vec![unused, sh, opt] }
    }

    #[test]
    fn the_most_started_tool_comes_first_with_its_reasons() {
        let expected = [
            "hotstart: how processes were started, and why cold",
            "     warm      cold      saved  tool",
            "     1000         5    19.00 s  /bin/opt",
            "                                cold 3: every template was in use",
            "                                cold 2: not started often enough yet",
            "        0         1     0.00 s  /bin/sh",
            "                                cold 1: the settings say so",
            "     1000         6    19.00 s  in all",
            "hotstart: failures confirmed cold: 1; tests run both ways: 5; of these not deterministic by \
             themselves: 2; faults of hotstart: 0",
            "",
        ]
        .join("\n");
        let checks = CheckCounts { confirmed: 1, compared: 5, unsteady: 2, faults: 0 };
        assert_eq!(table(&statistics(), checks), expected);
        assert_eq!(
            table(&Statistics::default(), CheckCounts::default()),
            "hotstart: no process was started\n"
        );
    }

    #[test]
    fn one_line_counts_all() {
        assert_eq!(counts(&statistics()), "hotstart: 1000 processes started warm, 6 cold\n");
        assert_eq!(counts(&Statistics::default()), "");
    }
}
