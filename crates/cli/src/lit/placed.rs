//! hotstart in the `bin` of a build tree, in place of the `llvm-lit` script that CMake generated. The script's knowledge of
//! the tree is read from the tree itself.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hotstart_lit::build_tree;

use crate::args::LitOptions;

/// The parameter that `llvm-lit` passes in addition to the map.
const MODE: &str = "build_mode";

/// Returns the build tree in which this program was called by this name, possibly through a link.
pub(super) fn build_tree_of(called: &OsStr, cwd: &Path, search: Option<&OsString>) -> Option<PathBuf> {
    let called = Path::new(called);
    let file = match called.components().nth(1) {
        Some(_) => cwd.join(called),
        None => std::env::split_paths(search?).map(|dir| cwd.join(dir).join(called)).find(|p| p.is_file())?,
    };
    build_tree::containing(file.parent()?)
}

/// Fills in options that were not given. Returns a message for the user if something is missing.
pub(super) fn fill_in(options: &mut LitOptions, tree: &Path, cwd: &Path) -> Option<String> {
    let own = &mut options.own;
    if own.lit_package.is_none() {
        own.lit_package = build_tree::lit_package(tree);
    }
    let has_mode = own.builtin.params.iter().any(|(name, _)| name == MODE);
    if !has_mode && build_tree::has_one_mode(tree) {
        own.builtin.params.push((MODE.to_owned(), "\".\"".to_owned()));
    }
    // Within the build tree, lit finds the site configs by itself.
    let is_outside = |path: &OsString| {
        let path = std::fs::canonicalize(cwd.join(path)).unwrap_or_default();
        !path.starts_with(std::fs::canonicalize(tree).unwrap_or_default())
    };
    let outside = options.test_paths.iter().find(|path| is_outside(path))?;
    if !own.builtin.config_map.is_empty() {
        return None;
    }
    own.builtin.config_map = build_tree::config_map(tree);
    own.builtin.config_map.is_empty().then(|| {
        format!(
            "hotstart: '{}' lies outside the build tree '{}', in which no site config says what it was made from; name \
             a path within that tree, or hand over a map with --builtin-parameters\n",
            outside.to_string_lossy(),
            tree.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_found_by_path_or_by_search() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("build/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("llvm-lit"), "").unwrap();
        let build = dir.path().join("build");
        let search = std::env::join_paths([Path::new("/nonexistent"), &bin]).unwrap();
        let of = |called: &str| build_tree_of(called.as_ref(), dir.path(), Some(&search));
        assert_eq!(of("build/bin/llvm-lit"), None, "no CMake");
        std::fs::write(build.join("CMakeCache.txt"), "").unwrap();
        assert_eq!(of("build/bin/llvm-lit"), Some(build.clone()));
        assert_eq!(of("llvm-lit"), Some(build));
        assert_eq!(of("lit"), None);
    }
}
