//! Detects whether a cold start would still find the files that a zygote was made of, and has the stat cache.
//!
//! The stages of a pipeline are started one after the other, and share most of their libraries. Nobody outside can tell
//! whether a file was changed before the second stage or before the first, unless the one who starts them changes it. So the
//! starts of one [`StatCache`] look at each file once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::file_systems::stamps_accesses;
use super::held::Hold;
use super::identity::{self, Aspect, Found, Identity, identify, is_like};
use super::made_up::way;

/// What changed within this time before a moment has changed since: file systems may round a little.
const TICK: Duration = Duration::from_millis(10);
/// The coarsest clock of a file system, in seconds.
const COARSE: i64 = 2;

/// A path as it would be opened, and the file found there. Absence is an identity, too.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    /// Shared by all zygotes.
    pub path: Arc<CStr>,
    pub aspect: Aspect,
    pub found: Found,
}

/// Subdirectories of a search path in which ld.so looks first, up to glibc 2.36 and later.
pub(super) const VARIANTS: [&str; 8] =
    ["glibc-hwcaps", "tls", "haswell", "xeon_phi", "avx512_1", "x86_64", "sse2", "atomics"];

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Returns whether ld.so, when it looks for these libraries in a directory of LD_LIBRARY_PATH, finds nothing there.
pub fn is_missed_by_loader<'n>(dir: &Path, libraries: impl Iterator<Item = &'n OsStr>) -> bool {
    libraries.chain(VARIANTS.map(OsStr::new)).all(|name| is_absent(&dir.join(name)))
}

/// The files of one zygote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    watched: Vec<Watched>,
    /// Names in directories relative to the working directory: if one exists there, ld.so would load another file.
    shadows: Vec<PathBuf>,
    /// Tells whether all paths lead to the same files as before, without a look at each.
    hold: Hold,
}

impl Files {
    /// Records the file behind `path` as it is now.
    pub(crate) fn watch(&mut self, path: &Path) {
        self.watch_for(path, Aspect::File);
    }

