//! What each system call means for the inputs of a test.
//!
//! Two lists say what is known: calls that tell nothing that is not known otherwise (`calls::HARMLESS`, which the kernel lets pass), and
//! calls that name files (`Watch::judge`). Any other call makes the run one that teaches nothing. Calls are judged before they are made.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::calls::{
    CHANGING, CHANGING_WITH, EXCUSED, FLAGS_OF_NEW_PROCESSES, HARMLESS, HARMLESS_WITH, REQUESTS, TELLING,
    is_our_own_affair,
};
use crate::handlers::Handlers;
use crate::input::{Input, Looks, Stamp};
use crate::program::{self, Leads};
use crate::subject::Subject;
use crate::walk::{Refusal, Spot, Walk};
use hotstart_launch::tracing::{Awaited, Call, Rules, Watcher, trace_tree};

/// What a traced run has shown.
#[derive(Debug)]
pub struct Traced {
    /// Exit code of the traced code.
    pub code: i32,
    /// The inputs, with the content of large files still to be learned; or the reason why they cannot be told.
    pub inputs: Result<Vec<Input>, String>,
    /// Whether all traced processes have ended. Others end with this process.
    pub is_over: bool,
    /// Paths that it has made, emptied or removed.
    pub own: Vec<PathBuf>,
}

/// Runs `run` in a traced child of this process, which must have one thread, and tells what it depends on.
pub fn trace(subject: Subject, run: impl FnOnce() -> u8) -> io::Result<Traced> {
    let own = std::env::current_exe().ok();
    let mut watch = Watch {
        walk: Walk::default(),
        subject,
        refusal: None,
        changes: Vec::new(),
        pending: HashMap::new(),
        read: None,
        own,
        umask: umask(),
        handlers: None,
    };
    let number = |number: i64| u32::try_from(number).expect("numbers of system calls are small");
    let is_allowed = |call: &i64| *call != libc::SYS_getcwd || subject != Subject::Anywhere;
    let allowed: Vec<u32> = HARMLESS.into_iter().filter(is_allowed).map(number).collect();
    let always = CHANGING.map(|call| Awaited { number: number(call), only_with: None });
    let some = CHANGING_WITH.map(|(call, argument, flags)| Awaited {
        number: number(call),
        only_with: Some((argument, flags as u32)),
    });
    let rules =
        Rules { allowed: &allowed, allowed_with: &HARMLESS_WITH, awaited: &[&always[..], &some].concat() };
    let (code, is_over) = trace_tree(rules, &mut watch, run)?;
    let own = watch.walk.own_paths();
    let inputs = match watch.refusal {
        Some(why) => Err(why),
        None => watch.walk.into_inputs(),
    };
    Ok(Traced { code, inputs, is_over, own })
}

/// Returns the mask of modes for new files.
fn umask() -> u32 {
    let before = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(before);
    before.bits()
}

struct Watch {
    walk: Walk,
    subject: Subject,
    refusal: Option<Refusal>,
    /// What the call that is judged makes, empties or removes; whether it makes a directory.
    changes: Vec<(PathBuf, bool)>,
    /// The same of calls that are being made, by process: it counts if they succeed.
    pending: HashMap<i32, Vec<(PathBuf, bool)>>,
    /// The string that the judged call has at this address: to read it costs as much as all else.
    read: Option<(u64, Option<Vec<u8>>)>,
    /// This program.
    own: Option<PathBuf>,
    umask: u32,
    /// Programs that the kernel starts for others. Read when the first program is executed.
    handlers: Option<Handlers>,
}

impl Watcher for Watch {
    fn call(&mut self, call: &Call) -> bool {
        if self.refusal.is_some() {
            return false;
        }
        self.read = None;
        let judged = self.judge(call);
        let changes = std::mem::take(&mut self.changes);
        if let Err(why) = judged {
            let program = std::fs::read_to_string(format!("/proc/{}/comm", call.pid)).unwrap_or_default();
            self.refusal = Some(format!("{why} ({})", program.trim_end()));
            return false;
        }
        let is_change = !changes.is_empty();
        if is_change {
            self.pending.insert(call.pid, changes);
        }
        is_change
    }

