//! What a cold process has on its stack around `main`'s frame, where a program may read it by mistake.
//!
//! ld.so leaves more there if it has a library to preload, as it has in a zygote. So the program is run once more, without the runtime,
//! to its `main`, twice. The runtime then makes zero in a zygote what is zero there, and writes the numbers that both runs have
//! (`runtime/fork/residue.c`): an uninitialised counter is the same in each fresh process. These runs are not judged: they do what the
//! others have done. What they have computed is compared as well (`plain`).
//!
//! Above the frame are libc's own, up to the arguments. They have words that libc has not written: what ld.so has left there is given, too,
//! where both runs have the same number or the same distance.

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
const DEPTH: usize = wire::RESIDUE_BITS * BITS * WORD;

/// From this bit on, a number has its place.
const PLACE: u32 = 48;

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

/// Returns what these two cold runs have left on their stacks when `main` begins, as the runtime is told: how many words of bits follow,
/// and of what is above; a bit for each word below that is not zero; what is above; and the numbers below, each with its place above it.
pub(super) fn of_cold(runs: [&Run<'_>; 2], main: &Main) -> Result<Vec<u64>, Refusal> {
    let first = left_by(runs[0], main)?;
    let maps = [runs[0].maps()?, runs[1].maps()?];
    // Where addresses are not random, those of both are the same, and not a zygote's.
    let is_address = |word: u64| maps.iter().flatten().any(|map| (map.from..map.to).contains(&word));
    let numbers = numbers(&first, &left_by(runs[1], main)?, is_address);
    if numbers.len() > wire::RESIDUE_NUMBERS {
        return refuse(Reason::ConstructorCall, format!("{} numbers are left on its stack", numbers.len()));
    }
    let bits = bits(&first);
    let above = above([&above_of(runs[0], main)?, &above_of(runs[1], main)?], is_address);
    Ok([vec![bits.len() as u64 | (above.len() as u64) << 32], bits, above, numbers].concat())
}

/// A stack from the beginning of `main`'s frame up to the arguments, or as much as the runtime can be told of.
struct Above {
    stack: u64,
    words: Vec<u64>,
}

fn above_of(run: &Run<'_>, main: &Main) -> Result<Above, Refusal> {
    let stack = run.block.start.wrapping_sub(main.depth);
    let mut bytes = vec![0; (main.depth as usize).min(wire::RESIDUE_ABOVE * WORD) / WORD * WORD];
    match run.memory.read_exact_at(&mut bytes, stack) {
        Ok(()) => Ok(Above { stack, words: words(&bytes).into_iter().rev().collect() }),
        Err(error) => refuse(Reason::NotObserved, error.to_string()),
    }
}

/// Returns what each word is in both: they have different numbers of arguments.
fn above(both: [&Above; 2], is_address: impl Fn(u64) -> bool) -> Vec<u64> {
    let is_number = |word: u64| word < 1 << PLACE && !is_address(word);
    let is_place = |distance: u64| distance < (wire::RESIDUE_ABOVE * WORD) as u64;
    let kind = |(&one, &other): (&u64, &u64)| {
        let distances = [one.wrapping_sub(both[0].stack), other.wrapping_sub(both[1].stack)];
        match (one, other) {
            _ if one == other && is_number(one) => wire::ABOVE_NUMBER << PLACE | one,
            _ if distances[0] == distances[1] && is_place(distances[0]) => {
                wire::ABOVE_PLACE << PLACE | distances[0]
            }
            (0, _) | (_, 0) => 0,
            _ => wire::ABOVE_SOMETHING << PLACE,
        }
    };
    both[0].words.iter().zip(&both[1].words).map(kind).collect()
}

/// Starts the program cold, with so many arguments, and runs it to its `main`.
pub(super) fn run<'a>(
    spec: &Spec<'_>,
    arguments: usize,
    means: Means<'a>,
    main: &Main,
    live: &Live,
) -> Result<Run<'a>, Refusal> {
    let hiding = means.allocator.and_then(|_| image::open(image::PRELOAD));
    if hiding.is_none() && means.allocator.is_some() {
        return refuse(Reason::NotObserved, "no file can hide the allocator");
    }
    // The process opens it when it loads its libraries.
    let pid = spawn(spec, arguments, means, hiding.as_ref())
        .or_else(|error| refuse(Reason::NotObserved, error.to_string()))?;
    let mut run = Run::executed(pid, means, None, live)?;
    let entry = run.look_at_start()?.entry;
    run.regain_time()?;
    // The libraries are mapped there, one of which may have `main`.
    run.break_at(entry)?;
    let maps = run.maps()?;
    let Some(address) = main.address(&maps) else {
        return refuse(Reason::NotObserved, "its main is elsewhere in a cold process");
    };
    run.stack = run.break_at(address)?;
    run.seen.opens_libraries = code(&run.maps()?) > code(&maps);
    if run.block.start.wrapping_sub(run.stack) != main.depth {
        return refuse(Reason::NotObserved, "its stack is another one in a cold process");
    }
    Ok(run)
}

