//! Describes in words how processes were started.
//!
//! It goes to standard error, since standard output is compared with lit's. A tool that is slower than it could be gets a line unasked.

use std::cmp::Reverse;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use hotstart_launch::{Reason, Statistics, Stopped, ToolStatistics};
use hotstart_lit::render::signal_name;
use hotstart_model::Wrap;
use hotstart_run::CheckCounts;

use crate::args::WarmOptions;

/// Fallbacks that cost less are not worth an unrequested line.
const FALLBACK_MIN: Duration = Duration::from_millis(500);
/// Programs that tests have made share a row if there are more. Suites of runtime libraries make one in each test.
const MADE_SHOWN: usize = 3;

/// Returns the line at the end of a run; empty if nothing was started.
pub fn counts(statistics: &Statistics) -> String {
    let (warm, cold) = totals(statistics);
    let processes = if warm == 1 { "process" } else { "processes" };
    match (warm, cold) {
        (0, 0) => String::new(),
        _ => format!("hotstart: {warm} {processes} started warm, {cold} cold\n"),
    }
}

fn totals(statistics: &Statistics) -> (u64, u64) {
    let add = |(warm, cold), tool: &ToolStatistics| (warm + tool.warm_total(), cold + tool.cold_total());
    statistics.tools.iter().fold((0, 0), add)
}

/// Describes each tool, the most frequent first: cold and warm starts, reasons, time saved; then the checks. Faults are
/// tests that differed and tools whose reset failed an audit.
pub fn table(statistics: &Statistics, checks: CheckCounts) -> String {
    let starts = |tool: &ToolStatistics| tool.warm_total() + tool.cold_total();
    let started = statistics.tools.iter().filter(|tool| starts(tool) > 0);
    let (mut made, mut tools): (Vec<_>, Vec<_>) = started.partition(|tool| is_made_by_test(tool));
    if tools.is_empty() && made.is_empty() {
        let none = "hotstart: no process was started\n";
        return none.to_owned() + &only_cold(checks);
    }
    if made.len() <= MADE_SHOWN {
        tools.append(&mut made);
    }
    tools.sort_by_key(|tool| (Reverse(starts(tool)), &tool.program));
    let mut text = "hotstart: how processes were started, and why cold\n".to_owned();
    let _ = writeln!(text, "{:>9} {:>9} {:>10}  tool", "warm", "cold", "saved");
    for tool in &tools {
        row(
            &mut text,
            tool.warm_total(),
            tool.cold_total(),
            tool.saved(),
            &tool.program.display().to_string(),
        );
        ways(&mut text, tool);
        limits(&mut text, tool, statistics.memory);
        let mut reasons: Vec<_> = tool.cold.iter().collect();
        reasons.sort_by_key(|(reason, count)| (Reverse(**count), **reason));
        for (reason, count) in reasons {
            let detail =
                tool.constructors.as_ref().filter(|(why, detail)| why == reason && !detail.is_empty());
            let detail = detail.map(|(_, detail)| format!(" ({detail})")).unwrap_or_default();
            let _ = writeln!(text, "{:32}cold {count}: {reason}{detail}", "");
        }
    }
    if !made.is_empty() {
        let cold = made.iter().map(|tool| tool.cold_total()).sum();
        row(&mut text, 0, cold, Duration::ZERO, &format!("{} programs that tests made", made.len()));
        let _ = writeln!(text, "{:32}cold {cold}: {}", "", Reason::TestOutput);
    }
    let (warm, cold) = totals(statistics);
    row(&mut text, warm, cold, tools.iter().map(|tool| tool.saved()).sum(), "in all");
    let CheckCounts { confirmed, compared, nondeterministic, faults, .. } = checks;
    let faults = faults + not_restored(statistics).count() as u64;
    let _ = writeln!(
        text,
        "hotstart: failures confirmed cold: {confirmed}; tests run both ways: {compared}; of these not \
         deterministic by themselves: {nondeterministic}; faults of hotstart: {faults}"
    );
    text + &only_cold(checks)
}

fn is_made_by_test(tool: &ToolStatistics) -> bool {
    tool.warm_total() == 0 && tool.cold.keys().all(|reason| *reason == Reason::TestOutput)
}

fn only_cold(checks: CheckCounts) -> String {
    let causes = [
        (checks.foreseen, "they are to fail or failed last time"),
        (checks.unrepeatable, "their files of earlier runs could not be restored for a second run"),
    ];
    let line = |(count, why)| format!("hotstart: tests only run cold, as {why}: {count}\n");
    causes.into_iter().filter(|(count, _)| *count > 0).map(line).collect()
}

