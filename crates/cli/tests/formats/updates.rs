//! `--update-tests`: compares the output of lit and hotstart, and the files that they update.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::compare::{Seen, hotstart, lit, seen};
use crate::suite::Suite;

/// An updater that prints its arguments, one that raises, and a substitute for LLVM's split-file.
const CONFIG: &str = r#"
import os
config.excludes = ['bin']
config.environment['PATH'] = os.path.dirname(__file__) + '/bin:' + config.environment['PATH']

def tell(result, test, commands):
    words = result.command.args
    if words[0] == 'raise':
        raise RuntimeError('not this one')
    if words[0] != 'false':
        return None
    files = [(name, data) for name, path, data in result.outputFiles]
    return '\n'.join([
        '%s: %s' % (type(result.command).__name__, [str(word) for word in words]),
        'redirects %r' % result.command.redirects,
        'status %d, %r, %r, %r' % (result.exitCode, result.stdout, result.stderr, files),
        'test %r %r %r' % (test.path_in_suite, test.requires, test.allowed_retries),
        'features %r' % sorted(test.config.available_features),
        *commands,
    ])

lit_config.test_updaters.append(tell)
"#;

const SPLIT_FILE: &str = "#!/bin/sh\nmkdir -p \"$2\"; cd \"$2\" || exit\n\
                          awk '/^#--- /{name=$2; next} name{print > name}' \"$1\"\n";

const TESTS: [(&str, &str); 12] = [
    ("diff.test", "RUN: echo new > %t\nRUN: diff %s.expected %t\n"),
    ("diff.test.expected", "old\n"),
    (
        "split.test",
        "RUN: split-file %s %t\nRUN: echo new > %t.out\nRUN: diff %t/exp %t.out\n#--- exp\nold\n#--- more\nmore\n",
    ),
    ("unsure.test", "RUN: echo a > a; echo b > b\nRUN: diff a b\n"),
    ("told.test", "REQUIRES: here\nALLOW_RETRIES: 2\nRUN: echo a\nRUN: false 'a b' > %t.out 2>&1\n"),
    // lit's own updater does not accept globs.
    ("glob.test", "RUN: false *.none\n"),
    ("stages.test", "RUN: not false && false -x | cat -n | false -y\n"),
    ("passes.test", "RUN: false > %t.out || true\n"),
    ("raises.test", "RUN: echo before\nRUN: not false | cat\nRUN: raise %t\n"),
    ("expected.test", "XFAIL: *\nRUN: false\n"),
    ("parse.test", "RUN: false \"\n"),
    ("slice.test", "RUN: diff %s.expected /dev/null\nRUN: false later\n"),
];

fn suite() -> Suite {
    let suite = Suite::new(&format!("{CONFIG}\nconfig.available_features.add('here')\n"));
    for (name, text) in TESTS {
        suite.file(name, text);
    }
    for (name, text) in [("split-file", SPLIT_FILE), ("raise", "#!/bin/sh\nexit 3\n")] {
        let path = suite.file(&format!("bin/{name}"), text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    suite
}

type Files = BTreeMap<PathBuf, String>;

/// Returns all files except those that tests or Python left.
fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    for path in fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_file() && name != ".lit_test_times.txt" {
            found.insert(path.clone(), fs::read_to_string(path).expect("a text"));
        } else if path.is_dir() && name != "Output" && name != "__pycache__" {
            found.append(&mut files(&path));
        }
    }
    found
}

/// Returns the output and the files of each, both starting from the same files.
fn compare(suite: &Suite, args: &[&str]) -> (Seen, Files) {
    let before = files(&suite.path("."));
    let run = |command| {
        let seen = seen(suite, command, args);
        let after = files(&suite.path("."));
        for path in after.keys().filter(|path| !before.contains_key(*path)) {
            fs::remove_file(path).expect("removed");
        }
        before.iter().for_each(|(path, content)| fs::write(path, content).expect("written"));
        (seen, after)
    };
    let expected = run(lit(None));
    let got = run(hotstart(None));
    assert_eq!(got.0.out.join("\n"), expected.0.out.join("\n"), "{args:?}: {expected:#?}\n{got:#?}");
    assert_eq!(got, expected, "{args:?}");
    got
}

#[test]
fn tests_are_updated_as_lit_updates_them() {
    let suite = suite();
    let (_, after) = compare(&suite, &["-v", "--update-tests", "."]);
    assert_eq!(after[&suite.path("./diff.test.expected")], "new\n");
    assert!(after[&suite.path("./split.test")].contains("#--- exp\nnew\n#--- more"));
    compare(&suite, &["-q", "--update-tests", "."]);
}

#[test]
fn a_test_that_passes_once_it_is_updated_is_fixed() {
    let suite = suite();
    // The output of retried tests is shown even if they pass in the end.
    let flaky = "--test-output=failed-or-flaky";
    let args = [flaky, "--update-tests", "--max-retries-per-test=1", "--show-fixed", "."];
    let (seen, _) = compare(&suite, &args);
    assert!(
        seen.out.iter().any(|line| line == "FIXED: t :: diff.test (1 of 11, 2 of 2 attempts)"),
        "{seen:#?}"
    );
}

#[test]
fn without_the_option_nothing_is_updated() {
    let suite = suite();
    let (_, after) = compare(&suite, &["-v", "--max-retries-per-test=1", "."]);
    assert_eq!(after[&suite.path("./diff.test.expected")], "old\n");
}

#[test]
fn formats_written_in_python_are_updated_too() {
    let suite = suite();
    suite.file("own.py", "import lit.formats\nclass Own(lit.formats.ShTest): pass\n");
    let config = fs::read_to_string(suite.path("lit.cfg.py")).expect("a config");
    let own = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nfrom own import Own\n\
               config.test_format = Own(False)\n";
    suite.file("lit.cfg.py", config + own);
    compare(&suite, &["-v", "--update-tests", "."]);
    compare(&suite, &["-a", "--update-tests", "--max-retries-per-test=1", "."]);
}

#[test]
fn an_updater_that_ends_its_process_costs_only_its_test() {
    let suite = Suite::new(
        "import os\ndef end(result, test, commands):\n    return 'told' if 'a.test' in commands[0] else os._exit(3)\n\
         lit_config.test_updaters.append(end)",
    );
    for name in ["a", "b", "c"] {
        suite.file(&format!("{name}.test"), "RUN: false %s\n");
    }
    let run = suite.run(&["-v", "-j1", "--order=lexical", "--update-tests", "."]);
    run.ends_with(1)
        .has("FAIL: t :: a.test")
        .has("told")
        .has("UNRESOLVED: t :: b.test")
        .has("UNRESOLVED: t :: c.test");
    run.says("an updater must not end its process");
}