    fn called(&mut self, pid: i32, succeeded: bool) {
        let changes = self.pending.remove(&pid).unwrap_or_default();
        for (path, is_dir) in changes {
            if succeeded { self.walk.make_own(path, is_dir) } else { self.walk.not_made(&path) }
        }
    }

    fn refuse(&mut self, why: &'static str) {
        self.refusal.get_or_insert_with(|| why.to_owned());
    }
}

/// A descriptor in a call's argument: the kernel takes the lower half.
fn descriptor(argument: u64) -> i32 {
    argument as u32 as i32
}

const HERE: i32 = libc::AT_FDCWD;

/// A file as a call names it.
#[derive(Clone, Copy)]
struct Named {
    /// The descriptor of the directory in which a relative name begins.
    directory: i32,
    /// The address of the name in the process; 0 if the call has none.
    name: u64,
}

impl Named {
    /// A name that begins in the working directory.
    fn here(name: u64) -> Self {
        Named { directory: HERE, name }
    }

    /// A name with the directory that the call's argument gives.
    fn at(directory: u64, name: u64) -> Self {
        Named { directory: descriptor(directory), name }
    }
}

impl Watch {
    /// Records that the call makes, empties or removes what is there, if it succeeds.
    fn changes(&mut self, path: PathBuf, is_new_dir: bool) -> Result<(), Refusal> {
        self.walk.about_to_change(&path)?;
        self.changes.push((path, is_new_dir));
        Ok(())
    }

    fn judge(&mut self, call: &Call) -> Result<(), Refusal> {
        let a = call.args;
        let flag = |argument: u64, flag: i32| argument & flag as u64 != 0;
        let followed = |flags: u64| !flag(flags, libc::AT_SYMLINK_NOFOLLOW);
        match call.number {
            libc::SYS_open => self.open(call, Named::here(a[0]), a[1], a[2]),
            libc::SYS_openat => self.open(call, Named::at(a[0], a[1]), a[2], a[3]),
            // Others could change what it points to. It asks to follow no link of the kernel's, which are refused anyway.
            libc::SYS_openat2 if call.is_ours => self.open_how(call, a),
            libc::SYS_creat => self.open(
                call,
                Named::here(a[0]),
                (libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY) as u64,
                a[1],
            ),
            libc::SYS_stat => self.look(call, Named::here(a[0]), true, Looks::STAT),
            libc::SYS_lstat => self.look(call, Named::here(a[0]), false, Looks::STAT),
            libc::SYS_newfstatat => self.look(call, Named::at(a[0], a[1]), followed(a[3]), Looks::STAT),
            libc::SYS_statx => self.look(call, Named::at(a[0], a[1]), followed(a[2]), Looks::STAT),
            libc::SYS_access => self.look(call, Named::here(a[0]), true, Looks::EXISTS),
            libc::SYS_faccessat => self.look(call, Named::at(a[0], a[1]), true, Looks::EXISTS),
            libc::SYS_faccessat2 => self.look(call, Named::at(a[0], a[1]), followed(a[3]), Looks::EXISTS),
            libc::SYS_readlink => self.readlink(call, Named::here(a[0])),
            libc::SYS_readlinkat => self.readlink(call, Named::at(a[0], a[1])),
            libc::SYS_chdir => self.look(call, Named::here(a[0]), true, Looks::EXISTS),
            // The directory was looked at when it was opened.
            libc::SYS_fchdir => Ok(()),
            libc::SYS_execve => self.execute(call, Named::here(a[0])),
            libc::SYS_execveat if a[4] == 0 => self.execute(call, Named::at(a[0], a[1])),
            libc::SYS_mkdir => self.make(call, Named::here(a[0]), true),
            libc::SYS_mkdirat => self.make(call, Named::at(a[0], a[1]), true),
            libc::SYS_symlink => self.make(call, Named::here(a[1]), false),
            libc::SYS_symlinkat => self.make(call, Named::at(a[1], a[2]), false),
            libc::SYS_rmdir => self.remove(call, Named::here(a[0]), true),
            libc::SYS_unlink => self.remove(call, Named::here(a[0]), false),
            libc::SYS_unlinkat => self.remove(call, Named::at(a[0], a[1]), flag(a[2], libc::AT_REMOVEDIR)),
            libc::SYS_rename => self.rename(call, Named::here(a[0]), Named::here(a[1])),
            libc::SYS_renameat => self.rename(call, Named::at(a[0], a[1]), Named::at(a[2], a[3])),
            libc::SYS_renameat2 if a[4] <= 1 => {
                self.rename(call, Named::at(a[0], a[1]), Named::at(a[2], a[3]))
            }
            libc::SYS_link => self.link(call, Named::here(a[0]), Named::here(a[1]), false),
            libc::SYS_linkat => {
                let follows = flag(a[4], libc::AT_SYMLINK_FOLLOW);
                self.link(call, Named::at(a[0], a[1]), Named::at(a[2], a[3]), follows)
            }
            libc::SYS_chmod => self.change(call, Named::here(a[0]), true),
            libc::SYS_fchmodat => self.change(call, Named::at(a[0], a[1]), true),
            libc::SYS_utimensat => self.change(call, Named::at(a[0], a[1]), followed(a[3])),
            libc::SYS_fchmod => self.change(call, Named::at(a[0], 0), true),
            libc::SYS_truncate => self.change(call, Named::here(a[0]), true),
            _ => self.others(call),
        }
    }

