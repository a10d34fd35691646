//! `pip install`, and the search of the installed script for the program and for a Python with lit.

use std::fs;
use std::path::{Path, PathBuf};

use crate::suite::Suite;
use crate::{HOTSTART, command, python, repository, run, was_hotstart};

/// Installs the package below `prefix`, as pip does, from a copy: a build leaves files behind.
fn install(suite: &Suite) -> PathBuf {
    let source = repository("python");
    let copy = suite.path("source");
    for name in ["pyproject.toml", "hotstart-lit", "hotstart_lit", "hotstart_lit/shim"] {
        let from = source.join(name);
        if !from.is_dir() {
            fs::create_dir_all(&copy).expect("a directory");
            fs::copy(&from, copy.join(name)).expect("a copy");
            continue;
        }
        fs::create_dir_all(copy.join(name)).expect("a directory");
        for entry in fs::read_dir(&from).expect("a directory").map(|entry| entry.expect("an entry")) {
            if entry.path().is_file() {
                fs::copy(entry.path(), copy.join(name).join(entry.file_name())).expect("a copy");
            }
        }
    }
    let prefix = suite.path("prefix");
    let mut pip = python(&["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index"]);
    pip.args(["--no-deps", "--no-build-isolation", "--no-warn-script-location", "--prefix"])
        .arg(&prefix)
        .arg(&copy);
    run(&mut pip).ends_with(0);
    prefix
}

fn script(prefix: &Path) -> PathBuf {
    prefix.join("bin/hotstart-lit")
}

#[test]
fn the_installed_script_finds_its_package_and_the_program() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    let prefix = install(&suite);
    // Run it with the Python of the installation, which does not search below this prefix.
    let mut direct = command(script(&prefix));
    let direct = run(direct.args(["-v", "a.test"]).current_dir(suite.path(".")));
    assert!(was_hotstart(&direct), "{direct:#?}");
    direct.has("PASS: t :: a.test (1 of 1)").ends_with(0);

    // The program is beside the script.
    std::os::unix::fs::symlink(HOTSTART, prefix.join("bin/hotstart")).expect("a link");
    let mut beside = python(&[]);
    beside.arg(script(&prefix)).arg("a.test").env_remove("HOTSTART").env("PATH", "/usr/bin:/bin");
    let beside = run(beside.current_dir(suite.path(".")));
    assert!(was_hotstart(&beside), "{beside:#?}");

    // The program is on PATH.
    fs::create_dir(suite.path("path")).expect("a directory");
    fs::rename(prefix.join("bin/hotstart"), suite.path("path/hotstart")).expect("moved");
    let mut on_path = python(&[]);
    let path = format!("{}:/usr/bin:/bin", suite.path("path").display());
    on_path.arg(script(&prefix)).arg("a.test").env_remove("HOTSTART").env("PATH", path);
    let on_path = run(on_path.current_dir(suite.path(".")));
    assert!(was_hotstart(&on_path), "{on_path:#?}");

    // The program is nowhere.
    let mut nowhere = python(&[]);
    nowhere.arg(script(&prefix)).arg("a.test").env_remove("HOTSTART").env("PATH", "/usr/bin:/bin");
    run(&mut nowhere)
        .warns("hotstart-lit: error: cannot find the hotstart program: it is not beside this one (")
        .warns("set HOTSTART to its path")
        .ends_with(2);
    let mut wrong = python(&[]);
    run(wrong.arg(script(&prefix)).arg("a.test").env("HOTSTART", "/nonexistent"))
        .warns("hotstart-lit: error: HOTSTART names '/nonexistent', which is no program that can be run")
        .ends_with(2);
}

#[test]
fn another_python_than_that_which_has_lit_may_run_the_script() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    let prefix = install(&suite);
    // The script's own environment has lit.
    run(python(&["-m", "venv", "--without-pip"]).arg(&prefix)).ends_with(0);
    let where_it_is = "import lit, os; print(os.path.dirname(lit.__file__))";
    let lit = run(&mut python(&["-c", where_it_is])).out;
    let packages =
        fs::read_dir(prefix.join("lib")).expect("a directory").next().expect("one").expect("an entry");
    let linked = packages.path().join("site-packages/lit");
    std::os::unix::fs::symlink(lit.trim(), linked).expect("a link");
    // CMake's Python has neither lit nor the script's own package: it searches nowhere.
    let mut bare = python(&["-S", "-E"]);
    let bare = run(bare.arg(script(&prefix)).args(["-v", "a.test"]).current_dir(suite.path(".")));
    assert!(was_hotstart(&bare), "{bare:#?}");
    bare.has("PASS: t :: a.test (1 of 1)").ends_with(0);
}
