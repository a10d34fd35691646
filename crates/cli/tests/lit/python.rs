//! The search for a Python to evaluate configs: places are tried in order, and all are listed if none has lit.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use crate::suite::{Run, Suite, lit_python, prepare};

/// Creates a suite with one test, and an installation of hotstart beside it. Nothing else is on PATH.
fn system() -> Suite {
    let suite = Suite::new("");
    suite.file("tests/a.test", "RUN: echo\n");
    suite.file("tests/lit.local.cfg", "");
    fs::create_dir_all(suite.path("wheel/bin")).expect("a directory");
    suite.own_binary("wheel/bin/hotstart");
    suite
}

/// Creates a Python that logs its name; it has lit unless `options` hide it.
fn python(suite: &Suite, name: &str, options: &str) -> PathBuf {
    let text = format!(
        "#!/bin/sh\necho {name} >> '{}'\nexec '{}' {options} \"$@\"\n",
        suite.path("started").display(),
        lit_python().display()
    );
    let file = suite.file(name, text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    file
}

/// Options with which Python ignores installed packages.
const BARE: &str = "-S -E";

fn run(suite: &Suite, variables: &[(&str, &str)]) -> (Run, Vec<String>) {
    let mut command = Command::new(suite.path("wheel/bin/hotstart"));
    command.args(["lit", "-v", "tests"]).current_dir(suite.path("."));
    prepare(&mut command);
    for name in ["HOTSTART_LIT_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"] {
        command.env_remove(name);
    }
    command.env("PATH", suite.path("path"));
    for (name, value) in variables {
        command.env(name, suite.path(value));
    }
    let run = Run::from(command.output().expect("hotstart starts"));
    let started = fs::read_to_string(suite.path("started")).unwrap_or_default();
    drop(fs::remove_file(suite.path("started")));
    (run, started.lines().map(str::to_owned).collect())
}

#[test]
fn the_first_python_with_lit_is_taken() {
    let suite = system();
    let places = [
        "wheel/bin/python3",
        "active/bin/python3",
        "conda/bin/python3",
        "path/python3",
        "path/python3.12",
        "path/python3.9",
    ];
    places.iter().for_each(|place| drop(python(&suite, place, "")));
    let variables = [("VIRTUAL_ENV", "active"), ("CONDA_PREFIX", "conda")];
    for (tried, place) in places.iter().enumerate() {
        let (run, started) = run(&suite, &variables);
        run.ends_with(0).has("PASS: t :: tests/a.test");
        assert_eq!(started, places[..=tried], "{run:#?}");
        python(&suite, place, BARE);
    }
    let (run, started) = run(&suite, &variables);
    run.ends_with(2).warns("no Python with the 'lit' package").warns("--lit-python or HOTSTART_LIT_PYTHON");
    assert_eq!(started, places);
    for place in places {
        let said = format!("'{}': ModuleNotFoundError", suite.path(place).display());
        assert_eq!(run.err.matches(&said).count(), 1, "{said}: {run:#?}");
    }
}

#[test]
fn places_without_a_python_are_in_the_error() {
    let suite = system();
    fs::create_dir(suite.path("path")).expect("a directory");
    let broken = suite.file("path/python3", "not a program");
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (run, _) = run(&suite, &[]);
    run.ends_with(2)
        .warns(&format!("  beside hotstart, in '{}': there is none\n", suite.path("wheel/bin").display()))
        .warns("  the environment of VIRTUAL_ENV, which is not set: there is none\n")
        .warns("  the lit of a build tree that the tests belong to: there is none\n")
        .warns(&format!(
            "  python3 on PATH: '{}': it cannot be executed: Exec format error",
            broken.display()
        ))
        .warns("  python3.N on PATH: there is none\n");
}

#[test]
fn a_build_tree_brings_its_lit() {
    let suite = system();
    python(&suite, "path/python3", BARE);
    let found = Command::new(lit_python())
        .args(["-c", "import lit, os; print(os.path.dirname(lit.__file__), end='')"])
        .output()
        .expect("a Python");
    let package = String::from_utf8(found.stdout).expect("a path");
    fs::create_dir_all(suite.path("llvm/utils/lit")).expect("a directory");
    symlink(package, suite.path("llvm/utils/lit/lit")).expect("a link");
    let config = fs::read_to_string(suite.path("lit.cfg.py")).expect("it is there");
    suite.file("tests/lit.site.cfg.py", format!("config.llvm_src_root = '../llvm'\n{config}"));
    let (run, started) = run(&suite, &[]);
    run.ends_with(0).has("PASS: t :: a.test");
    assert_eq!(started, ["path/python3"]);
}

#[test]
fn a_python_that_is_named_is_the_only_one() {
    let suite = system();
    python(&suite, "wheel/bin/python3", "");
    let bare = python(&suite, "named", BARE);
    let (run, started) = run(&suite, &[("HOTSTART_LIT_PYTHON", "named")]);
    run.ends_with(2).warns(&format!("'{}' has no usable 'lit' package", bare.display()));
    assert_eq!(started, ["named"]);
}

#[test]
fn what_a_shim_says_is_in_the_error_and_nowhere_else() {
    let suite = system();
    let shim = |name: &str, text: &str| {
        let file = suite.file(name, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    };
    shim("wheel/bin/python3", "printf '\\nshim: there is no such version\\n\\nmany words\\n' >&2; exit 127");
    let (failed, _) = run(&suite, &[]);
    let shown = "/wheel/bin/python3': shim: there is no such version\n";
    failed.ends_with(2).warns(shown);
    assert!(!failed.err.contains("many words"), "{failed:#?}");
    let real = lit_python().display().to_string();
    shim("path/python3", &format!("echo 'from the start' >&2; exec '{real}' \"$@\""));
    let (passed, _) = run(&suite, &[]);
    passed.ends_with(0).warns("from the start\n");
    assert!(!passed.err.contains("shim: "), "{passed:#?}");
}
