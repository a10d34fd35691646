//! Paths, patterns for files, argument files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use hotstart_python::argfile;
use hotstart_python::errors;
use hotstart_python::glob::glob;
use hotstart_python::path::{join, normpath, realpath, split};
use hotstart_python::which;
use serde_json::{Value, json};

use crate::driver::{Driver, Random, count};

fn text(case: &Value) -> &str {
    case[0].as_str().expect("a string")
}

/// A directory with hidden files, links, circles of links and odd names.
fn planted() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["d/e", "d/.h", "b]"] {
        fs::create_dir_all(dir.path().join(name)).expect("fresh");
    }
    for name in [
        "a", "ab", "b", "a.c", "b.c", "-", "]", "[", "^", "!a", ".a", ".b.c", "d/x.c", "d/e/y", "d/.h/z",
        "b]/a", "é", "a b",
    ] {
        fs::write(dir.path().join(name), "").expect("fresh");
    }
    let links = [
        ("d", "l"),
        ("a", "la"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
        ("two", "one"),
        ("one", "two"),
        ("d/../l", "m"),
        ("../d", "d/up"),
        ("l/e/../x", "n"),
    ];
    for (target, name) in links {
        symlink(target, dir.path().join(name)).expect("fresh");
    }
    dir
}

#[test]
fn paths_are_cut_and_joined_as_by_python() {
    const PARTS: &[&str] = &["/", "/", "//", ".", "..", "a", "b.c", "é", " "];
    let (mut driver, mut random) = (Driver::start(), Random::new(21));
    let draw = || json!([random.join(PARTS, 8)]);
    driver.compare("path", count(4_000), draw, |case| {
        let path = text(case);
        let (head, tail) = split(path);
        Some(json!({"value": [normpath(path), [head, tail], join("/base", path)]}))
    });
}

#[test]
fn links_are_resolved_as_by_python() {
    const PARTS: &[&str] =
        &["d", "l", "la", "dangling", "loop", "one", "m", "up", "n", "e", "x", "..", "..", ".", "a"];
    let dir = planted();
    let root = dir.path().canonicalize().expect("it exists");
    let (mut driver, mut random) = (Driver::start(), Random::new(22));
    let draw = || {
        let parts: Vec<&str> = (0..random.below(7)).map(|_| random.pick(PARTS)).collect();
        json!([root.join(parts.join("/"))])
    };
    driver.compare("realpath", count(3_000), draw, |case| Some(json!({"value": realpath(text(case))})));
}

#[test]
fn files_are_found_as_by_python() {
    const PARTS: &[&str] = &[
        "*", "*", "?", "a", "b", ".c", ".", "[ab]", "[!a]", "[]", "[]]", "[!]]", "[a-c]", "[c-a]", "[a-]",
        "[-a]", "[^a]", "[", "]", "!", "-", "**", "/", "d/", "*/", "l/", "é", "[a-c-e]", "[!c-a]", "[--a]",
        "\\", "[\\]", "..", "e",
    ];
    let dir = planted();
    let root = dir.path().to_str().expect("UTF-8").to_owned();
    let (mut driver, mut random) = (Driver::start(), Random::new(23));
    let draw = || json!([format!("{root}/{}", random.join(PARTS, 5))]);
    driver.compare("glob", count(5_000), draw, |case| {
        let mut found = glob(text(case));
        found.sort_unstable();
        Some(json!({ "value": found }))
    });
}

#[test]
fn argument_files_are_read_as_by_python() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "-v\r\n\n@b\nlast one").expect("fresh");
    fs::write(dir.path().join("b"), "x\u{2028}y\u{85}é\n \n").expect("fresh");
    fs::write(dir.path().join("empty"), "").expect("fresh");
    let cases = [json!([["@a", "t"]]), json!([["x", "@b", "@empty"]]), json!([["a@b"]])];
    let theirs = Driver::start().ask_in(dir.path(), "argument_file", &cases);
    for (case, theirs) in cases.iter().zip(theirs) {
        let words: Vec<String> = serde_json::from_value(case[0].clone()).expect("strings");
        let ours = expanded(words, dir.path());
        assert_eq!(json!({ "value": ours }), theirs, "{case}");
    }
}

fn expanded(words: Vec<String>, cwd: &Path) -> Vec<String> {
    let words = argfile::expand(words.into_iter().map(Into::into).collect(), cwd).expect("files are there");
    words.into_iter().map(|word| word.into_string().expect("text")).collect()
}

#[test]
fn errors_are_worded_as_by_python() {
    let cases: Vec<Value> = (1..=133).map(|number| json!([number])).collect();
    for (case, theirs) in cases.iter().zip(Driver::start().ask("os_error", &cases)) {
        let error = std::io::Error::from_raw_os_error(case[0].as_i64().expect("a number") as i32);
        assert_eq!(theirs["value"], json!([errors::kind(&error), errors::message(&error, Some("'x'"))]));
    }
}

#[test]
fn programs_are_found_as_by_python() {
    const NAMES: &[&str] = &["tool", "plain", "dir", "none", "./tool", "a/tool", "a/none", "both", "."];
    const DIRS: &[&str] = &["a", "b", "c", "none", ""];
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("it exists");
    for (file, mode) in [
        ("a/tool", 0o755),
        ("b/tool", 0o755),
        ("tool", 0o755),
        ("c/plain", 0o644),
        ("a/both", 0o644),
        ("c/both", 0o755),
    ] {
        let file = root.join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("fresh");
        fs::write(&file, "#!/bin/sh\n/bin/readlink -f \"$0\"\n").expect("fresh");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("ours");
    }
    fs::create_dir_all(root.join("b/dir")).expect("fresh");
    let mut random = Random::new(24);
    let mut draw = || {
        let dirs: Vec<&str> = (0..=random.below(3)).map(|_| random.pick(DIRS)).collect();
        json!([random.pick(NAMES), dirs.join(":"), root])
    };
    let cases: Vec<Value> = (0..200).map(|_| draw()).collect();
    for (case, theirs) in cases.iter().zip(Driver::start().ask("executed", &cases)) {
        let path = case[1].as_str().expect("a string");
        let ours = match which::program(text(case).as_ref(), Some(path.as_ref()), &root) {
            None => "FileNotFoundError".to_owned(),
            Some(file) if !file.exists() => "FileNotFoundError".to_owned(),
            Some(file) if !which::is_executable(&file) => "PermissionError".to_owned(),
            Some(file) => format!("{}\n", file.canonicalize().expect("it exists").display()),
        };
        let theirs = theirs["value"].as_str().or(theirs["error"].as_str()).expect("an answer");
        assert!(theirs.split(": ").next() == Some(&ours), "{case}: {ours} and {theirs}");
    }
}