    /// Records `aspect` of `path` as it is now.
    pub(crate) fn watch_for(&mut self, path: &Path, aspect: Aspect) {
        if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
            let found = identity::identify_aspect(&path, aspect);
            self.hold = Hold::default();
            self.watched.push(Watched { path: common(path), aspect, found });
        }
    }

    /// Records which links lead to a directory in which ld.so looks. Returns whether it is the same one for each process: a way through
    /// `/proc/self` is not.
    pub(crate) fn watch_way(&mut self, dir: &Path) -> bool {
        let mut passed = Files::default();
        let way = way(dir);
        for path in way.iter().flatten() {
            passed.watch_for(path, if path.is_symlink() { Aspect::Link } else { Aspect::NoLink });
        }
        self.join(&passed);
        way.is_some()
    }

    /// Records that a process which was started by `path` shows `exe` as its path.
    pub(crate) fn watch_exe(&mut self, path: &Path, exe: &[u8]) {
        if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
            self.watched.push(Watched {
                path: common(path),
                aspect: Aspect::Exe,
                found: Ok(Identity::of_text(exe)),
            });
        }
    }

    /// Adds the records of `other`. A run that reads a file changes the time of last access, and the next one is told the new time: the
    /// later record holds.
    pub(crate) fn join(&mut self, other: &Files) {
        self.hold = Hold::default();
        for theirs in &other.watched {
            let is_same = |own: &&mut Watched| {
                Arc::ptr_eq(&own.path, &theirs.path)
                    && own.aspect == theirs.aspect
                    && is_like(own.found, theirs.found)
            };
            match self.watched.iter_mut().find(is_same) {
                Some(own) => own.found = theirs.found,
                None => self.watched.push(theirs.clone()),
            }
        }
    }

    /// Returns whether every record of `other` is here, too, with the same result but for the time of last access and the like.
    pub(super) fn cover(&self, other: &Files) -> bool {
        let has = |theirs: &Watched| {
            let is_same = |own: &Watched| {
                (&own.path, own.aspect) == (&theirs.path, theirs.aspect) && is_like(own.found, theirs.found)
            };
            self.watched.iter().any(is_same)
        };
        other.watched.iter().all(has)
    }

    /// Returns all records, in a form that can be stored.
    pub(super) fn watched(&self) -> &[Watched] {
        &self.watched
    }

    /// Restores stored records.
    pub(super) fn of_kept(kept: Vec<(CString, Aspect, Found)>) -> Files {
        let watched =
            kept.into_iter().map(|(path, aspect, found)| Watched { path: common(path), aspect, found });
        Files { watched: watched.collect(), ..Files::default() }
    }

    /// Returns whether a start is cold if the file `path`, relative to the working directory, exists.
    pub(crate) fn shadows(&self, path: &Path) -> bool {
        self.shadows.iter().any(|shadow| path.starts_with(shadow))
    }

    /// Records that ld.so also looks for `libraries` in `dirs`, which are relative to the working directory.
    pub(crate) fn beware(&mut self, dirs: &[PathBuf], libraries: &BTreeSet<OsString>) {
        for dir in dirs {
            let names = libraries.iter().map(OsString::as_os_str);
            self.shadows.extend(names.chain(VARIANTS.map(OsStr::new)).map(|name| dir.join(name)));
        }
    }

    /// Returns whether a start in the directory `cwd` might load other files than these, because it finds them there. The error by
    /// which the loader finds nothing counts as well, as `dlerror` tells it.
    pub(crate) fn shadowed_in(&self, cwd: &Path) -> bool {
        !self.shadows.iter().all(|shadow| is_absent(&cwd.join(shadow)))
    }

    /// Returns whether every path still leads to the same file, unchanged.
    pub(crate) fn unchanged(&self) -> bool {
        let are_held = self.hold.is_unchanged();
        let are_unchanged = looking(|look| {
            self.watched.iter().all(|w| match w.aspect {
                Aspect::File => are_held || look(&w.path) == w.found,
                Aspect::Place => look(&w.path).and_then(Identity::place) == w.found,
                _ => identity::identify_aspect(&w.path, w.aspect) == w.found,
            })
        });
        if are_unchanged && !are_held && self.hold.is_due() {
            self.begin_hold();
        }
        are_unchanged
    }

    /// Holds the files of [`Aspect::File`]. A directory of [`Aspect::Place`] may change, so it is looked at each time.
    fn begin_hold(&self) {
        let files = || self.watched.iter().filter(|w| w.aspect == Aspect::File);
        let paths = files().map(|w| Path::new(OsStr::from_bytes(w.path.to_bytes())));
        self.hold.begin(paths, || files().all(|w| identify(&w.path) == w.found));
    }

    /// Returns whether the kernel may record that a cold start has read one of the files.
    pub(crate) fn stamp_accesses(&self) -> bool {
        let is_read = |w: &&Watched| w.aspect == Aspect::File && w.found.is_ok();
        let mut read = self.watched.iter().filter(is_read);
        read.any(|w| stamps_accesses(Path::new(OsStr::from_bytes(w.path.to_bytes()))))
    }

    /// Returns whether nothing was changed at or after `moment`, by the clock of files. A file that changed while a zygote was made may
    /// have been loaded in its old state and recorded with its new identity.
    pub(crate) fn unchanged_since(&self, moment: SystemTime) -> bool {
        let since = (moment - TICK).duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = (since.as_secs() as i64, i64::from(since.subsec_nanos()));
        // Some file systems have whole seconds only, and FAT every other one.
        let is_recent =
            |(seconds, part)| (seconds, part) >= since || (part == 0 && seconds + COARSE >= since.0);
        !self.watched.iter().any(|w| w.found.is_ok_and(|f| is_recent(f.changed)))
    }

    /// Returns whether the first `count` paths lead to files that process `pid` has mapped. Otherwise a file that was
    /// replaced between mapping and recording would be taken for the mapped one.
    pub(crate) fn are_mapped(&self, count: usize, pid: i32) -> bool {
        let Ok(maps) = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/maps"))) else {
            return false;
        };
        let inodes: Vec<u64> =
            maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(4)?.parse().ok()).collect();
        self.watched.iter().take(count).all(|w| w.found.is_ok_and(|f| inodes.contains(&f.inode)))
    }
}

