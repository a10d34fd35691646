//! Warm starts as users see them: chosen, refused and explained. Tests that count starts use `--verify=0`, so that no test
//! is repeated by chance.

use crate::suite::{Run, Suite};

/// Creates a suite in which two tests start `sort` four times and `head` twice.
fn suite(extra: &str) -> Suite {
    let suite = Suite::new(extra);
    for name in ["a", "b"] {
        let run = "RUN: sort %s | head -n 1 | sort > %t\n";
        suite.file(&format!("{name}.test"), run);
    }
    suite
}

/// Creates such a suite in which `sort` was observed before: a small run does not observe a tool for a few starts.
fn observed(extra: &str) -> Suite {
    let suite = suite(extra);
    suite.run(&["--start=fork", "a.test"]).ends_with(0);
    suite
}

/// Returns how often `tool` was started warm and cold, and the reasons, according to `--explain`.
fn starts(run: &Run, tool: &str) -> (u32, u32, Vec<String>) {
    let mut lines = run.err.lines().skip_while(|line| !line.ends_with(&format!("/{tool}")));
    let row: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(row.len(), 5, "no row of {tool} in {run:#?}");
    let reasons = lines.map(str::trim).skip_while(|line| line.starts_with("warm "));
    let reasons = reasons.take_while(|line| line.starts_with("cold ")).map(str::to_owned);
    (row[0].parse().expect("a count"), row[1].parse().expect("a count"), reasons.collect())
}

#[test]
fn named_tools_are_warm_from_the_first_start() {
    let run = suite("").run(&["-j1", "--verify=0", "--warm=sort", "--explain", "."]);
    run.ends_with(0).has("PASS: t :: a.test").warns("hotstart: 4 processes started warm, 2 cold\n");
    assert_eq!(starts(&run, "sort"), (4, 0, vec![]));
    assert_eq!(starts(&run, "head"), (0, 2, vec!["cold 2: the settings say so".to_owned()]));
    assert!(!run.out.contains("warm"), "standard output is lit's: {run:#?}");
}

#[test]
fn auto_begins_after_some_cold_starts() {
    let run = suite("").run(&["-j1", "--verify=0", "--explain", "."]);
    assert_eq!(starts(&run, "sort"), (3, 1, vec!["cold 1: not started often enough yet".to_owned()]));
}

#[test]
fn cold_is_cold_and_says_why() {
    let run = suite("").run(&["--cold", "--warm=sort", "--explain", "."]);
    assert_eq!(starts(&run, "sort"), (0, 4, vec!["cold 4: the settings say so".to_owned()]));
    run.ends_with(0).warns("        0         6     0.00 s  in all\n");
    assert!(!run.err.contains("started warm, "), "{run:#?}");
}

#[test]
fn a_terse_summary_leaves_the_count_out() {
    let run = suite("").run(&["--terse-summary", "."]);
    assert_eq!(run.ends_with(0).err, "");
}

#[test]
fn tools_can_be_kept_cold_by_the_command_line() {
    let run = suite("").run(&["-j1", "--verify=0", "--start=fork", "--keep-cold=head", "--explain", "."]);
    assert_eq!(starts(&run, "sort").0, 4);
    assert_eq!(starts(&run, "head"), (0, 2, vec!["cold 2: the settings say so".to_owned()]));
}

#[test]
fn a_directory_opts_out() {
    let suite = suite("");
    suite.file("all/c.test", "RUN: sort %s | head -n 1\n");
    suite.file("all/lit.local.cfg", "config.hotstart_cold = True\n");
    suite.file("named/d.test", "RUN: sort %s | head -n 1\n");
    suite.file("named/lit.local.cfg", "config.hotstart_cold = ['head']\n");
    let run = suite.run(&["-j1", "--verify=0", "--start=fork", "--explain", "."]);
    assert_eq!(
        starts(&run, "sort"),
        (5, 1, vec!["cold 1: the test or its directory asks for it".to_owned()])
    );
    assert_eq!(
        starts(&run, "head"),
        (2, 2, vec!["cold 2: the test or its directory asks for it".to_owned()])
    );
}

