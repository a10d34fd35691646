//! Test formats other than ShTest: the real binary beside the real lit, console text and reports compared.
//!
//! Needs a Python with the lit package (`make venv`, or HOTSTART_LIT_PYTHON). If HOTSTART_LIT_19 names `utils/lit` of an
//! LLVM 19 tree, results are also compared with that lit.

#[path = "../lit/suite.rs"]
#[allow(dead_code, reason = "shared with the other end-to-end tests")]
mod suite;

mod compare;
mod found;
mod helpers;
mod odd;
mod updates;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use compare::compare;
use suite::Suite;

const OWN: &str = include_str!("own_formats.py");
const GOOGLETEST: &str = include_str!("fake_googletest.py");
const GOOGLETEST_C: &str = include_str!("fake_googletest.c");

/// Creates a suite of the formats in `own_formats.py`.
pub fn own_formats(format: &str) -> Suite {
    let suite = Suite::new(&format!(
        "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nfrom own_formats import *\n\
         config.suffixes = ['.t']\nconfig.test_format = {format}\n"
    ));
    suite.file("own_formats.py", OWN);
    suite
}

fn executable(suite: &Suite, name: &str, content: &str) {
    let path = suite.file(name, content);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// Creates googletest executables in Python and in C, and an executable that is none.
fn googletests(format: &str) -> Suite {
    let suite = own_formats(format);
    executable(&suite, "unit/ATests.py", GOOGLETEST);
    executable(&suite, "unit/BrokenTests", "#!/bin/sh\necho broken\nexit 3\n");
    let source = suite.file("fake.c", GOOGLETEST_C);
    let status = Command::new("cc").arg("-o").arg(suite.path("unit/CTests")).arg(source).status();
    assert!(status.expect("a C compiler").success());
    suite
}

#[test]
fn googletest_shards_become_single_tests() {
    let suite = googletests("lit.formats.GoogleTest('unit;absent', 'Tests')");
    for args in [
        &["-a", "."][..],
        &["-v", "--no-gtest-sharding", "."],
        &["-a", "--xfail=unit/ATests.py/1/2;unit/CTests/1/2", "."],
        &["--filter=CTests", "--show-excluded", "--order=lexical", "."],
        &["-a", "--no-execute", "."],
        &["--show-tests", "."],
        &["unit/CTests"],
    ] {
        compare(&suite, args);
    }
}

#[test]
fn googletest_has_words_before_it_and_a_time_limit() {
    let suite = own_formats("lit.formats.GoogleTest('.', 'Tests', run_under='env WORD=1')");
    let list = "case \"$*\" in *--gtest_list_tests*) echo C.; echo '  one'; exit 0;; esac";
    executable(&suite, "SlowTests", &format!("#!/bin/sh\n{list}\necho begun $WORD\nexec sleep 100\n"));
    compare(&suite, &["-a", "--timeout=1", "."]);
}

#[test]
fn a_format_derived_from_googletest_is_post_processed_too() {
    compare(&googletests("Derived('unit', 'Tests')"), &["-a", "."]);
}

#[test]
fn executables_are_tests_by_their_exit_code() {
    let suite = own_formats("lit.formats.ExecutableTest()");
    executable(&suite, "pass.t", "#!/bin/sh\ntest -d \"$TMPDIR\"\n");
    executable(&suite, "fail.t", "#!/bin/sh\necho out\necho err >&2\nexit 3\n");
    executable(&suite, "signal.t", "#!/bin/sh\nkill -SEGV $$\n");
    executable(&suite, "empty.t", "x\n");
    suite.file("plain.t", "#!/bin/sh\n");
    executable(&suite, "off/pass.t", "#!/bin/sh\n");
    suite.file("off/lit.local.cfg", "config.unsupported = True\n");
    compare(&suite, &["-a", "--xfail=signal.t;pass.t", "."]);
}

#[test]
fn formats_written_in_python_have_all_kinds_of_results() {
    let suite = own_formats("Own()");
    for name in
        ["tuple", "nothing", "raises", "odd", "leaves", "metrics", "command", "absent", "scratch", "silent"]
    {
        suite.file(&format!("{name}.t"), "");
    }
    compare(&suite, &["-a", "."]);
    compare(&suite, &["-q", "."]);
    compare(&suite, &["-v", "--xfail=odd.t;silent.t", "--max-tests=8", "."]);
}

#[test]
fn scripts_of_formats_written_in_python_are_run_as_lit_runs_them() {
    let suite = own_formats("Own()");
    let scripts = [
        ("a", "RUN: %analyze > %t\nRUN: cat %t | grep o\n"),
        ("b", "RUN: %analyze %left | cat\nRUN: false | cat\n"),
        ("c", "XFAIL: *\nRUN: false\n"),
        ("d", "REQUIRES: nope\nRUN: false\n"),
        ("e", "RUN: echo \"\n"),
        ("f", "RUN: nonesuch\n"),
        ("g", "RUN: cat < nonesuch\n"),
        ("h", "ALLOW_RETRIES: 1\nRUN: test -f %t.l || sh -c \"touch %t.l; exit 1\"\n"),
        ("i", "RUN: %if absent %{ true %}\nRUN: not --crash true\n"),
        ("j", "no script\n"),
    ];
    for (name, text) in scripts {
        suite.file(&format!("analyze.{name}.t"), text);
    }
    suite.file("deep/lit.local.cfg", "config.substitutions.append(('%deep', 'echo deep'))\n");
    suite.file("deep/down/analyze.k.t", "RUN: %deep\n");
    compare(&suite, &["-a", "."]);
    compare(&suite, &["-a", "--unsupported=analyze.a.t", "--unsupported-not=analyze.d.t", "analyze.a.t"]);
}

#[test]
fn a_time_limit_ends_a_script_of_a_python_format() {
    let suite = own_formats("Own()");
    suite.file("analyze.t", "RUN: echo begun\nRUN: sleep 100\n");
    suite.file("tuple.t", "");
    compare(&suite, &["-v", "--timeout=1", "."]);
}
