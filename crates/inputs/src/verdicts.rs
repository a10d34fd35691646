//! Tests that have passed, with the inputs with which they did, stored between runs.
//!
//! A key names everything that the runner knows of a test before it runs. One key can have several records: a tree that goes back to an
//! older state finds the older record. A record may also say that the inputs of this test cannot be told, so that nobody tries again.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};

use hotstart_store::{SEGMENTS_MAX, Segments};
use serde::{Deserialize, Serialize};

use crate::content::{self, Contents, Hash};
use crate::input::{Input, Place, Stamp};

/// Records of one key; the oldest go.
const RECORDS_MAX: usize = 4;
/// Rebuilt programs that are remembered; the oldest go.
const PROGRAMS_MAX: usize = 1000;
/// Bytes of all segments.
const SIZE_MAX: u64 = 512 << 20;

/// What a traced run has taught.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// It passed, and these are its inputs, as numbers in a table.
    Passed(Vec<u32>),
    /// Its inputs cannot be told, for this reason.
    Untold(String),
}

/// What is known of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It passed with the inputs that it would have now.
    Passes,
    /// Nothing, or its inputs have changed. This is the first that has.
    Nothing(Option<String>),
    /// Its inputs cannot be told.
    Untold(String),
}

/// A place that other runners share, which keeps all that is known as one value. What cannot be read or written is as good as not there.
pub trait Shared: Send + Sync + std::fmt::Debug {
    /// Returns the value; `None` if there is none.
    fn get(&self) -> Option<Vec<u8>>;

    /// Stores another value.
    fn put(&self, value: Vec<u8>);
}

/// The format of a segment and of a shared value: a table of inputs, records that refer to it, and what stands for rebuilt programs.
#[derive(Default, Serialize, Deserialize)]
struct Content {
    inputs: Vec<Input>,
    records: Vec<(Hash, Record)>,
    programs: Vec<Hash>,
    /// Suites of which nothing is remembered, and why. Beside segments that is a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    off: Vec<(String, String)>,
}

#[derive(Debug, Default)]
struct Table {
    inputs: Vec<Input>,
    numbers: HashMap<Input, u32>,
    records: HashMap<Hash, Vec<Record>>,
    programs: Vec<Hash>,
    off: BTreeMap<String, String>,
}

impl Table {
    fn number(&mut self, input: Input) -> u32 {
        let next = u32::try_from(self.inputs.len()).expect("fewer than 2^32 inputs");
        *self.numbers.entry(input).or_insert_with_key(|input| {
            self.inputs.push(input.clone());
            next
        })
    }

    fn add(&mut self, key: Hash, record: Record) {
        let records = self.records.entry(key).or_default();
        records.retain(|known| *known != record);
        records.push(record);
        if records.len() > RECORDS_MAX {
            records.remove(0);
        }
    }

    fn take(&mut self, content: Content) {
        let numbers: Vec<u32> = content.inputs.into_iter().map(|input| self.number(input)).collect();
        for (key, record) in content.records {
            let record = match record {
                Record::Passed(inputs) => {
                    let of_table = inputs.iter().map(|&number| numbers.get(number as usize).copied());
                    let Some(inputs) = of_table.collect() else { continue };
                    Record::Passed(inputs)
                }
                untold => untold,
            };
            self.add(key, record);
        }
        for program in content.programs {
            self.add_program(program);
        }
        self.off.extend(content.off);
    }

    fn take_bytes(&mut self, bytes: &[u8]) {
        if let Ok(content) = serde_json::from_slice(bytes) {
            self.take(content);
        }
    }

    fn add_program(&mut self, program: Hash) {
        if !self.programs.contains(&program) {
            self.programs.push(program);
        }
        if self.programs.len() > PROGRAMS_MAX {
            self.programs.remove(0);
        }
    }

