//! The runner with scarce resources: descriptors, threads, room for files, a standard output.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::suite::{Run, Suite, lit_python, prepare};

/// Runs `hotstart lit` from a shell that first runs `setup`, such as `ulimit -n 100`. `after` follows the command's words,
/// for redirections.
fn run_after(suite: &Suite, setup: &str, args: &[&str], after: &str) -> Run {
    let mut shell = Command::new("bash");
    let script = format!("{setup}\nexec {} lit \"$@\" {after}", env!("CARGO_BIN_EXE_hotstart"));
    shell.args(["-c", &script, "bash"]).args(args).current_dir(suite.path(""));
    prepare(&mut shell);
    Run::from(shell.output().expect("bash"))
}

fn pipelines(count: usize) -> Suite {
    let suite = Suite::new("");
    for index in 0..count {
        suite.file(
            &format!("{index}.test"),
            "RUN: sort %s | tee %t | sort > %t2\nRUN: head %t2 | sort | cat %t\n",
        );
    }
    suite
}

#[test]
fn few_descriptors_cost_no_test() {
    let suite = pipelines(100);
    for (limit, start) in [("-Sn 256", "--cold"), ("-n 256", "--cold"), ("-n 256", "--start=rewind")] {
        let run = run_after(&suite, &format!("ulimit {limit}"), &["-j64", start, "."], "");
        run.ends_with(0).says("  Passed: 100 (100.00%)\n");
    }
}

#[test]
fn tools_see_the_limit_that_the_runner_was_started_with() {
    let suite = Suite::new("");
    let shell = "RUN: sh -c 'test \"$(ulimit -Sn) $(ulimit -Hn)\" = \"222 333\"'\n";
    suite.file("a.test", shell.repeat(3));
    suite
        .file("b.test", "RUN: sed -n p /proc/self/limits | grep -E '^Max open files +222 +333 '\n".repeat(3));
    for start in ["--cold", "--start=fork", "--start=rewind"] {
        let run = run_after(&suite, "ulimit -Sn 222; ulimit -Hn 333", &["-v", "-j1", start, "."], "");
        run.ends_with(0).says("  Passed: 2 (100.00%)\n");
    }
}

/// lit's launcher in Python dies of that.
#[test]
fn a_limit_that_may_not_be_raised_is_a_failure() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: ulimit -n unlimited\nRUN: /bin/true\n");
    suite.file("b.test", "RUN: ulimit -s 4096\nRUN: ulimit -n 99999999999\nRUN: not /bin/true\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(1).has("FAIL: t :: a.test").has("PASS: t :: b.test");
    run.says("# | ValueError: not allowed to raise maximum limit\n");
    run.says("# error: command failed with exit status: 1\n");
}

#[test]
fn python_decides_what_an_odd_limit_means() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: ulimit -f 99999999999999999999\nRUN: /bin/true\n");
    suite.file("b.test", "RUN: ulimit -v -1\nRUN: /bin/true\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(1).has("FAIL: t :: a.test").has("PASS: t :: b.test").says("# | OverflowError: ");
}

#[test]
fn python_formats_see_that_limit() {
    let suite = Suite::new(
        "import resource\n\
         class Format(lit.formats.ShTest):\n\
         \x20   def execute(self, test, lit_config):\n\
         \x20       soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]\n\
         \x20       return (lit.Test.PASS if soft == 222 else lit.Test.FAIL), str(soft)\n\
         config.test_format = Format(False)\n",
    );
    suite.file("a.test", "");
    run_after(&suite, "ulimit -Sn 222", &["-v", "."], "").ends_with(0).has("PASS: t :: a.test");
}

#[test]
fn a_full_or_closed_standard_output_is_an_error_and_results_are_kept() {
    let suite = pipelines(2);
    for (after, why) in [("> /dev/full", "No space left on device"), (">&-", "it was closed from the start")]
    {
        let run = run_after(&suite, "", &["-v", "-o", "results.json", "."], after);
        run.ends_with(2).warns(&format!("error: cannot write to standard output: {why}"));
        assert!(!run.err.contains("panicked"), "{run:#?}");
        let results = std::fs::read_to_string(suite.path("results.json")).expect("results are kept");
        assert_eq!(results.matches("\"code\": \"PASS\"").count(), 2, "{results}");
        std::fs::remove_file(suite.path("results.json")).expect("it is there");
        run_after(&suite, "", &["--show-tests", "."], after).ends_with(2);
        run_after(&suite, "", &["--help"], after).ends_with(2);
    }
    for words in ["exec --help", "server --help", "server status", "--version", "cache --help"] {
        let directory = suite.path("no server").display().to_string();
        let command = format!(
            "HOTSTART_EXEC_DIR='{directory}' '{}' {words} > /dev/full",
            env!("CARGO_BIN_EXE_hotstart")
        );
        let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), said.contains("cannot write to standard output")),
            (Some(2), true),
            "{words}: {said}"
        );
    }
}

/// As below a parent that blocks SIGPIPE or SIGUSR1. hotstart blocks signals itself, which tools must not see.
#[test]
fn tools_begin_with_the_signals_blocked_that_the_runner_began_with() {
    let suite = Suite::new("");
    for (name, mask) in [("SIGUSR1", "0000000000000200"), ("SIGTERM", "0000000000004000")] {
        suite.file("a.test", format!("RUN: grep 'SigBlk:.*{mask}' /proc/self/status\n").repeat(3));
        for start in ["--cold", "--start=fork", "--start=rewind"] {
            let mut env = Command::new("/usr/bin/env");
            env.arg(format!("--block-signal={name}")).arg(env!("CARGO_BIN_EXE_hotstart"));
            env.args(["lit", "-v", "-j1", start, "."]).current_dir(suite.path(""));
            prepare(&mut env);
            Run::from(env.output().expect("env")).ends_with(0).says("  Passed: 1 (100.00%)\n");
        }
    }
}

