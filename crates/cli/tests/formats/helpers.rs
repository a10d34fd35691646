//! The Python helper processes: their number, and their end.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::own_formats;
use crate::suite::{Run, Suite};

/// Creates a suite whose format, the class `F` of this text, is in a module of its own.
fn with_format(text: &str) -> Suite {
    let suite = Suite::new(
        "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport own\n\
         config.suffixes = ['.t']\nconfig.test_format = own.F()\n",
    );
    suite.file("own.py", format!("import os, subprocess, lit.formats, lit.Test\n{text}"));
    suite
}

const HEAD: &str = "class F(lit.formats.FileBasedTest):\n    def execute(self, test, lit_config):\n";

#[test]
fn a_helper_serves_many_tests() {
    let suite = with_format(&format!("{HEAD}        return lit.Test.FAIL, 'helper %d' % os.getpid()\n"));
    (0..40).for_each(|test| drop(suite.file(&format!("{test}.t"), "")));
    let run = suite.run(&["-v", "-j2", "."]);
    let mut helpers: Vec<&str> = run.out.lines().filter(|line| line.starts_with("helper ")).collect();
    assert_eq!(helpers.len(), 40, "{run:#?}");
    helpers.sort_unstable();
    helpers.dedup();
    assert!(helpers.len() <= 2, "{helpers:?}");
}

#[test]
fn a_format_that_ends_its_process_costs_only_its_test() {
    let leave = "        if test.path_in_suite[-1] == 'b.t':\n            os._exit(1)\n        return lit.Test.PASS, ''\n";
    let suite = with_format(&format!("{HEAD}{leave}"));
    for name in ["a.t", "b.t", "c.t"] {
        suite.file(name, "");
    }
    let run = suite.run(&["-v", "-j1", "."]);
    run.ends_with(1).has("PASS: t :: a.t").has("UNRESOLVED: t :: b.t").has("PASS: t :: c.t");
    run.says("a test format must not end its process");
}

#[test]
fn a_config_that_cannot_be_evaluated_again_is_named() {
    let suite = own_formats("Own()");
    suite.file("tuple.t", "");
    // Discovery is the first process to read it; a helper is the second.
    let once = "seen = os.path.join(os.path.dirname(__file__), 'seen')\n\
                if os.path.exists(seen):\n    raise ValueError('twice')\nopen(seen, 'w').close()\n";
    suite.file("lit.local.cfg", format!("import os\n{once}"));
    let run = suite.run(&["-v", "."]);
    run.ends_with(1)
        .has("UNRESOLVED: t :: tuple.t")
        .says("could be evaluated once, but not again")
        .says("twice");
}

/// Waits for the text of a file whose last line is complete.
fn await_text(path: &std::path::Path) -> String {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{} does not appear", path.display());
        std::thread::yield_now();
    }
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Creates a suite with a test that hangs in a process of the format's own. Returns the processes that must end too.
fn hanging() -> Suite {
    let hang = "        if test.path_in_suite[-1] == 'a.t':\n            return lit.Test.PASS, ''\n\
                \x20       process = subprocess.Popen(['sleep', '1000'])\n\
                \x20       with open(os.path.join(os.path.dirname(__file__), 'pids'), 'w') as file:\n\
                \x20           file.write('%d %d\\n' % (os.getpid(), process.pid))\n\
                \x20       process.wait()\n";
    let suite = with_format(&format!("{HEAD}{hang}"));
    for name in ["a.t", "b.t", "c.t"] {
        suite.file(name, "");
    }
    suite
}

fn assert_gone(pids: &str) {
    let begun = Instant::now();
    while pids.split_whitespace().any(is_running) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{pids} are still there");
        std::thread::yield_now();
    }
}

fn stopped_by(signal: rustix::process::Signal) -> Run {
    let suite = hanging();
    let mut command = suite.command(&["-j1", "--order=lexical", "."]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotstart starts");
    let pids = await_text(&suite.path("pids"));
    let runner = rustix::process::Pid::from_raw(child.id() as i32).expect("a process number");
    rustix::process::kill_process(runner, signal).expect("the runner is there");
    let run = Run::from(child.wait_with_output().expect("hotstart ends"));
    assert_gone(&pids);
    run
}

#[test]
fn ctrl_c_ends_helpers_and_what_they_started() {
    let run = stopped_by(rustix::process::Signal::INT);
    run.has("PASS: t :: a.t").says("  Skipped: 2");
}

#[test]
fn helpers_end_with_a_runner_that_is_killed() {
    stopped_by(rustix::process::Signal::KILL);
}

#[test]
fn the_time_for_all_tests_ends_helpers() {
    let suite = hanging();
    let begun = Instant::now();
    let run = suite.run(&["-j1", "--order=lexical", "--max-time=5", "."]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_gone(&await_text(&suite.path("pids")));
    run.has("PASS: t :: a.t").says("  Skipped: 2").warns("reached timeout");
}

/// A format may fail a test for the output of a script that passes. Here the output differs in the first run, which is warm.
#[test]
fn a_failure_that_only_the_format_sees_is_confirmed_cold() {
    let body = concat!(
        "        from lit.TestRunner import executeScriptInternal\n",
        "        place, seen = os.path.dirname(test.getSourcePath()), 'seen-' + test.path_in_suite[-1]\n",
        "        lines = ['sed -n 1p ' + test.getSourcePath(), 'test -e ' + seen + ' && echo again || echo first', 'touch ' + seen]\n",
        "        out = executeScriptInternal(test, lit_config, test.getExecPath() + '.tmp', lines, place)[0]\n",
        "        is_first = 'first' in out.replace('echo first', '')\n",
        "        code = lit.Test.FAIL if is_first or test.path_in_suite[-1] == 'fails.t' else lit.Test.PASS\n",
        "        return code, 'it says ' + out\n",
    );
    let suite = with_format(&format!("{HEAD}{body}"));
    suite.file("fails.t", "");
    suite.file("warm.t", "");
    let run = suite.run(&["-v", "-j1", "--order=lexical", "--start=fork", "--verify=0", "--explain", "."]);
    run.ends_with(1).has("FAIL: t :: fails.t").has("FLAKYPASS: t :: warm.t");
    run.warns("t :: warm.t failed when its tools were started warm")
        .warns("A second warm run did not fail in this way");
    run.warns("failures confirmed cold: 2; ").warns("faults of hotstart: 0");
}
