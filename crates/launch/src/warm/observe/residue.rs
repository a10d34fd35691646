//! What a cold process has on its stack below `main`'s frame, where a program may read it by mistake.
//!
//! ld.so leaves more there if it has a library to preload, as it has in a zygote. So the program is run once more, without the runtime,
//! to its `main`. The runtime then makes zero in a zygote what is zero there (`runtime/fork/residue.c`). That run is not judged: it does
//! what the others have done.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::calls::refuse;
use super::maps::Mapping;
use super::run::Run;
use super::{Live, Refusal, stdio};
use crate::allocator::Preload;
use crate::sys::spawn;
use crate::warm::zygote::{self, Inherited, Means};
use crate::warm::{image, wire};
use crate::{ProcessGroup, Reason, Spec};

const WORD: usize = 8;
const BITS: usize = u64::BITS as usize;
/// Bytes of which is told what is zero: a tool that has left anything below is cold. A reset saves as many (`SLACK` in
/// `runtime/reset/memory.c`).
const DEPTH: usize = wire::RESIDUE_MAX * BITS * WORD;

/// Where a program has its `main`.
#[derive(Debug)]
pub(super) struct Main {
    path: String,
    /// In its file.
    offset: u64,
    /// How far its frame begins below the block of arguments.
    depth: u64,
}

impl Main {
    /// Returns that of a run that has stopped there.
    pub(super) fn of(run: &Run<'_>) -> Result<Main, Refusal> {
        let maps = run.maps()?;
        let code = maps.iter().find(|mapping| (mapping.from..mapping.to).contains(&run.seen.main));
        match code.filter(|code| code.path.starts_with('/')) {
            Some(code) => Ok(Main {
                path: code.path.clone(),
                offset: run.seen.main - code.from + code.offset,
                depth: run.block.start.wrapping_sub(run.stack),
            }),
            None => refuse(Reason::NotObserved, "no file has its main"),
        }
    }

    /// Returns the address where these mappings have it.
    fn address(&self, maps: &[Mapping]) -> Option<u64> {
        let has = |mapping: &&Mapping| {
            let size = mapping.to - mapping.from;
            mapping.path == self.path
                && mapping.access[2] == b'x'
                && (mapping.offset..mapping.offset + size).contains(&self.offset)
        };
        maps.iter().find(has).map(|mapping| mapping.from + self.offset - mapping.offset)
    }
}

/// Runs the program as it is started cold. Returns where it has left something on its stack when `main` begins.
pub(super) fn of_cold(
    spec: &Spec<'_>,
    means: Means<'_>,
    main: &Main,
    live: &Live,
) -> Result<Vec<u64>, Refusal> {
    let hiding = means.allocator.and_then(|_| image::open(image::PRELOAD));
    if hiding.is_none() && means.allocator.is_some() {
        return refuse(Reason::NotObserved, "no file can hide the allocator");
    }
    // The process opens it when it loads its libraries.
    let pid = spawn(spec, means, hiding.as_ref())
        .or_else(|error| refuse(Reason::NotObserved, error.to_string()))?;
    let mut run = Run::executed(pid, means, None, live)?;
    let entry = run.look_at_start()?.entry;
    run.regain_time()?;
    // The libraries are mapped there, one of which may have `main`.
    run.break_at(entry)?;
    let Some(address) = main.address(&run.maps()?) else {
        return refuse(Reason::NotObserved, "its main is elsewhere in a cold process");
    };
    let stack = run.break_at(address)?;
    if run.block.start.wrapping_sub(stack) != main.depth {
        return refuse(Reason::NotObserved, "its stack is another one in a cold process");
    }
    let bytes = below(&run, stack)?;
    let (deeper, bytes) = bytes.split_at(bytes.len() - DEPTH);
    if deeper.iter().any(|&byte| byte != 0) {
        return refuse(Reason::ConstructorCall, format!("more than {DEPTH} bytes of stack are used"));
    }
    Ok(bits(bytes))
}

