//! Files and directories that are held open to tell whether anything at some paths has changed.
//!
//! A tool of LLVM's has some fifty paths, and each start has to know that they lead where they led. A question about a path takes four
//! times as long as one about an open file, and ten times in a traced process. Whatever changes what is at a path shows: in the times of
//! the file, or in those of a directory on the way to it; or it is a mount.
//!
//! An open file keeps its file system from being unmounted, which a test may want to do. So nothing is held in any but that of the root and
//! that of the program, nor where times do not show each change (an overlay's directory has those of its topmost layer).

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, StatxFlags, fstat, openat, statat, statx};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use super::file_systems::stamps_names;
use super::made_up::way;
use crate::descriptors::for_held;

/// The kernel's list of mounts.
const MOUNTS: &str = "/proc/self/mountinfo";
/// A file changed within this many seconds may change again within one tick of the clock that stamps it.
const RECENT: i64 = 2;
/// Looks at all paths before they are held, since that takes as long as twenty of them. Each further attempt waits for
/// [`PATIENCE`] times as many: there is a directory that changes all the time.
const LOOKS_FIRST: u32 = 16;
const LOOKS_MOST: u32 = 1 << 16;
const PATIENCE: u32 = 4;

/// What tells whether some paths lead where they led, as soon as that pays.
#[derive(Debug)]
pub struct Hold {
    held: RwLock<Option<Held>>,
    /// Looks at the paths until the next attempt to hold them, and how many there were before the last one.
    left: AtomicU32,
    wait: AtomicU32,
}

impl Default for Hold {
    fn default() -> Self {
        Hold { held: RwLock::default(), left: AtomicU32::new(LOOKS_FIRST), wait: AtomicU32::new(LOOKS_FIRST) }
    }
}

/// A clone holds nothing yet.
impl Clone for Hold {
    fn clone(&self) -> Self {
        Hold::default()
    }
}

impl Hold {
    /// Holds what is on the way to these paths, the program's first. `are_current` says whether they lead where they should. Returns
    /// whether they do, and could be held.
    pub fn begin<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
        are_current: impl FnOnce() -> bool,
    ) -> bool {
        // They were what they are while they were opened.
        let held = Held::new(paths).filter(|_| are_current()).filter(Held::is_unchanged);
        let is_held = held.is_some();
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = held;
        is_held
    }

    /// Returns whether the paths are held and nothing has changed. If not, that says nothing: the caller looks at them.
    pub fn is_unchanged(&self) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().is_some_and(Held::is_unchanged)
    }

    /// From now on it is never time for another attempt: each question about a path would be noticed.
    pub fn make_final(&self) {
        self.left.store(0, Ordering::Relaxed);
    }

    /// Called after a look at the paths has found that all lead where they should. Returns whether it is time to [`begin`](Hold::begin).
    pub fn is_due(&self) -> bool {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left != Ok(1) {
            return false;
        }
        let wait = self.wait.load(Ordering::Relaxed).saturating_mul(PATIENCE).min(LOOKS_MOST);
        self.wait.store(wait, Ordering::Relaxed);
        self.left.store(wait, Ordering::Relaxed);
        true
    }
}

/// Everything on the way to some paths.
#[derive(Debug)]
struct Held {
    opened: Vec<Arc<Opened>>,
    /// The list of mounts when they were opened.
    mounts: Arc<[u8]>,
}

/// A file or a directory, and what the kernel said of it.
#[derive(Debug)]
struct Opened {
    file: OwnedFd,
    numbers: [i64; 8],
}

impl Opened {
    fn is_unchanged(&self) -> bool {
        fstat(&self.file).is_ok_and(|now| numbers(&now) == self.numbers)
    }
}

fn numbers(found: &Stat) -> [i64; 8] {
    [
        found.st_dev as i64,
        found.st_ino as i64,
        found.st_nlink as i64,
        i64::from(found.st_mode),
        found.st_mtime,
        found.st_mtime_nsec as i64,
        found.st_ctime,
        found.st_ctime_nsec as i64,
    ]
}