#[test]
fn a_test_opts_out() {
    let suite = suite("");
    suite.file("c.test", "# HOTSTART-COLD: head\nRUN: sort %s | head -n 1\n");
    suite.file("d.test", "# HOTSTART-COLD:\nRUN: sort %s | head -n 1\n");
    let run = suite.run(&["-j1", "--verify=0", "--start=fork", "--explain", "."]);
    assert_eq!(starts(&run, "sort").0, 5);
    assert_eq!(starts(&run, "head").1, 2);
}

#[test]
fn programs_that_tests_make_are_cold_and_those_of_the_build_are_not() {
    let suite = Suite::new("");
    let sort = ["/usr/bin/sort", "/bin/sort"].into_iter().find(|path| std::path::Path::new(path).exists());
    suite.file("bin/made-by-build", std::fs::read(sort.expect("coreutils")).expect("it can be read"));
    suite.file(
        "a.test",
        "RUN: cp %S/bin/made-by-build %t-tool\nRUN: %t-tool %s\nRUN: %S/bin/made-by-build %s\n",
    );
    executable(&suite.path("bin/made-by-build"));
    let run = suite.run(&["-j1", "--verify=0", "--start=fork", "--explain", "."]);
    run.ends_with(0);
    assert_eq!(starts(&run, "made-by-build"), (1, 0, vec![]));
    let made = starts(&run, "a.test.tmp-tool");
    assert_eq!(made, (0, 1, vec!["cold 1: the program lies where tests write".to_owned()]));
}

fn executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("it is ours");
}

#[test]
fn the_configuration_file_holds_until_the_command_line_says_otherwise() {
    let suite = suite("");
    suite.file("hotstart.toml", "[lit]\nwarm = ['sort']\nexplain = true\n");
    assert_eq!(starts(&suite.run(&["-j1", "--verify=0", "."]), "sort").0, 4);
    assert_eq!(starts(&suite.run(&["-j1", "--cold", "."]), "sort").0, 0);
    let run = suite.run(&["-j1", "--verify=0", "--hotstart-config=", "."]);
    assert!(!run.ends_with(0).err.contains("how processes were started"), "{run:#?}");
}

#[test]
fn a_wrong_configuration_file_is_named_with_line_and_key() {
    let suite = suite("");
    let file = suite.file("hotstart.toml", "[lit]\n\nstart = 'hot'\n");
    let run = suite.run(&["."]);
    let place = format!("{}:3:9: 'lit.start' must be one of", file.display());
    run.ends_with(2).warns(&place).warns("but found \"hot\"");
    assert!(run.out.is_empty(), "{run:#?}");
}

#[test]
fn failures_are_confirmed_and_parity_compares_every_test() {
    // On a busy machine a stage may start late, so that its test is repeated instead of compared.
    let run = || {
        let suite = suite("");
        suite.file("fail.test", "RUN: sort %s | head -n 1 | not sort\n");
        let run = suite.run(&["-j1", "--parity", "--explain", "."]);
        (suite, run)
    };
    let has_compared_all = |run: &Run| run.err.contains("tests run both ways: 3; ");
    let (suite, run) = (0..4).map(|_| run()).find(|(_, run)| has_compared_all(run)).unwrap_or_else(run);
    run.ends_with(1)
        .has("FAIL: t :: fail.test")
        .warns("failures confirmed cold: 1; tests run both ways: 3; ");
    run.warns("faults of hotstart: 0");
    let run = suite.run(&["-j1", "--start=fork", "--verify=0", "--explain", "."]);
    run.warns("failures confirmed cold: 0; tests run both ways: 0; ").warns("failed last time: 1");
}

