//! What a path leads through tells of the process, whatever is at its end: the kernel makes up files below `/proc` for each one.

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;

use common::{Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::Launcher;
use hotstart_model::Status;

/// Calls that take a path.
const CALLS: [&str; 17] = [
    "open",
    "access",
    "stat",
    "lstat",
    "statx",
    "statfs",
    "readlink",
    "mkdir",
    "truncate",
    "chdir",
    "rename-to",
    "link-to",
    "attribute",
    "owner",
    "connect",
    "stat-nowhere",
    "readlink-nowhere",
];

/// Paths that lead through files which the kernel makes up, to one that it does not, or to none.
const TELLING: [&str; 9] = [
    "/proc/self/root/etc/passwd",
    "/proc/self/task/1/root/etc/passwd",
    "/proc/self/map_files/1000-2000",
    "/proc/1/../../etc/passwd",
    "/etc/../proc/self/cwd",
    "proc-link/self/root/etc",
    "far-link/absent",
    "far-link/../absent/absent",
    "/dev/fd/../task",
];

/// Paths that tell every process the same.
const PLAIN: [&str; 8] = [
    "/etc/passwd",
    "absent/absent",
    "./.././/absent/absent",
    "near-link/./absent/absent",
    "/usr/bin/../../etc/./passwd",
    "/etc/passwd/absent",
    "/absent/proc/self",
    "loop/absent",
];

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("walks");
    compile(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/walks.c")), &program, &[]);
    for (name, target) in [
        ("proc-link", "/proc"),
        ("far-link", "near-link/proc-link/self/cwd"),
        ("near-link", "."),
        ("loop", "loop"),
    ] {
        symlink(target, dir.path().join(name)).unwrap();
    }
    Victim { dir, program }
}

/// Runs the tool. Returns whether the run is doubtful; if not, it agrees with a cold one.
fn is_doubtful(launcher: &Launcher, tool: &Victim, args: &[&str]) -> bool {
    let (ran, exit) = start(launcher, tool, &case(args));
    assert!(exit.via.is_warm(), "{args:?}: {:?}", exit.via);
    if !exit.doubtful {
        let (expected, _) = start(&Launcher::new(), tool, &case(args));
        assert_eq!(ran, expected, "{args:?}");
        assert_eq!(ran.status, Status::Exited(0), "{args:?}");
    }
    exit.doubtful
}

fn launchers() -> [Launcher; 2] {
    [warm_launcher(&["walks"]), resetting_launcher(&["walks"])]
}

#[test]
fn a_path_that_leads_through_what_the_kernel_makes_up_is_doubtful_with_every_call() {
    let tool = tool();
    for launcher in launchers() {
        for how in CALLS {
            for path in TELLING {
                assert!(is_doubtful(&launcher, &tool, &[how, path]), "{how} {path}");
            }
        }
    }
}

#[test]
fn other_paths_are_followed_without_a_doubt() {
    let tool = tool();
    for launcher in launchers() {
        for how in CALLS.iter().filter(|how| **how != "connect") {
            for path in PLAIN {
                assert!(!is_doubtful(&launcher, &tool, &[how, path]), "{how} {path}");
            }
        }
        for path in ["/proc/self/exe", "/proc/cpuinfo", "/dev/stdin", "/dev/fd/1"] {
            assert!(!is_doubtful(&launcher, &tool, &["open", path]), "{path}");
        }
    }
}

/// A link that nobody has read since it was made has the time of that.
#[test]
fn only_a_call_that_follows_a_link_touches_it() {
    let tool = tool();
    for launcher in launchers() {
        for (how, name, follows) in [
            ("lstat", "fresh", false),
            ("mkdir", "fresh", false),
            ("attribute", "fresh", true),
            ("open", "fresh/.", true),
            ("statx-wrongly", "fresh/.", false),
        ] {
            let link = tool.dir.path().join("fresh");
            let _ = std::fs::remove_file(&link);
            symlink(".", &link).unwrap();
            let made = link.symlink_metadata().unwrap().accessed().unwrap();
            // By another file, as that would follow the link.
            std::fs::write(tool.dir.path().join("clock"), "").unwrap();
            common::await_age(&tool.dir.path().join("clock"));
            let doubts = is_doubtful(&launcher, &tool, &[how, name]);
            let is_touched = link.symlink_metadata().unwrap().accessed().unwrap() != made;
            assert!(doubts || is_touched == follows, "{how}");
            assert!(!(doubts && follows), "{how}");
        }
    }
}

/// The second path begins where the first one ended.
#[test]
fn a_directory_that_is_known_is_no_way_into_another() {
    let tool = tool();
    let dir = tool.dir.path().canonicalize().unwrap();
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let launcher = resetting_launcher(&["walks"]);
    let first = at("absent");
    assert!(!is_doubtful(&launcher, &tool, &["access", &first, &at("near-link/absent")]));
    for second in ["proc-link/self/root/etc", "far-link/absent", "../../proc/self/root"] {
        let up = "../".repeat(dir.components().count());
        let second = at(&second.replace("../../", &up));
        assert!(is_doubtful(&launcher, &tool, &["access", &first, &second]), "{second}");
    }
}
