//! Selects the entries of a directory that are tests (docs/reference/lit-compat.md, 2.5).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hotstart_model::Dialect;

use crate::config::Config;

/// A directory's entries in the order in which the file system lists them.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub files: Vec<Box<OsStr>>,
    pub directories: Vec<Box<OsStr>>,
}

impl Listing {
    pub fn read(directory: &Path) -> io::Result<Self> {
        let mut listing = Listing::default();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // Links to directories are directories; a dangling link is a file that cannot be read.
            let is_directory = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
            let names = if is_directory { &mut listing.directories } else { &mut listing.files };
            names.push(entry.file_name().into_boxed_os_str());
        }
        Ok(listing)
    }
}

/// Returns whether a config excludes this name, of a file or a directory.
pub(super) fn is_excluded(config: &Config, name: &OsStr) -> bool {
    !config.excludes.is_empty() && name.to_str().is_some_and(|name| config.excludes.contains(name))
}

/// Returns whether a file of this name is a test.
pub(super) fn is_test(config: &Config, dialect: Dialect, name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    if bytes.first() == Some(&b'.') || is_excluded(config, name) {
        return false;
    }
    match dialect {
        Dialect::V19 => config.suffixes.iter().any(|suffix| suffix.as_bytes() == extension(bytes)),
        Dialect::V23 => config.suffixes.iter().any(|suffix| bytes.ends_with(suffix.as_bytes())),
    }
}

/// Returns the name's end from its last dot, or nothing. The name does not begin with a dot.
fn extension(name: &[u8]) -> &[u8] {
    name.iter().rposition(|&byte| byte == b'.').map_or(&[], |dot| &name[dot..])
}

/// Returns whether a file of this name is a googletest executable.
pub(super) fn is_googletest(name: &OsStr, suffix: &str, prefix: Option<&str>) -> bool {
    let name = name.as_bytes();
    let stem = name.strip_suffix(b".py").filter(|stem| stem.ends_with(suffix.as_bytes())).unwrap_or(name);
    stem.ends_with(suffix.as_bytes())
        && prefix.is_none_or(|prefix| name.starts_with(prefix.as_bytes()))
        && name.first() != Some(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(suffixes: &[&str], excludes: &[&str]) -> Config {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Config { suffixes: set(suffixes), excludes: set(excludes), ..Config::default() }
    }

    #[test]
    fn lit_19_takes_the_last_extension_and_lit_23_any_end() {
        let config = config(&[".ll", ".tar.gz"], &["not.ll"]);
        let is = |dialect, name: &str| is_test(&config, dialect, OsStr::new(name));
        assert!(is(Dialect::V19, "a.ll") && is(Dialect::V23, "a.ll"));
        assert!(!is(Dialect::V19, "a.tar.gz") && is(Dialect::V23, "a.tar.gz"));
        assert!(!is(Dialect::V23, ".a.ll") && !is(Dialect::V23, "not.ll") && !is(Dialect::V19, "ll"));
    }

    #[test]
    fn an_empty_suffix_is_no_extension_or_any_end() {
        let config = config(&[""], &[]);
        assert!(is_test(&config, Dialect::V19, OsStr::new("README")));
        assert!(!is_test(&config, Dialect::V19, OsStr::new("a.ll")));
        assert!(is_test(&config, Dialect::V23, OsStr::new("a.ll")));
    }
}
