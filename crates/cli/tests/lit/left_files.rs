//! Tests whose verdict depends on what earlier invocations have left in their `%t` files. lit removes none, so each invocation has to come
//! to lit's verdict, however often a run is repeated within it, and has to leave what one run leaves.

use crate::suite::{Run, Suite};

/// Scripts by name, with their verdicts in consecutive invocations of lit 23.1.5. `LINES` is the number of lines that were added so far,
/// and `MAKE` fails if the directory is there, which lit's own `mkdir` does not.
const SCRIPTS: [(&str, &str, [&str; 5]); 10] = [
    ("few", "ADD\nRUN: LINES | grep -q '^[1-2]$'\n", ["PASS", "PASS", "FAIL", "FAIL", "FAIL"]),
    (
        "renamed",
        "ADD\nRUN: cp %t.o %t.n\nRUN: mv %t.n %t.o\nRUN: LINES | grep -q '^[1-2]$'\n",
        ["PASS", "PASS", "FAIL", "FAIL", "FAIL"],
    ),
    (
        "locked",
        "ADD\nRUN: test ! -e %t.l || rm %t.l %t.none\nRUN: touch %t.l\n",
        ["PASS", "FAIL", "PASS", "FAIL", "PASS"],
    ),
    ("not_third", "ADD\nRUN: LINES | grep -qv '^3$'\n", ["PASS", "PASS", "FAIL", "PASS", "PASS"]),
    ("not_first", "ADD\nRUN: LINES | grep -qv '^1$'\n", ["FAIL", "PASS", "PASS", "PASS", "PASS"]),
    ("made_once", "ADD\nRUN: MAKE\n", ["PASS", "FAIL", "FAIL", "FAIL", "FAIL"]),
    ("made_anew", "ADD\nRUN: rm -rf %t.d\nRUN: MAKE\n", ["PASS", "PASS", "PASS", "PASS", "PASS"]),
    ("linked", "ADD\nRUN: ln %s %t.l\n", ["PASS", "FAIL", "FAIL", "FAIL", "FAIL"]),
    (
        "retried",
        "ALLOW_RETRIES: 2\nADD\nRUN: LINES | grep -q '^[26]$'\n",
        ["FLAKYPASS", "FAIL", "PASS", "FAIL", "FAIL"],
    ),
    ("expected", "XFAIL: *\nADD\nRUN: MAKE\n", ["XPASS", "XFAIL", "XFAIL", "XFAIL", "XFAIL"]),
];

fn agrees(config: &str, options: &[&str]) {
    let suite = Suite::new(config);
    for (name, script, _) in SCRIPTS {
        let text = script
            .replace("ADD", "RUN: sed -n 1p %s >> %t.o")
            .replace("LINES", "wc -l < %t.o")
            .replace("MAKE", "sh -c 'mkdir \"$0\"' %t.d");
        suite.file(&format!("{name}.test"), &text);
    }
    for invocation in 0..SCRIPTS[0].2.len() {
        // A test that is known to fail only runs cold.
        let _ = std::fs::remove_file(suite.path(".lit_test_times.txt"));
        let usual = ["-v", "-j1", "--verify=0"];
        let run = suite.run(&[&usual, options, &["."]].concat());
        for (name, _, verdicts) in SCRIPTS {
            run.has(&format!("{}: t :: {name}.test", verdicts[invocation]));
        }
    }
}

#[test]
fn each_invocation_has_lits_verdict_when_tools_are_forked() {
    agrees("", &["--start=fork", "--warm=sed"]);
}

#[test]
fn each_invocation_has_lits_verdict_when_all_is_compared() {
    agrees("", &["--parity=fork"]);
}

/// A failure is confirmed by the shell that the script asks for.
#[test]
fn each_invocation_has_lits_verdict_when_scripts_of_bash_run_natively() {
    agrees(
        "config.test_format = lit.formats.ShTest(True, force_execute_external=True)\n",
        &["--start=cold", "--shell=native"],
    );
}

/// A format may look at the files before it runs the script.
#[test]
fn a_format_finds_its_tests_files_again() {
    let suite = Suite::new(
        "import formats\nconfig.test_format = formats.Looks(False)\n# formats.py lies beside this file\n",
    );
    suite.file(
        "formats.py",
        "import lit.formats, lit.Test, os\n\
         class Looks(lit.formats.ShTest):\n    def execute(self, test, lit_config):\n\
         \x20       exec = test.getExecPath()\n\
         \x20       made = os.path.join(os.path.dirname(exec), 'Output', os.path.basename(exec) + '.tmp.o')\n\
         \x20       was_there = os.path.exists(made)\n\
         \x20       result = super().execute(test, lit_config)\n\
         \x20       return result if was_there else lit.Test.Result(lit.Test.FAIL, 'not there')\n",
    );
    suite.file("a.test", "RUN: sed -n 1p %s > %t.o\n");
    for verdict in ["FAIL", "PASS", "PASS"] {
        let _ = std::fs::remove_file(suite.path(".lit_test_times.txt"));
        let mut command = suite.command(&["-v", "-j1", "--verify=0", "--start=fork", "--warm=sed", "."]);
        let run = Run::from(command.env("PYTHONPATH", suite.path("")).output().expect("hotstart starts"));
        run.has(&format!("{verdict}: t :: a.test"));
    }
}

/// Another run could not find the same links.
#[test]
fn a_test_that_has_left_hard_links_starts_cold() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sed -n 1p %s > %t.o\nRUN: rm -f %t.l\nRUN: ln %t.o %t.l\n");
    let told =
        "tests only run cold, as their files of earlier runs could not be restored for a second run: 1";
    for is_second in [false, true] {
        let run = suite.run(&["-v", "-j1", "--verify=0", "--start=fork", "--warm=sed", "--explain", "."]);
        run.ends_with(0).has("PASS: t :: a.test");
        assert_eq!(run.err.contains(told), is_second, "{run:#?}");
    }
}
