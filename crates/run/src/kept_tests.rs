//! Files of real directories, as tests leave them. Whether runs are repeated on them is tested with the binary (`cli/tests/lit/flaky.rs`).

use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use hotstart_model::Script;

use super::*;
use crate::fake;
use crate::own_files;

fn base(dir: &Path) -> PathBuf {
    dir.join("a.test")
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Returns the test's files with modes, times and contents.
fn state(base: &Path) -> Vec<(PathBuf, u32, SystemTime, own_files::Content)> {
    let of = |(path, content): (PathBuf, own_files::Content)| {
        let found = path.symlink_metadata().unwrap();
        (path, found.mode(), found.modified().unwrap(), content)
    };
    own_files::read(&Script { tmp_base: base.to_owned(), ..fake::script() }).into_iter().map(of).collect()
}

#[test]
fn files_are_restore_whatever_a_run_has_made_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    let at = |name: &str| dir.path().join(format!("a.test.tmp{name}"));
    fs::create_dir_all(at(".d").join("closed")).unwrap();
    fs::create_dir_all(at(".attributes")).unwrap();
    for (name, text) in [("", "one"), (".written", "two"), (".removed", "three"), (".renamed", "four")] {
        fs::write(at(name), text).unwrap();
        let old = SystemTime::now() - Duration::from_secs(1000);
        fs::File::options().write(true).open(at(name)).unwrap().set_modified(old).unwrap();
    }
    fs::write(at(".d").join("closed/in"), "five").unwrap();
    fs::set_permissions(at(".d").join("closed"), Permissions::from_mode(0o500)).unwrap();
    symlink("target", at(".link")).unwrap();
    rustix::fs::mknodat(CWD, at(".fifo"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let (before, kept) = (state(&base), Kept::of(&base).unwrap());

    fs::write(at(".written"), "2").unwrap();
    fs::remove_file(at(".removed")).unwrap();
    fs::write(at(".other"), "").unwrap();
    fs::rename(at(".other"), at(".renamed")).unwrap();
    fs::set_permissions(at(".d").join("closed"), Permissions::from_mode(0o700)).unwrap();
    fs::remove_dir_all(at(".d")).unwrap();
    fs::write(at(".d"), "a file").unwrap();
    fs::remove_file(at(".link")).unwrap();
    fs::create_dir_all(at(".link").join("new")).unwrap();
    fs::remove_file(at(".fifo")).unwrap();
    fs::write(at(".new"), "").unwrap();
    // Where the file system has no attributes, the directory just stays.
    let _ = rustix::fs::setxattr(at(".attributes"), "user.x", b"1", rustix::fs::XattrFlags::empty());
    fs::set_permissions(at(""), Permissions::from_mode(0o600)).unwrap();
    kept.restore(&base).unwrap();
    assert_eq!(state(&base), before);
    assert!(!has_attributes(&at(".attributes")));

    // Nothing has happened: all stays as it is.
    let ino = at(".written").metadata().unwrap().ino();
    Kept::of(&base).unwrap().restore(&base).unwrap();
    assert_eq!(at(".written").metadata().unwrap().ino(), ino);
}

#[test]
fn what_was_not_there_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    fs::create_dir(dir.path().join("a.test.tmp")).unwrap();
    fs::write(dir.path().join("a.test.tmp/in"), "").unwrap();
    fs::write(dir.path().join("b.test.tmp"), "another test's").unwrap();
    Kept::default().restore(&base).unwrap();
    assert_eq!(entries(dir.path()), [dir.path().join("b.test.tmp")]);
}

#[test]
fn what_could_not_be_restored_exactly_is_not_kept() {
    type Make = fn(&Path);
    let ways: [(&str, Make); 6] = [
        ("nothing", |_| ()),
        ("a file", |path| fs::write(path, "x").unwrap()),
        ("a second name", |path| {
            fs::write(path, "x").unwrap();
            fs::hard_link(path, path.with_extension("other")).unwrap();
        }),
        ("too many bytes", |path| fs::File::create(path).unwrap().set_len(BYTES_MAX + 1).unwrap()),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
        ("a deep socket", |path| {
            fs::create_dir_all(path.join("d/e")).unwrap();
            drop(std::os::unix::net::UnixListener::bind(path.join("d/e/f")).unwrap());
        }),
    ];
    for (what, make) in ways {
        let dir = tempfile::tempdir().unwrap();
        make(&dir.path().join("a.test.tmp.o"));
        let is_kept = Kept::of(&base(dir.path())).is_some();
        assert_eq!(is_kept, matches!(what, "nothing" | "a file"), "{what}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.test.tmp");
    fs::write(&path, "").unwrap();
    match rustix::fs::setxattr(&path, "user.x", b"1", rustix::fs::XattrFlags::empty()) {
        Ok(()) => assert!(Kept::of(&base(dir.path())).is_none()),
        Err(error) => eprintln!("not tested: {} has no attributes: {error}", dir.path().display()),
    }
}

/// Paths in it are too long for the kernel, and it may be closed.
#[test]
fn a_deep_directory_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let name = "x".repeat(200);
    let mut at = File::open(dir.path()).unwrap();
    for name in std::iter::once("a.test.tmp.d").chain(std::iter::repeat_n(name.as_str(), 25)) {
        rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inner = File::from(rustix::fs::openat(&at, name, flags, Mode::empty()).unwrap());
        at = inner;
    }
    rustix::fs::fchmod(&at, Mode::RUSR).unwrap();
    assert!(Kept::of(&base(dir.path())).is_none());
    Kept::default().restore(&base(dir.path())).unwrap();
    assert!(entries(dir.path()).is_empty());
}

/// Reading does not show in the time of the last access, and that is restored.
#[test]
fn times_of_the_last_access_stay() {
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    let path = dir.path().join("a.test.tmp");
    fs::write(&path, "x").unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let set = |time| {
        let times = fs::FileTimes::new().set_accessed(time);
        fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    };
    let accessed = || path.metadata().unwrap().accessed().unwrap();
    set(old);
    let link = dir.path().join("a.test.tmp.l");
    symlink("x", &link).unwrap();
    let of_link = || link.symlink_metadata().unwrap().accessed().unwrap();
    let linked = of_link();
    let kept = Kept::of(&base).unwrap();
    assert_eq!((accessed(), of_link()), (old, linked));
    set(SystemTime::now());
    kept.restore(&base).unwrap();
    assert_eq!(accessed(), old);
}

#[test]
fn the_directory_of_outputs_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("Output/a.test");
    fs::create_dir(dir.path().join("Output")).unwrap();
    fs::write(dir.path().join("Output/a.test.tmp"), "x").unwrap();
    let kept = Kept::of(&base).unwrap();
    fs::remove_dir_all(dir.path().join("Output")).unwrap();
    kept.restore(&base).unwrap();
    assert_eq!(fs::read(dir.path().join("Output/a.test.tmp")).unwrap(), b"x");
}

