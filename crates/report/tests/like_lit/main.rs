//! Runs lit on a small suite with all kinds of results and replays its JSON report: the console text and the report
//! files must equal lit's own.
//!
//! lit runs one test at a time in the order of names, so that the order is known. Its JSON contains the times too, hence
//! even the progress bar and the histogram are compared. HOTSTART_LIT_PACKAGE names the directory of another lit.
#![forbid(unsafe_code)]

mod replay;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hotstart_model::Dialect;
use hotstart_report::{Levels, Shown};
use replay::Replay;

/// A lit and a suite for it.
struct Lit {
    python: PathBuf,
    version: (u32, u32, u32),
    dir: tempfile::TempDir,
    can_time_out: bool,
}

/// The output and reports of one run of lit.
struct Ran {
    console: String,
    json: String,
    xunit: String,
}

impl Lit {
    fn new() -> Lit {
        let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
        let python = std::env::var_os("HOTSTART_LIT_PYTHON").map_or_else(default, PathBuf::from);
        assert!(python.exists(), "{} does not exist; run `make venv`", python.display());
        let dir = tempfile::tempdir().expect("a directory for the suite");
        let mut lit = Lit { python, version: (0, 0, 0), dir, can_time_out: false };
        let version = lit.python(&["-c", "import lit; print(*lit.__versioninfo__)"]);
        let parts: Vec<u32> =
            version.split_whitespace().map(|part| part.parse().expect("a number")).collect();
        lit.version = (parts[0], parts[1], parts[2]);
        let has_psutil =
            lit.python(&["-c", "import importlib.util as u; print(bool(u.find_spec('psutil')))"]);
        lit.can_time_out = has_psutil.trim() == "True";
        suite::write(lit.dir.path(), lit.can_time_out).expect("the suite is written");
        lit
    }

    fn dialect(&self) -> Dialect {
        if self.version.0 < 20 { Dialect::V19 } else { Dialect::V23 }
    }

