//! Command lines to compare: finds their programs, and expands `{1,2,4}` to one command for each value.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::measure::Failure;

/// A command whose program was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name in reports: the words, unless the user gave one.
    pub name: String,
    /// The file to execute.
    pub program: PathBuf,
    /// Arguments, the invoked name first.
    pub argv: Vec<OsString>,
}

impl Command {
    /// Finds the program as a shell would: along `path` unless the word has a slash, which is then taken from `cwd`.
    pub fn find(argv: Vec<OsString>, path: Option<&OsStr>, cwd: &Path) -> Result<Command, Failure> {
        let word = argv.first().cloned().unwrap_or_default();
        let name = line(&argv);
        let missing = |searched| Failure::NotFound { program: word.to_string_lossy().into_owned(), searched };
        if word.as_bytes().contains(&b'/') {
            let program = cwd.join(&word);
            return if program.exists() {
                Ok(Command { name, program, argv })
            } else {
                Err(missing("there"))
            };
        }
        let dirs = path.unwrap_or(OsStr::new("/usr/bin:/bin"));
        let found =
            std::env::split_paths(dirs).map(|dir| cwd.join(dir).join(&word)).find(|p| is_executable(p));
        match found {
            Some(program) if !word.is_empty() => Ok(Command { name, program, argv }),
            _ => Err(missing("along PATH")),
        }
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns the words as a user would type them, quoted where needed.
pub fn line(words: &[OsString]) -> String {
    words.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ")
}

/// Returns a word as a user would type it.
fn shown(word: &OsStr) -> String {
    let text = word.to_string_lossy().into_owned();
    let plain = |c: char| c.is_alphanumeric() || "-_./=+:,@%^".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Expands a line with sweeps: `make -j {1,2}` becomes `make -j 1` and `make -j 2`. Several sweeps give all combinations;
/// the last one varies fastest. A sweep has no blanks and no empty values, so that neither `{print $1, $2}` nor `{}` is one.
pub fn sweep(words: &[OsString]) -> Vec<Vec<OsString>> {
    let mut lines = vec![Vec::new()];
    for word in words {
        let choices = alternatives(word.as_bytes());
        let extend = |line: Vec<OsString>| {
            choices
                .iter()
                .map(move |choice| [line.clone(), vec![OsString::from_vec(choice.clone())]].concat())
        };
        lines = lines.into_iter().flat_map(extend).collect();
    }
    lines
}

fn alternatives(word: &[u8]) -> Vec<Vec<u8>> {
    let Some((before, values, after)) = first_sweep(word) else { return vec![word.to_vec()] };
    let rest = alternatives(after);
    let join = |value: &&[u8]| {
        let start = [before, value].concat();
        rest.iter().map(move |end| [start.as_slice(), end].concat()).collect::<Vec<_>>()
    };
    values.iter().flat_map(join).collect()
}

/// The text before a sweep, its values, and the text after it.
type Split<'w> = (&'w [u8], Vec<&'w [u8]>, &'w [u8]);

fn first_sweep(word: &[u8]) -> Option<Split<'_>> {
    for (open, _) in word.iter().enumerate().filter(|&(_, &byte)| byte == b'{') {
        let inner = &word[open + 1..];
        let length = inner.iter().position(|byte| b"{}".contains(byte))?;
        if inner[length] == b'{' {
            continue;
        }
        let values: Vec<&[u8]> = inner[..length].split(|&byte| byte == b',').collect();
        let fit = |value: &&[u8]| !value.is_empty() && !value.iter().any(u8::is_ascii_whitespace);
        if values.len() > 1 && values.iter().all(fit) {
            return Some((&word[..open], values, &inner[length + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let join = |line: &Vec<OsString>| line.join(OsStr::new(" ")).into_string().unwrap();
        sweep(&words).iter().map(join).collect()
    }

    #[test]
    fn sweeps_become_commands() {
        assert_eq!(swept("make -j {1,2,4}"), ["make -j 1", "make -j 2", "make -j 4"]);
        assert_eq!(swept("a{1,2}b {x,y}"), ["a1b x", "a1b y", "a2b x", "a2b y"]);
        assert_eq!(swept("-O{0,2}{,}"), ["-O0{,}", "-O2{,}"]);
        assert_eq!(swept("{a{b,c}"), ["{ab", "{ac"]);
        assert_eq!(swept("x {} {a} {a, b} {,b}"), ["x {} {a} {a, b} {,b}"]);
    }

    #[test]
    fn programs_are_found_as_a_shell_does() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tool");
        std::fs::write(&file, "").unwrap();
        let find = |word: &str| Command::find(vec![word.into()], Some(dir.path().as_os_str()), dir.path());
        assert!(find("tool").unwrap_err().to_string().contains("no program 'tool' along PATH"));
        std::os::unix::fs::symlink("/bin/sh", dir.path().join("shell")).unwrap();
        assert_eq!(find("shell").unwrap().program, dir.path().join("shell"));
        assert_eq!(find("./tool").unwrap().argv, ["./tool"]);
        assert!(find("./none").unwrap_err().to_string().contains("'./none' there"));
        assert!(find("").is_err());
    }

    #[test]
    fn names_are_what_would_be_typed() {
        let found = Command::find(vec!["/bin/sh".into(), "-c".into(), "it's".into()], None, Path::new("/"));
        assert_eq!(found.unwrap().name, "/bin/sh -c 'it'\\''s'");
    }
}