/// Returns how many files have code there.
fn code(maps: &[Mapping]) -> usize {
    maps.iter().filter(|mapping| mapping.access[2] == b'x' && mapping.path.starts_with('/')).count()
}

/// Returns the stack below `main`, as much as the runtime can be told of.
fn left_by(run: &Run<'_>, main: &Main) -> Result<Vec<u8>, Refusal> {
    let mut bytes = below(run, run.block.start.wrapping_sub(main.depth))?;
    let used = bytes.split_off(bytes.len() - DEPTH);
    let deeper = bytes;
    if deeper.iter().any(|&byte| byte != 0) {
        return refuse(Reason::ConstructorCall, format!("more than {DEPTH} bytes of stack are used"));
    }
    Ok(used)
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

/// Returns the words, the last one first.
fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.rchunks_exact(WORD).map(|word| u64::from_ne_bytes(word.try_into().expect("a word"))).collect()
}

/// Returns what both have at the same place, each below that, but for addresses.
fn numbers(one: &[u8], other: &[u8], is_address: impl Fn(u64) -> bool) -> Vec<u64> {
    let both = words(one).into_iter().zip(words(other)).enumerate();
    let is_number = |word: u64| (1..1 << PLACE).contains(&word) && !is_address(word);
    let numbers = both.filter(|(_, (one, other))| one == other && is_number(*one));
    numbers.map(|(place, (number, _))| (place as u64) << PLACE | number).collect()
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

/// Starts the program, with this thread as its tracer, and so many arguments beside its name. `hiding` is the library that hides its
/// allocator.
fn spawn(
    spec: &Spec<'_>,
    arguments: usize,
    means: Means<'_>,
    hiding: Option<&OwnedFd>,
) -> std::io::Result<i32> {
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
    let mut argv = vec![zygote::name(spec)?];
    argv.resize(1 + arguments, CString::default());
    let request = spawn::Request {
        program: &text(spec.program.as_os_str())?,
        argv: &argv,
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
        assert_eq!(stack(&all), [u64::MAX; wire::RESIDUE_BITS]);
    }

    #[test]
    fn numbers_that_both_runs_have_are_told_with_their_places() {
        let stack =
            |words: &[u64]| -> Vec<u8> { words.iter().rev().flat_map(|word| word.to_ne_bytes()).collect() };
        let found = numbers(
            &stack(&[0, 5, 0x7fff_0000_0000, 75392, 1 << 45, 1 << 46]),
            &stack(&[0, 6, 0x7ffe_0000_0000, 75392, 1 << 45, 1 << 46]),
            |word| word == 1 << 46,
        );
        assert_eq!(found, [3 << PLACE | 75392, 4 << PLACE | 1 << 45]);
    }

    #[test]
    fn words_above_are_numbers_or_places_if_both_runs_say_so() {
        let [one, other] = [0x7ffe_0000_1000, 0x7ffd_0000_2000];
        let first = Above { stack: one, words: vec![0, 7, one + 16, 1, u64::MAX, 0, 9 << 50, one + 4096] };
        let words = vec![0, 7, other + 16, 3, u64::MAX - 1, 5, 9 << 50, other + 4096];
        let second = Above { stack: other, words };
        let [number, place, something] =
            [wire::ABOVE_NUMBER, wire::ABOVE_PLACE, wire::ABOVE_SOMETHING].map(|kind| kind << PLACE);
        let expected = [number, number | 7, place | 16, something, something, 0, something, something];
        assert_eq!(above([&first, &second], |_| false), expected);
        // The libraries of both are where they always are.
        assert_eq!(above([&first, &second], |word| word == 7)[1], something);
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
