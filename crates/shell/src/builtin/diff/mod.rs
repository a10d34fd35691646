//! `diff [-wbur] [-U N] [-I RE] [--strip-trailing-cr] A B`, which lit runs as a Python program around `difflib`.

mod format;
mod matcher;
mod tree;

use std::fs;
use std::io;

use hotstart_python::errors;
use hotstart_python::getopt::{Opt, gnu_getopt};
use hotstart_python::number::int;
use hotstart_python::path::{into_text, join, realpath};
use hotstart_python::re::Pattern;
use hotstart_python::text::split;
use hotstart_python::{Exception, repr};

use super::native::{self, Written};
use crate::halt::{Halt, Halting};
use format::Layout;

/// A call of `diff`.
#[derive(Debug)]
pub(crate) struct Diff {
    flags: Flags,
    operands: [String; 2],
}

#[derive(Debug)]
struct Flags {
    /// The replacement of white space: nothing (`-w`) or one blank (`-b`).
    space: Option<&'static str>,
    unified: bool,
    context: usize,
    /// Lines whose start matches are ignored.
    ignored_lines: Option<Pattern>,
    recursive: bool,
    strip_cr: bool,
}

/// The reason why the comparison ended early.
enum Failure {
    /// An error that lit's program reports.
    File(io::Error, String),
    /// An exception that ends lit's program.
    Python(String),
    /// A match that took too long.
    GaveUp(Exception),
}

impl Diff {
    /// Reads the arguments. `None` if only Python can run them.
    pub fn parse(args: &[String]) -> Result<Option<Self>, Written> {
        let (options, operands) = gnu_getopt(args, "wbuI:U:r", &["strip-trailing-cr"])
            .map_err(|error| Written::error(format!("Unsupported: 'diff': {error}\n")))?;
        let mut flags = Flags::parse(&options)?;
        let operands = <[String; 2]>::try_from(operands)
            .map_err(|_| Written::error("Error: missing or extra operand\n".to_owned()))?;
        if flags.recursive && operands.iter().any(|operand| operand == "-") {
            return Err(Written::error("Error: cannot recursively compare '-'\n".to_owned()));
        }
        if let Some((_, pattern)) = options.iter().rev().find(|(option, _)| option == "-I") {
            // Python reports an invalid pattern with a traceback, and may warn about a valid one.
            match Pattern::at_start(pattern) {
                Ok(pattern) if !pattern.warns() => flags.ignored_lines = Some(pattern),
                _ => return Ok(None),
            }
        }
        Ok(Some(Diff { flags, operands }))
    }

    /// Whether it reads standard input. It does not if a file before it cannot be read.
    pub fn reads_stdin(&self, cwd: &str) -> bool {
        match self.operands.each_ref().map(|operand| operand == "-") {
            [true, _] => true,
            [false, true] => {
                let file = fs::File::open(join(cwd, &self.operands[0]));
                file.and_then(|file| file.metadata()).is_ok_and(|found| !found.is_dir())
            }
            [false, false] => false,
        }
    }

    /// Whether the runner may read its files in a process's place ([`native::is_plain`]), also those below its directories.
    pub fn has_plain_files(&self, cwd: &str) -> bool {
        let files = self.operands.iter().filter(|operand| *operand != "-");
        let mut paths = files.map(|file| join(cwd, file));
        match self.flags.recursive {
            true => paths.all(|path| native::is_plain(&path) && tree::has_plain_files(&path)),
            false => paths.all(|path| native::is_plain(&path)),
        }
    }

    pub fn run(self, stdin: &[u8], cwd: &str) -> Halting<Written> {
        let resolve = |operand: &String| match operand.as_str() {
            "-" => operand.clone(),
            absolute if absolute.starts_with('/') => operand.clone(),
            relative => into_text(realpath(join(cwd, relative))),
        };
        let paths = [resolve(&self.operands[0]), resolve(&self.operands[1])];
        let mut written = Written::default();
        let compared = if self.flags.recursive {
            tree::compare(&self.flags, [&paths[0], &paths[1]], &mut written.stdout)
        } else {
            compare_files(&self.flags, [&paths[0], &paths[1]], Some(stdin), &mut written.stdout)
        };
        match compared {
            Ok(same) => written.status = i32::from(!same),
            Err(failure) => {
                written.status = 1;
                written.stderr = failure.message()?.into_bytes();
            }
        }
        Ok(written)
    }
}

impl Failure {
    /// Returns the program's standard error.
    fn message(self) -> Halting<String> {
        match self {
            Failure::File(error, path) => {
                let message = errors::message(&error, Some(&repr(&path)));
                Ok(format!("Error: 'diff' command failed, {message}\n"))
            }
            Failure::Python(message) => Ok(format!("Traceback (most recent call last):\n{message}\n")),
            Failure::GaveUp(error) => Err(Halt::internal("diff -I", error.message)),
        }
    }
}

