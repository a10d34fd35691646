//! Tests the crate's boundaries: only this crate translates patterns, and it depends on no other crate of hotstart.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the names of the dependencies in a `Cargo.toml`, including those for tests.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).expect("a manifest");
    let mut names = Vec::new();
    let mut is_list = false;
    for line in text.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            is_list = section.ends_with("dependencies");
            // `[dependencies.NAME]`
            names.extend(section.split_once("dependencies.").map(|(_, name)| name.to_owned()));
        } else if is_list {
            names.extend(
                line.split_once(['=', '.']).map(|(name, _)| name.trim().trim_matches('"').to_owned()),
            );
        }
    }
    names
}

fn manifests() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(root.join("crates")).expect("the workspace");
    let mut manifests: Vec<PathBuf> = crates
        .map(|entry| entry.expect("listed").path().join("Cargo.toml"))
        .filter(|file| file.exists())
        .collect();
    manifests.push(root.join("fuzz/Cargo.toml"));
    assert!(manifests.len() > 8, "{manifests:?}");
    manifests
}

#[test]
fn only_this_crate_uses_regular_expressions() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).file_name().expect("a name");
    for manifest in manifests() {
        let is_own = manifest.parent().and_then(Path::file_name) == Some(own);
        let engines: Vec<String> =
            dependencies(&manifest).into_iter().filter(|name| name.contains("regex")).collect();
        let expected: &[&str] = if is_own { &["fancy-regex"] } else { &[] };
        assert_eq!(
            engines,
            expected,
            "{}: a pattern of lit's is a Python pattern; use hotstart_python::re",
            manifest.display()
        );
    }
}

#[test]
fn this_crate_knows_no_other() {
    let own = dependencies(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    assert!(!own.is_empty() && !own.iter().any(|name| name.starts_with("hotstart")), "{own:?}");
}