/// Reads the stack down to the lowest page that the kernel has mapped, and at least [`DEPTH`] bytes: what is not mapped is zero. A read
/// below it would enlarge the stack, page by page down to its limit.
fn below(run: &Run<'_>, stack: u64) -> Result<Vec<u8>, Refusal> {
    let maps = run.maps()?;
    let own = maps.iter().find(|mapping| (mapping.from..mapping.to).contains(&(stack - 1)));
    let Some(own) = own else { return refuse(Reason::NotObserved, "its stack is not mapped") };
    let size = (stack - own.from) as usize;
    let mut bytes = vec![0; size.max(DEPTH)];
    let from = bytes.len() - size;
    match run.memory.read_exact_at(&mut bytes[from..], own.from) {
        Ok(()) => Ok(bytes),
        Err(error) => refuse(Reason::NotObserved, error.to_string()),
    }
}

/// Returns a bit for each word that is not zero, from the last word on. Parts at the end that have none are left out, but for the
/// first part: to the runtime, no part means that nothing is known.
fn bits(bytes: &[u8]) -> Vec<u64> {
    let words: Vec<bool> = bytes.rchunks_exact(WORD).map(|word| word.iter().any(|&byte| byte != 0)).collect();
    let part = |part: &[bool]| part.iter().rev().fold(0, |bits, &is_left| bits << 1 | u64::from(is_left));
    let mut parts: Vec<u64> = words.chunks(BITS).map(part).collect();
    let used = parts.iter().rposition(|&part| part != 0).map_or(1, |last| last + 1);
    parts.truncate(used);
    parts
}

/// Starts the program, with this thread as its tracer. `hiding` is the library that hides its allocator. No argument but the name is given:
/// neither their number nor the environment changes what is left.
fn spawn(spec: &Spec<'_>, means: Means<'_>, hiding: Option<&OwnedFd>) -> std::io::Result<i32> {
    let classes = stdio::classes(spec);
    let placeholder = |fd: usize| stdio::placeholder(classes[fd]);
    let stands = [placeholder(0)?, placeholder(1)?, placeholder(2)?];
    let env = match means.allocator.zip(hiding) {
        Some((library, hiding)) => {
            let path = format!("/proc/{}/fd/{}", std::process::id(), hiding.as_raw_fd());
            Preload::new(library, &PathBuf::from(path)).environment(&spec.env)
        }
        None => spec.env.clone(),
    };
    let text = |text: &OsStr| CString::new(text.as_bytes());
    let inherited = Inherited::of(spec);
    let request = spawn::Request {
        program: &text(spec.program.as_os_str())?,
        argv: &[zygote::name(spec)?],
        env: env.blob(),
        env_count: env.count(),
        cwd: c"/",
        stdio: stands.each_ref().map(|stand| stand.fd.as_fd()),
        extra_fds: &[],
        process_group: ProcessGroup::New,
        limits: &inherited.limits,
        ignored: inherited.ignored,
        traced: true,
    };
    spawn::vfork_exec(&request, None).map_err(std::io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_that_is_left_has_a_bit() {
        let stack = |left: &[usize]| {
            let mut bytes = vec![0; DEPTH];
            left.iter().for_each(|&word| bytes[DEPTH - (word + 1) * WORD + word % WORD] = 1);
            bits(&bytes)
        };
        assert_eq!(stack(&[]), [0]);
        assert_eq!(stack(&[0]), [1]);
        assert_eq!(stack(&[1, 63, 64]), [1 << 63 | 2, 1]);
        assert_eq!(stack(&[191]), [0, 0, 1 << 63]);
        let all: Vec<_> = (0..DEPTH / WORD).collect();
        assert_eq!(stack(&all), [u64::MAX; wire::RESIDUE_MAX]);
    }

    #[test]
    fn main_is_found_where_its_file_lies() {
        let maps =
            ["1000-2000 r--p 00000000 fe:00 42  /bin/tool", "2000-4000 r-xp 00001000 fe:00 42  /bin/tool"];
        let maps = maps.map(|line| super::super::maps::parse(line).unwrap());
        let main = |path: &str, offset| Main { path: path.to_owned(), offset, depth: 0 };
        assert_eq!(main("/bin/tool", 0x1010).address(&maps), Some(0x2010));
        for (path, offset) in [("/bin/tool", 0x10), ("/bin/tool", 0x3000), ("/bin/other", 0x1010)] {
            assert_eq!(main(path, offset).address(&maps), None, "{path}");
        }
    }
}
