//! A received request: the command to start, and its descriptors.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_launch::{EnvBlock, Limit, ProcessGroup, Spec};

use crate::repeat;
use crate::wire::{RUN_SIZE, Run};

/// Persistent processes can be given descriptors with numbers below this; others need a fork.
const HIGH: i32 = 60;

/// A command to run.
#[derive(Debug)]
pub(crate) struct Request {
    pub run: Run,
    pub program: PathBuf,
    pub directory: Arc<Path>,
    pub argv: Vec<OsString>,
    env: EnvBlock,
    /// The descriptors with the numbers they shall have, in ascending order.
    fds: Vec<(i32, OwnedFd)>,
}

impl Request {
    /// Decodes a message; `None` if it does not follow the protocol.
    pub(crate) fn decode(message: &[u8], fds: Vec<OwnedFd>) -> Option<Request> {
        let run = Run::decode(message)?;
        let (numbers, strings) = message[RUN_SIZE..].split_at_checked(run.fd_count.checked_mul(4)?)?;
        if fds.len() != run.fd_count {
            return None;
        }
        let numbers =
            numbers.chunks_exact(4).map(|n| i32::from_ne_bytes(n.try_into().expect("chunks of four")));
        let mut fds: Vec<(i32, OwnedFd)> = numbers.zip(fds).collect();
        fds.sort_by_key(|(number, _)| *number);
        let standard = (0..3).all(|n| fds.get(n).is_some_and(|(number, _)| *number == n as i32));
        if !standard || fds.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        let mut ends = strings.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at);
        let mut from = 0;
        let mut next = || {
            let to = ends.next()?;
            let text = OsStr::from_bytes(&strings[from..to]);
            from = to + 1;
            Some(text)
        };
        let directory = Path::new(next()?).into();
        let program = PathBuf::from(next()?);
        let argv = (0..run.argc).map(|_| Some(next()?.to_owned())).collect::<Option<Vec<_>>>()?;
        let env = EnvBlock::from_strings(&strings[from..]).filter(|env| env.count() == run.envc)?;
        (!argv.is_empty()).then_some(Request { run, program, directory, argv, env, fds })
    }

    /// Drops descriptors that no request to a persistent process can carry, unless an argument or a variable mentions their
    /// numbers. Terminals and editors leave such descriptors open for every process below them. Call it only for tools that
    /// use no other descriptors than those they are given by number.
    pub(crate) fn leave_out_unmentioned(&mut self) {
        let (argv, env) = (&self.argv, &self.env);
        // A response file may name any.
        if argv.iter().skip(1).any(|arg| arg.as_bytes().contains(&b'@')) {
            return;
        }
        let is_mentioned = |number: i32| {
            let number = number.to_string();
            argv.iter().any(|arg| mentions(arg.as_bytes(), number.as_bytes()))
                || env.strings().any(|var| tells_descriptors(var) && mentions(var, number.as_bytes()))
        };
        self.fds.retain(|(number, _)| *number < HIGH || is_mentioned(*number));
    }

    /// Returns whether the command can be run again after it was killed.
    pub(crate) fn is_repeatable(&self) -> bool {
        repeat::is_repeatable(&self.program, &self.argv, self.env.strings(), &self.directory, &self.fds[0].1)
    }

    /// Returns whether the program is a script with a relative path. Its interpreter is told the path as it is.
    pub(crate) fn is_script_by_relative_path(&self) -> bool {
        let mut begin = [0; 2];
        let mut read = || File::open(self.directory.join(&self.program))?.read_exact(&mut begin);
        self.program.is_relative() && read().is_ok() && begin == *b"#!"
    }

    /// Converts the request to the launcher's form.
    pub(crate) fn spec(
        &self,
        umask: Option<u32>,
        limits: Vec<Limit>,
        ignored: Option<u64>,
        process_group: ProcessGroup,
    ) -> Spec<'_> {
        let fd = |index: usize| self.fds[index].1.as_fd();
        Spec {
            program: self.program.clone(),
            argv: self.argv.clone(),
            env: self.env.clone(),
            cwd: Arc::clone(&self.directory),
            stdio: [fd(0), fd(1), fd(2)],
            extra_fds: self.fds[3..].iter().map(|(number, fd)| (*number, fd.as_fd())).collect(),
            umask,
            limits,
            ignored,
            keep_cold: false,
            process_group,
        }
    }
}

