//! Compares what constructors compute in a zygote with what they compute in a process that is started cold.
//!
//! Every other observation run has the runtime, as a zygote has. The runtime's presence alone may decide what a constructor computes:
//! ld.so leaves other bytes on the stack and in vector registers, and a constructor may read them by mistake. So the tool's memory is
//! compared with that of runs without the runtime.
//!
//! Addresses are random in each of these runs, and so is all that is made of them. A word differs only if it is one thing in all runs with
//! the runtime, and another in all runs without it. While some words differ, both kinds of run are made again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::path::Path;

use object::LittleEndian;
use object::elf::{FileHeader64, PT_LOAD, PT_TLS, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use super::Refusal;
use super::calls::refuse;
use super::compare::read;
use super::maps::{self, Mapping, Pages};
use super::run::{PAGE, RUNTIME, Run, lost};
use crate::Reason;
use crate::sys::registers;

const WORD: usize = size_of::<u64>();
/// How often both kinds of run are made again. An address can have a byte in common in all runs of a kind, and another one in all of the
/// other kind: 0x55 or 0x56 in that of an executable. Each round leaves a quarter of such words.
const ROUNDS: usize = 8;
/// Words that may differ after the first comparison: a heap that lies otherwise has many, and no further run changes that.
const WORDS_MAX: usize = 1 << 16;

const HEAP: &str = "[heap]";
/// The first thread's data (`thread_local`).
const THREAD: &str = "[thread]";

/// A file, or another owner, and the position of a part among those that it has.
type Part = (String, usize);

/// The memory of a stopped process in which constructors keep what they compute: the data of the tool and its libraries, but for libc and
/// the loader; the first thread's; and the heap.
struct Memory<'r, 'a> {
    run: &'r Run<'a>,
    places: Vec<Place>,
    pages: Pages,
    parts: BTreeMap<Part, (u64, u64)>,
}

impl<'r, 'a> Memory<'r, 'a> {
    /// `with` is a run that knows which files are libc and the loader.
    fn of(run: &'r Run<'a>, with: &Run<'_>) -> Result<Self, Refusal> {
        let maps = run.maps()?;
        let pages = Pages::of(run.pid).map_err(lost)?;
        let owners = maps::owners(&maps);
        let is_tools = |owner: &str| {
            (owner.starts_with('/') || owner == HEAP)
                && !with.is_libc(owner)
                && !owner.starts_with(RUNTIME)
                && run.means.allocator.is_none_or(|allocator| Path::new(owner) != allocator)
        };
        // Behind a file's data may lie memory of the loader's.
        let end = |at: usize| Ok(loaded(run, &maps[..at], owners[at])?.map_or(0, |file| file.end));
        let mut parts = BTreeMap::<Part, (u64, u64)>::new();
        for (at, (mapping, owner)) in maps.iter().zip(&owners).enumerate() {
            // What cannot be written now, a constructor may have written before.
            let is_data = mapping.access[1] == b'w' || mapping.path.starts_with('/');
            if !is_data || mapping.access[3] != b'p' || mapping.access[2] == b'x' || !is_tools(owner) {
                continue;
            }
            let to = if mapping.path.is_empty() { end(at)?.min(mapping.to) } else { mapping.to };
            let last = parts.iter_mut().find(|((name, _), part)| name == owner && part.1 == mapping.from);
            match last {
                Some((_, part)) => part.1 = to.max(part.1),
                None => {
                    let of_owner = parts.keys().filter(|(name, _)| name == owner).count();
                    parts.insert((owner.to_string(), of_owner), (mapping.from, to.max(mapping.from)));
                }
            }
        }
        let mut size = 0;
        for owner in owners.iter().filter(|owner| owner.starts_with('/')).collect::<BTreeSet<_>>() {
            size += loaded(run, &maps, owner)?.map_or(0, |file| file.of_thread).next_multiple_of(WORD as u64);
        }
        if let Some(to) = registers::thread_pointer(run.pid).map_err(lost)?.filter(|_| size > 0) {
            let from = to.saturating_sub(size);
            // A library that was opened has its data elsewhere.
            if maps.iter().any(|mapping| mapping.from <= from && to <= mapping.to) {
                parts.insert((THREAD.to_owned(), 0), (from, to));
            }
        }
        let places = places(&maps, &owners, end)?;
        Ok(Memory { run, pages, parts, places })
    }

    /// Reads a page of a part. What is not there, or not any more, is as good as zero.
    fn read(&self, part: &Part, offset: u64, page: &mut [u8]) -> Result<(), Refusal> {
        match self.parts.get(part) {
            Some((from, to)) if from + offset < *to => {
                let size = page.len().min((to - from - offset) as usize);
                page[size..].fill(0);
                read(self.run, from + offset, &mut page[..size])
            }
            _ => {
                page.fill(0);
                Ok(())
            }
        }
    }

    fn word(&self, part: &Part, offset: u64) -> Result<Word, Refusal> {
        let mut bytes = [0; WORD];
        self.read(part, offset, &mut bytes)?;
        Ok(self.place(u64::from_ne_bytes(bytes)))
    }

    /// Returns what a word is here: an address in a file or the heap is the same in all runs if it has the same offset there.
    fn place(&self, word: u64) -> Word {
        let next = self.places.partition_point(|place| place.from <= word);
        match next.checked_sub(1).map(|at| &self.places[at]).filter(|place| word < place.to) {
            None => Word::Number(word),
            Some(Place { owner: None, .. }) => Word::Elsewhere,
            Some(Place { owner: Some((owner, base)), .. }) => {
                Word::At { owner: *owner, offset: word.wrapping_sub(*base) }
            }
        }
    }

    /// Adds the pages of each part that this process has of its own to `pages`, by their offsets.
    fn own_pages(&self, pages: &mut BTreeMap<Part, Vec<bool>>) -> Result<(), Refusal> {
        for (part, &(from, to)) in &self.parts {
            let mut own = self.pages.are_own(from, to).map_err(lost)?;
            if part.0 == THREAD {
                // It does not begin with a page.
                own = vec![true; (to - from).div_ceil(PAGE) as usize];
            }
            let known = pages.entry(part.clone()).or_default();
            known.resize(known.len().max(own.len()), false);
            known.iter_mut().zip(own).for_each(|(known, own)| *known |= own);
        }
        Ok(())
    }
}

/// A file that is mapped, by its headers, which are mapped with it.
struct Loaded {
    /// Where its memory ends.
    end: u64,
    /// The bytes of each thread's data that are its.
    of_thread: u64,
}

/// Reads the headers of a file where it was mapped last.
fn loaded(run: &Run<'_>, maps: &[Mapping], owner: &str) -> Result<Option<Loaded>, Refusal> {
    const ENDIAN: LittleEndian = LittleEndian;
    let Some(first) = maps.iter().rfind(|mapping| mapping.path == owner && mapping.offset == 0) else {
        return Ok(None);
    };
    let mut bytes = vec![0; PAGE as usize];
    read(run, first.from, &mut bytes)?;
    let headers = FileHeader64::parse(&*bytes).and_then(|header| header.program_headers(ENDIAN, &*bytes));
    let Ok(headers) = headers else { return Ok(None) };
    let of = |kind| headers.iter().filter(move |header| header.p_type(ENDIAN) == kind);
    let base = of(PT_LOAD).next().map_or(0, |header| header.p_vaddr(ENDIAN) & !(PAGE - 1));
    let end = of(PT_LOAD).map(|header| header.p_vaddr(ENDIAN).saturating_add(header.p_memsz(ENDIAN))).max();
    let end = first.from.saturating_add(end.unwrap_or(base).saturating_sub(base));
    let rounded = |header: &ProgramHeader64<LittleEndian>| {
        header.p_memsz(ENDIAN).checked_next_multiple_of(header.p_align(ENDIAN).max(1))
    };
    Ok(Some(Loaded {
        end: end.checked_next_multiple_of(PAGE).unwrap_or(0),
        of_thread: of(PT_TLS).filter_map(rounded).sum(),
    }))
}

/// A mapping, and the owner and the beginning of what it is a part of: a file, or the heap.
struct Place {
    from: u64,
    to: u64,
    owner: Option<(u64, u64)>,
}

/// The owner of the runtime's mappings.
const RUNTIMES: u64 = 0;

/// Names an owner by a number.
fn number_of(owner: &str) -> u64 {
    if owner.starts_with(RUNTIME) {
        return RUNTIMES;
    }
    let mut hasher = std::hash::DefaultHasher::new();
    owner.hash(&mut hasher);
    hasher.finish() | 1
}

/// Returns what is mapped, in the order of addresses. `end` returns where the memory of a file ends.
fn places(
    maps: &[Mapping],
    owners: &[&str],
    mut end: impl FnMut(usize) -> Result<u64, Refusal>,
) -> Result<Vec<Place>, Refusal> {
    let mut bases = HashMap::<&str, u64>::new();
    let mut places = Vec::with_capacity(maps.len());
    for (at, (mapping, &owner)) in maps.iter().zip(owners).enumerate() {
        let base = *bases.entry(owner).or_insert(mapping.from);
        let is_fixed = owner.starts_with('/') || owner == HEAP;
        let to = if is_fixed && mapping.path.is_empty() { end(at)? } else { mapping.to };
        let to = to.clamp(mapping.from, mapping.to);
        let owner = is_fixed.then(|| (number_of(owner), base));
        places.push(Place { from: mapping.from, to, owner });
        if to < mapping.to {
            places.push(Place { from: to, to: mapping.to, owner: None });
        }
    }
    Ok(places)
}

/// What a word is in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Number(u64),
    At {
        owner: u64,
        offset: u64,
    },
    /// An address where nothing says what the same is in another process: on the stack, or in memory without a name.
    Elsewhere,
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Word::Number(number) => write!(f, "{number:#x}"),
            Word::At { offset, .. } => write!(f, "the address {offset:#x} in a file or the heap"),
            Word::Elsewhere => write!(f, "an address"),
        }
    }
}

