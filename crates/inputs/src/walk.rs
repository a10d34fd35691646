//! Follows paths as the kernel does, before it does, and notes what lies on the way.
//!
//! A path that the test itself has made, emptied or removed is its own: what it finds there later follows from its inputs. Everything in a
//! directory that it has made is its own, too. For other paths the first look counts, because only it sees the state before the test.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::content;
use crate::input::{HOST, Input, Looks, Stamp, State, host, is_nothing, names_in};

/// Why a test's inputs cannot be told.
pub(crate) type Refusal = String;

/// What a path leads to. Without links.
#[derive(Debug)]
pub(crate) enum Spot {
    /// Nothing. `is_end` if only the last component is missing; `is_new` if nobody has looked for it before.
    Missing { path: PathBuf, is_end: bool, is_new: bool },
    /// Something.
    Found { path: PathBuf, stamp: Stamp },
}

/// Files of the kernel that are as constant as the kernel and the processor, which belong to the key.
const CONSTANT: [&str; 5] = [
    "/proc/filesystems",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];
/// Devices without a state.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];
/// Links in one path. The kernel's limit.
const LINKS: usize = 40;

/// The inputs seen so far.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    inputs: HashMap<PathBuf, (Looks, State)>,
    own: HashSet<PathBuf>,
    own_dirs: HashSet<PathBuf>,
    /// Directories that have been passed, and cannot have become links since.
    passed: HashSet<PathBuf>,
    /// Devices whose file systems hold files.
    devices: HashSet<u64>,
}

impl Walk {
    /// Returns all inputs, in the order of their paths.
    pub fn into_inputs(self) -> Result<Vec<Input>, Refusal> {
        let input = |(path, (looks, state)): (PathBuf, _)| {
            // A process may have had a mask of its own, or may have removed the file.
            let has_mode = |mode| Stamp::of(&path).is_ok_and(|stamp| stamp.mode & 0o7777 == mode);
            let looks = match state {
                State::Missing(mode) if looks == Looks::OVERWRITTEN && !has_mode(mode) => Looks::EXISTS,
                _ => looks,
            };
            Ok(Input { path: text(&path)?, looks, state })
        };
        let mut inputs = self.inputs.into_iter().map(input).collect::<Result<Vec<_>, Refusal>>()?;
        inputs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(inputs)
    }

    /// Returns the paths that the test has made, emptied or removed.
    pub fn own_paths(&self) -> Vec<PathBuf> {
        self.own.iter().chain(&self.own_dirs).cloned().collect()
    }

