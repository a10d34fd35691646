//! Turns the redirections of one stage into its three descriptors.
//!
//! Order and errors are lit's, which differ from those of a POSIX shell.

use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::rc::Rc;

use hotstart_model::{Dialect, RedirectedOutput};
use hotstart_python::errors;
use hotstart_python::path::join;
use hotstart_python::{repr, repr_bytes};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::ast::{Command, Redirect, RedirectOp, Target, Word};
use crate::expand;
use crate::halt::{Halt, Halting};

/// The mode in which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileMode {
    Append,
    Read,
    Write,
}

/// A file that a pipeline has opened.
#[derive(Debug)]
pub(crate) struct Opened {
    word: Word,
    mode: FileMode,
    path: String,
    /// Dropped when every stage has started.
    pub file: Option<Rc<OwnedFd>>,
}

/// The kind of one descriptor of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The output of the stage before.
    Upstream,
    /// A new pipe (or, for standard error of a stage that is not the last, a temporary file).
    Pipe,
    /// The same as standard output's pipe.
    Stdout,
    /// The opened file with this index.
    File(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Std(usize),
    File(usize),
}

/// Opens the files that a command's redirections name, into `opened`. Returns the three descriptors.
pub(crate) fn process(
    command: &Command,
    cwd: &str,
    dialect: Dialect,
    opened: &mut Vec<Opened>,
) -> Halting<[Slot; 3]> {
    let mut wanted = [Wanted::Std(0), Wanted::Std(1), Wanted::Std(2)];
    let mut files: Vec<(&Target, FileMode, Option<usize>)> = Vec::new();
    for redirect in &command.redirects {
        let index = files.len();
        let mode = match (redirect.op, redirect.fd) {
            (RedirectOp::DupOut, Some(2)) => {
                if let Some(source) = duplicated(redirect)? {
                    wanted[2] = wanted[source];
                    continue;
                }
                return Err(unsupported(redirect));
            }
            (RedirectOp::Out, Some(2)) => (2..3, FileMode::Write),
            (RedirectOp::Append, Some(2)) => (2..3, FileMode::Append),
            (RedirectOp::DupOut | RedirectOp::Both, None) => (1..3, FileMode::Write),
            (RedirectOp::Out, None) => (1..2, FileMode::Write),
            (RedirectOp::Append, None) => (1..2, FileMode::Append),
            (RedirectOp::In, None) => (0..1, FileMode::Read),
            _ => return Err(unsupported(redirect)),
        };
        files.push((&redirect.target, mode.1, None));
        wanted[mode.0].fill(Wanted::File(index));
    }
    let mut slots = [Slot::Upstream, Slot::Pipe, Slot::Pipe];
    for (slot, wanted) in wanted.into_iter().enumerate() {
        slots[slot] = match wanted {
            Wanted::Std(0) => Slot::Upstream,
            Wanted::Std(1) if slot == 2 => Slot::Stdout,
            Wanted::Std(_) => Slot::Pipe,
            Wanted::File(index) => {
                let (target, mode, place) = &mut files[index];
                if place.is_none() {
                    opened.push(open(target, *mode, cwd, dialect)?);
                    *place = Some(opened.len() - 1);
                }
                Slot::File(place.unwrap_or_default())
            }
        };
    }
    Ok(slots)
}

/// Returns N of `2>&N` if lit accepts it. lit tests whether the text is a substring of "012", and then parses it as a
/// number.
fn duplicated(redirect: &Redirect) -> Halting<Option<usize>> {
    let Target::Word(Word::Text(text)) = &redirect.target else {
        let kind = if matches!(redirect.target, Target::Sign(..)) { "tuple" } else { "GlobItem" };
        let message = format!("'in <string>' requires string as left operand, not {kind}");
        return Err(Halt::exception("TypeError", message));
    };
    if !"012".contains(text.as_str()) {
        return Ok(None);
    }
    match text.parse() {
        Ok(source @ 0..3) => Ok(Some(source)),
        _ => Err(Halt::exception("IndexError", "list index out of range")),
    }
}

fn unsupported(redirect: &Redirect) -> Halt {
    let target = match &redirect.target {
        Target::Word(Word::Text(text)) => repr(text),
        Target::Word(Word::Glob(pattern)) => pattern.clone(),
        Target::Sign(sign, fd) => sign_repr(sign, *fd),
    };
    let op = sign_repr(redirect.op.sign(), redirect.fd);
    Halt::shell(format!("Unsupported redirect: ({op}, {target})"))
}

fn sign_repr(sign: &str, fd: Option<u64>) -> String {
    match fd {
        Some(fd) => format!("('{sign}', {fd})"),
        None => format!("('{sign}',)"),
    }
}