/// Appends a tool's allocator, if one was chosen, and the ways of its warm starts, or why there were none.
fn ways(text: &mut String, tool: &ToolStatistics) {
    if let Some(library) = &tool.allocator {
        let _ = writeln!(text, "{:32}allocator: {}", "", library.display());
    }
    if let Some(why) = tool.no_allocator {
        let _ = writeln!(text, "{:32}the system's allocator: {why}", "");
    }
    if tool.resets > 0 {
        let ToolStatistics { forks, resets, audits, at_point, clones, .. } = tool;
        let _ = writeln!(
            text,
            "{:32}warm {resets}: reset ({audits} audited, {at_point} deferred, {clones} cloned), {forks} forked",
            ""
        );
    }
    for (why, count) in &tool.retired {
        let _ = writeln!(text, "{:32}not used again {count}: {why}", "");
    }
    for (call, count) in &tool.unknown_calls {
        let _ =
            writeln!(text, "{:32}doubtful {count}: {call}, in a way that is not known to be harmless", "");
    }
    if let Some(line) = &tool.halts_at {
        let _ = writeln!(text, "{:32}halts at {line}", "");
    }
    if let Some(why) = &tool.only_forked {
        let _ = writeln!(text, "{:32}forked only: {why}", "");
    }
}

/// Appends the effects of limits on a tool's processes.
fn limits(text: &mut String, tool: &ToolStatistics, memory: u64) {
    let lines = [
        (tool.ended_for_memory, format!("ended: all processes may own {} MiB together", memory >> 20)),
        (tool.not_grown_for_memory, "forked: a process of it was ended for its memory before".to_owned()),
        (tool.ended_for_room, "ended: other keys needed the places of this tool".to_owned()),
        (tool.not_grown_for_room, "forked: the tool had as many processes as it may".to_owned()),
    ];
    for (count, what) in lines.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "{:32}limit {count}: {what}", "");
    }
}

/// Returns one line on why every start was cold, where hotstart was started with these signals blocked; empty if there are none.
pub fn blocked(statistics: &Statistics, signals: &[i32]) -> String {
    if signals.is_empty() || statistics.tools.is_empty() {
        return String::new();
    }
    let name = |&signal: &i32| signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
    let names = signals.iter().map(name).collect::<Vec<_>>().join(", ");
    let was = if signals.len() == 1 { "was" } else { "were" };
    format!(
        "hotstart: slower than it could be: every start is cold, as {names} {was} blocked or ignored when hotstart was started\n"
    )
}

/// Returns one line on tools that fell back to a slower way, with an estimate of the cost; empty if it was small.
pub fn fallbacks(statistics: &Statistics) -> String {
    let tools = statistics.tools.iter().filter_map(|tool| {
        let name = tool.program.file_name().unwrap_or_default().to_string_lossy();
        let (why, cost) = fallback(tool).into_iter().max_by_key(|(_, cost)| *cost)?;
        (cost >= FALLBACK_MIN).then(|| format!("{name} {why} ({:.1} s)", cost.as_secs_f64()))
    });
    let tools = tools.collect::<Vec<_>>().join("; ");
    match tools.as_str() {
        "" => tools,
        _ => format!("hotstart: slower than it could be: {tools}; --explain shows more\n"),
    }
}

/// Returns a line on tools that the command line names and no test has started: the name may be misspelt.
pub fn unknown(options: &WarmOptions, wraps: &[Wrap], statistics: &Statistics) -> String {
    // Not all of their runs are processes.
    const BY_HOTSTART: [&str; 3] = ["FileCheck", "cat", "diff"];
    let is_started = |name: &str| {
        BY_HOTSTART.contains(&name)
            || statistics.tools.iter().any(|tool| tool.program.file_name() == Some(name.as_ref()))
    };
    let has_started = |program: &str| statistics.tools.iter().any(|tool| tool.program == Path::new(program));
    let mut text = String::new();
    // A wrapped tool is counted as the program that starts it.
    for wrap in wraps.iter().filter(|wrap| !wrap.words.first().is_some_and(|program| has_started(program))) {
        let _ = writeln!(text, "hotstart: --wrap: no test has started '{}'", wrap.tool);
    }
    for (option, names) in [("--warm", &options.warm), ("--keep-cold", &options.keep_cold)] {
        let unknown = names.iter().flatten().filter(|name| !is_started(name));
        let unknown = unknown.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        if !unknown.is_empty() {
            let _ = writeln!(text, "hotstart: {option}: no test has started {unknown}");
        }
    }
    text
}