    /// Judges the calls that name no files.
    fn others(&mut self, call: &Call) -> Result<(), Refusal> {
        let a = call.args;
        // Our own code may ask for the time and for its own numbers: no verdict comes from them.
        let is_allowed = call.is_ours && is_our_own_affair(call.number)
            || self.subject == Subject::Known && self.is_excused(call)
            || self.subject == Subject::Anywhere && call.number == libc::SYS_getcwd && call.is_ours
            || match call.number {
                libc::SYS_clone => a[0] & !FLAGS_OF_NEW_PROCESSES == 0,
                libc::SYS_clone3 => is_known_clone(call),
                // By its own number as well, which a thread is told when it is made.
                libc::SYS_sched_getaffinity | libc::SYS_get_robust_list => descriptor(a[0]) == call.pid,
                libc::SYS_ioctl => REQUESTS.contains(&(a[1] as u32 as u64)),
                libc::SYS_wait4 => a[3] == 0,
                libc::SYS_waitid => a[4] == 0,
                libc::SYS_prlimit64 => a[0] == 0,
                libc::SYS_setrlimit => true,
                libc::SYS_prctl => matches!(a[0] as i32, libc::PR_SET_NAME | PR_CAPBSET_READ),
                libc::SYS_getrandom => self.is_of_allocator(call),
                libc::SYS_clock_nanosleep => a[1] == 0,
                libc::SYS_statfs => return self.statfs(call),
                libc::SYS_uname if self.subject != Subject::Anywhere => {
                    self.walk.look_host();
                    true
                }
                _ => false,
            };
        if is_allowed {
            return Ok(());
        }
        Err(match TELLING.iter().find(|(number, _)| *number == call.number) {
            Some((_, what)) => format!("asks for {what}"),
            None if call.number < 0 => "makes system calls of another architecture".to_owned(),
            None => format!("makes system call {}, which is on no list", call.number),
        })
    }

    /// Returns whether the answer does not matter to a program that is known.
    fn is_excused(&self, call: &Call) -> bool {
        let a = call.args;
        match call.number {
            libc::SYS_socket => a[0] == libc::AF_UNIX as u64,
            libc::SYS_connect => {
                let path = call.string(a[1] + size_of::<libc::sa_family_t>() as u64);
                path.is_some_and(|path| path == NAME_SERVICE.as_bytes())
                    && std::fs::symlink_metadata(NAME_SERVICE).is_err()
            }
            other => EXCUSED.contains(&other),
        }
    }

    /// Returns whether glibc's allocator asks for the eight bytes with which it recognizes its own freed memory. They are put into a
    /// variable of libc, where no program would put numbers of its own.
    fn is_of_allocator(&self, call: &Call) -> bool {
        const GRND_NONBLOCK: u64 = 1;
        call.args[1] == 8 && call.args[2] == GRND_NONBLOCK && is_in_libc(call.pid, call.args[0])
    }