fn open(target: &Target, mode: FileMode, cwd: &str, dialect: Dialect) -> Halting<Opened> {
    let Target::Word(word) = target else {
        let message = "join() argument must be str, bytes, or os.PathLike object, not 'tuple'";
        return Err(Halt::exception("TypeError", message));
    };
    let names = expand::word(word, cwd);
    let [name] = &names[..] else {
        return Err(Halt::shell("Unsupported: glob in redirect expanded to multiple files"));
    };
    let path = join(cwd, name);
    match open_file(&path, mode) {
        Ok(file) => Ok(Opened { word: word.clone(), mode, path, file: Some(Rc::new(file)) }),
        Err(Errno::SPIPE) => {
            Err(Halt::exception("io.UnsupportedOperation", "underlying stream is not seekable"))
        }
        Err(errno) => {
            let shown = if dialect == Dialect::V19 { repr_bytes(path.as_bytes()) } else { repr(&path) };
            Err(Halt::os_error(&errors::io_error(errno), &shown))
        }
    }
}

fn open_file(path: &str, mode: FileMode) -> Result<OwnedFd, Errno> {
    let flags = match mode {
        FileMode::Read => OFlags::RDONLY,
        FileMode::Write => OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC,
        FileMode::Append => OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND,
    };
    let file = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))?;
    match mode {
        FileMode::Read => {
            if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::Directory {
                return Err(Errno::ISDIR);
            }
        }
        FileMode::Append => {
            rustix::fs::seek(&file, SeekFrom::End(0))?;
        }
        FileMode::Write => {}
    }
    Ok(file)
}

/// Returns the files that received output, in lit's order, for the report of a failing stage.
pub(crate) fn outputs(opened: &[Opened]) -> Halting<Vec<RedirectedOutput>> {
    let mut sorted: Vec<&Opened> = opened.iter().collect();
    // lit sorts tuples of name, mode and file object, and fails if it has to compare file objects.
    let glob = sorted.iter().position(|o| o.word.literal().is_none());
    if let Some(at) = glob.filter(|_| sorted.len() > 1) {
        let other = if at > 0 { sorted[at - 1] } else { sorted[1] };
        let name = |o: &Opened| if o.word.literal().is_some() { "str" } else { "GlobItem" };
        let (later, earlier) = if at > 0 { (sorted[at], other) } else { (other, sorted[at]) };
        return Err(no_order(name(later), name(earlier)));
    }
    let mode = |o: &Opened| match o.mode {
        FileMode::Append => 'a',
        FileMode::Read => 'r',
        FileMode::Write => 'w',
    };
    sorted.sort_by(|a, b| a.word.text().cmp(b.word.text()).then(mode(a).cmp(&mode(b))));
    if sorted.windows(2).any(|w| w[0].word.text() == w[1].word.text() && w[0].mode == w[1].mode) {
        return Err(no_order("_io.TextIOWrapper", "_io.TextIOWrapper"));
    }
    let written = sorted.into_iter().filter(|o| o.mode != FileMode::Read);
    Ok(written.filter_map(content).collect())
}

fn no_order(left: &str, right: &str) -> Halt {
    let message = format!("'<' not supported between instances of '{left}' and '{right}'");
    Halt::exception("TypeError", message)
}

fn content(opened: &Opened) -> Option<RedirectedOutput> {
    let kind = std::fs::metadata(&opened.path).ok()?.file_type();
    let data = match kind {
        _ if kind.is_file() => std::fs::read(&opened.path).ok()?,
        // Of the devices only /dev/null matters here, and it is empty. A read from a pipe could block.
        _ if kind.is_char_device() => Vec::new(),
        _ => return None,
    };
    Some(RedirectedOutput { name: opened.word.text().to_owned(), path: opened.path.clone().into(), data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn slots(text: &str, cwd: &str) -> Halting<[Slot; 3]> {
        let ast = parse(text, Dialect::V23).unwrap();
        process(&ast.first.stages[0], cwd, Dialect::V23, &mut Vec::new())
    }

    #[test]
    fn redirections_are_applied_left_to_right() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().to_str().unwrap();
        use Slot::{File, Pipe, Stdout, Upstream};
        assert_eq!(slots("a 2>&1", cwd).unwrap(), [Upstream, Pipe, Stdout]);
        assert_eq!(slots("a > f 2>&1", cwd).unwrap(), [Upstream, File(0), File(0)]);
        assert_eq!(slots("a 2>&1 > f", cwd).unwrap(), [Upstream, File(0), Stdout]);
        assert_eq!(slots("a < f &> g", cwd).unwrap(), [File(0), File(1), File(1)]);
        assert_eq!(slots("a 2>&0", cwd).unwrap(), [Upstream, Pipe, Upstream]);
    }

    #[test]
    fn what_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().to_str().unwrap();
        let message = |text| match slots(text, cwd) {
            Err(Halt::Shell { message, .. } | Halt::Exception { message, .. }) => message,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(message("a 1>&2"), "Unsupported redirect: (('>&', 1), '2')");
        assert_eq!(message("a <& f"), "Unsupported redirect: (('<&',), 'f')");
        assert_eq!(message("a < f"), format!("[Errno 2] No such file or directory: '{cwd}/f'"));
        assert_eq!(message("a 2>&12"), "list index out of range");
    }
}
