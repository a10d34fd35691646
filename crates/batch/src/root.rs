//! Makes a root directory on a worker, in which each file has the path that it has on the machine of the run.
//!
//! Nothing is asked of the worker but to allow a user namespace, or to be root. The inputs may be links into the worker's storage, so
//! they are never written: a directory in which no test has outputs is mounted read-only, what tests could overwrite elsewhere is copied,
//! large programs and libraries are linked.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount_bind_recursive, mount_change, mount_remount,
    unmount,
};
use rustix::process::{chroot, getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::order::Order;
use crate::{BATCH, FILES, MADE, ORDER, OWN, PROGRAM, RUN};

/// Directories of the worker's kernel that tests see. The last one is not needed.
const OF_THE_KERNEL: [(&str, bool); 3] = [("proc", true), ("dev", true), ("sys", false)];

/// Makes the root below `action`, and replaces this process by one that runs the batch in it.
pub(crate) fn enter(action: &Path) -> Result<Infallible, String> {
    let action =
        action.canonicalize().map_err(|error| format!("cannot enter the action's directory: {error}"))?;
    let order = read(&action.join(OWN).join(ORDER))?;
    let made = action.join(MADE);
    let told = |(path, error): Failure| format!("cannot make '{}': {error}", path.display());
    make(&action, &made, &order).map_err(told)?;
    unshare(order.owner).map_err(|error| {
        format!("tests need a root directory of their own; allow user namespaces to the worker, or run it as root: {error}")
    })?;
    // What is mounted here must not be seen by the worker.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| format!("cannot make mounts private: {error}"))?;
    for directory in &order.fixed {
        let (from, to) = (action.join(FILES).join(below(directory)), made.join(below(directory)));
        if from.is_dir() && !mount_read_only(&from, &to) {
            place(&from, &to, &HashSet::new()).map_err(told)?;
        }
    }
    for (name, is_needed) in OF_THE_KERNEL {
        let mounted = mount_bind_recursive(Path::new("/").join(name), made.join(name));
        if let Err(error) = mounted {
            if is_needed {
                return Err(format!("cannot mount /{name}: {error}"));
            }
        }
    }
    chroot(&made).map_err(|error| format!("cannot enter the root: {error}"))?;
    std::env::set_current_dir("/").map_err(|error| format!("cannot enter the root: {error}"))?;
    let program = Path::new("/").join(OWN).join(PROGRAM);
    let error = Command::new(&program)
        .args([OsString::from(BATCH), OsString::from(RUN)])
        .env_clear()
        .env("HOTSTART_CACHE_DIR", Path::new("/").join(OWN).join("cache"))
        .env("PATH", "/usr/bin:/bin")
        .exec();
    Err(format!("cannot start {} in the root: {error}", program.display()))
}

/// Mounts a directory read-only. Returns whether that is allowed.
fn mount_read_only(from: &Path, to: &Path) -> bool {
    if mount_bind_recursive(from, to).is_err() {
        return false;
    }
    // A user namespace may not drop the restrictions that a mount has.
    let read_only = MountFlags::BIND | MountFlags::RDONLY;
    let kinds = [
        read_only,
        read_only | MountFlags::NOSUID | MountFlags::NODEV,
        read_only | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
    ];
    let is_mounted = kinds.into_iter().any(|flags| mount_remount(to, flags, "").is_ok());
    if !is_mounted {
        let _ = unmount(to, UnmountFlags::DETACH);
    }
    is_mounted
}

/// Returns a path of the tests relative to a root.
fn below(path: &str) -> &Path {
    let path = Path::new(path);
    path.strip_prefix("/").unwrap_or(path)
}

/// Reads a batch.
pub(crate) fn read(path: &Path) -> Result<Order, String> {
    let text = fs::read(path).map_err(|error| format!("cannot read '{}': {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("cannot read '{}': {error}", path.display()))
}

/// Leaves the worker's namespaces. The user keeps the numbers that the tests know.
fn unshare((user, group): (u32, u32)) -> io::Result<()> {
    let (own_user, own_group) = (geteuid().as_raw(), getegid().as_raw());
    #[expect(
        deprecated,
        reason = "only sharing of files between threads would be unsafe, and there is one thread"
    )]
    let unshare = |flags| rustix::thread::unshare(flags);
    match unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) {
        Ok(()) => {
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {own_user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {own_group} 1"))
        }
        // Without user namespaces root can do the same, but not as another user.
        Err(_) if own_user == 0 && user == 0 => Ok(unshare(UnshareFlags::NEWNS)?),
        Err(error) => Err(error.into()),
    }
}

type Failure = (PathBuf, io::Error);

fn make(action: &Path, made: &Path, order: &Order) -> Result<(), Failure> {
    let fixed: HashSet<PathBuf> =
        order.fixed.iter().map(|path| action.join(FILES).join(below(path))).collect();
    // Links in a directory that will be mounted are made where its files are.
    let at = |path: &str| match order.fixed.iter().any(|fixed| Path::new(path).starts_with(fixed)) {
        true => action.join(FILES).join(below(path)),
        false => made.join(below(path)),
    };
    let directory = |path: PathBuf| fs::create_dir_all(&path).map_err(|error| (path, error));
    for path in ["proc", "dev", "sys", "tmp", OWN] {
        directory(made.join(path))?;
    }
    let tmp = made.join("tmp");
    fs::set_permissions(&tmp, PermissionsExt::from_mode(0o1777)).map_err(|error| (tmp, error))?;
    // Links to directories come before what lies behind them; real paths contain none.
    for path in &order.directories {
        directory(at(path))?;
        directory(made.join(below(path)))?;
    }
    place(&action.join(FILES), made, &fixed)?;
    for (link, target) in &order.links {
        let link = at(link);
        if let Some(parent) = link.parent() {
            directory(parent.to_owned())?;
        }
        match symlink(target, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err((link, error)),
            _ => {}
        }
    }
    for name in [PROGRAM, ORDER] {
        let (from, to) = (action.join(OWN).join(name), made.join(OWN).join(name));
        link_or_copy(&from, &to).map_err(|error| (to, error))?;
    }
    Ok(())
}

/// Places all files below `from` below `to`, but for those in directories that are `fixed`.
fn place(from: &Path, to: &Path, fixed: &HashSet<PathBuf>) -> Result<(), Failure> {
    let told = |path: &Path, error: io::Error| (path.to_owned(), error);
    for entry in fs::read_dir(from).map_err(|error| told(from, error))? {
        let entry = entry.map_err(|error| told(from, error))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let found = fs::metadata(&source).map_err(|error| told(&source, error))?;
        if found.is_dir() {
            fs::create_dir_all(&target).map_err(|error| told(&target, error))?;
            if !fixed.contains(&source) {
                place(&source, &target, fixed)?;
            }
        } else if found.len() > LARGE && is_program(&source) {
            link_or_copy(&source, &target).map_err(|error| told(&target, error))?;
        } else {
            copy(&source, &target).map_err(|error| told(&target, error))?;
        }
    }
    Ok(())
}

/// Programs and libraries above this size are linked, since to copy them takes long and no test writes them. All else is copied: a test
/// that writes to its source must not change what the worker has stored.
const LARGE: u64 = 1 << 20;

fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => copy(from, to),
        Ok(()) => Ok(()),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let mode = fs::metadata(from)?.permissions().mode();
    fs::set_permissions(to, PermissionsExt::from_mode(if mode & 0o111 != 0 { 0o755 } else { 0o644 }))
}
