//! `cat [-v] FILES`. lit 19 reads text and so turns every line end into `\n`, and never reads standard input.

use std::fs;
use std::io;

use hotstart_model::Dialect;
use hotstart_python::errors;
use hotstart_python::getopt::gnu_getopt;
use hotstart_python::path::join;
use hotstart_python::repr;
use hotstart_python::text::universal_newlines;
use rustix::io::Errno;

use super::native::Written;

/// The size of Python's output buffer.
const PYTHON_BUFFER: usize = 8192;

/// A call of `cat`.
#[derive(Debug)]
pub(crate) struct Cat {
    files: Vec<String>,
    show_nonprinting: bool,
    dialect: Dialect,
}

impl Cat {
    pub fn parse(args: &[String], dialect: Dialect) -> Result<Self, Written> {
        match gnu_getopt(args, "v", &["show-nonprinting"]) {
            Ok((options, files)) => Ok(Cat { files, show_nonprinting: !options.is_empty(), dialect }),
            Err(error) => Err(Written::error(format!("Unsupported: 'cat':  {error}\n"))),
        }
    }

    /// The files that it reads.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    pub fn reads_stdin(&self) -> bool {
        self.files.is_empty() && self.dialect == Dialect::V23
    }

    pub fn run(self, stdin: Vec<u8>, cwd: &str) -> Written {
        if self.files.is_empty() {
            return Written { stdout: stdin, ..Written::default() };
        }
        let mut written = Written::default();
        for name in &self.files {
            match self.read(name, cwd) {
                Ok(content) => {
                    let before = written.stdout.len();
                    self.write(content, &mut written.stdout);
                    self.flush(before, &mut written);
                }
                Err(error) => {
                    written.stderr = errors::message(&error, Some(&repr(name))).into_bytes();
                    written.status = 1;
                    break;
                }
            }
        }
        written
    }

    /// Reads a file. lit 19 opens the name as given, so an empty one fails.
    fn read(&self, name: &str, cwd: &str) -> io::Result<Vec<u8>> {
        match self.dialect {
            Dialect::V19 if name.is_empty() => Err(errors::io_error(Errno::NOENT)),
            _ => fs::read(join(cwd, name)),
        }
    }

    /// Updates how much Python has already written: lit 19 flushes after each file; otherwise a full buffer is flushed.
    fn flush(&self, before: usize, written: &mut Written) {
        let (added, buffered) = (written.stdout.len() - before, before - written.output_before_errors);
        if self.dialect == Dialect::V19 || added > PYTHON_BUFFER {
            written.output_before_errors = written.stdout.len();
        } else if buffered + added > PYTHON_BUFFER {
            written.output_before_errors = before;
        }
    }

    fn write(&self, content: Vec<u8>, out: &mut Vec<u8>) {
        let content = match self.dialect {
            Dialect::V19 if content.contains(&b'\r') => match std::str::from_utf8(&content) {
                Ok(text) => universal_newlines(text).into_owned().into_bytes(),
                Err(_) => content,
            },
            _ => content,
        };
        if self.show_nonprinting {
            show_nonprinting(&content, out);
        } else if out.is_empty() {
            *out = content;
        } else {
            out.extend_from_slice(&content);
        }
    }
}

fn show_nonprinting(content: &[u8], out: &mut Vec<u8>) {
    for &byte in content {
        if matches!(byte, b'\t' | b'\n') {
            out.push(byte);
            continue;
        }
        if byte > 127 {
            out.extend_from_slice(b"M-");
        }
        match byte & 0x7f {
            low @ 0..32 => out.extend([b'^', low + 64]),
            127 => out.extend_from_slice(b"^?"),
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str], dialect: Dialect, cwd: &str) -> Written {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        Cat::parse(&args, dialect).map_or_else(|w| w, |cat| cat.run(b"in".to_vec(), cwd))
    }

    #[test]
    fn dialects() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().to_str().unwrap();
        fs::write(dir.path().join("f"), b"a\r\nb\x01\xc3\xa9\n").unwrap();
        assert_eq!(run(&["f"], Dialect::V23, cwd).stdout, b"a\r\nb\x01\xc3\xa9\n");
        assert_eq!(run(&["f"], Dialect::V19, cwd).stdout, b"a\nb\x01\xc3\xa9\n");
        assert_eq!(run(&["-v", "f"], Dialect::V23, cwd).stdout, b"a^M\nb^AM-CM-)\n");
        assert_eq!(run(&[], Dialect::V23, cwd).stdout, b"in");
        let missing = run(&["f", "g"], Dialect::V23, cwd);
        assert_eq!(missing.stderr, b"[Errno 2] No such file or directory: 'g'");
        assert_eq!((missing.status, missing.stdout.len()), (1, 8));
        assert_eq!(
            run(&["-b"], Dialect::V23, cwd).stderr,
            b"Unsupported: 'cat':  option -b not recognized\n"
        );
    }
}
