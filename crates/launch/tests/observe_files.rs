//! Files, links and libraries that are looked at before `main`: their change is noticed, and a start has the new ones.

mod common;
#[path = "common/looks.rs"]
mod looks;

use std::fs::{File, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::{AGAIN, Victim, await_age, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::{Launcher, Reason, Via};
use hotstart_model::Status;
use looks::{launchers, looks};

#[test]
fn a_file_that_is_read_before_main_may_change() {
    for (look, warm) in ["config", "exists"].into_iter().flat_map(|look| launchers().map(|warm| (look, warm)))
    {
        let tool = looks(look);
        let again = |what: &str| {
            // A file that changed a moment ago makes a start cold. Later it is warm again.
            let first = tool.agrees(&warm, &case(&[]));
            assert!(first.is_warm() || first == Via::Cold(Reason::FilesChanging), "{look} {what}: {first:?}");
            await_age(tool.place.path());
            if tool.watched.exists() {
                await_age(&tool.watched);
            }
            assert!(tool.agrees(&warm, &case(&[])).is_warm(), "{look} {what}");
            assert!(tool.agrees(&warm, &case(&[])).is_warm(), "{look} {what}");
        };
        again("absent");
        std::fs::write(&tool.watched, "first").unwrap();
        again("made");
        std::fs::write(&tool.watched, "second").unwrap();
        again("rewritten");
        std::fs::write(tool.place.path().join("new"), "third").unwrap();
        std::fs::rename(tool.place.path().join("new"), &tool.watched).unwrap();
        again("replaced");
        std::fs::remove_file(&tool.watched).unwrap();
        again("removed");
        std::fs::remove_dir(tool.place.path()).unwrap();
        assert!(tool.agrees(&warm, &case(&[])).is_warm(), "what is missing may be missing further up");
        std::fs::create_dir(tool.place.path()).unwrap();
        again("without its directory");
    }
}

#[test]
fn a_link_that_is_read_before_main_may_change() {
    let tool = looks("link_text");
    for warm in launchers() {
        for text in ["one", "another"] {
            symlink(text, &tool.watched).unwrap();
            for _ in 0..3 {
                let (cold, ran, _) = tool.start_with(&warm, &case(&[]));
                assert_eq!(cold, ran);
                await_age(tool.place.path());
            }
            assert!(tool.agrees(&warm, &case(&[])).is_warm());
            std::fs::remove_file(&tool.watched).unwrap();
        }
    }
}

/// A link may get the number of the file that was there.
#[test]
fn a_file_that_is_no_link_before_main_may_become_one() {
    let tool = looks("link_text");
    for warm in launchers() {
        std::fs::write(&tool.watched, "a file").unwrap();
        for _ in 0..3 {
            await_age(tool.place.path());
            let (cold, ran, _) = tool.start_with(&warm, &case(&[]));
            assert_eq!(cold, ran);
        }
        assert!(tool.agrees(&warm, &case(&[])).is_warm());
        std::fs::remove_file(&tool.watched).unwrap();
        symlink("elsewhere", &tool.watched).unwrap();
        tool.agrees(&warm, &case(&[]));
        std::fs::remove_file(&tool.watched).unwrap();
    }
}

/// The runtime stands before a tool's libraries, so a name of theirs may be hidden by one of its own.
#[test]
fn libraries_whose_names_nobody_can_look_up_keep_a_tool_cold() {
    let source = "int nice = 7;";
    let main =
        "#include <stdio.h>\nextern int nice;\nint main(void) { return printf(\"%d\\n\", nice) == 0; }";
    for (name, flags) in
        [("libpthreadpool.so", "-Wl,--hash-style=gnu"), ("libown.so", "-Wl,--hash-style=sysv")]
    {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        std::fs::write(at("own.c"), source).unwrap();
        std::fs::write(at("main.c"), main).unwrap();
        compile(&at("own.c"), &at(name), &["-shared", "-fPIC", flags]);
        let rpath = format!("-Wl,-rpath,{}", at("").display());
        let library = at(name).display().to_string();
        compile(&at("main.c"), &at("tool"), &["-fPIC", "-Wl,--no-as-needed", &library, &rpath, flags]);
        let tool = Victim { dir: tempfile::tempdir().unwrap(), program: at("tool") };
        for launcher in [warm_launcher(&["tool"]), resetting_launcher(&["tool"])] {
            let (ran, exit) = start(&launcher, &tool, &case(&[]));
            assert_eq!((ran.stdout.as_str(), exit.via), ("7\n", Via::Cold(Reason::LibcFunctions)), "{name}");
        }
    }
}

/// What a constructor is told by an error: 2 where a directory is missing, 20 where a file is in its place.
#[test]
fn an_error_before_main_is_the_one_of_each_start() {
    for (look, warm) in
        ["error", "error_of_open"].into_iter().flat_map(|look| launchers().map(|warm| (look, warm)))
    {
        let tool = looks(look);
        for round in 0..3 {
            for _ in 0..3 {
                let (cold, ran, via) = tool.start_with(&warm, &case(&[]));
                assert!(cold.starts_with("2 ") && ran == cold, "{look} {round} {via:?}: {ran}");
                await_age(tool.place.path());
            }
            assert!(tool.agrees(&warm, &case(&[])).is_warm(), "{look}");
            std::fs::write(&tool.watched, "").unwrap();
            for _ in 0..3 {
                let (cold, ran, via) = tool.start_with(&warm, &case(&[]));
                assert!(cold.starts_with("20 ") && ran == cold, "{look} {round} {via:?}: {ran}");
                await_age(&tool.watched);
            }
            assert!(tool.agrees(&warm, &case(&[])).is_warm(), "{look}");
            std::fs::remove_file(&tool.watched).unwrap();
        }
    }
}

/// Whether a file was read since it was written, as mail readers ask. Reading does not change the time of change.
#[test]
fn the_time_of_the_last_access_is_told_again() {
    let tool = looks("unread");
    for warm in launchers() {
        for round in 0..3 {
            std::fs::write(&tool.watched, "new").unwrap();
            let old = SystemTime::now() - Duration::from_secs(100);
            let times = FileTimes::new().set_accessed(old).set_modified(old);
            File::options().write(true).open(&tool.watched).unwrap().set_times(times).unwrap();
            await_age(&tool.watched);
            for _ in 0..3 {
                tool.agrees(&warm, &case(&[]));
            }
            assert!(tool.agrees(&warm, &case(&[])).is_warm(), "{round}");
            // Where the mount does not note it, the answer stays the same.
            std::fs::read(&tool.watched).unwrap();
            for _ in 0..3 {
                tool.agrees(&warm, &case(&[]));
            }
        }
    }
}

#[test]
fn a_permission_before_main_is_that_of_each_start() {
    let tool = looks("permission");
    for warm in launchers() {
        std::fs::write(&tool.watched, "").unwrap();
        for mode in [0o644, 0o755, 0o644] {
            std::fs::set_permissions(&tool.watched, Permissions::from_mode(mode)).unwrap();
            await_age(&tool.watched);
            for _ in 0..3 {
                tool.agrees(&warm, &case(&[]));
            }
            assert!(tool.agrees(&warm, &case(&[])).is_warm(), "{mode:o}");
        }
    }
}

#[test]
fn times_of_the_kernels_own_files_keep_a_tool_cold() {
    let tool = looks("times_of_the_kernel");
    for warm in launchers() {
        let (_, _, via) = tool.start_with(&warm, &case(&[]));
        assert_eq!(via, Via::Cold(Reason::ConstructorsDiffer));
    }
}

/// Two names of one file: nothing but the path differs that the kernel shows, and with it `$ORIGIN`.
#[test]
fn a_program_has_the_path_that_the_kernel_gives_it_at_each_start() {
    for warm in launchers() {
        let mut tool = looks("own_path");
        let home = tool.victim.program.parent().unwrap().to_owned();
        let link = home.join("link");
        for dir in ["one", "two"] {
            std::fs::create_dir(home.join(dir)).unwrap();
            std::fs::hard_link(&tool.victim.program, home.join(dir).join("before")).unwrap();
        }
        await_age(&tool.victim.program);
        tool.victim.program = link.join("before");
        let shows = |target: &str| {
            symlink(target, &link).unwrap();
            let (cold, ran, via) = tool.start_with(&warm, &case(&[]));
            std::fs::remove_file(&link).unwrap();
            assert_eq!(cold, ran, "{target} {via:?}");
            assert!(ran.contains(&format!("/{target}/before ")), "{target} {via:?}: {ran}");
            via
        };
        for _ in 0..3 {
            ["one", "two"].iter().for_each(|target| assert!(shows(target).is_warm(), "{target}"));
        }
        let zygotes = warm.statistics().tools[0].zygotes;
        assert_eq!(zygotes, 2, "one for each path");
        // The path of the zygote's own file changes with its directory, and another file of the same inode takes its place.
        std::fs::rename(home.join("one"), home.join("three")).unwrap();
        std::fs::rename(home.join("two"), home.join("one")).unwrap();
        for _ in 0..3 {
            ["one", "three"].iter().for_each(|target| assert!(shows(target).is_warm(), "{target}"));
        }
    }
}

/// The directory is for another kind of processor, lies below one of the search path, and is made after the first start.
#[test]
fn a_better_library_that_appears_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    let library = |value: u32, path: &Path| {
        std::fs::write(at("lib.c"), format!("int value(void) {{ return {value}; }}")).unwrap();
        compile(&at("lib.c"), path, &["-shared", "-fPIC", "-Wl,-soname,libvalue.so"]);
    };
    std::fs::create_dir(at("lib")).unwrap();
    library(1, &at("lib/libvalue.so"));
    std::fs::write(at("user.c"), "int value(void); int main(void) { return value(); }").unwrap();
    let path = at("lib/libvalue.so");
    let flags = ["-Wl,-rpath,$ORIGIN/lib", "-Wl,--no-as-needed", path.to_str().unwrap()];
    compile(&at("user.c"), &at("before"), &flags);
    let victim = Victim { dir: tempfile::tempdir().unwrap(), program: at("before") };
    let warm = resetting_launcher(&["before"]);
    let run = || {
        let (ran, exit) = start(&warm, &victim, &case(&[]));
        assert_eq!(ran.status, start(&Launcher::new(), &victim, &case(&[])).0.status, "{:?}", exit.via);
        (ran.status, exit.via)
    };
    assert_eq!(run(), (Status::Exited(1), Via::Fork));
    assert_eq!(run(), (Status::Exited(1), AGAIN));
    let variants = at("lib/glibc-hwcaps");
    for variant in ["x86-64-v2", "x86-64-v3", "x86-64-v4"] {
        std::fs::create_dir_all(variants.join(variant)).unwrap();
        library(2, &variants.join(variant).join("libvalue.so"));
    }
    await_age(&variants);
    let (_, via) = run();
    assert!(via.is_warm());
    std::fs::remove_dir_all(&variants).unwrap();
    await_age(&at("lib"));
    let (status, via) = run();
    assert!(status == Status::Exited(1) && via.is_warm(), "{via:?}");
}