/// Returns the ways in which a tool fell back, with the cost of each.
fn fallback(tool: &ToolStatistics) -> Vec<(String, Duration)> {
    let mean =
        |time: Duration, count: u64| u32::try_from(count).ok().and_then(|count| time.checked_div(count));
    let zygote = mean(tool.zygote_time, tool.zygotes).unwrap_or_default();
    let fork = mean(tool.fork_time, tool.forks).unwrap_or_default();
    // A fork costs only the excess over a reset, which would have been possible.
    let more = fork.saturating_sub(mean(tool.reset_time, tool.resets).unwrap_or_default());
    let times = |each: Duration, count: u64| each * u32::try_from(count).unwrap_or(u32::MAX);
    let cold = |reason| tool.cold.get(&reason).copied().unwrap_or(0);
    let mut ways = Vec::new();
    if cold(Reason::Quarantined) > 0 {
        ways.push(("is cold, as a warm start differed".to_owned(), times(zygote, cold(Reason::Quarantined))));
    }
    if cold(Reason::Memory) > 0 {
        ways.push(("is cold, as it needs more than --template-memory".to_owned(), tool.cold_time));
    }
    if let Some(why) = &tool.only_forked {
        ways.push((format!("is only forked, as {why}"), times(more, tool.forks)));
    }
    if tool.ended_for_memory > 0 {
        let cost = times(zygote, tool.ended_for_memory) + times(more, tool.not_grown_for_memory);
        ways.push((format!("lost {} processes to --template-memory", tool.ended_for_memory), cost));
    }
    ways
}

/// Reports the tools whose reset failed an audit; empty if there are none, as there should be.
pub fn faults(statistics: &Statistics) -> String {
    let mut text = String::new();
    for (tool, why) in not_restored(statistics) {
        let _ = writeln!(
            text,
            "hotstart: a fault of hotstart, please report it: reset of '{}': {why}; it is only forked from now on",
            tool.program.display()
        );
    }
    text
}

/// Reports tests that failed warm and passed cold, even in quiet runs; empty if there are none.
pub fn flaky(tests: &[String]) -> String {
    const SHOWN: usize = 20;
    if tests.is_empty() {
        return String::new();
    }
    let mut names = tests.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if tests.len() > SHOWN {
        names.push_str(", ...");
    }
    format!("hotstart: failed with warm starts and not cold: {}: {names}\n", tests.len())
}

fn not_restored(statistics: &Statistics) -> impl Iterator<Item = (&ToolStatistics, &Stopped)> {
    statistics.tools.iter().filter_map(|tool| match &tool.only_forked {
        Some(why @ Stopped::Differs(_)) => Some((tool, why)),
        _ => None,
    })
}

