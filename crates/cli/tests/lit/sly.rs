//! `--cache` against a program that was written to deceive it (`probe.c`): it reads its input in ways that could be overlooked, and asks
//! for what no key can hold.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use crate::remember::{Change, Place, check_all, same_times};

static PROBE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let (path, source) =
        (dir.path().join("probe"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lit/probe.c"));
    let built = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&path).arg(source).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    (dir, path)
});

fn place(run: &str) -> Place {
    let place = Place::new(run);
    fs::copy(&PROBE.1, place.path("bin/probe")).unwrap();
    place.suite.file("bin/script", format!("#! {} missing-link\n", place.path("bin/probe").display()));
    fs::set_permissions(place.path("bin/script"), PermissionsExt::from_mode(0o755)).unwrap();
    // The kernel opens a file whose name ends with the carriage return.
    fs::copy(&PROBE.1, place.path("bin/probe\r")).unwrap();
    place.suite.file("bin/returned", format!("#!{}\r missing-link\n", place.path("bin/probe").display()));
    fs::set_permissions(place.path("bin/returned"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir(place.path("late")).unwrap();
    for (link, target) in [("one", "two"), ("two", "three"), ("three", "data/file")] {
        symlink(target, place.path(link)).unwrap();
    }
    place
}

fn other_content(place: &mut Place) {
    let path = place.path("data/file");
    same_times(&path, || fs::write(&path, "two\n").unwrap());
}

fn late_file(place: &mut Place) {
    place.suite.file("data/late", "one\n");
}

const CHANGES: &[Change] = &[
    ("through a mapping", "probe mapping %S/data/file", other_content),
    ("below a descriptor", "probe directory %S/data/file", other_content),
    ("below a descriptor of a path", "probe path-descriptor %S/data/file", other_content),
    ("in a working directory by descriptor", "probe working-directory %S/data/file", other_content),
    ("with dots in its path", "probe dots %S/data/file", other_content),
    ("in a thread", "probe thread %S/data/file", other_content),
    ("in a grandchild", "probe grandchild %S/data/file", other_content),
    ("in a grandchild of another program", "env -i %S/bin/probe grandchild %S/data/file", other_content),
    ("below `nohup`", "nohup probe grandchild %S/data/file", other_content),
    ("after vfork", "probe vfork %S/data/file", other_content),
    ("in a process that shares all", "probe clone %S/data/file", other_content),
    ("by threads that wait", "probe waits %S/data/file", other_content),
    ("by processes that ask at once", "probe many %S/data/file", other_content),
    ("by sendfile", "probe sendfile %S/data/file", other_content),
    ("by preadv", "probe readv %S/data/file", other_content),
    ("with the flag that makes files", "probe creating %S/data/file", other_content),
    ("to be written as well", "probe reading-and-writing %S/data/file", other_content),
    ("by a chain of links", "probe open %S/one", other_content),
    ("a link in a chain", "probe open %S/one", |at| {
        fs::remove_file(at.path("two")).unwrap();
        at.suite.file("elsewhere", "two\n");
        symlink("elsewhere", at.path("two")).unwrap();
    }),
    ("the last link of a chain becomes a file", "probe open %S/one", |at| {
        fs::remove_file(at.path("three")).unwrap();
        at.suite.file("three", "two\n");
    }),
    ("the interpreter of a script", "script", |at| {
        let path = at.path("bin/script");
        let text = fs::read_to_string(&path).unwrap().replace("bin/probe", "bin/tool ");
        same_times(&path, || fs::write(&path, text).unwrap());
    }),
    ("the file of a script's interpreter", "script", |at| {
        let path = at.path("bin/probe");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::remove_file(&path).unwrap();
        fs::copy("/bin/false", &path).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    }),
    ("an interpreter with a carriage return in its name", "env %S/bin/returned", |at| {
        fs::remove_file(at.path("bin/probe\r")).unwrap();
        fs::copy("/bin/false", at.path("bin/probe\r")).unwrap();
    }),
    ("a script that cannot be executed", "script", |at| {
        fs::set_permissions(at.path("bin/script"), PermissionsExt::from_mode(0o644)).unwrap();
    }),
    ("size by a flag that allows no name", "probe empty-name %S/data/file", |at| {
        File::options().write(true).open(at.path("data/file")).unwrap().set_len(3).unwrap();
    }),
    ("size by statx and that flag", "probe statx %S/data/file", |at| {
        File::options().write(true).open(at.path("data/file")).unwrap().set_len(3).unwrap();
    }),
    ("a mode behind a slash", "probe name-with-slash %S/data/file", |at| {
        fs::set_permissions(at.path("data"), PermissionsExt::from_mode(0o700)).unwrap();
    }),
    ("an entry that is listed", "probe list %S/data/file", late_file),
    ("an entry while the directory keeps its times", "probe list %S/data/file", |at| {
        let path = at.path("data");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        at.suite.file("data/late", "");
        File::open(&path).unwrap().set_modified(before).unwrap();
    }),
    ("a file no longer missing", "probe missing %S/data/late", late_file),
    ("a link no longer missing that leads nowhere", "probe missing %S/data/late", |at| {
        symlink("nowhere", at.path("data/late")).unwrap();
    }),
    ("a file no longer missing below a descriptor", "probe missing-below-descriptor %S/data/late", late_file),
    ("a program no longer missing", "probe missing-program %S/data/late", |at| {
        fs::copy("/bin/true", at.path("data/late")).unwrap();
    }),
    ("a directory no longer missing", "probe missing-directory %S/data/late", |at| {
        fs::create_dir(at.path("data/late")).unwrap();
    }),
    ("a link no longer missing", "probe missing-link %S/data/late", |at| {
        symlink("file", at.path("data/late")).unwrap();
    }),
    ("two directories that change places", "probe open %S/dir1/inner", |at| {
        for (from, to) in [("dir1", "dir3"), ("dir2", "dir1"), ("dir3", "dir2")] {
            fs::rename(at.path(from), at.path(to)).unwrap();
        }
    }),
    ("a file with the same content, but another inode", "stat -c %%i %S/data/file", |at| {
        let (path, new) = (at.path("data/file"), at.path("data/new"));
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&new, "one\n").unwrap();
        File::options().write(true).open(&new).unwrap().set_modified(before).unwrap();
        fs::rename(new, path).unwrap();
    }),
    ("another number of links", "stat -c %%h %S/data/file", |at| {
        fs::hard_link(at.path("data/file"), at.path("data/name")).unwrap();
    }),
    ("a variable that no tool reads", "probe open %S/data/file", |at| at.env.push(("SEEN", String::new()))),
];

#[test]
fn no_way_to_read_a_file_is_overlooked() {
    check_all(CHANGES, place);
}

const NEVER: &[&str] = &[
    "uring",
    "openat2",
    "proc",
    "dev-fd",
    "handle",
    "message",
    "other-architecture",
    "x32",
    "attribute",
    "counter",
    "counter-and-processor",
    "clock",
    "day",
    "times",
    "timer",
    "child-usage",
    "notification",
    "shared-memory",
    "descriptor-program",
    "other-root",
    "namespace",
    "priority",
    "parent",
    "processor",
    "memory-of-others",
    "deadline",
    "owner",
    "affinity-of-others",
    "robust-list-of-others",
    "chosen-number",
];

#[test]
fn what_no_key_can_hold_is_never_remembered() {
    for mode in NEVER {
        let place = place(&format!("probe {mode} %S/data/file || true"));
        assert!(place.is_never_remembered(), "{mode}");
    }
}

#[test]
fn programs_of_which_the_kernel_makes_more_are_never_remembered() {
    let place = place("env %S/bin/text || true");
    place.suite.file("bin/text", "no script\n");
    fs::set_permissions(place.path("bin/text"), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(place.is_never_remembered());
}

/// In the traced run a program does not get its capabilities.
#[test]
fn a_program_with_capabilities_is_never_remembered() {
    // The name service's socket, for instance: CAP_NET_BIND_SERVICE, permitted and effective, in revision 2.
    let value = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let place = place("probe open %S/data/file");
    let (program, flags) = (place.path("bin/probe"), rustix::fs::XattrFlags::empty());
    if let Err(error) = rustix::fs::setxattr(&program, "security.capability", &value, flags) {
        eprintln!("skipped: no capabilities can be given to a file here: {error}");
        return;
    }
    assert!(place.is_never_remembered());
}

/// A second /proc, which only root can mount, in a mount namespace of its own.
#[test]
fn the_kernels_files_are_known_wherever_they_are_mounted() {
    let place = place("true");
    let mounted = place.path("proc");
    fs::create_dir(&mounted).unwrap();
    place.suite.file("a.test", "RUN: grep -q . %S/proc/sys/kernel/ostype\n");
    let hotstart = place.suite.command(&["--cache", "--explain", "a.test"]);
    let mut inside = Command::new("unshare");
    inside.args(["-m", "sh", "-c", "mount -t proc proc \"$0\" || exit 77; \"$@\""]).arg(&mounted);
    inside.arg(hotstart.get_program()).args(hotstart.get_args());
    inside.envs(hotstart.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inside.current_dir(hotstart.get_current_dir().unwrap_or(std::path::Path::new(".")));
    let out = inside.env("HOTSTART_CACHE_DIR", place.cache.path()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if !text.contains("hotstart: --cache") {
        eprintln!("skipped: /proc cannot be mounted here: {text}");
        return;
    }
    assert!(text.contains("in a file system that is on no list"), "{text}");
}

#[test]
fn one_process_traces_many_tests_and_survives_bad_ones() {
    let place = place("true");
    let runs = [
        "probe open %S/data/file",
        "setsid -f sleep 30 > %t 2>&1",
        "umask 077 && probe open %S/data/file",
        "probe many %S/data/file",
        "probe day",
        "sh -c 'kill -9 $$' || true",
        "mkdir -p %t && cd %t && probe open %S/data/file",
        "probe missing %S/data/late",
    ];
    for (number, run) in runs.iter().enumerate() {
        place.suite.file(&format!("many/{number}.test"), format!("RUN: {}\n", run.replace("%S", "%S/..")));
    }
    let told = |after: &dyn Fn()| {
        after();
        place.settle();
        let mut command = place.suite.command(&["--cache", "-j1", "-a", "many"]);
        let out = command.env("HOTSTART_CACHE_DIR", place.cache.path()).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let passes = |text: &str| text.matches("PASS: ").count();
    for _ in 0..4 {
        let text = told(&|| ());
        assert_eq!(passes(&text), runs.len(), "{text}");
    }
    let text = told(&|| drop(place.suite.file("data/file", "two\n")));
    assert_eq!(passes(&text), 4, "{text}");
}