impl Flags {
    fn parse(options: &[Opt]) -> Result<Self, Written> {
        let mut flags = Flags {
            space: None,
            unified: false,
            context: 3,
            ignored_lines: None,
            recursive: false,
            strip_cr: false,
        };
        for (option, value) in options {
            match option.as_str() {
                "-w" => flags.space = Some(""),
                "-b" => flags.space = flags.space.or(Some(" ")),
                "-u" => flags.unified = true,
                "-U" => {
                    flags.unified = true;
                    flags.context = int(value, 10)
                        .and_then(|n| usize::try_from(n).ok())
                        .ok_or_else(|| Written::error(format!("Error: invalid '-U' argument: {value}\n")))?;
                }
                "-I" => {}
                "-r" => flags.recursive = true,
                _ => flags.strip_cr = true,
            }
        }
        Ok(flags)
    }

    /// Returns a line in the form in which it is compared and shown.
    fn normalise(&self, line: &str) -> String {
        let Some(separator) = self.space else {
            return if self.strip_cr { line.replace("\r\n", "\n") } else { line.to_owned() };
        };
        split(line).collect::<Vec<_>>().join(separator) + "\n"
    }
}

/// Compares two files and returns whether they are equal. `-` is standard input, if there is one.
fn compare_files(
    flags: &Flags,
    paths: [&str; 2],
    stdin: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<bool, Failure> {
    let mut stdin = stdin;
    let mut read = |path: &str| match stdin {
        // Only the first `-` reads any input.
        Some(text) if path == "-" => {
            stdin = Some(b"");
            Ok(text.to_vec())
        }
        _ => fs::read(path).map_err(|error| Failure::File(error, path.to_owned())),
    };
    let contents = [read(paths[0])?, read(paths[1])?];
    let layout = Layout { names: paths, unified: flags.unified, context: flags.context };
    let diff = match contents.each_ref().map(|bytes| std::str::from_utf8(bytes)) {
        [Ok(a), Ok(b)] => layout.render(&text_lines(flags, a)?, &text_lines(flags, b)?),
        _ => {
            let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
                bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect()
            };
            let diff = Layout { unified: true, ..layout }.render(&lines(&contents[0]), &lines(&contents[1]));
            backslash_replaced(&diff)
        }
    };
    out.extend_from_slice(&diff);
    Ok(diff.is_empty())
}

fn text_lines(flags: &Flags, text: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let is_ignored = match &flags.ignored_lines {
            Some(pattern) => pattern.is_match(line).map_err(Failure::GaveUp)?,
            None => false,
        };
        if !is_ignored {
            lines.push(flags.normalise(line));
        }
    }
    Ok(lines)
}

/// Escapes bytes that are not UTF-8 as `\xff`.
fn backslash_replaced(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str], a: &[u8], b: &[u8]) -> (i32, String) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), a).unwrap();
        let args: Vec<String> = args.iter().chain(&["a", "-"]).map(|a| (*a).to_owned()).collect();
        let cwd = fs::canonicalize(dir.path()).unwrap();
        let cwd = cwd.to_str().unwrap();
        let written = match Diff::parse(&args) {
            Ok(diff) => diff.expect("nothing for Python").run(b, cwd).unwrap(),
            Err(written) => written,
        };
        let text = [written.stdout, written.stderr].concat();
        (written.status, String::from_utf8(text).unwrap().replace(cwd, "."))
    }

    #[test]
    fn flags() {
        assert_eq!(run(&[], b"x\n", b"x\n"), (0, String::new()));
        assert_eq!(run(&["-w"], b"x y\n", b" xy").0, 0);
        assert_eq!(run(&["-b"], b"x  y\n", b"x y").0, 0);
        assert_eq!(run(&["-b"], b"x y\n", b"xy\n").0, 1);
        assert_eq!(run(&["--strip-trailing-cr"], b"x\r\n", b"x\n").0, 0);
        assert_eq!(run(&["-I", "#"], b"#a\nx\n", b"x\n #").0, 1);
        assert_eq!(run(&["-I", "#"], b"#a\nx\n", b"x\n#b").0, 0);
        for pattern in ["^keep.*$", "keep [^[]*", r"x}|[]]|keep", r"keep.*\n\Z"] {
            assert_eq!(
                run(&["-I", pattern], b"keep 1\nx\n", b"x\nkeep 2\n"),
                (0, String::new()),
                "{pattern}"
            );
        }
        assert_eq!(run(&["-U", "x"], b"", b""), (1, "Error: invalid '-U' argument: x\n".into()));
        assert_eq!(run(&["-u"], b"\xff\n", b"").1, "--- ./a\n+++ -\n@@ -1 +0,0 @@\n-\\xff\n");
        assert_eq!(run(&["b"], b"", b""), (1, "Error: missing or extra operand\n".into()));
    }

    #[test]
    fn patterns_that_python_talks_about_are_left_to_it() {
        let parse = |pattern: &str| Diff::parse(&["-I", pattern, "a", "b"].map(str::to_owned)).unwrap();
        for pattern in ["(", "[[]x", "[a--b]", r"\N{DASH}", r"(?i)(a)\1"] {
            assert!(parse(pattern).is_none(), "{pattern}");
        }
        assert!(parse("[]x[]").is_some());
    }
}