    /// Returns whether what is there comes from the test itself.
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.contains(path)
            || (!self.own_dirs.is_empty() && path.ancestors().any(|above| self.own_dirs.contains(above)))
    }

    /// Notes what is there before a call changes it.
    pub fn about_to_change(&mut self, path: &Path) -> Result<(), Refusal> {
        let is_content = self.inputs.get(path).is_some_and(|(looks, _)| looks.has(Looks::CONTENT));
        if is_content { self.note_content(path, true) } else { Ok(()) }
    }

    /// From now on, what is there comes from the test itself.
    pub fn make_own(&mut self, path: PathBuf, is_new_dir: bool) {
        self.passed.clear();
        let own = if is_new_dir { &mut self.own_dirs } else { &mut self.own };
        own.insert(path);
    }

    /// The call that was to make or empty a file has failed, so that more mattered than whether it can.
    pub fn not_made(&mut self, path: &Path) {
        match self.inputs.get_mut(path) {
            Some((looks, State::Missing(mode))) => (*looks, *mode) = (Looks::EXISTS, 0),
            Some((looks, _)) => *looks = looks.and(Looks::EXISTS).and(Looks::STAT),
            None => {}
        }
    }

    /// Follows `path` from the directory `base`, and notes the directories and links on the way, and what is missing. `follows` if the last
    /// component is followed as well.
    pub fn to(&mut self, base: &Path, path: &Path, follows: bool) -> Result<Spot, Refusal> {
        let mut at = PathBuf::from("/");
        let mut wants_dir = names_directory(path);
        let mut left: VecDeque<OsString> = VecDeque::new();
        let push_front = |left: &mut VecDeque<OsString>, path: &Path| {
            for component in path.components().rev() {
                match component {
                    Component::Normal(name) => left.push_front(name.to_owned()),
                    Component::ParentDir => left.push_front("..".into()),
                    _ => {}
                }
            }
        };
        push_front(&mut left, path);
        if path.is_relative() {
            push_front(&mut left, base);
        }
        let mut links = 0;
        while let Some(name) = left.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            at.push(&name);
            let is_last = left.is_empty();
            if !is_last && self.passed.contains(&at) {
                continue;
            }
            let is_constant = kernels_own(&at)?;
            let found = match fs::symlink_metadata(&at) {
                Ok(found) => found,
                Err(error) if is_nothing(&error) => {
                    let is_new = !self.inputs.contains_key(&at);
                    self.note(&at, Looks::EXISTS, || Ok(State::Missing(0)))?;
                    return Ok(Spot::Missing { path: at, is_end: is_last, is_new });
                }
                Err(error) => return Err(format!("'{}' cannot be looked at: {error}", at.display())),
            };
            if !is_constant {
                self.in_files(&at, found.dev())?;
            }
            let stamp = Stamp::from(&found);
            if found.is_symlink() && (!is_last || follows || wants_dir) {
                links += 1;
                if links > LINKS {
                    return Err(format!("'{}' is one of too many links", at.display()));
                }
                let target = link(&at)?;
                wants_dir |= is_last && names_directory(&target);
                self.note(&at, Looks::EXISTS, || Ok(State::Link(text(&target)?, stamp)))?;
                at.pop();
                push_front(&mut left, &target);
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                continue;
            }
            if is_last {
                return Ok(Spot::Found { path: at, stamp });
            }
            if !found.is_dir() {
                self.note(&at, Looks::EXISTS, || Ok(State::File(stamp, None)))?;
                return Ok(Spot::Missing { path: at, is_end: false, is_new: false });
            }
            self.note(&at, Looks::EXISTS, || Ok(State::Directory(stamp, None)))?;
            self.passed.insert(at.clone());
        }
        let stamp =
            Stamp::of(&at).map_err(|error| format!("'{}' cannot be looked at: {error}", at.display()))?;
        Ok(Spot::Found { path: at, stamp })
    }

    /// Refuses what lies in a file system that makes up its files, wherever it is mounted.
    fn in_files(&mut self, path: &Path, device: u64) -> Result<(), Refusal> {
        if self.devices.contains(&device) {
            return Ok(());
        }
        // A link may lead elsewhere, but its directory is in the same file system.
        let here = if path.is_symlink() { path.parent().unwrap_or(path) } else { path };
        if !hotstart_launch::holds_files(here) {
            return Err(format!("looks at '{}', in a file system that is on no list", path.display()));
        }
        self.devices.insert(device);
        Ok(())
    }

    /// Refuses a file that gives rights to who executes it: the traced run would not get them.
    pub fn executes(&self, path: &Path) -> Result<(), Refusal> {
        match rustix::fs::getxattr(path, "security.capability", &mut [0u8; 0][..]) {
            Err(Errno::NODATA | Errno::NOTSUP | Errno::NOENT) => Ok(()),
            _ => Err(format!("executes '{}', which has capabilities of its own", path.display())),
        }
    }

    /// Notes that `looks` of what is at `spot` were asked for. `now` if the content must be read before the call that follows.
    pub fn look(&mut self, spot: &Spot, looks: Looks, now: bool) -> Result<(), Refusal> {
        let Spot::Found { path, stamp } = spot else { return Ok(()) };
        if self.is_own(path) {
            return Ok(());
        }
        let found =
            fs::symlink_metadata(path).map_err(|error| format!("'{}' has gone: {error}", path.display()))?;
        let kind = found.file_type();
        if kind.is_symlink() {
            return self.note(path, looks, || Ok(State::Link(text(&link(path)?)?, *stamp)));
        }
        if kind.is_dir() {
            self.note(path, looks, || Ok(State::Directory(*stamp, None)))?;
            return if looks.has(Looks::NAMES) { self.note_names(path) } else { Ok(()) };
        }
        if kind.is_char_device() && DEVICES.iter().any(|device| path == Path::new(device)) {
            return self
                .note(path, Looks::EXISTS, || Ok(State::Device(found.rdev(), Stamp::from(&found).rights())));
        }
        if !kind.is_file() {
            return Err(format!("uses the device, pipe or socket '{}'", path.display()));
        }
        if found.mode() & 0o6000 != 0 && looks.has(Looks::CONTENT) {
            return Err(format!("opens '{}', which has the rights of another user", path.display()));
        }
        self.note(path, looks, || Ok(State::File(*stamp, None)))?;
        if looks.has(Looks::CONTENT) { self.note_content(path, now) } else { Ok(()) }
    }

    /// Notes that the names of the machine were asked for. They are no part of the key: a container has another one in each run. All else
    /// that `uname` tells is.
    pub fn look_host(&mut self) {
        let state = || (Looks::CONTENT, State::Host(host()));
        self.inputs.entry(PathBuf::from(HOST)).or_insert_with(state);
    }

    /// Notes that nothing but the making of this file mattered; `mode` is what it gets.
    pub fn look_overwritten(&mut self, spot: &Spot, mode: u32) -> Result<(), Refusal> {
        match spot {
            Spot::Missing { path, is_new, .. } => {
                if *is_new && !self.is_own(path) {
                    self.inputs.insert(path.clone(), (Looks::OVERWRITTEN, State::Missing(mode)));
                }
                Ok(())
            }
            Spot::Found { stamp, .. } if stamp.is_plain() => self.look(spot, Looks::OVERWRITTEN, false),
            Spot::Found { .. } => self.look(spot, Looks::CONTENT, true),
        }
    }

    fn note(
        &mut self,
        path: &Path,
        looks: Looks,
        state: impl FnOnce() -> Result<State, Refusal>,
    ) -> Result<(), Refusal> {
        if self.is_own(path) {
            return Ok(());
        }
        match self.inputs.get_mut(path) {
            Some((before, _)) => *before = before.and(looks),
            None => _ = self.inputs.insert(path.to_owned(), (looks, state()?)),
        }
        Ok(())
    }

    fn note_content(&mut self, path: &Path, now: bool) -> Result<(), Refusal> {
        let Some((_, State::File(stamp, content @ None))) = self.inputs.get_mut(path) else { return Ok(()) };
        let is_kernels = CONSTANT.iter().any(|constant| path == Path::new(constant));
        // Otherwise it is read after the run, if the file still looks the same.
        if now || is_kernels || !content::is_settled(stamp) {
            // The kernel's files have no times of their own.
            let hash = if is_kernels { content::hash(path).ok() } else { content::of_file(path, stamp) };
            let hash = hash.ok_or_else(|| format!("'{}' changed while the test ran", path.display()))?;
            *content = Some((hash, !is_kernels && content::is_told_by_stamp(path, stamp)));
        }
        Ok(())
    }

    fn note_names(&mut self, path: &Path) -> Result<(), Refusal> {
        let is_own = |name: &&PathBuf| name.parent() == Some(path);
        let own = self.own.iter().chain(&self.own_dirs).filter(is_own);
        let except: Vec<String> =
            own.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
        let Some((_, State::Directory(_, names @ None))) = self.inputs.get_mut(path) else { return Ok(()) };
        let found = names_in(path, &except).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => {
                format!("lists '{}', which has names that are not UTF-8", path.display())
            }
            _ => format!("'{}' cannot be listed: {error}", path.display()),
        })?;
        *names = Some((content::hash_names(&found), except));
        Ok(())
    }
}

/// Returns whether the kernel follows a link at the end of this path, as only a directory can be there.
fn names_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes == b"."
}

/// Refuses what the kernel makes up, unless it is known to be constant, or leads there. Returns whether it is one of these.
fn kernels_own(path: &Path) -> Result<bool, Refusal> {
    const VOLATILE: [&str; 6] = ["/proc", "/sys", "/dev/fd", "/dev/pts", "/dev/shm", "/run"];
    // SELinux is there or not as long as the system runs.
    const SELINUX: &str = "/sys/fs/selinux";
    let is_constant = |constant: &str| Path::new(constant).starts_with(path);
    if !VOLATILE.iter().any(|dir| path.starts_with(dir)) {
        return Ok(false);
    }
    if path.starts_with(SELINUX) || [SELINUX].iter().chain(&CONSTANT).any(|constant| is_constant(constant)) {
        return Ok(true);
    }
    Err(format!("looks at '{}'", path.display()))
}

fn link(path: &Path) -> Result<PathBuf, Refusal> {
    fs::read_link(path).map_err(|error| format!("'{}' cannot be looked at: {error}", path.display()))
}

fn text(path: &Path) -> Result<String, Refusal> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("uses the path '{}', which is not UTF-8", path.display()))
}