    /// Returns the records of these keys with a table of what they need.
    fn content<'k>(&self, keys: impl Iterator<Item = &'k Hash>) -> Content {
        let mut part = Table::default();
        let mut records = Vec::new();
        for key in keys {
            for record in self.records.get(key).into_iter().flatten() {
                let record = match record {
                    Record::Passed(inputs) => {
                        let input = |number: &u32| part.number(self.inputs[*number as usize].clone());
                        Record::Passed(inputs.iter().map(input).collect())
                    }
                    untold => untold.clone(),
                };
                records.push((*key, record));
            }
        }
        Content { inputs: part.inputs, records, ..Content::default() }
    }
}

#[derive(Debug, Default)]
struct Held {
    by_number: HashMap<u32, bool>,
    /// Tests that run now.
    running: usize,
    /// Tests that have run.
    runs: u64,
}

/// A test that runs.
#[derive(Debug)]
pub struct Running<'v>(&'v Verdicts);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut held = self.0.held.lock().expect("no panic while locked");
        held.running -= 1;
        held.runs += 1;
        held.by_number.clear();
    }
}

/// The verdicts that are known. The directory is read at the first question.
#[derive(Debug)]
pub struct Verdicts {
    segments: Segments,
    shared: Option<Box<dyn Shared>>,
    /// Whether a suite was switched off, which is not shared yet.
    has_switched: AtomicBool,
    table: OnceLock<RwLock<Table>>,
    fresh: Mutex<Vec<Hash>>,
    /// Programs that were asked for, whether an earlier run has seen them as they are, and what stands for them.
    programs: Mutex<HashMap<PathBuf, (bool, Hash)>>,
    contents: Contents,
    /// Whether an input holds, by its number. Forgotten when a test runs, because tests may write anywhere.
    held: Mutex<Held>,
    compares_times: bool,
}

impl Verdicts {
    /// The verdicts below a directory of knowledge. `compares_times` if files of another time or inode are other files.
    pub fn new(dir: &Path, compares_times: bool) -> Self {
        Verdicts {
            segments: segments(dir),
            shared: None,
            has_switched: AtomicBool::new(false),
            table: OnceLock::new(),
            fresh: Mutex::default(),
            programs: Mutex::default(),
            contents: Contents::default(),
            held: Mutex::default(),
            compares_times,
        }
    }

    fn table(&self) -> &RwLock<Table> {
        self.table.get_or_init(|| {
            let mut table = Table::default();
            // The newest record of a test is asked first: what was learned here comes last.
            let shared = self.shared.iter().filter_map(|shared| shared.get());
            let own = self.segments.all().into_iter();
            let own = own.filter_map(|segment| self.segments.read(&segment.path));
            shared.chain(own).for_each(|bytes| table.take_bytes(&bytes));
            RwLock::new(table)
        })
    }

    /// The same, kept in a place that is shared with other runners as well.
    pub fn shared_in(self, shared: Box<dyn Shared>) -> Self {
        Verdicts { shared: Some(shared), ..self }
    }