/// What counts is not lost where something cannot be restored.
#[test]
fn nothing_is_removed_where_not_all_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let mut at = File::open(dir.path()).unwrap();
    for name in std::iter::once("a.test.tmp.d").chain(std::iter::repeat_n("d", DEEP + 1)) {
        rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inner = File::from(rustix::fs::openat(&at, name, flags, Mode::empty()).unwrap());
        at = inner;
    }
    for name in ["a.test.tmp", "a.test.tmp.x", "a.test.tmp.a", "a.test.tmp.z"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    assert!(Kept::default().restore(&base(dir.path())).is_err());
    assert_eq!(entries(dir.path()).len(), 5);
}

/// A directory that cannot be made again may be a link to another place by now.
#[test]
fn nothing_is_changed_behind_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let base = base(dir.path());
    let own = dir.path().join("a.test.tmp");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("in"), "own").unwrap();
    let kept = Kept::of(&base).unwrap();
    fs::remove_dir_all(&own).unwrap();
    symlink(outside.path(), &own).unwrap();
    fs::write(outside.path().join("in"), "other").unwrap();
    kept.restore(&base).unwrap();
    assert_eq!(fs::read(outside.path().join("in")).unwrap(), b"other");
    assert_eq!(fs::read(own.join("in")).unwrap(), b"own");
}