#[test]
fn a_blocked_signal_that_keeps_all_starts_cold_is_named() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    let mut env = Command::new("/usr/bin/env");
    env.arg("--block-signal=WINCH").arg(env!("CARGO_BIN_EXE_hotstart"));
    env.args(["lit", "."]).current_dir(suite.path(""));
    prepare(&mut env);
    let line = "hotstart: slower than it could be: every start is cold, as SIGWINCH was blocked or ignored when hotstart was started\n";
    Run::from(env.output().expect("env")).ends_with(0).warns(line);
}

/// The kernel reaps the children of a process that ignores SIGCHLD.
#[test]
fn an_ignored_sigchld_hides_no_failure() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: grep 'SigIgn:.*1000[0-9a-f]$' /proc/self/status\n".repeat(3));
    suite.file("b.test", "RUN: false\n");
    for start in ["--cold", "--start=rewind"] {
        let mut env = Command::new("/usr/bin/env");
        env.arg("--ignore-signal=CHLD").arg(env!("CARGO_BIN_EXE_hotstart"));
        env.args(["lit", "-v", "-j1", start, "."]).current_dir(suite.path(""));
        prepare(&mut env);
        Run::from(env.output().expect("env")).ends_with(1).has("PASS: t :: a.test").has("FAIL: t :: b.test");
    }
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let suite = pipelines(3);
    let run = run_after(&suite, "", &["-v", "."], "| head -n 1; exit ${PIPESTATUS[0]}");
    run.ends_with(0).has("-- Testing: 3 tests");
}

/// Under the limit, a report cannot be written, and a tool that writes too much dies as it does under lit.
#[test]
fn a_limit_on_files_is_an_error_for_reports_and_a_signal_for_tools() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sh -c 'head -c 100000 /dev/zero > %t; test $? = 153'\n");
    suite.file("b.test", "RUN: sh -c 'head -c 100000 /dev/zero > %t; test $? = 153'\nRUN: true");
    for start in ["--cold", "--start=rewind"] {
        let args = ["-v", "-j1", "--skip-test-time-recording", start, "."];
        run_after(&suite, "ulimit -f 4", &args, "").ends_with(0).says("  Passed: 2 (100.00%)\n");
    }
    for index in 0..200 {
        suite.file(&format!("more/{index}-{}.test", "x".repeat(60)), "RUN: true\n");
    }
    let args = ["-q", "--skip-test-time-recording", "-o", "results.json", "."];
    let run = run_after(&suite, "ulimit -f 4", &args, "");
    run.ends_with(2).warns("results.json").warns("File too large");
}

#[test]
fn a_python_that_may_not_be_executed_is_named_as_such() {
    let suite = pipelines(1);
    let python = suite.file("python", "#!/bin/sh\n");
    let run = suite.run(&["--lit-python", &python.display().to_string(), "."]);
    run.ends_with(2).warns(&format!("'{}'", python.display())).warns("is not executable");
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    suite
        .run(&["--lit-python", "no/such/python", "."])
        .ends_with(2)
        .warns("cannot find '")
        .warns("no/such/python'");
}

/// Root may have any number of processes, so this test uses a user ID without any processes. That needs root, and a Python,
/// a lit and a binary that this user may read.
#[test]
fn few_processes_cost_workers_but_no_test_and_no_panic() {
    let user = format!("{}", 2_000_000 + std::process::id());
    let by_user = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]).args(words);
        command
    };
    let works = by_user(&["/usr/bin/python3", "-c", "open('/dev/null', 'r+')"]).output();
    if !works.is_ok_and(|done| done.status.success()) {
        // Standard error itself, which the harness does not capture.
        let why = b"not tried: few processes, as no other user's Python can start here and open /dev/null\n";
        std::io::stderr().write_all(why).unwrap();
        return;
    }
    let suite = pipelines(20);
    let package = Command::new(lit_python())
        .args(["-c", "import lit, os; print(os.path.dirname(lit.__file__), end='')"])
        .output()
        .expect("a Python");
    let package = String::from_utf8(package.stdout).expect("a path");
    suite.own_binary("hotstart");
    let prepared = Command::new("sh")
        .args(["-c", "mkdir package && cp -r \"$0\" package/lit && chmod -R a+rwX .", &package])
        .current_dir(suite.path(""))
        .status();
    assert!(prepared.expect("a shell").success());
    for (limit, passes) in [(2, false), (40, true), (100, true)] {
        let script = format!(
            "ulimit -u {limit}; exec ./hotstart lit --lit-python /usr/bin/python3 --lit-package package -j32 --cold ."
        );
        let mut command = by_user(&["bash", "-c", &script]);
        command.current_dir(suite.path("."));
        prepare(&mut command);
        let run = Run::from(command.output().expect("setpriv"));
        assert!(!run.err.contains("panicked"), "ulimit -u {limit}: {run:#?}");
        match passes {
            true => run.ends_with(0).says("  Passed: 20 (100.00%)\n"),
            false => run.ends_with(2).warns("fatal: cannot start ").warns("Resource temporarily unavailable"),
        };
    }
}