/// Returns whether a variable may name descriptors: a jobserver's, or a path to one.
fn tells_descriptors(variable: &[u8]) -> bool {
    let name = variable.split(|&byte| byte == b'=').next().unwrap_or_default();
    let has = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|window| window == part);
    has(name, b"FLAGS") || has(name, b"FD") || has(variable, b"/fd/")
}

/// Returns whether the text contains the number, not as a part of a longer one.
fn mentions(text: &[u8], number: &[u8]) -> bool {
    text.split(|byte| !byte.is_ascii_digit()).any(|part| part == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(argc: u32, envc: u32, numbers: &[i32], strings: &[u8]) -> Vec<u8> {
        let mut message = vec![0; RUN_SIZE];
        message[16..20].copy_from_slice(&argc.to_ne_bytes());
        message[20..24].copy_from_slice(&envc.to_ne_bytes());
        message[24..28].copy_from_slice(&(numbers.len() as u32).to_ne_bytes());
        numbers.iter().for_each(|n| message.extend_from_slice(&n.to_ne_bytes()));
        message.extend_from_slice(strings);
        message
    }

    fn fds(count: usize) -> Vec<OwnedFd> {
        (0..count).map(|_| std::fs::File::open("/dev/null").unwrap().into()).collect()
    }

    #[test]
    fn a_request_is_taken_apart() {
        let strings = b"/dir\0/bin/cc\0cc\0\0A=1\0odd\0";
        let request = Request::decode(&message(2, 2, &[1, 0, 2, 7], strings), fds(4)).unwrap();
        let spec = request.spec(Some(0o22), Vec::new(), None, ProcessGroup::New);
        assert_eq!(spec.program, Path::new("/bin/cc"));
        assert_eq!(&*spec.cwd, Path::new("/dir"));
        assert_eq!(spec.argv, ["cc", ""]);
        assert_eq!(spec.env.strings().collect::<Vec<_>>(), [&b"A=1"[..], b"odd"]);
        assert_eq!(spec.extra_fds.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn high_descriptors_are_left_out_if_nothing_tells_of_them() {
        let kept = |strings: &[u8]| {
            let message = message(2, 1, &[0, 1, 2, 4, 63, 255], strings);
            let mut request = Request::decode(&message, fds(6)).unwrap();
            request.leave_out_unmentioned();
            request
                .spec(None, Vec::new(), None, ProcessGroup::New)
                .extra_fds
                .iter()
                .map(|(to, _)| *to)
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(b"/d\0/bin/cc\0cc\0-c\0LS_COLORS=63;255\0"), [4]);
        assert_eq!(kept(b"/d\0/bin/cc\0cc\0/dev/fd/63\0A=\0"), [4, 63]);
        assert_eq!(kept(b"/d\0/bin/cc\0cc\0@args\0A=\0"), [4, 63, 255]);
        assert_eq!(kept(b"/d\0/bin/cc\0cc\0-O263\0MAKEFLAGS= --jobserver-auth=63,255\0"), [4, 63, 255]);
    }

    #[test]
    fn malformed_requests_are_refused() {
        let good = b"/dir\0/bin/cc\0cc\0A=1\0";
        let refused = |message: &[u8], count| Request::decode(message, fds(count)).is_none();
        assert!(!refused(&message(1, 1, &[0, 1, 2], good), 3));
        assert!(refused(&message(1, 1, &[0, 1, 2], good), 2), "a descriptor is missing");
        assert!(refused(&message(1, 1, &[0, 1], good), 2), "no standard error");
        assert!(refused(&message(1, 1, &[0, 1, 2, 2], good), 4), "a number twice");
        assert!(refused(&message(0, 2, &[0, 1, 2], good), 3), "no name");
        assert!(refused(&message(1, 2, &[0, 1, 2], good), 3), "too few variables");
        assert!(refused(&message(9, 0, &[0, 1, 2], good), 3), "too few arguments");
        assert!(refused(&message(1, 1, &[0, 1, 2], &good[..good.len() - 1]), 3), "no end");
        assert!(refused(&message(1, 1, &[], b""), 3), "nothing");
    }
}
