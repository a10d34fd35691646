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
    // A known difference.
    suite.file("c.test", "RUN: printenv _ > %t\n");
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
    suite.file("c.test", "RUN: ! sleep 1000\n");
    suite.file("d.test", "RUN: true\nRUN: ! true || ! env A=1 sleep 1000\n");
    let run = suite.run(&["--shell=native", "--timeout=1", "-j2", "."]);
    run.ends_with(1).has("TIMEOUT: t :: b.test").has("FLAKYPASS: t :: a.test");
    run.has("TIMEOUT: t :: c.test").has("TIMEOUT: t :: d.test");
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

/// Each of these lines fails with bash, and would pass natively by another meaning. A test that is known to fail is run by bash at
/// once, so each shell has a suite of its own.
fn fails_with_bash(config: &str, lines: &[&str]) {
    for shell in ["auto", "native"] {
        let suite = Suite::new(&format!(
            "config.test_format = lit.formats.ShTest(True, force_execute_external=True)\n{config}"
        ));
        for (index, line) in lines.iter().enumerate() {
            let runs: String = line.split('\n').map(|run| format!("RUN: {run}\n")).collect();
            suite.file(&format!("{index}.test"), runs);
        }
        let run = suite.run(&[&format!("--shell={shell}"), "--verify=0", "--explain", "."]);
        run.ends_with(1);
        for (index, line) in lines.iter().enumerate() {
            assert!(run.out.contains(&format!("FAIL: t :: {index}.test")), "{line}, {shell}: {run:#?}");
        }
        assert!(!run.err.contains("a fault of hotstart") && !run.err.contains("probably"), "{run:#?}");
    }
}

#[test]
fn numbers_beyond_those_of_bash_are_left_to_it() {
    let lines = [
        "test 1 -ne 99999999999999999999",
        "test 99999999999999999999 -gt 1",
        "! test 1 -eq 2 && test 9223372036854775808 -gt 0",
    ];
    fails_with_bash("", &lines);
}

#[test]
fn files_that_each_process_sees_differently_are_left_to_bash() {
    fails_with_bash(
        "",
        &[
            "! test -e /dev/fd/255",
            "test ! -e /proc/self/fd/255",
            "! test %S/Output/2.test.script -ef /dev/fd/255",
            "cd /proc/self && ! grep -q bash comm",
            "mkdir -p %t.d && ln -sfn /proc/self %t.d/me && cd %t.d/me && ! grep -q bash comm",
            "ln -sfn /dev/fd/255 %t && ! test -e %t",
            "! test -e %S/../../../../../../../../../../proc/self/fd/255",
            "mkdir -p %t.d && ln -sfn /proc/self/exe %t.d/x && ! %t.d/x -c true",
        ],
    );
}

#[test]
fn patterns_match_bytes_if_bash_does() {
    let line = "mkdir -p %t.d && touch %t.d/\u{e9} && ls %t.d/?";
    fails_with_bash("config.environment['LC_ALL'] = 'C'", &[line]);
}

#[test]
fn variables_of_bash_itself_are_exported_by_it() {
    let names = [
        "UID",
        "EUID",
        "PPID",
        "RANDOM",
        "LINENO",
        "SECONDS",
        "GROUPS",
        "FUNCNAME",
        "DIRSTACK",
        "EPOCHSECONDS",
        "SRANDOM",
        "HISTCMD",
        "BASHPID",
        "BASH_VERSINFO",
    ];
    // bash refuses the assignment, or exports a value of its own, or none.
    let lines = names.map(|name| format!("export {name}=zz && sh -c 'printenv {name} | grep -qx zz'"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    fails_with_bash("", &lines);
}

#[test]
fn variables_that_bash_does_not_hand_on_are_left_to_it() {
    for name in [
        "PPID",
        "RANDOM",
        "LINENO",
        "OPTIND",
        "OPTERR",
        "PS1",
        "PS2",
        "HISTCMD",
        "EPOCHSECONDS",
        "BASHPID",
        "SRANDOM",
        "COMP_WORDBREAKS",
    ] {
        let line = format!("printenv {name} | grep -qx zz");
        fails_with_bash(&format!("config.environment['{name}'] = 'zz'"), &[&line]);
    }
}

#[test]
fn bash_stays_in_a_directory_that_moves() {
    fails_with_bash(
        "",
        &[
            "mkdir -p %t.a %t.b && ln -sfn %t.a %t.l && cd %t.l && ln -sfn %t.b %t.l && touch a && test -e %t.b/a",
            "rm -rf %t.a %t.c && mkdir %t.a && cd %t.a && mv %t.a %t.c && mkdir %t.a && true > a && test -e %t.a/a",
            "rm -rf %t.a && mkdir %t.a && cd %t.a && rm -rf %t.a && mkdir %t.a && touch a",
            "rm -rf %t.a && mkdir %t.a\ncd %t.a\nrm -rf %t.a\nmkdir %t.a\necho a > a",
        ],
    );
}

/// hotstart's output is a file here, which `>` would truncate.
#[test]
fn a_redirection_reaches_no_output_of_hotstart() {
    let suite = suite();
    suite.file("a.test", "RUN: true > /proc/self/fd/1\n");
    suite.file("b.test", "RUN: ln -sfn /proc/self %t.l\nRUN: true > %t.l/fd/1\n");
    suite.file("c.test", "RUN: ln -sfn /dev/stderr %t.l\nRUN: echo leaked > %t.l\n");
    for test in ["a", "b", "c"] {
        let path = suite.file("output", "");
        let append = |path| std::fs::File::options().append(true).open(path).expect("a file");
        let (mut out, err) = (append(&path), append(&path));
        std::io::Write::write_all(&mut out, b"from before\n").expect("a write");
        let args = ["--shell=native", "--verify=0", &format!("{test}.test")];
        let status = suite.command(&args).stdout(out).stderr(err).status().expect("hotstart starts");
        let said = std::fs::read_to_string(&path).expect("a file");
        assert!(
            status.success() && said.starts_with("from before\n") && !said.contains("leaked"),
            "{test}: {said}"
        );
        assert!(said.contains(&format!("PASS: t :: {test}.test")), "{said}");
    }
}