/// Results by path. Equal paths have equal addresses ([`Files`]).
type Cached = Vec<(*const CStr, Found)>;

thread_local! {
    static FOUND: RefCell<Option<Cached>> = const { RefCell::new(None) };
}

/// Starts of this thread share one stat cache while this value lives.
#[derive(Debug)]
pub struct StatCache(PhantomData<*const ()>);

impl StatCache {
    /// Begins a cache, which lives until the value is dropped.
    pub fn begin() -> StatCache {
        FOUND.set(Some(Vec::new()));
        StatCache(PhantomData)
    }

    /// Clears the cache, because this thread may have changed a file.
    pub fn clear(&self) {
        FOUND.set(Some(Vec::new()));
    }
}

impl Drop for StatCache {
    fn drop(&mut self) {
        FOUND.set(None);
    }
}

/// Calls `use_look` with a function that looks at files, and asks the system only once for each while a `StatCache` lives.
fn looking<T>(use_look: impl FnOnce(&mut dyn FnMut(&Arc<CStr>) -> Found) -> T) -> T {
    FOUND.with_borrow_mut(|found| match found {
        None => use_look(&mut |path| identify(path)),
        Some(found) => use_look(&mut |path| {
            let at = Arc::as_ptr(path);
            if let Some((_, known)) = found.iter().find(|(known, _)| std::ptr::addr_eq(*known, at)) {
                return *known;
            }
            let now = identify(path);
            found.push((at, now));
            now
        }),
    })
}