/// What a word is in all runs of one kind.
#[derive(Clone, Copy, Debug)]
struct Found {
    first: Word,
    are_equal: bool,
    /// If all are numbers: the bits of the bytes that they have in common.
    common: u64,
    is_zero: bool,
    is_sometimes_zero: bool,
}

impl Found {
    fn of(word: Word) -> Found {
        let is_zero = word == Word::Number(0);
        let common = if matches!(word, Word::Number(_)) { u64::MAX } else { 0 };
        Found { first: word, are_equal: word != Word::Elsewhere, common, is_zero, is_sometimes_zero: is_zero }
    }

    fn and(self, word: Word) -> Found {
        let common = match (self.first, word) {
            (Word::Number(first), Word::Number(number)) => self.common & equal_bytes(first, number),
            _ => 0,
        };
        Found {
            first: self.first,
            are_equal: self.are_equal && word == self.first,
            common,
            is_zero: self.is_zero && word == Word::Number(0),
            is_sometimes_zero: self.is_sometimes_zero || word == Word::Number(0),
        }
    }

    /// Whether the word is one thing here, in runs with the runtime, and another there: zero or not; by its value or place; or by one of
    /// its bytes. A function of the runtime's takes the place of one of libc's.
    fn differs(self, other: Found) -> bool {
        let common = self.common & other.common;
        let by_byte = match (self.first, other.first) {
            (Word::Number(one), Word::Number(other)) => (one ^ other) & common != 0,
            _ => false,
        };
        let is_interposed = matches!(self.first, Word::At { owner: RUNTIMES, .. });
        let by_zero =
            (self.is_zero && !other.is_sometimes_zero) || (other.is_zero && !self.is_sometimes_zero);
        by_zero
            || by_byte
            || (self.are_equal && other.are_equal && self.first != other.first && !is_interposed)
    }