fn row(text: &mut String, warm: u64, cold: u64, saved: Duration, what: &str) {
    let saved = format!("{:.2} s", saved.as_secs_f64());
    let _ = writeln!(text, "{warm:>9} {cold:>9} {saved:>10}  {what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotstart_launch::Retirement;

    fn statistics() -> Statistics {
        let opt = ToolStatistics {
            program: "/bin/opt".into(),
            cold: [(Reason::FewStarts, 2), (Reason::Busy, 3)].into(),
            forks: 100,
            resets: 900,
            audits: 7,
            allocator: Some("/lib/libmimalloc.so".into()),
            retired: [(Retirement::Threads, 1)].into(),
            only_forked: Some(Stopped::Differs("signals".to_owned())),
            ended_for_memory: 2,
            not_grown_for_room: 3,
            fork_time: Duration::from_millis(900),
            reset_time: Duration::from_millis(100),
            zygotes: 2,
            zygote_time: Duration::from_millis(40),
            ..ToolStatistics::default()
        };
        let sh = ToolStatistics {
            program: "/bin/sh".into(),
            cold: [(Reason::ReadsDirectory, 1)].into(),
            constructors: Some((Reason::ReadsDirectory, "getcwd".to_owned())),
            halts_at: Some("/lib/tool.py:3: sys.argv".to_owned()),
            no_allocator: Some(Reason::Static),
            ..ToolStatistics::default()
        };
        let unused = ToolStatistics { program: "/bin/no".into(), ..ToolStatistics::default() };
        Statistics { tools: vec![unused, sh, opt], memory: 512 << 20 }
    }

    #[test]
    fn flaky_tests_are_named_up_to_a_number() {
        assert_eq!(flaky(&[]), "");
        let line = "hotstart: failed with warm starts and not cold: 2: t :: a, t :: b\n";
        assert_eq!(flaky(&["t :: a".to_owned(), "t :: b".to_owned()]), line);
        assert!(flaky(&vec!["t :: a".to_owned(); 21]).ends_with("t :: a, ...\n"));
    }

    #[test]
    fn the_most_started_tool_comes_first_with_its_reasons() {
        let expected = [
            "hotstart: how processes were started, and why cold",
            "     warm      cold      saved  tool",
            "     1000         5    19.00 s  /bin/opt",
            "                                allocator: /lib/libmimalloc.so",
            "                                warm 900: reset (7 audited, 0 deferred, 0 cloned), 100 forked",
            "                                not used again 1: it leaves threads",
            "                                forked only: an audit found that this was not restored: signals",
            "                                limit 2: ended: all processes may own 512 MiB together",
            "                                limit 3: forked: the tool had as many processes as it may",
            "                                cold 3: every zygote was in use",
            "                                cold 2: not started often enough yet",
            "        0         1     0.00 s  /bin/sh",
            "                                the system's allocator: statically linked",
            "                                halts at /lib/tool.py:3: sys.argv",
            "                                cold 1: the working directory is read before main (getcwd)",
            "     1000         6    19.00 s  in all",
            "hotstart: failures confirmed cold: 1; tests run both ways: 5; of these not deterministic by \
             themselves: 2; faults of hotstart: 4",
            "hotstart: tests only run cold, as they are to fail or failed last time: 6",
            "hotstart: tests only run cold, as their files of earlier runs could not be restored for a second run: 7",
            "",
        ]
        .join("\n");
        let checks = CheckCounts {
            confirmed: 1,
            foreseen: 6,
            unrepeatable: 7,
            compared: 5,
            nondeterministic: 2,
            faults: 3,
            flaky: 4,
        };
        assert_eq!(table(&statistics(), checks), expected);
        assert_eq!(
            table(&Statistics::default(), CheckCounts::default()),
            "hotstart: no process was started\n"
        );
    }

    #[test]
    fn many_programs_that_tests_made_share_a_row() {
        let made = |number: u32| ToolStatistics {
            program: format!("/t/Output/{number}.tmp").into(),
            cold: [(Reason::TestOutput, 2)].into(),
            ..ToolStatistics::default()
        };
        let told = |count: u32| {
            let Statistics { tools, memory } = statistics();
            let tools = tools.into_iter().chain((0..count).map(made)).collect();
            table(&Statistics { tools, memory }, CheckCounts::default())
        };
        assert_eq!(told(3).matches("Output").count(), 3);
        let row = "        0         8     0.00 s  4 programs that tests made\n                                \
                   cold 8: the program lies where tests write\n     1000        14    19.00 s  in all\n";
        assert!(told(4).contains(row) && !told(4).contains("Output"), "{}", told(4));
    }

    #[test]
    fn what_was_not_restored_is_our_fault() {
        let expected = "hotstart: a fault of hotstart, please report it: reset of '/bin/opt': an audit found that \
                        this was not restored: signals; it is only forked from now on\n";
        assert_eq!(faults(&statistics()), expected);
        assert_eq!(faults(&Statistics::default()), "");
    }

    #[test]
    fn a_tool_that_fell_back_is_named_with_its_cost() {
        let line = "hotstart: slower than it could be: opt is only forked, as an audit found that this was not \
                    restored: signals (0.9 s); --explain shows more\n";
        assert_eq!(fallbacks(&statistics()), line);
        let mut seldom = statistics();
        seldom.tools[2].fork_time = Duration::from_millis(400);
        assert_eq!(fallbacks(&seldom), "");
        let cold = &mut seldom.tools[2].cold;
        cold.insert(Reason::Quarantined, 100);
        let line = "hotstart: slower than it could be: opt is cold, as a warm start differed (2.0 s); --explain \
                    shows more\n";
        assert_eq!(fallbacks(&seldom), line);
    }

    #[test]
    fn signals_that_keep_all_starts_cold_are_named() {
        let line = "hotstart: slower than it could be: every start is cold, as SIGWINCH, signal 40 were \
                    blocked or ignored when hotstart was started\n";
        assert_eq!(blocked(&statistics(), &[28, 40]), line);
        assert_eq!(blocked(&statistics(), &[]), "");
        assert_eq!(blocked(&Statistics::default(), &[28]), "");
    }

    #[test]
    fn one_line_counts_all() {
        assert_eq!(counts(&statistics()), "hotstart: 1000 processes started warm, 6 cold\n");
        assert_eq!(counts(&Statistics::default()), "");
    }
}