/// Returns the one shared copy of a path. Programs and libraries are few, and stay.
fn common(path: CString) -> Arc<CStr> {
    static PATHS: Mutex<BTreeSet<Arc<CStr>>> = Mutex::new(BTreeSet::new());
    let mut paths = PATHS.lock().expect("no panic while locked");
    if let Some(known) = paths.get(path.as_c_str()) {
        return Arc::clone(known);
    }
    let path: Arc<CStr> = path.into();
    paths.insert(Arc::clone(&path));
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock;
    use crate::warm::StatCache;
    use crate::warm::exe;

    #[test]
    fn replaced_removed_and_appearing_files_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (there, absent) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&there, "one").unwrap();
        let mut files = Files::default();
        files.watch(&there);
        files.watch(&absent);
        assert!(files.unchanged());
        std::fs::write(&absent, "").unwrap();
        assert!(!files.unchanged());
        std::fs::remove_file(&absent).unwrap();
        assert!(files.unchanged());
        let new = dir.path().join("new");
        std::fs::write(&new, "two").unwrap();
        std::fs::rename(&new, &there).unwrap();
        assert!(!files.unchanged());
    }

    #[test]
    fn with_a_stat_cache_files_are_looked_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("one");
        let [mut one, mut other] = [Files::default(), Files::default()];
        one.watch(&path);
        other.watch(&dir.path().join("absent"));
        other.watch(&path);
        let stat_cache = StatCache::begin();
        assert!(one.unchanged());
        write("another");
        assert!(one.unchanged() && other.unchanged());
        std::thread::scope(|scope| scope.spawn(|| assert!(!one.unchanged())).join().unwrap());
        stat_cache.clear();
        assert!(!one.unchanged() && !other.unchanged());
        write("one");
        assert!(!other.unchanged(), "what differed is remembered, too");
        drop(stat_cache);
        std::fs::remove_file(&path).unwrap();
        one = Files::default();
        one.watch(&path);
        assert!(one.unchanged());
        write("one");
        assert!(!one.unchanged());
    }

    #[test]
    fn a_library_in_the_working_directory_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::default();
        files.beware(&["".into(), "sub".into()], &["libx.so.1".into()].into());
        std::fs::write(dir.path().join("liby.so.1"), "").unwrap();
        assert!(!files.shadowed_in(dir.path()));
        for shadow in ["libx.so.1", "tls", "sub/libx.so.1"] {
            let shadow = dir.path().join(shadow);
            std::fs::create_dir_all(&shadow).unwrap();
            assert!(files.shadowed_in(dir.path()), "{}", shadow.display());
            std::fs::remove_dir(&shadow).unwrap();
        }
        // The loader's error is another one.
        std::fs::remove_dir(dir.path().join("sub")).unwrap();
        assert!(!files.shadowed_in(dir.path()));
        std::fs::write(dir.path().join("sub"), "").unwrap();
        assert!(files.shadowed_in(dir.path()));
    }

    #[test]
    fn a_file_rewritten_since_is_known_by_its_time_of_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let before = clock::of_files();
        std::fs::write(&path, "one").unwrap();
        let old = UNIX_EPOCH + Duration::from_secs(1);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        let mut files = Files::default();
        files.watch(&path);
        files.watch(&dir.path().join("absent"));
        assert!(!files.unchanged_since(before));
        assert!(files.unchanged_since(SystemTime::now() + 2 * TICK));
    }

    #[test]
    fn the_time_of_access_belongs_to_what_was_told_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let touch = |seconds| {
            let times = std::fs::FileTimes::new().set_accessed(UNIX_EPOCH + Duration::from_secs(seconds));
            std::fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        };
        touch(1);
        let aspects = [Aspect::Stat, Aspect::LinkStat, Aspect::File];
        let [mut before, mut after] = [Files::default(), Files::default()];
        aspects.iter().for_each(|&aspect| before.watch_for(&path, aspect));
        assert!(before.unchanged());
        // The time of change as well, which is left out here.
        touch(2);
        aspects.iter().for_each(|&aspect| after.watch_for(&path, aspect));
        let rest = |files: &Files| files.watched.iter().map(|w| w.found.unwrap().rest).collect::<Vec<_>>();
        let (one, other) = (rest(&before), rest(&after));
        assert!(one[0] != other[0] && one[1] != other[1] && (one[2], other[2]) == (0, 0));
        for (old, new) in before.watched.iter_mut().zip(&after.watched) {
            let rest = old.found.unwrap().rest;
            old.found = new.found.map(|found| Identity { rest, ..found });
        }
        assert!(before.cover(&after) && !before.unchanged());
        before.join(&after);
        assert!(before.unchanged() && before.watched.len() == 3, "the later record holds");
    }

    #[test]
    fn another_path_of_the_same_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("one"), "").unwrap();
        std::fs::hard_link(at("one"), at("two")).unwrap();
        std::os::unix::fs::symlink("one", at("link")).unwrap();
        let mut files = Files::default();
        files.watch_exe(&at("link"), &exe::of_file(&at("one")));
        assert!(files.unchanged());
        std::fs::remove_file(at("link")).unwrap();
        std::os::unix::fs::symlink("two", at("link")).unwrap();
        assert!(!files.unchanged());
    }

    #[test]
    fn a_link_on_the_way_to_a_directory_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("real/x")).unwrap();
        std::os::unix::fs::symlink("real", at("link")).unwrap();
        for way in ["link/x", "link/../real/x", "absent/x", "real/x"] {
            let mut files = Files::default();
            assert!(files.watch_way(&at(way)) && files.unchanged(), "{way}");
            std::fs::write(at("other"), "").unwrap();
            assert!(files.unchanged(), "{way}");
            let name = way.split('/').next().unwrap();
            let _ = std::fs::remove_file(at(name)).or_else(|_| std::fs::remove_dir_all(at(name)));
            std::os::unix::fs::symlink("/proc/self/cwd", at(name)).unwrap();
            assert!(!files.unchanged(), "{way}");
            assert!(!Files::default().watch_way(&at(way)), "{way}");
            std::fs::remove_file(at(name)).unwrap();
            std::fs::create_dir_all(at("real/x")).unwrap();
            let _ = std::os::unix::fs::symlink("real", at("link"));
        }
    }
}
