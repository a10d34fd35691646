//! Paths, patterns for files, argument files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use hotstart_python::argfile;
use hotstart_python::glob::glob;
use hotstart_python::path::{join, normpath, realpath, split};
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