    fn python(&self, args: &[&str]) -> String {
        let mut command = Command::new(&self.python);
        if let Some(package) = std::env::var_os("HOTSTART_LIT_PACKAGE") {
            command.env("PYTHONPATH", package);
        }
        for variable in ["LIT_OPTS", "LIT_FILTER", "LIT_XFAIL"] {
            command.env_remove(variable);
        }
        let output = command.args(args).current_dir(self.dir.path()).output().expect("Python starts");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn list(&self, option: &str) -> String {
        self.python(&["-c", "from lit.main import main; main()", option, "kinds", "metrics"])
    }

    fn run(&self, options: &[&str]) -> Ran {
        let mut args = vec!["-c", "from lit.main import main; main()"];
        args.extend_from_slice(options);
        args.extend(["-j1", "--order=lexical", "--skip-test-time-recording"].iter().filter(|option| {
            // The histogram and this option exclude each other.
            !(option.starts_with("--skip") && options.iter().any(|given| given.starts_with("--time-tests")))
        }));
        args.extend(["--timeout=1", "-o", "out.json", "--xunit-xml-output", "out.xml", "kinds", "metrics"]);
        let console = self.python(&args);
        for suite in ["kinds", "metrics"] {
            let times = self.dir.path().join(suite).join(".lit_test_times.txt");
            // Times would change the order of the next run's progress.
            let _ = fs::remove_file(times);
        }
        let read = |name: &str| fs::read_to_string(self.dir.path().join(name)).expect("lit wrote its report");
        Ran { console, json: read("out.json"), xunit: read("out.xml") }
    }

    fn compare(&self, options: &[&str], levels: Levels, change: impl Fn(&mut Replay)) {
        let ran = self.run(options);
        let mut replay = Replay::new(&ran.json, self.version, levels, self.dir.path());
        change(&mut replay);
        let replayed = replay.run();
        assert_same(&replayed.console, &ran.console, &format!("console of {options:?}"));
        assert_same(&replayed.xunit, &ran.xunit, &format!("XML of {options:?}"));
        assert_same(&rounded(&replayed.json), &rounded(&ran.json), &format!("JSON of {options:?}"));
    }

    fn levels(&self) -> Levels {
        Levels { dialect: self.dialect(), ..Levels::default() }
    }
}

fn assert_same(ours: &str, lits: &str, what: &str) {
    if ours == lits {
        return;
    }
    let difference = ours.lines().zip(lits.lines()).position(|(our, lits)| our != lits);
    panic!("{what}: first different line {difference:?}\n--- hotstart\n{ours}\n--- lit\n{lits}");
}

/// Rounds times to the nanosecond, beyond which a duration has no digits. With fewer digits both sides would be rounded twice, and a
/// value halfway between two could then differ.
fn rounded(json: &str) -> String {
    let round = |line: &str| match line.trim_start().strip_prefix("\"elapsed\": ") {
        Some(value) => {
            let value = value.trim_end_matches(',');
            value.parse::<f64>().map_or_else(|_| line.to_owned(), |value| format!("elapsed {value:.9}"))
        }
        None => line.to_owned(),
    };
    json.lines().map(round).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_suite_has_all_kinds_of_results() {
    let lit = Lit::new();
    let json = lit.run(&[]).json;
    let kinds = ["PASS", "FAIL", "XFAIL", "XPASS", "UNSUPPORTED", "UNRESOLVED", "FLAKYPASS", "TIMEOUT"];
    for kind in &kinds[..if lit.can_time_out { kinds.len() } else { kinds.len() - 1 }] {
        assert!(json.contains(&format!("\"code\": \"{kind}\"")), "no {kind} in {json}");
    }
}

#[test]
fn levels_of_output() {
    let lit = Lit::new();
    let plain = lit.levels();
    lit.compare(&[], plain.clone(), |_| {});
    lit.compare(&["-v"], Levels { output: Shown::Failed, ..plain.clone() }, |_| {});
    lit.compare(&["-a"], Levels { output: Shown::All, ..plain.clone() }, |_| {});
    let quiet = match lit.dialect() {
        Dialect::V19 => Shown::Off,
        Dialect::V23 => Shown::Failed,
    };
    lit.compare(&["-q"], Levels { results: quiet, terse_summary: true, ..plain.clone() }, |_| {});
    lit.compare(&["-s"], Levels { results: Shown::Failed, progress_bar: true, ..plain.clone() }, |_| {});
    let succinct = Levels { results: Shown::Failed, output: Shown::Failed, progress_bar: true, ..plain };
    lit.compare(&["-sv"], succinct, |_| {});
}

#[test]
fn levels_that_only_lit_23_has() {
    let lit = Lit::new();
    if lit.dialect() == Dialect::V19 {
        return;
    }
    let flaky = Levels { output: Shown::FailedOrFlaky, ..lit.levels() };
    lit.compare(&["--test-output=failed-or-flaky"], flaky, |_| {});
    lit.compare(&["--print-result-after=off"], Levels { results: Shown::Off, ..lit.levels() }, |_| {});
    lit.compare(&["-r"], lit.levels(), |replay| replay.relative_paths = true);
}

#[test]
fn summaries() {
    let lit = Lit::new();
    let shown = ["--show-pass", "--show-xfail", "--show-unsupported", "--show-flakypass", "--show-excluded"];
    lit.compare(&shown, lit.levels(), |replay| {
        replay.shown = ["PASS", "XFAIL", "UNSUPPORTED", "FLAKYPASS", "EXCLUDED"].to_vec();
    });
    lit.compare(&["--filter-out=fail", "--show-excluded"], lit.levels(), |replay| {
        replay.shown = vec!["EXCLUDED"];
    });
    let slowest = match lit.dialect() {
        Dialect::V19 => "--time-tests",
        Dialect::V23 => "--time-tests=3",
    };
    lit.compare(&[slowest], lit.levels(), |replay| replay.slowest = Some(3));
}

#[test]
fn listings() {
    let lit = Lit::new();
    assert_same(&replay::listed_tests(lit.dir.path()), &lit.list("--show-tests"), "--show-tests");
    assert_same(&replay::listed_suites(lit.dir.path()), &lit.list("--show-suites"), "--show-suites");
}

#[test]
fn resultdb_and_time_trace_but_for_the_clock() {
    let lit = Lit::new();
    let ran = lit.run(&["--resultdb-output=out.rdb", "--time-trace-output=out.trace"]);
    let replay = Replay::new(&ran.json, lit.version, lit.levels(), lit.dir.path());
    let replayed = replay.run();
    let read = |name: &str| fs::read_to_string(lit.dir.path().join(name)).expect("lit wrote its report");
    let timeless = |text: &str| {
        let clock = ["\"start_time\":", "\"duration\":", "\"elapsed\":", "\"ts\":", "\"dur\":", "\"pid\":"];
        let lines = text.lines().map(|line| {
            clock.into_iter().find(|key| line.trim_start().starts_with(key)).unwrap_or(line).to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_same(&timeless(&replayed.resultdb), &timeless(&read("out.rdb")), "ResultDB");
    assert_same(&timeless(&replayed.time_trace), &timeless(&read("out.trace")), "time trace");
    assert_eq!(replayed.time_trace.ends_with('\n'), read("out.trace").ends_with('\n'));
}