impl Held {
    /// Holds what is on the way to these paths. `None` if that cannot be, or something has changed just now.
    fn new<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Option<Held> {
        let mounts = Mounts::now()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs() as i64;
        let mut places = vec![mount(Path::new("/"))?];
        let mut passed = BTreeSet::new();
        for path in paths {
            if places.len() == 1 {
                places.push(mount(path.as_ref())?);
            }
            passed.extend(way(path.as_ref())?);
        }
        let mut opened = Vec::with_capacity(passed.len());
        for path in passed {
            let seen = match statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
                // Its directory shows when that changes, as with a link.
                Err(Errno::NOENT | Errno::NOTDIR) => continue,
                seen => seen.ok()?,
            };
            if !places.contains(&mount(&path)?) {
                return None;
            }
            if FileType::from_raw_mode(seen.st_mode).is_symlink() {
                continue;
            }
            let is_recent = seen.st_mtime.max(seen.st_ctime) + RECENT > now;
            if is_recent || !stamps_names(&path) {
                return None;
            }
            opened.push(open(path, numbers(&seen))?);
        }
        Some(Held { opened, mounts })
    }

    fn is_unchanged(&self) -> bool {
        self.opened.iter().all(|opened| opened.is_unchanged())
            && Mounts::now().is_some_and(|now| Arc::ptr_eq(&now, &self.mounts) || now == self.mounts)
    }
}

/// Opens a file or directory with these numbers, or returns it if others hold it.
fn open(path: PathBuf, numbers_seen: [i64; 8]) -> Option<Arc<Opened>> {
    static ALL: Mutex<Option<HashMap<PathBuf, Weak<Opened>>>> = Mutex::new(None);
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    let known = all.get(&path).and_then(Weak::upgrade).filter(|opened| opened.numbers == numbers_seen);
    if let Some(opened) = known {
        return Some(opened);
    }
    let most = for_held();
    if all.len() >= most {
        all.retain(|_, opened| opened.strong_count() > 0);
        if all.len() >= most {
            return None;
        }
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, &path, flags, Mode::empty()).ok()?;
    let opened = Arc::new(Opened { numbers: numbers(&fstat(&file).ok()?), file });
    if opened.numbers != numbers_seen {
        return None;
    }
    all.insert(path, Arc::downgrade(&opened));
    Some(opened)
}

/// Returns the number of the mount in which something lies.
fn mount(path: &Path) -> Option<u64> {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
}

/// The list of mounts, and the open file that tells when it changes.
struct Mounts {
    list: File,
    text: Arc<[u8]>,
    opener: Pid,
}

impl Mounts {
    /// Returns the list as it is now; `None` if the kernel does not tell it.
    fn now() -> Option<Arc<[u8]>> {
        // The kernel tells each open file once that there was a change.
        static MOUNTS: Mutex<Option<Mounts>> = Mutex::new(None);
        let mut mounts = MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        match &*mounts {
            // A fork shares the open file, and must leave that word to its parent.
            Some(mounts) if mounts.opener != getpid() => return mounts.again(),
            Some(mounts) if mounts.are_unchanged() => {}
            _ => *mounts = Mounts::read(),
        }
        mounts.as_ref().map(|mounts| Arc::clone(&mounts.text))
    }

    fn read() -> Option<Mounts> {
        let mut list = File::open(MOUNTS).ok()?;
        let mut text = Vec::new();
        list.read_to_end(&mut text).ok()?;
        Some(Mounts { list, text: text.into(), opener: getpid() })
    }

    /// Returns whether there was no change since the list was opened (proc_pid_mounts(5)).
    fn are_unchanged(&self) -> bool {
        let mut asked = [PollFd::new(&self.list, PollFlags::PRI)];
        poll(&mut asked, Some(&Timespec::default())) == Ok(0)
    }

