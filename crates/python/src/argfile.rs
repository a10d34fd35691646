//! `argparse`'s argument files: the lines of FILE replace `@FILE`. They may contain `@FILE` again.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::{errors, repr, text};

/// A limit for files that include themselves.
const MAX_DEPTH: usize = 100;

/// Replaces all argument files below `cwd`.
pub fn expand(argv: Vec<OsString>, cwd: &Path) -> Result<Vec<OsString>, String> {
    let mut expanded = Vec::with_capacity(argv.len());
    for arg in argv {
        expand_one(arg, cwd, MAX_DEPTH, &mut expanded)?;
    }
    Ok(expanded)
}

fn expand_one(arg: OsString, cwd: &Path, depth: usize, to: &mut Vec<OsString>) -> Result<(), String> {
    let Some(name) = arg.as_bytes().strip_prefix(b"@") else {
        to.push(arg);
        return Ok(());
    };
    let name = OsStr::from_bytes(name);
    if depth == 0 {
        return Err(format!("argument file {} is nested too deeply; does it name itself?", display(name)));
    }
    for line in read_lines(name, cwd)? {
        expand_one(line, cwd, depth - 1, to)?;
    }
    Ok(())
}

fn read_lines(name: &OsStr, cwd: &Path) -> Result<Vec<OsString>, String> {
    // An empty name is no file. Joined to `cwd`, it would be the directory.
    let read = if name.is_empty() { fs::read("") } else { fs::read(cwd.join(name)) };
    let content = read.map_err(|error| errors::message(&error, Some(&display(name))))?;
    Ok(match String::from_utf8(content) {
        Ok(text) => text::split_lines(&text).into_iter().map(OsString::from).collect(),
        Err(error) => {
            let lines = error.as_bytes().split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
            lines.filter(|line| !line.is_empty()).map(OsString::from_vec).collect()
        }
    })
}

fn display(name: &OsStr) -> String {
    repr(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "-v\r\n\n@b\nlast one").unwrap();
        fs::write(dir.path().join("b"), "x\u{2028}y\n").unwrap();
        let argv = ["@a".into(), "tests".into()].to_vec();
        assert_eq!(expand(argv, dir.path()).unwrap(), ["-v", "", "x", "y", "last one", "tests"]);
    }

    #[test]
    fn a_missing_file_and_one_that_names_itself() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("self"), "@self").unwrap();
        let missing = expand(vec!["@it's".into()], dir.path());
        assert_eq!(missing.unwrap_err(), "[Errno 2] No such file or directory: \"it's\"");
        assert_eq!(
            expand(vec!["@".into()], dir.path()).unwrap_err(),
            "[Errno 2] No such file or directory: ''"
        );
        assert!(expand(vec!["@self".into()], dir.path()).unwrap_err().contains("'self'"));
    }
}
