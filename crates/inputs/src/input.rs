//! One input: a path without links in it, what a process wanted to know of it, and what it found.
//!
//! A comparison covers what was looked at, and no more: a directory that was only passed through may get new files. Times and inodes
//! are compared as well, because every process that opens a file can ask for them; not so for the test's own outputs, which each run
//! makes anew. Sizes and numbers of links are compared there, too.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::content::{self, Contents, Hash};

/// What processes wanted to know of a path: bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Looks(pub u8);

impl Looks {
    /// Whether it is there, its kind, and who may do what with it.
    pub const EXISTS: Looks = Looks(1);
    /// Everything that `stat` tells.
    pub const STAT: Looks = Looks(2);
    /// Its content.
    pub const CONTENT: Looks = Looks(4);
    /// The names in the directory.
    pub const NAMES: Looks = Looks(8);
    /// Nothing but whether it can be made, or emptied and written anew.
    pub const OVERWRITTEN: Looks = Looks(16);

    /// Returns whether these include all of `other`.
    pub fn has(self, other: Looks) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn and(self, other: Looks) -> Looks {
        Looks(self.0 | other.0)
    }
}

/// What the kernel says of a file, except for the time of the last access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    links: u64,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    modified: i64,
    pub(crate) changed: i64,
    pub(crate) mode: u32,
    user: u32,
    group: u32,
}

impl Stamp {
    /// Returns the stamp of what is at `path`, which may be a link.
    pub fn of(path: &Path) -> io::Result<Stamp> {
        fs::symlink_metadata(path).map(|found| Stamp::from(&found))
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    /// Returns whether it is a regular file with one name.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_regular() && self.links == 1
    }

    /// Returns whether both allow the same to the same users.
    fn allows_as(&self, other: &Stamp) -> bool {
        self.rights() == other.rights()
    }

    /// Returns mode, user and group.
    pub(crate) fn rights(&self) -> [u32; 3] {
        [self.mode, self.user, self.group]
    }
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Self {
        let time = |seconds: i64, nanoseconds: i64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
        };
        Stamp {
            device: found.dev(),
            inode: found.ino(),
            links: found.nlink(),
            size: found.size(),
            modified: time(found.mtime(), found.mtime_nsec()),
            changed: time(found.ctime(), found.ctime_nsec()),
            mode: found.mode(),
            user: found.uid(),
            group: found.gid(),
        }
    }
}

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// Nothing. If it was to be made, this is the mode that it gets.
    Missing(u32),
    /// A link to this, and what the kernel says of the link itself.
    Link(String, Stamp),
    /// A directory. If it was listed: a hash of the names, without those that the test itself has made or removed.
    Directory(Stamp, Option<(Hash, Vec<String>)>),
    /// A regular file. Its content, once it is known; whether the stamp alone says that it is still the same.
    File(Stamp, Option<(Hash, bool)>),
    /// `/dev/null` and its like, of this number, with mode, user and group.
    Device(u64, [u32; 3]),
    /// The names of the machine and its domain, as `uname` tells them. The path is [`HOST`].
    Host([String; 2]),
}

/// Stands for the names of the machine. As a file it is never an input.
pub(crate) const HOST: &str = "/proc/sys/kernel/hostname";

/// Returns the names of the machine and of its domain.
pub(crate) fn host() -> [String; 2] {
    let names = rustix::system::uname();
    [names.nodename(), names.domainname()].map(|name| name.to_string_lossy().into_owned())
}

/// An input of a test.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Input {
    /// Absolute, and without links, `.` and `..`.
    pub path: String,
    /// What was looked at.
    pub looks: Looks,
    /// What was there.
    pub state: State,
}

/// Where times and inodes do not count.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The beginning of the test's `%t`, without its `.tmp`.
    pub outputs: &'a Path,
    /// Whether they count anywhere.
    pub compares_times: bool,
}

impl Place<'_> {
    /// Returns whether a path is one of the test's own outputs.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let rest = path.as_bytes().strip_prefix(self.outputs.as_os_str().as_bytes());
        // The script that lit writes for an external shell is made anew as well. Other tests' names may begin with this one's.
        rest.is_some_and(|rest| rest.starts_with(b".tmp") || rest == b".script")
    }
}

/// Returns the user and the group of files that this process makes.
fn own_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

