//! The combined effect of verbosity options under an older lit.

use std::process::Command;

use crate::suite::{Suite, lit_python};

/// Copies the reference lit and changes its version to 18, so that the older rules apply.
fn older_lit(suite: &Suite) {
    let script = "import lit, os, shutil\n\
                  shutil.copytree(os.path.dirname(lit.__file__), 'package/lit')\n\
                  open('package/lit/__init__.py', 'a').write('__versioninfo__ = (18, 1, 8)\\n')";
    let copied = Command::new(lit_python()).args(["-c", script]).current_dir(suite.path("")).status();
    assert!(copied.expect("a Python").success());
}

#[test]
fn all_output_is_shown_whatever_else_is_said() {
    let suite = Suite::new("");
    older_lit(&suite);
    suite.file("a.test", "RUN: echo what it says\n");
    for options in [&["-a"][..], &["-a", "-v"], &["-v", "-a"], &["-a", "-vv"], &["-a", "-s"], &["-s", "-a"]] {
        let run = suite.run(&[&["--lit-package", "package"], options, &["."]].concat());
        run.ends_with(0).has("# | what it says");
    }
    let run = suite.run(&["--lit-package", "package", "-v", "."]);
    assert!(!run.ends_with(0).out.contains("what it says"), "{run:#?}");
}

/// lit counts the warnings that it does not show.
#[test]
fn hidden_warnings_count() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    suite.file("empty/none.txt", "");
    // The file of times cannot be written.
    std::os::unix::fs::symlink("missing/times", suite.path(".lit_test_times.txt")).unwrap();
    for (level, shown) in [("warning", true), ("error", false)] {
        let run = suite.run(&["--diagnostic-level", level, "a.test", "empty"]);
        run.ends_with(0).warns("2 warning(s) in tests");
        assert_eq!(run.err.contains("contained no tests"), shown, "{run:#?}");
    }
}