    /// Records that a test runs until the returned value is dropped.
    pub fn test_runs(&self) -> Running<'_> {
        let mut held = self.held.lock().expect("no panic while locked");
        held.running += 1;
        held.by_number.clear();
        Running(self)
    }

    /// Returns what is known of the test with this key. Its `%t` begins with `outputs`, without `.tmp`.
    pub fn ask(&self, key: &Hash, outputs: &Path) -> Known {
        let table = self.table().read().expect("no panic while locked");
        let mut changed = None;
        for record in table.records.get(key).into_iter().flatten().rev() {
            let inputs = match record {
                Record::Passed(inputs) => inputs,
                Record::Untold(why) => return Known::Untold(why.clone()),
            };
            let place = Place { outputs, compares_times: self.compares_times };
            let holds = |number: &&u32| self.holds(**number, &table.inputs[**number as usize], place);
            match inputs.iter().find(|number| !holds(number)) {
                None => return Known::Passes,
                Some(number) => changed = Some(table.inputs[*number as usize].path.clone()),
            }
        }
        Known::Nothing(changed)
    }

    fn holds(&self, number: u32, input: &Input, place: Place<'_>) -> bool {
        // An output of this test may be an input of another one, where times count.
        if place.holds(&input.path) {
            return input.holds(place, &self.contents);
        }
        let before = {
            let held = self.held.lock().expect("no panic while locked");
            if let Some(known) = held.by_number.get(&number) {
                return *known;
            }
            held.runs
        };
        let holds = input.holds(place, &self.contents);
        let mut held = self.held.lock().expect("no panic while locked");
        if held.running == 0 && held.runs == before {
            held.by_number.insert(number, holds);
        }
        holds
    }

    /// Completes inputs by the content of large files. The error names a file that has changed meanwhile.
    pub fn complete(&self, inputs: &mut [Input]) -> Result<(), String> {
        match inputs.iter_mut().find_map(|input| (!input.learn_content(&self.contents)).then_some(input)) {
            Some(input) => Err(format!("'{}' changed while the test ran", input.path)),
            None => Ok(()),
        }
    }

    /// Remembers that a test has passed with these inputs.
    pub fn passed(&self, key: Hash, inputs: Vec<Input>) {
        let mut table = self.table().write().expect("no panic while locked");
        let numbers = inputs.into_iter().map(|input| table.number(input)).collect();
        table.add(key, Record::Passed(numbers));
        self.fresh.lock().expect("no panic while locked").push(key);
    }

    /// Remembers that a test's inputs cannot be told.
    pub fn untold(&self, key: Hash, why: String) {
        self.table().write().expect("no panic while locked").add(key, Record::Untold(why));
        self.fresh.lock().expect("no panic while locked").push(key);
    }

    /// Returns whether this file is a program or library that no earlier run has seen as it is now. This run has, from now on.
    pub fn is_new_program(&self, path: &Path) -> bool {
        let mut programs = self.programs.lock().expect("no panic while locked");
        if let Some((is_new, _)) = programs.get(path) {
            return *is_new;
        }
        let Some(stamp) = stamp_of_program(path) else { return false };
        let text = format!("{path:?} {stamp:?}");
        let hash = content::words(&blake3::hash(text.as_bytes()));
        let is_new = !self.table().read().expect("no panic while locked").programs.contains(&hash);
        programs.insert(path.to_owned(), (is_new, hash));
        is_new
    }

    /// Forgets a test.
    pub fn forget(&self, key: &Hash) {
        self.table().write().expect("no panic while locked").records.remove(key);
    }

    /// Returns the inputs of the test's latest record, or why there are none.
    pub fn inputs(&self, key: &Hash) -> Option<Result<Vec<Input>, String>> {
        let table = self.table().read().expect("no panic while locked");
        table.records.get(key)?.last().map(|record| match record {
            Record::Passed(inputs) => {
                Ok(inputs.iter().map(|&number| table.inputs[number as usize].clone()).collect())
            }
            Record::Untold(why) => Err(why.clone()),
        })
    }

    /// Writes what is new.
    pub fn save(&self) {
        let fresh = std::mem::take(&mut *self.fresh.lock().expect("no panic while locked"));
        let programs = std::mem::take(&mut *self.programs.lock().expect("no panic while locked"));
        let programs: Vec<Hash> =
            programs.into_values().filter(|(is_new, _)| *is_new).map(|(_, hash)| hash).collect();
        if fresh.is_empty() && programs.is_empty() && !self.has_switched.load(Ordering::Relaxed) {
            return;
        }
        let table = self.table().read().expect("no panic while locked");
        self.share(&table, &fresh, &programs);
        if fresh.is_empty() && programs.is_empty() {
            return;
        }
        let present = self.segments.all();
        let (content, replaced) = match present.len() >= SEGMENTS_MAX {
            false => (Content { programs, ..table.content(fresh.iter()) }, Vec::new()),
            // Those that other runners have written meanwhile stay.
            true => {
                let mut whole = Table::default();
                let contents = present.iter().filter_map(|segment| self.segments.read(&segment.path));
                contents.for_each(|one| whole.take_bytes(&one));
                whole.take(Content { programs, ..table.content(fresh.iter()) });
                let programs = std::mem::take(&mut whole.programs);
                (Content { programs, ..whole.content(whole.records.keys()) }, present)
            }
        };
        if let Ok(bytes) = serde_json::to_vec(&content) {
            self.segments.write(&bytes, &replaced);
        }
    }

    /// Adds what is new to what is shared. What another runner stores at this moment is lost, and learned again.
    fn share(&self, table: &Table, fresh: &[Hash], programs: &[Hash]) {
        let Some(shared) = &self.shared else { return };
        let mut whole = Table::default();
        shared.get().into_iter().for_each(|bytes| whole.take_bytes(&bytes));
        whole.take(Content { programs: programs.to_vec(), ..table.content(fresh.iter()) });
        whole.off.extend(table.off.clone());
        let (programs, off) = (std::mem::take(&mut whole.programs), std::mem::take(&mut whole.off));
        let content =
            Content { programs, off: off.into_iter().collect(), ..whole.content(whole.records.keys()) };
        if let Ok(bytes) = serde_json::to_vec(&content) {
            shared.put(bytes);
        }
    }

    /// Returns why nothing is remembered of this suite.
    pub fn is_off(&self, suite: &str) -> Option<String> {
        let shared = || self.table().read().expect("no panic while locked").off.get(suite).cloned();
        fs::read_to_string(self.off_file(suite)).ok().or_else(shared)
    }

    /// Remembers nothing of this suite any more, in later runs as well, until all that is stored is removed.
    pub fn switch_off(&self, suite: &str, why: &str) {
        self.table().write().expect("no panic while locked").off.insert(suite.to_owned(), why.to_owned());
        self.has_switched.store(true, Ordering::Relaxed);
        let file = self.off_file(suite);
        let _ = fs::create_dir_all(&self.segments.dir).and_then(|()| fs::write(file, why));
    }

    fn off_file(&self, suite: &str) -> PathBuf {
        let hash = blake3::hash(suite.as_bytes()).to_hex();
        self.segments.dir.join(format!("{}.off", &hash.as_str()[..32]))
    }
}