    /// Whether it is an address in the heap, in the first run.
    fn is_in_heap(self) -> bool {
        matches!(self.first, Word::At { owner, .. } if owner == number_of(HEAP))
    }
}

/// Returns the bits of those bytes in which two words are equal.
fn equal_bytes(a: u64, b: u64) -> u64 {
    let bytes = (a ^ b).to_ne_bytes().map(|byte| if byte == 0 { 0xff } else { 0 });
    u64::from_ne_bytes(bytes)
}

/// The words that differ so far, with what they are in runs with the runtime and in runs without it.
type Different = BTreeMap<(Part, u64), [Found; 2]>;

/// Refuses if the tool's memory is another one in `with`, which has the runtime, than in both runs that have not. Does not look at the
/// words at `counts`, which keep the number of arguments. `again` makes one more run of each kind, in this order.
pub(super) fn compare<'a>(
    with: &Run<'a>,
    without: [&Run<'a>; 2],
    counts: &[u64],
    mut again: impl FnMut() -> Result<[Run<'a>; 2], Refusal>,
) -> Result<(), Refusal> {
    let first = Memory::of(with, with)?;
    let others = [Memory::of(without[0], with)?, Memory::of(without[1], with)?];
    let mut different = differences(&first, &others, counts)?;
    if without.iter().any(|run| run.seen.opens_libraries) {
        // The loader counts libraries there.
        different.retain(|((owner, _), _), found| owner != HEAP && !found[0].is_in_heap());
    }
    for _ in 0..ROUNDS {
        if different.is_empty() {
            return Ok(());
        }
        if different.len() > WORDS_MAX {
            break;
        }
        let runs = again()?;
        let memories = [Memory::of(&runs[0], with)?, Memory::of(&runs[1], with)?];
        let mut left = Different::new();
        for ((part, offset), mut found) in different {
            for (memory, found) in memories.iter().zip(&mut found) {
                *found = found.and(memory.word(&part, offset)?);
            }
            if found[0].differs(found[1]) {
                left.insert((part, offset), found);
            }
        }
        different = left;
    }
    match different.first_key_value() {
        None => Ok(()),
        Some((((owner, _), offset), [with, without])) => refuse(
            Reason::ConstructorsDiffer,
            format!(
                "{} with hotstart's library and {} without, {offset:#x} bytes into the data of '{owner}'",
                with.first, without.first
            ),
        ),
    }
}

/// Returns the words that differ between these three.
fn differences(
    with: &Memory<'_, '_>,
    without: &[Memory<'_, '_>; 2],
    counts: &[u64],
) -> Result<Different, Refusal> {
    let all = [with, &without[0], &without[1]];
    let mut pages = BTreeMap::new();
    for memory in all {
        memory.own_pages(&mut pages)?;
    }
    let mut different = Different::new();
    let mut bytes = [[0; PAGE as usize]; 3];
    for (part, pages) in pages {
        // The bytes of a number of arguments, by their offsets.
        let begin = with.parts.get(&part).map_or(0, |part| part.0);
        let counts: Vec<u64> = counts.iter().filter_map(|at| at.checked_sub(begin)).collect();
        let offsets = (0..).step_by(PAGE as usize).zip(pages).filter_map(|(at, is_own)| is_own.then_some(at));
        let moved = begin.wrapping_sub(without[0].parts.get(&part).map_or(begin, |part| part.0));
        for page in offsets {
            for (memory, bytes) in all.iter().zip(&mut bytes) {
                memory.read(&part, page, bytes)?;
            }
            if bytes[0] == bytes[1] {
                continue;
            }
            for offset in (0..PAGE).step_by(WORD) {
                let at = offset as usize;
                let half = counts.iter().find(|count| **count & !7 == page + offset);
                let [word, one, other] = bytes.each_ref().map(|page| {
                    let word = u64::from_ne_bytes(page[at..at + WORD].try_into().expect("a word"));
                    half.map_or(word, |count| word & !(u64::from(u32::MAX) << (8 * (count & 7))))
                });
                // Most pointers are to the part itself.
                if word == one || word == other || word.wrapping_sub(one) == moved {
                    continue;
                }
                let found = Found::of(with.place(word));
                let others = Found::of(without[0].place(one)).and(without[1].place(other));
                if found.differs(others) {
                    different.insert((part.clone(), page + offset), [found, others]);
                }
            }
        }
    }
    Ok(different)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &[Word]) -> Found {
        words[1..].iter().fold(Found::of(words[0]), |found, &word| found.and(word))
    }

    fn numbers(words: &[u64]) -> Found {
        found(&words.iter().copied().map(Word::Number).collect::<Vec<_>>())
    }

    #[test]
    fn a_word_differs_if_it_is_one_thing_with_the_runtime_and_another_without_it() {
        for (with, without) in [
            (&[1][..], &[0, 0][..]),
            (&[0, 0], &[0x7ffc_1234_5678, 0x7ffd_8765_4321]),
            (&[0x5500_0000_0001], &[0x5500_0000_0002, 0x5600_0000_0002]),
            (&[0x7fff_0000_0004, 0x7ffe_0000_0004], &[4, 4]),
        ] {
            assert!(numbers(with).differs(numbers(without)), "{with:x?} {without:x?}");
            assert!(numbers(without).differs(numbers(with)), "{without:x?} {with:x?}");
        }
    }

    #[test]
    fn a_word_does_not_differ_by_chance() {
        for (with, without) in [
            (&[0, 1][..], &[0, 0][..]),
            (&[0x5500_0000_0001, 0x5600_0000_0001], &[0x5600_0000_0001, 0x5600_0000_0001]),
            (&[0x12, 0x34], &[0x56, 0x78]),
            (&[0x1234], &[0x5678, 0x4321]),
        ] {
            assert!(!numbers(with).differs(numbers(without)), "{with:x?} {without:x?}");
        }
    }

    #[test]
    fn an_address_differs_by_its_place() {
        let at = |owner, offset| Word::At { owner, offset };
        let [here, there] = [at(1, 16), at(1, 24)].map(|word| found(&[word, word]));
        assert!(here.differs(there) && !here.differs(here));
        assert!(here.differs(numbers(&[0])) && numbers(&[0, 0]).differs(here));
        let elsewhere = found(&[Word::Elsewhere, Word::Elsewhere]);
        assert!(!elsewhere.differs(here) && !here.differs(elsewhere) && elsewhere.differs(numbers(&[0])));
        assert!(!found(&[at(RUNTIMES, 8)]).differs(here), "an interposed function");
        assert!(!found(&[at(1, 16), at(1, 24)]).differs(there), "a place that varies");
    }

    #[test]
    fn places_are_told_by_the_owner_and_the_offset_there() {
        let maps =
            ["1000-3000 r--p 0 fe:00 42 /bin/tool", "3000-5000 rw-p 0 00:00 0 ", "9000-a000 rw-p 0 00:00 0 "];
        let maps = maps.map(|line| maps::parse(line).unwrap());
        let places = places(&maps, &maps::owners(&maps), |_| Ok(0x4000)).unwrap();
        let found: Vec<_> = places.iter().map(|place| (place.from, place.owner)).collect();
        let tool = Some((number_of("/bin/tool"), 0x1000));
        assert_eq!(found, [(0x1000, tool), (0x3000, tool), (0x4000, None), (0x9000, None)]);
    }

    #[test]
    fn equal_bytes_are_found() {
        assert_eq!(equal_bytes(0x1122_3344, 0x1100_3344), 0xffff_ffff_ff00_ffff);
    }
}
