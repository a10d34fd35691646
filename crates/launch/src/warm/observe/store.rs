//! Stores observations in a file for each program, so that the next runner need not repeat them.
//!
//! A file that is unreadable or malformed is ignored. Its content counts only while every file that it names is unchanged
//! (`Files`), on the same machine and kernel, for the same rules, build of the runtime and user.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::counts::Place;
use super::numbers::Numbers;
use super::{Observed, Refusal, Subject};
use crate::Reason;
use crate::warm::files::Files;
use crate::warm::identity::{Aspect, Found, Identity};
use crate::warm::image;
use crate::warm::key::Looks;

const FORMAT: &[u8] = b"hotstart constructors 9";
/// A hash of the sources that hold the rules: a hotstart with stricter rules must not trust the results of older ones.
const RULES: u64 = {
    let sources: [&[u8]; 29] = [
        include_bytes!("block.rs"),
        include_bytes!("calls.rs"),
        include_bytes!("compare.rs"),
        include_bytes!("counts.rs"),
        include_bytes!("kernels.rs"),
        include_bytes!("maps.rs"),
        include_bytes!("mod.rs"),
        include_bytes!("numbers.rs"),
        include_bytes!("old.rs"),
        include_bytes!("parts.rs"),
        include_bytes!("plain.rs"),
        include_bytes!("python.rs"),
        include_bytes!("residue.rs"),
        include_bytes!("run.rs"),
        include_bytes!("secret.rs"),
        include_bytes!("stdio.rs"),
        include_bytes!("twice.rs"),
        include_bytes!("unknown.rs"),
        include_bytes!("variables.rs"),
        include_bytes!("vary.rs"),
        include_bytes!("../../sys/vdso.rs"),
        include_bytes!("../made_up.rs"),
        include_bytes!("../file_systems.rs"),
        include_bytes!("../eligible.rs"),
        include_bytes!("../exe.rs"),
        include_bytes!("../files.rs"),
        include_bytes!("../identity.rs"),
        include_bytes!("../key.rs"),
        include_bytes!("../search.rs"),
    ];
    // FNV-1a: a hash that can be written as a constant.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut of = 0;
    while of < sources.len() {
        let mut at = 0;
        while at < sources[of].len() {
            hash = (hash ^ sources[of][at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        of += 1;
    }
    hash
};
/// Longest text of a file.
const TEXT_MAX: u64 = 1 << 20;
/// Largest file that is read.
const FILE_MAX: u64 = 16 << 20;
/// In the place of an error number: there was none.
const THERE: u64 = u64::MAX;
/// Most keys of one program.
const KEPT_MAX: usize = 64;

/// The reasons that are stored.
const REASONS: [Reason; 21] = [
    Reason::RelativePath,
    Reason::ForeignLoader,
    Reason::Threads,
    Reason::Descriptors,
    Reason::SharedMemory,
    Reason::Timers,
    Reason::Signals,
    Reason::Stdio,
    Reason::Children,
    Reason::KeepsArguments,
    Reason::ReadsEnvironment,
    Reason::ReadsDirectory,
    Reason::ReadsIdentity,
    Reason::ReadsClock,
    Reason::ReadsSystem,
    Reason::WritesFiles,
    Reason::ConstructorCall,
    Reason::ConstructorsDiffer,
    Reason::LooksAtStream,
    Reason::NotPython,
    Reason::LibcFunctions,
];
const ASPECTS: [Aspect; 14] = [
    Aspect::File,
    Aspect::Link,
    Aspect::Place,
    Aspect::NoLink,
    Aspect::Content,
    Aspect::Stat,
    Aspect::LinkStat,
    Aspect::Exe,
    // X_OK, W_OK, R_OK: 1, 2, 4.
    Aspect::Access(1),
    Aspect::Access(2),
    Aspect::Access(3),
    Aspect::Access(5),
    Aspect::Access(6),
    Aspect::Access(7),
];

/// Returns whether a result with this reason is stored.
pub(super) fn is_kept(reason: Option<Reason>) -> bool {
    reason.is_none_or(|reason| REASONS.contains(&reason))
}

/// Loads the stored observations of a program, given with its allocator.
pub(super) fn load(directory: &Path, of: &Subject) -> Vec<Arc<Observed>> {
    let path = file(directory, of);
    let read = || {
        let meta = std::fs::symlink_metadata(&path).ok()?;
        let is_own = meta.uid() == rustix::process::geteuid().as_raw();
        if !meta.is_file() || !is_own || meta.len() > FILE_MAX {
            return None;
        }
        let bytes = std::fs::read(&path).ok()?;
        let (bytes, sum) = bytes.split_last_chunk::<8>()?;
        if u64::from_le_bytes(*sum) != hash(bytes) {
            return None;
        }
        let mut reader = Reader(bytes);
        if reader.text()? != context(of) {
            return None;
        }
        (0..reader.number()?).map(|_| reader.observed().map(Arc::new)).collect()
    };
    read().unwrap_or_default()
}

/// Stores the observations of a program. If that fails, the next runner observes it again.
pub(super) fn save(directory: &Path, of: &Subject, known: &[Arc<Observed>]) {
    let known = &known[known.len().saturating_sub(KEPT_MAX)..];
    let mut bytes = Vec::new();
    put_text(&mut bytes, &context(of));
    put(&mut bytes, known.len() as u64);
    known.iter().for_each(|observed| put_observed(&mut bytes, observed));
    let sum = hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    let path = file(directory, of);
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        make_directory(directory)?;
        let mut file =
            std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&bytes)?;
        std::fs::rename(&new, &path)
    };
    if write().is_err() {
        // The file may not exist.
        let _ = std::fs::remove_file(&new);
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Makes the directory, if there is none.
pub(crate) fn make_directory(directory: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

pub(super) fn file(directory: &Path, of: &Subject) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (&of.program, allocator(of)).hash(&mut hasher);
    directory.join(format!("{:016x}", hasher.finish()))
}

/// Returns the file of the allocator. A chosen allocator is a descriptor of the runner's; only its file matters.
fn allocator(of: &Subject) -> Option<PathBuf> {
    of.allocator.as_ref().map(|path| std::fs::read_link(path).unwrap_or_else(|_| path.clone()))
}

/// Returns the context of the observations.
fn context(of: &Subject) -> Vec<u8> {
    let system = rustix::system::uname();
    let user = rustix::process::geteuid().as_raw();
    let mut bytes = Vec::new();
    for part in [
        FORMAT,
        of.program.as_os_str().as_bytes(),
        allocator(of).unwrap_or_default().as_os_str().as_bytes(),
        system.nodename().to_bytes(),
        system.release().to_bytes(),
        &image::build().to_le_bytes(),
        &RULES.to_le_bytes(),
        &user.to_le_bytes(),
    ] {
        put_text(&mut bytes, part);
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}

fn put_observed(bytes: &mut Vec<u8>, observed: &Observed) {
    put_text(bytes, &observed.key);
    put(bytes, observed.names.len() as u64);
    observed.names.iter().for_each(|name| put_text(bytes, name));
    observed.looks.stdio.iter().for_each(|looked| put(bytes, u64::from(*looked)));
    put(bytes, u64::from(observed.looks.processors));
    put(bytes, u64::from(observed.looks.python));
    put(bytes, u64::from(observed.looks.system));
    put_text(bytes, &observed.exe);
    put(bytes, observed.place);
    put_text(bytes, observed.line.as_bytes());
    put(bytes, observed.looks.limits.len() as u64);
    observed.looks.limits.iter().for_each(|limit| put(bytes, u64::from(*limit)));
    put(bytes, observed.relative.len() as u64);
    observed.relative.iter().for_each(|path| put_text(bytes, path.as_os_str().as_bytes()));
    put(bytes, observed.libraries.len() as u64);
    observed.libraries.iter().for_each(|name| put_text(bytes, name.as_bytes()));
    for places in [&observed.counts, &observed.ends, &observed.uppers] {
        put(bytes, places.len() as u64);
        for place in places {
            put_text(bytes, place.path.as_bytes());
            put_text(bytes, &place.access);
            put(bytes, place.offset);
            put(bytes, place.distance);
        }
    }
    put(bytes, observed.residue.len() as u64);
    observed.residue.iter().for_each(|words| put(bytes, *words));
    let numbers = observed.numbers.observed();
    put(bytes, numbers.len() as u64);
    numbers.iter().for_each(|number| put(bytes, *number as u64));
    put(bytes, observed.files.watched().len() as u64);
    for watched in observed.files.watched() {
        put_text(bytes, watched.path.to_bytes());
        put(bytes, ASPECTS.iter().position(|aspect| *aspect == watched.aspect).unwrap_or(0) as u64);
        put(bytes, watched.found.map_or_else(|error| error as u64, |_| THERE));
        let Identity { device, inode, size, modified, changed, is_directory, rest } =
            watched.found.unwrap_or_default();
        let times = [modified.0, modified.1, changed.0, changed.1].map(|time| time as u64);
        [device, inode, size as u64].into_iter().chain(times).for_each(|number| put(bytes, number));
        put(bytes, u64::from(is_directory));
        put(bytes, rest);
    }
    put(bytes, u64::from(observed.refusal.is_some()));
    if let Some(Refusal { reason, detail }) = &observed.refusal {
        put_text(bytes, format!("{reason:?}").as_bytes());
        put_text(bytes, detail.as_bytes());
    }
}

/// The unread rest. Each read returns `None` if the data is not as it was written.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn flag(&mut self) -> Option<bool> {
        self.number().map(|number| number != 0)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.number().filter(|length| *length <= TEXT_MAX)?;
        let (text, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(text.to_vec())
    }

    fn path(&mut self) -> Option<PathBuf> {
        self.text().map(|text| OsString::from_vec(text).into())
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| read(self)).collect()
    }

    fn observed(&mut self) -> Option<Observed> {
        let key = self.text()?;
        let names = self.list(Self::text)?;
        let stdio = [self.flag()?, self.flag()?, self.flag()?];
        let processors = self.flag()?;
        let (python, system, exe) = (self.flag()?, self.flag()?, self.text()?);
        let (place, line) = (self.number()?, String::from_utf8(self.text()?).ok()?);
        let limits = self.list(|reader| u32::try_from(reader.number()?).ok())?;
        let looks = Looks { stdio, processors, limits: BTreeSet::from_iter(limits), system, python };
        let relative = self.list(Self::path)?;
        let libraries = self.list(Self::text)?.into_iter().map(OsString::from_vec).collect();
        let (counts, ends, uppers) =
            (self.list(Self::place)?, self.list(Self::place)?, self.list(Self::place)?);
        let residue = self.list(Self::number)?;
        let numbers = Numbers::of(self.list(|reader| usize::try_from(reader.number()?).ok())?);
        let files = Files::of_kept(self.list(Self::watched)?);
        let refusal = if self.flag()? { Some(self.refusal()?) } else { None };
        Some(Observed {
            names,
            looks,
            files,
            relative,
            exe,
            libraries,
            counts,
            ends,
            uppers,
            residue,
            numbers,
            place,
            line,
            refusal,
            key,
        })
    }

    fn place(&mut self) -> Option<Place> {
        let path = String::from_utf8(self.text()?).ok()?;
        let access = self.text()?.try_into().ok()?;
        Some(Place { path, access, offset: self.number()?, distance: self.number()? })
    }

    fn watched(&mut self) -> Option<(CString, Aspect, Found)> {
        let path = CString::new(self.text()?).ok()?;
        let aspect = *ASPECTS.get(usize::try_from(self.number()?).ok()?)?;
        let error = self.number()?;
        let (device, inode, size) = (self.number()?, self.number()?, self.number()? as i64);
        let modified = (self.number()? as i64, self.number()? as i64);
        let changed = (self.number()? as i64, self.number()? as i64);
        let is_directory = self.flag()?;
        let identity =
            Identity { device, inode, size, modified, changed, is_directory, rest: self.number()? };
        let found = if error == THERE { Ok(identity) } else { Err(i32::try_from(error).ok()?) };
        Some((path, aspect, found))
    }

    fn refusal(&mut self) -> Option<Refusal> {
        let name = String::from_utf8(self.text()?).ok()?;
        let reason = *REASONS.iter().find(|reason| format!("{reason:?}") == name)?;
        Some(Refusal { reason, detail: String::from_utf8(self.text()?).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_to_any_part_of_an_observation_discards_what_is_kept() {
        let parts = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/warm/observe")).unwrap();
        // These two store results and make none.
        for part in parts.map(|part| part.unwrap().file_name().into_string().unwrap()) {
            let is_named = include_str!("store.rs").contains(&format!("include_bytes!(\"{part}\")"));
            assert!(is_named || ["store.rs", "tally.rs"].contains(&part.as_str()), "{part}");
        }
    }

    fn observed(dir: &Path) -> Observed {
        std::fs::write(dir.join("there"), "x").unwrap();
        let mut files = Files::default();
        files.watch(&dir.join("there"));
        files.watch_for(&dir.join("absent"), Aspect::Link);
        files.watch_for(&dir.join("there/x"), Aspect::Access(3));
        files.watch_for(&dir.join("there"), Aspect::Stat);
        Observed {
            names: vec![b"MODE".to_vec()],
            looks: Looks {
                stdio: [false, false, true],
                processors: true,
                limits: [7].into(),
                system: true,
                python: true,
            },
            files,
            exe: b"/bin/tool.1".to_vec(),
            relative: vec!["lib/x".into()],
            libraries: ["x".into()].into(),
            counts: vec![Place { path: "/bin/tool".into(), offset: 4096, access: *b"rw-p", distance: 8 }],
            ends: vec![Place { path: "/bin/tool".into(), offset: 8192, access: *b"rw-p", distance: 16 }],
            uppers: vec![Place { path: "/bin/tool".into(), offset: 8192, access: *b"rw-p", distance: 32 }],
            residue: vec![u64::MAX, 1 << 63],
            numbers: Numbers::of([1, 3]),
            place: 5,
            line: "/lib/tool.py:3: sys.argv".to_owned(),
            refusal: Some(Refusal { reason: Reason::ReadsClock, detail: "time".to_owned() }),
            key: vec![1, 0, 2],
        }
    }

    fn same(one: &Observed, other: &Observed) -> bool {
        format!("{one:?}") == format!("{other:?}")
    }

    #[test]
    fn what_was_kept_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("a/b");
        let of = Subject { program: "/bin/tool".into(), allocator: None };
        let kept = Arc::new(observed(dir.path()));
        assert!(load(&cache, &of).is_empty());
        save(&cache, &of, &[Arc::clone(&kept), Arc::clone(&kept)]);
        let read = load(&cache, &of);
        assert_eq!(read.len(), 2);
        assert!(same(&read[0], &kept) && read[0].files.unchanged());
        std::fs::write(dir.path().join("there"), "longer").unwrap();
        assert!(!load(&cache, &of)[0].files.unchanged());
        assert!(load(&cache, &Subject { program: "/bin/other".into(), allocator: None }).is_empty());
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let of = Subject { program: "/bin/tool".into(), allocator: None };
        save(dir.path(), &of, &[Arc::new(observed(dir.path()))]);
        let path = file(dir.path(), &of);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(load(dir.path(), &of).is_empty(), "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(load(dir.path(), &of).is_empty(), "{at} bytes");
        }
        std::fs::write(&path, &good).unwrap();
        assert_eq!(load(dir.path(), &of).len(), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_written_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let of = Subject { program: "/bin/tool".into(), allocator: None };
        std::fs::write(&file, "").unwrap();
        save(&file.join("cache"), &of, &[Arc::new(observed(dir.path()))]);
        assert!(load(&file.join("cache"), &of).is_empty());
    }
}