impl Input {
    /// Returns whether all that was looked at is as it was.
    pub fn holds(&self, place: Place<'_>, contents: &Contents) -> bool {
        if let State::Host(names) = &self.state {
            return *names == host();
        }
        let path = Path::new(&self.path);
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            // An output that has gone would not be made.
            Err(error) => {
                let is_made = self.looks == Looks::OVERWRITTEN;
                return is_nothing(&error) && matches!(self.state, State::Missing(_)) && !is_made;
            }
        };
        let now = Stamp::from(&found);
        match &self.state {
            State::Missing(mode) => {
                self.looks == Looks::OVERWRITTEN
                    && found.is_file()
                    && now.links == 1
                    && now.mode & 0o7777 == *mode
                    && (now.user, now.group) == own_ids()
            }
            State::Link(target, before) => {
                fs::read_link(path).is_ok_and(|now| now == Path::new(target))
                    && self.stat_holds(before, &now, place)
            }
            State::Host(_) => false,
            State::Device(number, rights) => {
                found.file_type().is_char_device() && found.rdev() == *number && now.rights() == *rights
            }
            State::Directory(before, names) => {
                let names_hold = || match names {
                    Some((hash, except)) => {
                        names_in(path, except).is_ok_and(|now| content::hash_names(&now) == *hash)
                    }
                    None => true,
                };
                found.is_dir()
                    && now.allows_as(before)
                    && self.stat_holds(before, &now, place)
                    && names_hold()
            }
            // The kernel makes it up when it is read: only that counts.
            State::File(_, content) if path.starts_with("/proc") || path.starts_with("/sys") => {
                let hash = content.and_then(|(hash, _)| content::hash(path).ok().map(|now| now == hash));
                found.is_file() && (hash == Some(true) || !self.looks.has(Looks::CONTENT))
            }
            State::File(before, content) => {
                let is_kept = || {
                    !self.looks.has(Looks::CONTENT) || self.content_holds(before, &now, *content, contents)
                };
                let has_links = self.looks.has(Looks::OVERWRITTEN) && now.links != 1;
                found.is_file()
                    && !has_links
                    && now.allows_as(before)
                    && self.stat_holds(before, &now, place)
                    && is_kept()
            }
        }
    }

    fn stat_holds(&self, before: &Stamp, now: &Stamp, place: Place<'_>) -> bool {
        if !self.looks.has(Looks::STAT) && !self.looks.has(Looks::CONTENT) {
            return true;
        }
        let is_output = place.holds(&self.path);
        if place.compares_times && !is_output {
            return now == before;
        }
        // Of an output only what no run makes anew counts; elsewhere what a fresh checkout has alike.
        let has_size = is_output || matches!(self.state, State::File(..));
        (!has_size || now.size == before.size) && (!is_output || now.links == before.links)
    }

    fn content_holds(
        &self,
        before: &Stamp,
        now: &Stamp,
        content: Option<(Hash, bool)>,
        contents: &Contents,
    ) -> bool {
        let Some((hash, is_settled)) = content else { return false };
        (is_settled && before == now) || contents.of(Path::new(&self.path), now) == Some(hash)
    }

    /// Learns the content of a file that has stayed as it was since it was looked at. Returns whether it could.
    pub fn learn_content(&mut self, contents: &Contents) -> bool {
        match &mut self.state {
            State::File(stamp, content @ None) if self.looks.has(Looks::CONTENT) => {
                let Some(hash) = contents.of(Path::new(&self.path), stamp) else { return false };
                *content = Some((hash, content::is_told_by_stamp(Path::new(&self.path), stamp)));
                true
            }
            // Somebody may have changed them meanwhile.
            State::Host(names) => *names == host(),
            _ => true,
        }
    }

    /// Returns whether a change to the file at `changed` could be one to this input.
    pub fn concerns(&self, changed: &Path) -> bool {
        let path = Path::new(&self.path);
        let is_in = self.looks.has(Looks::NAMES) && changed.parent() == Some(path);
        path == changed || is_in || (matches!(self.state, State::Missing(_)) && changed.starts_with(path))
    }
}

/// Returns whether the error says that there is nothing at a path.
pub(crate) fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns a number for the kind of a file, as a directory tells it.
fn number_of(kind: fs::FileType) -> u8 {
    let is = [
        kind.is_file(),
        kind.is_dir(),
        kind.is_symlink(),
        kind.is_fifo(),
        kind.is_socket(),
        kind.is_char_device(),
        kind.is_block_device(),
    ];
    is.iter().position(|is| *is).map_or(u8::MAX, |at| at as u8)
}

/// Returns the names in a directory with their kinds, sorted, without some of them. Fails if a name is not UTF-8.
pub(crate) fn names_in(path: &Path, except: &[String]) -> io::Result<Vec<(String, u8)>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| ErrorKind::InvalidData)?;
        let kind = entry.file_type()?;
        if !except.contains(&name) {
            names.push((name, number_of(kind)));
        }
    }
    names.sort_unstable();
    Ok(names)
}