#[test]
fn a_test_that_failed_last_time_or_is_to_fail_runs_once() {
    let suite = suite("");
    suite.file("fail.test", "RUN: echo x >> %S/runs && sort %s | head -n 1 | not sort\n");
    suite.file("xfail.test", "XFAIL: *\nRUN: echo x >> %S/xruns && sort %s | head -n 1 | not sort\n");
    for (runs, xruns) in [(2, 1), (3, 2)] {
        let run = suite.run(&["-j1", "--start=fork", "--verify=0", "."]);
        run.ends_with(1).has("FAIL: t :: fail.test");
        let lines = |name: &str| std::fs::read_to_string(suite.path(name)).unwrap().lines().count();
        assert_eq!((lines("runs"), lines("xruns")), (runs, xruns));
    }
    suite.file("fail.test", "RUN: sort %s\n");
    suite.run(&["-j1", "--start=fork", "--verify=0", "."]).ends_with(0);
}

/// The program that it executes is the same process, which has to be ended in turn.
#[test]
fn a_stage_is_ended_if_its_pipeline_cannot_be_completed() {
    let suite = Suite::new("");
    for name in ["a.test", "b.test"] {
        suite.file(name, "RUN: sh -c 'exec sleep 600' | no-such-command\n");
    }
    let run = suite.run(&["-j1", "--start=fork", "--warm=sh", "--verify=0", "--explain", "."]);
    assert!(starts(run.ends_with(1).says("  Failed: 2 "), "sh").0 > 0);
    // The scripts have failed by then. The wait for their stages is no timeout.
    suite.run(&["-j1", "--warm=sh", "--timeout=1", "."]).ends_with(1).says("  Failed: 2 ");
}

#[test]
fn without_memory_for_templates_all_is_cold() {
    let suite = suite("");
    let too_much = vec!["cold 4: a zygote of it takes more memory than all may".to_owned()];
    let run = suite.run(&["-j1", "--start=fork", "--template-memory=0", "--explain", "."]);
    assert_eq!(starts(run.ends_with(0), "sort"), (0, 4, too_much.clone()));
    suite.file("hotstart.toml", "[lit]\nstart = 'fork'\ntemplate_memory_mib = 0\nexplain = true\n");
    assert_eq!(starts(&suite.run(&["-j1", "."]), "sort"), (0, 4, too_much));
    assert_eq!(starts(&suite.run(&["-j1", "--template-memory=64", "--verify=0", "."]), "sort").0, 4);
}

/// A config that names `sort` by its path, and then waits for a process.
const WAITS: &str = "\
import os, subprocess
config.substitutions.append((r'\\bsort\\b', '/usr/bin/sort'))
subprocess.run(['true'])
";

#[test]
fn a_tool_that_a_config_names_before_it_waits_is_warm_from_the_first_start() {
    let suite = observed(WAITS);
    let counted = |args: &[&str]| {
        let run = suite.run(&[&["-j1", "--verify=0", "--explain"], args, &["a.test"]].concat());
        run.ends_with(0);
        starts(&run, "sort")
    };
    assert_eq!(counted(&[]), (2, 0, vec![]));
    let by_settings = (0, 2, vec!["cold 2: the settings say so".to_owned()]);
    assert_eq!(counted(&["--keep-cold=sort"]), by_settings);
    assert_eq!(counted(&["--cold"]), by_settings);
}

#[test]
fn what_a_config_says_after_it_has_waited_counts() {
    let suite = observed(&format!("{WAITS}config.environment['LC_ALL'] = 'C'\n"));
    let run = suite.run(&["-j1", "--verify=0", "--explain", "a.test"]);
    run.ends_with(0);
    assert_eq!(starts(&run, "sort"), (1, 1, vec!["cold 1: not started often enough yet".to_owned()]));
}