    /// Reads the list again.
    fn again(&self) -> Option<Arc<[u8]>> {
        let mut text = vec![0; self.text.len() + 4096];
        let mut length = 0;
        loop {
            match self.list.read_at(&mut text[length..], length as u64).ok()? {
                0 => break,
                read => length += read,
            }
            text.resize(text.len().max(length + 4096), 0);
        }
        text.truncate(length);
        Some(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, FileTimes};
    use std::os::unix::fs::symlink;

    /// A tool behind two links, one in a directory of its own, and a library that is missing.
    fn paths(dir: &Path) -> Vec<PathBuf> {
        for sub in ["v1", "links", "bin"] {
            fs::create_dir_all(dir.join(sub)).unwrap();
        }
        fs::write(dir.join("v1/tool"), "").unwrap();
        symlink("../links/tool", dir.join("bin/tool")).unwrap();
        symlink("../v1/tool", dir.join("links/tool")).unwrap();
        vec![dir.join("bin/tool"), dir.join("v1/lib")]
    }

    /// Holds what is below `dir`. Other tests change what is above it.
    fn hold(dir: &Path, paths: &[PathBuf]) -> Held {
        // What has changed just now is not held: the times of the last change cannot be set.
        assert!(Held::new(paths).is_none());
        let passed: BTreeSet<PathBuf> = paths.iter().flat_map(|path| way(path).unwrap()).collect();
        let below = passed.into_iter().filter(|path| path.starts_with(dir) && !path.is_symlink());
        let opened = below.filter_map(|path| {
            let seen = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            open(path, numbers(&seen))
        });
        Held { opened: opened.collect(), mounts: Mounts::now().unwrap() }
    }

    /// Waits until the clock of files has gone on.
    fn await_tick(dir: &Path) {
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let before = modified(&dir.join("v1/tool"));
        let probe = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        while fs::write(probe.path(), "x").is_ok() && modified(probe.path()) <= before {}
    }

    #[test]
    fn changes_on_the_way_are_seen() {
        let changes: [fn(&Path); 8] = [
            |_| {},
            |dir| fs::write(dir.join("v1/lib"), "").unwrap(),
            |dir| fs::write(dir.join("v1/tool"), "x").unwrap(),
            |dir| fs::remove_file(dir.join("v1/tool")).unwrap(),
            |dir| {
                fs::remove_file(dir.join("bin/tool")).unwrap();
                symlink("../links/tool", dir.join("bin/tool")).unwrap();
            },
            |dir| {
                fs::remove_file(dir.join("links/tool")).unwrap();
                symlink("elsewhere", dir.join("links/tool")).unwrap();
            },
            |dir| fs::rename(dir.join("v1"), dir.join("v2")).unwrap(),
            |dir| {
                let file = File::options().write(true).open(dir.join("v1/tool")).unwrap();
                file.set_times(FileTimes::new().set_modified(UNIX_EPOCH)).unwrap();
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let place = tempfile::tempdir().unwrap();
            let dir = place.path().canonicalize().unwrap();
            let held = hold(&dir, &paths(&dir));
            await_tick(&dir);
            change(&dir);
            assert_eq!(held.is_unchanged(), number == 0, "change {number}");
        }
    }

    #[test]
    fn another_list_of_mounts_is_a_change() {
        let held = |mounts: &[u8]| Held { opened: Vec::new(), mounts: mounts.into() }.is_unchanged();
        let now = Mounts::now().unwrap();
        assert!(held(&now) && !held(&[&now[..], b"one more\n"].concat()) && !held(b"other"));
        let mounts = Mounts::read().unwrap();
        assert!(mounts.are_unchanged() && mounts.again() == Some(now.clone()) && mounts.text == now);
    }

    #[test]
    fn what_the_kernel_makes_up_is_not_held() {
        assert!(Held::new([Path::new("/proc/self/exe")]).is_none());
    }

    #[test]
    fn an_attempt_is_made_seldom() {
        let hold = Hold::default();
        let due: Vec<u32> = (1..=1000).filter(|_| hold.is_due()).collect();
        assert_eq!(due, [16, 16 + 64, 16 + 64 + 256]);
        assert!(!hold.is_unchanged(), "nothing is held");
        hold.make_final();
        assert!(!(0..100_000).any(|_| hold.is_due()));
    }

    #[test]
    fn what_is_not_current_is_not_held() {
        let hold = Hold::default();
        let is_held = hold.begin(["/bin/sh"], || true);
        assert_eq!(hold.is_unchanged(), is_held);
        assert!(!hold.begin(["/bin/sh"], || false) && !hold.is_unchanged());
        assert!(!hold.clone().is_unchanged());
    }

    #[test]
    fn a_file_is_opened_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        fs::write(&path, "").unwrap();
        let seen = || numbers(&statat(CWD, &path, AtFlags::empty()).unwrap());
        let one = open(path.clone(), seen()).unwrap();
        assert!(Arc::ptr_eq(&one, &open(path.clone(), seen()).unwrap()));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert!(!Arc::ptr_eq(&one, &open(path.clone(), seen()).unwrap()) && !one.is_unchanged());
    }
}