    fn string(&mut self, call: &Call, address: u64) -> Option<Vec<u8>> {
        match &self.read {
            Some((at, text)) if *at == address => text.clone(),
            _ => self.read.insert((address, call.string(address))).1.clone(),
        }
    }

    /// Returns the directory from which a path is followed, and the path. `None` if the call names a descriptor instead.
    fn path(&mut self, call: &Call, named: Named) -> Result<Option<(PathBuf, PathBuf)>, Refusal> {
        let path = if named.name == 0 { Some(Vec::new()) } else { self.string(call, named.name) };
        // The call will fail with EFAULT.
        let Some(path) = path else { return Err("uses an address that cannot be read".to_owned()) };
        if path.is_empty() {
            return Ok(None);
        }
        let path = String::from_utf8(path).map_err(|_| "uses a path that is not UTF-8".to_owned())?;
        let path = PathBuf::from(path);
        if path.is_absolute() {
            return Ok(Some((PathBuf::from("/"), path)));
        }
        let is_from_here = named.directory == HERE && !call.is_ours;
        let is_below = || path.components().all(|part| matches!(part, Component::Normal(_)));
        if self.subject == Subject::Anywhere && is_from_here && !is_below() {
            return Err(format!("looks at '{}' from its working directory", path.display()));
        }
        let base = if named.directory == HERE {
            format!("/proc/{}/cwd", call.pid)
        } else {
            format!("/proc/{}/fd/{}", call.pid, named.directory)
        };
        let base = std::fs::read_link(base)
            .map_err(|_| "uses a path below a descriptor that is not open".to_owned())?;
        let is_there = base.is_absolute() && std::fs::symlink_metadata(&base).is_ok();
        if is_there { Ok(Some((base, path))) } else { Err("works in a directory that is gone".to_owned()) }
    }

    fn spot(&mut self, call: &Call, named: Named, follows: bool) -> Result<Option<Spot>, Refusal> {
        let Some((base, path)) = self.path(call, named)? else { return Ok(None) };
        self.walk.to(&base, &path, follows).map(Some)
    }

    fn look(&mut self, call: &Call, named: Named, follows: bool, looks: Looks) -> Result<(), Refusal> {
        match self.spot(call, named, follows)? {
            // Our own code asks only what it is, if it is a directory.
            Some(Spot::Found { path, stamp }) if call.is_ours && is_dir(&stamp) => {
                self.walk.look(&Spot::Found { path, stamp }, Looks::EXISTS, false)
            }
            Some(spot) => self.walk.look(&spot, looks, false),
            // A descriptor: what it leads to was looked at when it was opened.
            None => Ok(()),
        }
    }

    fn readlink(&mut self, call: &Call, named: Named) -> Result<(), Refusal> {
        // The program, which was looked at when it was executed.
        if self.string(call, named.name).is_some_and(|path| path == b"/proc/self/exe") {
            return Ok(());
        }
        self.look(call, named, false, Looks::EXISTS)
    }

    /// Takes an `openat2`, whose flags and mode are in memory.
    fn open_how(&mut self, call: &Call, a: [u64; 6]) -> Result<(), Refusal> {
        let (Some(flags), Some(mode)) = (call.word(a[2]), call.word(a[2] + 8)) else {
            return Err("uses an address that cannot be read".to_owned());
        };
        self.open(call, Named::at(a[0], a[1]), flags, mode)
    }