#[test]
fn a_process_at_the_end_of_a_config_that_had_none_holds_nobody_up() {
    let suite = suite(
        "import atexit, subprocess\n\
         config.environment['LONG'] = 'x' * 100000\n\
         atexit.register(lambda: subprocess.run(['echo', 'at the end']))\n",
    );
    let run = suite.run(&["-j1", "--verify=0", "a.test"]);
    run.ends_with(0).has("at the end");
}

/// Python scripts are warm on demand only, and then equal to cold ones.
#[test]
fn python_scripts_are_warm_if_that_is_asked_for() {
    use std::os::unix::fs::PermissionsExt;
    let suite = Suite::new(
        "config.substitutions.append(('%tool', os.path.join(os.path.dirname(__file__), 'bin', 'tool')))\n",
    );
    std::fs::create_dir_all(suite.path("bin")).expect("a directory");
    suite.file(
        "bin/tool",
        "#!/usr/bin/python3\nimport argparse, sys\nprint(sys.argv[1:], sys.stdin.read())\n",
    );
    std::fs::set_permissions(suite.path("bin/tool"), std::fs::Permissions::from_mode(0o755))
        .expect("permissions");
    for name in ["a", "b"] {
        suite.file(&format!("{name}.test"), "RUN: echo x | %tool %s 1 > %t\nRUN: %tool < %s | cat\n");
    }
    let cold = suite.run(&["-j1", "--verify=0", "--start=fork", "--explain", "."]);
    assert_eq!((starts(&cold, "tool").0, starts(&cold, "tool").1), (0, 4));
    let warm = suite.run(&[
        "-j1",
        "--python-warm",
        "--python-share-seed",
        "--start=fork",
        "--parity",
        "--explain",
        ".",
    ]);
    warm.ends_with(0).warns("faults of hotstart: 0");
    assert!(starts(&warm, "tool").0 >= 4, "{warm:#?}");
}

/// All addresses of two cold processes are the same then, and a zygote has others: where `main` returns to, for one.
#[test]
fn a_tool_that_returns_from_main_is_warm_where_addresses_are_not_random() {
    let suite = Suite::new("");
    let source = suite.file("returns.c", "int main(void) { return 0; }\n");
    let built = std::process::Command::new("cc").arg("-o").args([suite.path("returns"), source]).status();
    assert!(built.unwrap().success());
    suite.file("a.test", "RUN: %S/returns\n".repeat(6));
    let told = suite.command(&["-j1", "--verify=0", "--start=rewind", "--explain", "a.test"]);
    let mut command = std::process::Command::new("setarch");
    command
        .arg("-R")
        .arg(told.get_program())
        .args(told.get_args())
        .current_dir(told.get_current_dir().unwrap());
    for (name, value) in told.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let allowed = std::process::Command::new("setarch").args(["-R", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        let told = b"skipped: addresses cannot be made the same here\n";
        return std::io::Write::write_all(&mut std::io::stderr(), told).unwrap();
    }
    let run = Run::from(command.output().unwrap());
    run.ends_with(0).has("PASS: t :: a.test");
    // Where libraries lie otherwise beside a preloaded one, it is cold.
    let (warm, _, reasons) = starts(&run, "returns");
    let is_cold = reasons.iter().any(|reason| reason.contains("differs between two starts"));
    assert!((warm >= 5 || is_cold) && !run.err.contains("ends by a signal"), "{run:#?}");
}

#[test]
fn a_named_tool_that_no_test_starts_is_told() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: head -c 1 %s | cat\n");
    let run = suite.run(&["--warm=head,haed,FileCheck", "--keep-cold=tial", "."]);
    run.ends_with(0)
        .warns("--warm: no test has started 'haed'\n")
        .warns("--keep-cold: no test has started 'tial'\n");
    suite.run(&["--wrap=haed=env A=1", "."]).ends_with(0).warns("--wrap: no test has started 'haed'\n");
    for option in ["--warm=head", "--wrap=head=env A=1"] {
        let run = suite.run(&[option, "."]);
        assert!(!run.err.contains("no test has started"), "{run:#?}");
    }
}
