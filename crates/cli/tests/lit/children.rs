//! A tool that starts others has the same results as cold: the children are its own, and its runs are doubtful.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::suite::{Run, Suite};

/// Returns the directory of `not`, `tool` (a shell), and `broken` (not executable).
fn programs() -> &'static Path {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    let make = || {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lit/not.c");
        let compile = |name: &str, more: &[&str]| {
            let mut cc = Command::new("cc");
            let built = cc.args(["-O1", "-o"]).arg(dir.path().join(name)).arg(source).args(more).output();
            let built = built.expect("cc runs");
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        };
        compile("not", &[]);
        compile("broken", &["-Wl,--dynamic-linker=/nowhere/ld.so"]);
        std::fs::copy("/bin/sh", dir.path().join("tool")).expect("a shell");
        dir
    };
    DIRECTORY.get_or_init(make).path()
}

fn suite(lines: &[(&str, &str)]) -> Suite {
    let dir = programs().display();
    let substitutions = ["not", "tool", "broken"]
        .map(|name| format!("config.substitutions.append(('%{name}', '{dir}/{name}'))\n"));
    let suite = Suite::new(&substitutions.concat());
    for (name, line) in lines {
        suite.file(&format!("{name}.test"), line);
    }
    suite
}

const WARM: [&str; 5] = ["-j1", "--order=lexical", "--start=rewind", "--verify=0", "--explain"];

fn warm(suite: &Suite, more: &[&str]) -> Run {
    suite.run(&[&WARM[..], more, &["."]].concat())
}

/// Returns the tests' output files, by name.
fn outputs(suite: &Suite) -> Vec<(PathBuf, Vec<u8>)> {
    let files =
        std::fs::read_dir(suite.path("Output")).expect("tests wrote").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "out")).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(&path).expect("it can be read"))).collect()
}

fn verdicts(run: &Run) -> Vec<&str> {
    run.out
        .lines()
        .filter(|line| line.contains(" t :: "))
        .filter_map(|line| line.split(" (").next())
        .collect()
}

#[test]
fn it_is_as_cold_in_everything_that_it_can_see() {
    let script = "%not %tool -c 'read -r line; echo $line; echo $A $# \"$@\"; pwd; umask; ulimit -a; \
                  echo error >&2; exit 3' name x 'a b' '' < %s >> %t.out 2>&1";
    let lines = [
        ("plain", format!("RUN: {script}\n").repeat(4)),
        ("variable", format!("RUN: env A=ü {script}\n").repeat(4)),
        (
            "directory",
            format!("RUN: mkdir -p %t.dir\nRUN: cd %t.dir\n{}", format!("RUN: {script}\n").repeat(3)),
        ),
        ("files", format!("RUN: ulimit -n 300\n{}", format!("RUN: {script}\n").repeat(3))),
        ("mask", format!("RUN: umask 027\n{}", format!("RUN: {script}\n").repeat(3))),
        ("pipe", "RUN: echo in | %not %tool -c 'read line; echo $line; exit 1' | sort > %t.out\n".repeat(3)),
        ("fails", "RUN: %not %tool -c 'exit 0' > %t.out\n".to_owned()),
        ("killed", "RUN: %not %tool -c 'echo a; kill -9 $$' > %t.out\n".to_owned()),
        ("crashes", "RUN: %not %tool -c 'echo a; kill -11 $$' > %t.out\n".to_owned()),
    ];
    let lines: Vec<_> = lines.iter().map(|(name, text)| (*name, &text[..])).collect();
    let suite = suite(&lines);
    let cold = suite.run(&["-j1", "--order=lexical", "--cold", "."]);
    let cold_outputs = outputs(&suite);
    assert_eq!(cold_outputs.len(), lines.len());
    let clean = || std::fs::remove_dir_all(suite.path("Output")).expect("it is ours");
    for start in ["--start=fork", "--start=rewind"] {
        clean();
        let run = warm(&suite, &[start]);
        assert_eq!(verdicts(&run), verdicts(&cold), "{start}");
        assert_eq!(outputs(&suite), cold_outputs, "{start}");
        run.ends_with(1);
    }
    clean();
    warm(&suite, &["--parity=rewind"]).ends_with(1).warns("faults of hotstart: 0\n");
}

#[test]
fn what_cannot_be_executed_is_no_status_of_the_program() {
    let suite = suite(&[("a", "RUN: %not %tool -c 'exit 1'\n"), ("b", "RUN: %not %broken\n")]);
    suite.run(&["--cold", "."]).ends_with(1).has("PASS: t :: a.test").has("FAIL: t :: b.test");
    warm(&suite, &[]).ends_with(1).has("PASS: t :: a.test").has("FAIL: t :: b.test");
}

/// The runner waits for its end from the first of these programs on. What it does afterwards makes the run doubtful all the same.
#[test]
fn what_it_does_unfollowed_is_not_believed() {
    let look = "RUN: %not --look > %t 2>&1\n";
    let suite = suite(&[("a", look), ("b", look), ("c", look)]);
    let run = warm(&suite, &["--warm=not"]);
    run.ends_with(1).has("  Failed: 3 (100.00%)");
}

/// A script is `not`'s own child, and looks at its parent.
#[test]
fn a_child_that_may_look_at_it_makes_it_doubtful() {
    use std::os::unix::fs::PermissionsExt;
    let suite = eight("RUN: %not %S/look\n");
    let script = suite.file("look", "#!/bin/sh\nif grep -q hotstart /proc/$PPID/maps; then exit 1; fi\n");
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    let run = warm(&suite, &["--warm=not"]);
    run.ends_with(1).has("  Failed: 8 (100.00%)").warns("cold 6: its recent runs started others");
}

/// A program that hotstart's own process started in the place of a child would have another number and another parent.
#[test]
fn its_child_is_its_own() {
    let suite = eight("RUN: %not --number %tool -c 'echo $$ $PPID'\n");
    warm(&suite, &["--warm=not,tool"]).ends_with(1).has("  Failed: 8 (100.00%)");
}

/// Returns a suite of eight tests with this line.
fn eight(line: &str) -> Suite {
    let names: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    let lines: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), line)).collect();
    suite(&lines)
}
