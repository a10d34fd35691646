//! Files of real directories, as tests leave them. Whether runs are repeated on them is tested with the binary (`cli/tests/lit/flaky.rs`).

use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use super::*;
use crate::fake;
use crate::own_files;

fn script(dir: &Path) -> Script {
    Script { tmp_base: dir.join("a.test"), ..fake::script() }
}

/// Returns the test's files with modes, times and contents.
fn state(script: &Script) -> Vec<(PathBuf, u32, SystemTime, own_files::Content)> {
    let of = |(path, content): (PathBuf, own_files::Content)| {
        let found = path.symlink_metadata().unwrap();
        (path, found.mode(), found.modified().unwrap(), content)
    };
    own_files::read(script).into_iter().map(of).collect()
}

#[test]
fn files_are_restore_whatever_a_run_has_made_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(dir.path());
    let at = |name: &str| dir.path().join(format!("a.test.tmp{name}"));
    fs::create_dir_all(at(".d").join("closed")).unwrap();
    for (name, text) in [("", "one"), (".written", "two"), (".removed", "three"), (".renamed", "four")] {
        fs::write(at(name), text).unwrap();
        let old = SystemTime::now() - Duration::from_secs(1000);
        fs::File::options().write(true).open(at(name)).unwrap().set_modified(old).unwrap();
    }
    fs::write(at(".d").join("closed/in"), "five").unwrap();
    fs::set_permissions(at(".d").join("closed"), Permissions::from_mode(0o500)).unwrap();
    symlink("target", at(".link")).unwrap();
    rustix::fs::mknodat(CWD, at(".fifo"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let (before, kept) = (state(&script), Kept::of(&script));

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
    fs::set_permissions(at(""), Permissions::from_mode(0o600)).unwrap();
    kept.restore(&script).unwrap();
    assert_eq!(state(&script), before);

    // Nothing has happened: all stays as it is.
    let ino = at(".written").metadata().unwrap().ino();
    Kept::of(&script).restore(&script).unwrap();
    assert_eq!(at(".written").metadata().unwrap().ino(), ino);
}

#[test]
fn what_was_not_there_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(dir.path());
    fs::create_dir(dir.path().join("a.test.tmp")).unwrap();
    fs::write(dir.path().join("a.test.tmp/in"), "").unwrap();
    fs::write(dir.path().join("b.test.tmp"), "another test's").unwrap();
    Kept::default().restore(&script).unwrap();
    assert_eq!(entries(dir.path()), [dir.path().join("b.test.tmp")]);
}

#[test]
fn more_than_can_be_kept_is_removed_only_where_it_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(dir.path());
    let [same, changed] = [".1", ".2"].map(|end| dir.path().join(format!("a.test.tmp{end}")));
    for path in [&same, &changed] {
        fs::File::create(path).unwrap().set_len(BYTES_MAX + 1).unwrap();
    }
    let kept = Kept::of(&script);
    fs::write(&changed, "").unwrap();
    kept.restore(&script).unwrap();
    assert_eq!((same.exists(), changed.exists()), (true, false));
}

#[test]
fn a_directory_is_listed_once_and_a_test_that_has_begun_is_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let directories = Directories::default();
    let names = |test: &str| {
        let script = Script { tmp_base: dir.path().join(test), ..fake::script() };
        let mut names: Vec<_> =
            directories.own(&script).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    for name in ["a.tmp", "a.tmp.tmp1", "b.tmp.o", "c"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    assert_eq!(names("a"), ["a.tmp", "a.tmp.tmp1"]);
    assert_eq!(names("a.tmp"), ["a.tmp.tmp1"]);
    fs::write(dir.path().join("a.tmp2"), "").unwrap();
    assert_eq!(names("a"), ["a.tmp", "a.tmp.tmp1", "a.tmp2"]);
    assert_eq!((names("b").len(), names("c").len()), (1, 0));
}
