//! `--shell=native`: suites that ask for bash run without it where the result is the same.

use crate::suite::Suite;

fn suite() -> Suite {
    Suite::new("config.test_format = lit.formats.ShTest(True, force_execute_external=True)\n")
}

#[test]
fn scripts_that_mean_the_same_are_run_natively_and_the_rest_by_bash() {
    let suite = suite();
    suite.file("a.test", "RUN: sort %s | sort > %t\nRUN: test -s %t && cat %t | sort\n");
    suite.file("b.test", "RUN: for i in 1 2; do echo $i; done > %t\n");
    suite.file("c.test", "RUN: A=1; export A\nRUN: sh -c 'test \"$A\" = 1'\n");
    let run = suite.run(&["--shell=native", "--explain", "--verify=0", "--warm=sort", "-j1", "."]);
    run.ends_with(0).has("PASS: t :: a.test").has("PASS: t :: b.test").has("PASS: t :: c.test");
    run.warns("hotstart: scripts for an external shell: 1 run natively, 2 by that shell, 0 by both as they failed\n");
    run.warns("        1  by that shell: a variable or a command substitution\n");
    run.warns("        1  by that shell: an assignment\n");
    run.warns("        3         0").warns("/sort\n");
    let auto = suite.run(&["--explain", "--warm=sort", "."]);
    assert!(!auto.ends_with(0).err.contains("external shell"), "{auto:#?}");
    assert!(!auto.err.contains("/sort\n"), "bash started it: {auto:#?}");
}

#[test]
fn a_failure_is_told_as_bash_has_it() {
    let suite = suite();
    suite.file("a.test", "RUN: true\nRUN: sh -c 'echo told >&2; exit 3' | cat\n");
    suite.file("b.test", "XFAIL: *\nRUN: false\n");
    suite.file("script", "echo fine\n");
    suite.file("c.test", "RUN: chmod +x %S/script\nRUN: %S/script\n");
    let run = suite.run(&["--shell=native", "-v", "-j1", "."]);
    run.ends_with(1).has("FAIL: t :: a.test").has("XFAIL: t :: b.test").has("PASS: t :: c.test");
    run.says("Command Output (stderr):").says("\ntold\n");
    assert!(!run.out.contains("executed command"), "not the internal shell's words: {run:#?}");
    run.warns("0 run natively, 1 by that shell, 2 by both as they failed\n");
    run.warns("a fault of hotstart, not of the test: t :: c.test: run natively it fails");
    run.warns("of these, 1 failed natively only\n");
}

#[test]
fn an_unexpected_pass_is_bashs_too() {
    let suite = suite();
    suite.file("a.test", "XFAIL: *\nRUN: true\n");
    let run = suite.run(&["--shell=native", "."]);
    run.ends_with(1).has("XPASS: t :: a.test").warns("0 run natively, 1 by that shell, 0 by both");
    assert!(!run.err.contains("fault"), "{run:#?}");
}

#[test]
fn retries_and_timeouts_are_as_with_bash() {
    let suite = suite();
    suite.file(
        "a.test",
        "ALLOW_RETRIES: 1\nRUN: echo x >> %t.count && sh -c 'test $(wc -l < %t.count) = 2'\n",
    );
    suite.file("b.test", "RUN: sleep 1000\n");
    let run = suite.run(&["--shell=native", "--timeout=1", "-j2", "."]);
    run.ends_with(1).has("TIMEOUT: t :: b.test").has("FLAKYPASS: t :: a.test");
}

#[test]
fn the_configuration_file_can_ask_for_it_and_the_command_line_has_the_last_word() {
    let suite = suite();
    suite.file("a.test", "RUN: sort %s > %t\n");
    suite.file("hotstart.toml", "[lit]\nshell = 'native'\n");
    suite.run(&["--verify=0", "."]).ends_with(0).warns("1 run natively, 0 by that shell");
    let asked = suite.run(&["--shell=auto", "."]);
    assert!(!asked.ends_with(0).err.contains("external shell"), "{asked:#?}");
    suite.file("hotstart.toml", "[lit]\nshell = 'auto'\n");
    suite.run(&["--shell=native", "--verify=0", "."]).ends_with(0).warns("1 run natively");
}

#[test]
fn the_internal_shell_needs_no_choice() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: echo a\n");
    let run = suite.run(&["--shell=native", "."]);
    assert!(!run.ends_with(0).err.contains("external shell"), "{run:#?}");
    suite
        .run(&["--shell=zsh", "."])
        .ends_with(2)
        .warns("invalid choice: 'zsh' (choose from 'auto', 'native')");
}
