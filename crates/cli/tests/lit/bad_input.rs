//! Wrong input: each kind gets a message that names it, and everything else still runs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::suite::{self, Run, Suite};

#[test]
fn a_python_error_in_a_local_config_stops_only_its_folder() {
    let suite = Suite::new("");
    suite.file("good/a.test", "RUN: true\n");
    suite.file("bad/b.test", "RUN: true\n");
    suite.file("bad/lit.local.cfg", "x = 1\nconfig.nonsense()\n");
    let run = suite.run(&["."]);
    run.ends_with(2).has("PASS: t :: good/a.test");
    run.warns("bad/lit.local.cfg:2").warns("nonsense");
    assert!(!run.out.contains("b.test"), "{run:#?}");
}

#[test]
fn a_python_error_in_a_suite_config_stops_only_its_suite() {
    let (good, bad) = (Suite::new(""), Suite::new("this is not python"));
    good.file("a.test", "RUN: true\n");
    bad.file("b.test", "RUN: true\n");
    let bad_path = bad.path("");
    let run = good.run(&[".", bad_path.to_str().expect("a UTF-8 path")]);
    run.ends_with(2).has("PASS: t :: a.test").warns("lit.cfg.py:5");
}

#[test]
fn a_test_that_is_not_utf8_is_unresolved() {
    let suite = Suite::new("");
    suite.file("a.test", b"RUN: echo \xff\n");
    suite.file("b.test", b"\xff\nRUN: true\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(1).has("UNRESOLVED: t :: a.test").has("PASS: t :: b.test");
    run.says("can't decode byte 0xff");
}

#[test]
fn an_unbalanced_quote_is_unresolved_and_names_its_line() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\nRUN: echo 'oh\n");
    suite.file("b.test", "RUN: true\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(1).has("UNRESOLVED: t :: a.test").has("PASS: t :: b.test");
    run.says("shell parser error on RUN: at line 2: echo 'oh");
}

#[test]
fn an_unknown_substitution_and_a_missing_tool_fail_by_name() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: %nosuch x\n");
    suite.file("b.test", "RUN: no-such-tool x\n");
    suite.file("c.test", "RUN: true\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(1).has("FAIL: t :: a.test").has("FAIL: t :: b.test").has("PASS: t :: c.test");
    run.says("'%nosuch': command not found").says("'no-such-tool': command not found");
}

#[test]
fn a_suite_that_does_not_exist_is_named() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    suite.run(&["nowhere"]).ends_with(2).warns("nowhere").warns("did not discover any tests");
    suite.run(&[".", "/no/such/suite"]).has("PASS: t :: a.test").warns("/no/such/suite");
}

#[test]
fn an_unreadable_folder_is_named_and_the_rest_runs() {
    let suite = Suite::new("");
    suite.file("good/a.test", "RUN: true\n");
    suite.file("closed/b.test", "RUN: true\n");
    std::fs::set_permissions(suite.path("closed"), Permissions::from_mode(0o000)).expect("it is ours");
    let run = without_override(&suite, &["."]);
    std::fs::set_permissions(suite.path("closed"), Permissions::from_mode(0o755)).expect("it is ours");
    run.ends_with(2).has("PASS: t :: good/a.test").warns("closed").warns("Permission denied");
}

/// Runs hotstart so that file permissions apply to it even if root runs the tests.
fn without_override(suite: &Suite, args: &[&str]) -> Run {
    if !rustix::process::geteuid().is_root() {
        return suite.run(args);
    }
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-dac_override,-dac_read_search").arg(env!("CARGO_BIN_EXE_hotstart"));
    command.arg("lit").args(args).current_dir(suite.path(""));
    suite::prepare(&mut command);
    Run::from(command.output().expect("setpriv (util-linux) starts"))
}

/// lit runs tests as children of the process that evaluates configs; hotstart does not.
#[test]
fn what_a_config_changes_of_its_own_process_is_told() {
    let changes = "import os, resource, signal\nos.umask(0o147)\nos.nice(3)\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n\
                   signal.signal(signal.SIGUSR1, signal.SIG_IGN)\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n";
    let suite = Suite::new(changes);
    suite.file("a.test", "RUN: true\n");
    for _ in 0..2 {
        let run = suite.run(&["."]);
        run.ends_with(0)
            .warns("a config has changed its own process")
            .warns("Umask: 0147, was 0")
            .warns("; nice: ");
        run.warns("; SigIgn: ").warns("SigBlk: 0000000000000800, was 0000000000000000");
    }
    let plain = Suite::new("import os\nos.umask(os.umask(0o022))\n");
    plain.file("a.test", "RUN: true\n");
    let run = plain.run(&["."]);
    assert!(!run.err.contains("warning"), "{run:#?}");
}

#[test]
fn a_build_tree_that_is_not_there_is_an_error() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    suite.run(&["--build-tree=nowhere", "."]).ends_with(2).warns("--build-tree: there is no directory '");
}

#[test]
fn a_cache_directory_that_cannot_be_used_is_told() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    let file = suite.file("file", "");
    for (value, told) in [
        ("relative", "HOTSTART_CACHE_DIR is not used: 'relative' is not an absolute path"),
        (file.to_str().unwrap(), "nothing is kept between runs, which is slower: cannot use"),
    ] {
        let mut command = suite.command(&["."]);
        let run = Run::from(command.env("HOTSTART_CACHE_DIR", value).output().unwrap());
        run.ends_with(0).has("PASS: t :: a.test").warns(told);
    }
}