    fn open(&mut self, call: &Call, named: Named, flags: u64, mode: u64) -> Result<(), Refusal> {
        let has = |flag: i32| flags & flag as u64 == flag as u64;
        let makes = has(libc::O_CREAT);
        let writes = flags as i32 & libc::O_ACCMODE != libc::O_RDONLY;
        let stays = has(libc::O_NOFOLLOW) || (makes && has(libc::O_EXCL));
        if self.string(call, named.name).is_some_and(|path| OF_ITSELF.contains(&&*path)) && !writes {
            return Ok(());
        }
        let Some(spot) = self.spot(call, named, !stays)? else { return Ok(()) };
        if has(libc::O_PATH) {
            return self.walk.look(&spot, Looks::STAT, false);
        }
        match &spot {
            Spot::Missing { is_end: false, .. } => Ok(()),
            Spot::Missing { .. } if !makes => Ok(()),
            Spot::Missing { path, .. } => {
                // With O_EXCL it must be missing.
                if has(libc::O_TRUNC) && !has(libc::O_EXCL) {
                    self.walk.look_overwritten(&spot, mode as u32 & 0o7777 & !self.umask)?;
                }
                self.changes(path.clone(), false)?;
                Ok(())
            }
            Spot::Found { .. } if makes && has(libc::O_EXCL) => self.walk.look(&spot, Looks::EXISTS, false),
            Spot::Found { stamp, .. } if is_dir(stamp) => {
                let told = if call.is_ours { Looks::EXISTS } else { Looks::STAT };
                // A file without a name is made there, whatever else is there.
                let told = if has(libc::O_TMPFILE) { told } else { told.and(Looks::NAMES) };
                self.walk.look(&spot, told, false)
            }
            Spot::Found { path, stamp } => {
                let is_file = stamp.mode & libc::S_IFMT == libc::S_IFREG;
                if has(libc::O_TRUNC) {
                    self.walk.look_overwritten(&spot, 0)?;
                } else {
                    self.walk.look(&spot, Looks::STAT.and(Looks::CONTENT), writes)?;
                }
                if is_file && (writes || has(libc::O_TRUNC)) {
                    self.changes(path.clone(), false)?;
                }
                Ok(())
            }
        }
    }

    /// A directory or link that is made, if nothing is there.
    fn make(&mut self, call: &Call, named: Named, is_dir: bool) -> Result<(), Refusal> {
        let Some(spot) = self.spot(call, named, false)? else { return Ok(()) };
        match &spot {
            Spot::Missing { path, is_end: true, .. } => self.changes(path.clone(), is_dir)?,
            Spot::Missing { .. } => {}
            Spot::Found { .. } => self.walk.look(&spot, Looks::EXISTS, false)?,
        }
        Ok(())
    }

    fn remove(&mut self, call: &Call, named: Named, is_dir: bool) -> Result<(), Refusal> {
        let Some(spot) = self.spot(call, named, false)? else { return Ok(()) };
        if let Spot::Found { path, .. } = &spot {
            self.walk.look(&spot, if is_dir { Looks::NAMES } else { Looks::EXISTS }, false)?;
            self.changes(path.clone(), false)?;
        }
        Ok(())
    }

    fn rename(&mut self, call: &Call, from: Named, to: Named) -> Result<(), Refusal> {
        let (Some(from), Some(to)) = (self.spot(call, from, false)?, self.spot(call, to, false)?) else {
            return Ok(());
        };
        let is_onto_dir = matches!(&to, Spot::Found { stamp, .. } if is_dir(stamp));
        self.walk.look(&to, if is_onto_dir { Looks::NAMES } else { Looks::EXISTS }, false)?;
        let Spot::Found { path, stamp } = &from else { return Ok(()) };
        let (is_dir, is_own) = (is_dir(stamp), self.walk.is_own(path));
        if is_dir && !is_own {
            return Err(format!("renames the directory '{}', which it has not made", path.display()));
        }
        self.walk.look(&from, Looks::STAT.and(Looks::CONTENT), true)?;
        let (Spot::Missing { path: target, .. } | Spot::Found { path: target, .. }) = &to;
        self.changes(target.clone(), is_dir)?;
        self.changes(path.clone(), false)?;
        Ok(())
    }

    fn link(&mut self, call: &Call, from: Named, to: Named, follows: bool) -> Result<(), Refusal> {
        let (Some(from), Some(to)) = (self.spot(call, from, follows)?, self.spot(call, to, false)?) else {
            return Err("makes a name for a file that has none".to_owned());
        };
        self.walk.look(&from, Looks::STAT.and(Looks::CONTENT), true)?;
        self.walk.look(&to, Looks::EXISTS, false)?;
        if let (Spot::Found { .. }, Spot::Missing { path, is_end: true, .. }) = (&from, &to) {
            self.changes(path.clone(), false)?;
        }
        Ok(())
    }