/// Returns what the kernel says of an ELF file; `None` for all others.
fn stamp_of_program(path: &Path) -> Option<Stamp> {
    let stamp = Stamp::of(path).ok().filter(Stamp::is_regular)?;
    let mut magic = [0; 4];
    File::open(path).ok()?.read_exact(&mut magic).ok()?;
    (magic == *b"\x7fELF").then_some(stamp)
}

/// The state of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictsReport {
    /// Segments that are in order, and those that are damaged.
    pub segments: [usize; 2],
    /// Tests that are known.
    pub tests: usize,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Suites of which nothing is remembered, because a verdict was wrong.
    pub off: usize,
}

/// Reads all that is stored below a directory of knowledge; removes what is damaged if `repairs`.
pub fn verdicts_report(dir: &Path, repairs: bool) -> VerdictsReport {
    let segments = segments(dir);
    let mut report = VerdictsReport::default();
    let mut table = Table::default();
    for segment in segments.all() {
        let content = segments.read(&segment.path).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        report.segments[usize::from(content.is_none())] += 1;
        report.bytes += segment.size;
        content.into_iter().for_each(|content| table.take(content));
    }
    if repairs {
        segments.remove_damaged();
    }
    let entries = fs::read_dir(&segments.dir).into_iter().flatten().flatten();
    report.off =
        entries.filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "off")).count();
    report.tests = table.records.len();
    report
}

fn segments(dir: &Path) -> Segments {
    Segments {
        dir: dir.join("verdicts"),
        suffix: "verdicts",
        magic: b"hotstart verdicts 5\n",
        size_max: SIZE_MAX,
    }
}