    /// A change to a file that leaves its content, or cuts it off.
    fn change(&mut self, call: &Call, named: Named, follows: bool) -> Result<(), Refusal> {
        let spot = match self.spot(call, named, follows)? {
            Some(spot) => spot,
            None => {
                let link = format!("/proc/{}/fd/{}", call.pid, named.directory);
                let Ok(path) = std::fs::read_link(link) else { return Ok(()) };
                if !path.is_absolute() {
                    return Ok(());
                }
                self.walk.to(Path::new("/"), &path, false)?
            }
        };
        let Spot::Found { path, stamp } = &spot else { return Ok(()) };
        if is_dir(stamp) && !self.walk.is_own(path) {
            return Err(format!("changes the directory '{}', which it has not made", path.display()));
        }
        self.walk.look(&spot, Looks::STAT.and(Looks::CONTENT), true)?;
        self.changes(path.clone(), false)?;
        Ok(())
    }

    fn execute(&mut self, call: &Call, named: Named) -> Result<(), Refusal> {
        let named = self.path(call, named)?;
        let Some((base, path)) = named else { return Err("executes a descriptor".to_owned()) };
        let mut next = match &self.own {
            // The second start of this program, which sets limits.
            Some(own) if call.is_ours && path == Path::new("/proc/self/exe") => Some((base, own.clone())),
            _ => Some((base, path)),
        };
        let handlers = self.handlers.get_or_insert_with(Handlers::now);
        for _ in 0..5 {
            let Some((base, name)) = next.take() else { return Ok(()) };
            let spot = self.walk.to(&base, &name, true)?;
            let Spot::Found { path, .. } = &spot else { return Ok(()) };
            self.walk.look(&spot, Looks::STAT.and(Looks::CONTENT), false)?;
            self.walk.executes(path)?;
            next = match program::leads(path, &name, handlers) {
                Leads::To(other) => Some((PathBuf::from("/"), PathBuf::from(other))),
                Leads::Nowhere => None,
                Leads::Unknown => {
                    return Err(format!("executes '{}', whose kind is not known", path.display()));
                }
            };
        }
        Err("executes a script of a script of scripts".to_owned())
    }

    /// Numbers of free blocks change all the time; only what is missing stays so.
    fn statfs(&mut self, call: &Call) -> Result<(), Refusal> {
        match self.spot(call, Named::here(call.args[0]), true)? {
            Some(Spot::Missing { .. }) => Ok(()),
            _ => Err("asks for the state of a file system".to_owned()),
        }
    }
}

/// Returns whether a `clone3` makes what is known, and does not choose the number, which tells whether a process has it.
fn is_known_clone(call: &Call) -> bool {
    // Offset in struct clone_args, and size of all of it that is known.
    const NUMBERS: u64 = 72;
    const SIZE: u64 = 88;
    let [at, size, ..] = call.args;
    let chooses = || size > NUMBERS && call.word(at + NUMBERS) != Some(0);
    size <= SIZE && call.word(at).is_some_and(|flags| flags & !FLAGS_OF_NEW_PROCESSES == 0) && !chooses()
}

fn is_dir(stamp: &Stamp) -> bool {
    stamp.mode & libc::S_IFMT == libc::S_IFDIR
}

/// A process's own mappings: files that it has opened, and addresses, which it knows anyway.
const OF_ITSELF: [&[u8]; 1] = [b"/proc/self/maps"];

/// The socket of the cache of libc's name service.
const NAME_SERVICE: &str = "/var/run/nscd/socket";

const PR_CAPBSET_READ: i32 = 23;

/// Returns whether an address of a process lies in the variables of its libc.
fn is_in_libc(pid: i32, address: u64) -> bool {
    let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { return false };
    let mut end_of_libc = 0;
    for line in maps.lines() {
        let Some((range, rest)) = line.split_once(' ') else { return false };
        let Some((from, to)) = range.split_once('-') else { return false };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else {
            return false;
        };
        let name = rest.split_whitespace().nth(4).unwrap_or("");
        let is_libc = name.ends_with("/libc.so.6") || (name.is_empty() && from == end_of_libc);
        if is_libc {
            end_of_libc = to;
        }
        if (from..to).contains(&address) {
            return is_libc && rest.starts_with("rw");
        }
    }
    false
}
