//! LD_LIBRARY_PATH in builds: directories that the build writes to, that come and go, or that are relative to the working
//! directory. A start is warm where the tool's libraries are the same, and finds another library where a cold one does.

mod common;

use std::path::{Path, PathBuf};

use common::{Case, Victim, case, compile, resetting_launcher, start, victim, warm_launcher};
use hotstart_launch::{Launcher, Reason, Via};
use hotstart_model::Status;

/// Each library has one number for its function.
fn library(path: &Path, value: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let source = path.with_extension("c");
    std::fs::write(&source, format!("int value(void) {{ return {value}; }}")).unwrap();
    compile(&source, path, &["-shared", "-fPIC", "-Wl,-soname,libvalue.so"]);
    std::fs::remove_file(source).unwrap();
}

/// Prints the result of the library's function, with a library in a directory of its own.
fn user(source: &str) -> (Victim, PathBuf) {
    let victim = victim();
    let dir = victim.dir.path().canonicalize().unwrap();
    library(&dir.join("own/libvalue.so"), 1);
    std::fs::write(dir.join("user.c"), source).unwrap();
    let own = dir.join("own").display().to_string();
    let path = format!("-Wl,--enable-new-dtags,-rpath,{own}");
    let flags = [&path, "-Wl,--no-as-needed", &dir.join("own/libvalue.so").display().to_string(), "-ldl"];
    compile(&dir.join("user.c"), &victim.program, &flags);
    (victim, dir)
}

const CALLS: &str = "int value(void); int main(void) { return value(); }";

fn launchers() -> [Launcher; 2] {
    [warm_launcher(&["victim"]), resetting_launcher(&["victim"])]
}

/// Starts the victim cold and with `warm`, which must agree. Returns the exit code and how it was started.
fn run(warm: &Launcher, victim: &Victim, value: Option<&str>) -> (u8, Via) {
    let env = value.map(|value| ("LD_LIBRARY_PATH", value.to_owned())).into_iter().collect();
    let case = Case { env, ..case(&[]) };
    let (cold, _) = start(&Launcher::new(), victim, &case);
    let (ran, exit) = start(warm, victim, &case);
    assert_eq!(ran, cold, "{value:?} {:?}", exit.via);
    let Status::Exited(code) = ran.status else { panic!("{ran:?}") };
    (code as u8, exit.via)
}

fn observations(warm: &Launcher) -> u64 {
    warm.statistics().tools.iter().map(|tool| tool.observed).sum()
}

#[test]
fn one_observation_serves_every_value_that_changes_nothing() {
    for warm in launchers() {
        let (victim, dir) = user(CALLS);
        let at = |names: &[&str]| {
            names.iter().map(|name| dir.join(name).display().to_string()).collect::<Vec<_>>().join(":")
        };
        for value in [
            None,
            Some(at(&["build"])),
            Some(at(&["absent", "build/deps"])),
            Some(String::new()),
            Some(":".to_owned()),
        ] {
            std::fs::create_dir_all(dir.join("build/deps")).unwrap();
            for round in 0..3 {
                let (code, via) = run(&warm, &victim, value.as_deref());
                assert!(code == 1 && via.is_warm(), "{value:?} {round} {via:?}");
                std::fs::write(dir.join(format!("build/libother{round}.so")), "").unwrap();
            }
            // The next build begins with a directory of its own.
            std::fs::remove_dir_all(dir.join("build")).unwrap();
        }
        assert_eq!(observations(&warm), 1);
    }
}

#[test]
fn a_library_that_appears_is_loaded() {
    for warm in launchers() {
        let (victim, dir) = user(CALLS);
        let build = dir.join("build");
        let value = format!("{}:{}", build.display(), dir.join("more").display());
        let code = || run(&warm, &victim, Some(&value)).0;
        assert_eq!((code(), code()), (1, 1));
        for (place, expected) in [("more", 3), ("build", 2), ("build", 4)] {
            library(&dir.join(place).join("libvalue.so"), expected);
            assert_eq!((code(), code()), (expected as u8, expected as u8), "{place}");
        }
        std::fs::remove_file(build.join("libvalue.so")).unwrap();
        assert_eq!(code(), 3);
        std::fs::create_dir(build.join("x")).unwrap();
        std::fs::rename(dir.join("more"), build.join("more")).unwrap();
        let (code, via) = run(&warm, &victim, Some(&value));
        assert!(code == 1 && via.is_warm(), "{via:?}");
    }
}

#[test]
fn a_relative_directory_is_looked_into_from_the_working_directory() {
    for warm in launchers() {
        let (victim, dir) = user(CALLS);
        for (value, place) in
            [("", "absent"), (":", "."), ("sub", "sub"), (".;/absent", "."), ("./sub/../sub/", "sub")]
        {
            let (code, via) = run(&warm, &victim, Some(value));
            assert!(code == 1 && via.is_warm(), "'{value}' {via:?}");
            library(&dir.join(place).join("libvalue.so"), 2);
            let (code, via) = run(&warm, &victim, Some(value));
            let expected = if value.is_empty() { 1 } else { 2 };
            assert!(
                code == expected && (value.is_empty() || via == Via::Cold(Reason::RelativePath)),
                "'{value}' {via:?}"
            );
            std::fs::remove_file(dir.join(place).join("libvalue.so")).unwrap();
            let (code, via) = run(&warm, &victim, Some(value));
            assert!(code == 1 && via.is_warm(), "'{value}' {via:?}");
        }
        assert_eq!(run(&warm, &victim, Some("$ORIGIN/sub")), (1, Via::Cold(Reason::RelativePath)));
        assert_eq!(observations(&warm), 1);
    }
}

/// A zygote whose loader finds another library from `/` than any start would is of no use, and the next one may be.
#[test]
fn what_a_relative_directory_holds_at_the_root_is_not_taken() {
    let warm = warm_launcher(&["victim"]);
    let (victim, _dir) = user(CALLS);
    let libc = ["lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64"]
        .into_iter()
        .find(|dir| Path::new("/").join(dir).join("libc.so.6").exists());
    let Some(libc) = libc else { return };
    let (code, via) = run(&warm, &victim, Some(libc));
    assert!(code == 1 && via == Via::Cold(Reason::LibraryPath), "{via:?}");
    assert!(run(&warm, &victim, None).1.is_warm());
}

#[test]
fn a_library_opened_by_main_is_looked_for_then() {
    let source = "#include <dlfcn.h>\nint value(void); int main(void) {\
        void *library = dlopen(\"libplugin.so\", RTLD_NOW);\
        int (*other)(void) = library ? (int (*)(void))dlsym(library, \"value\") : 0;\
        return value() + (other ? 10 * other() : 0); }";
    for warm in launchers() {
        let (victim, dir) = user(source);
        let absolute = dir.join("build").display().to_string();
        for value in [absolute.as_str(), "build"] {
            let code = || run(&warm, &victim, Some(value)).0;
            assert_eq!((code(), code()), (1, 1));
            library(&dir.join("build/libplugin.so"), 2);
            assert_eq!((code(), code()), (21, 21), "{value}");
            library(&dir.join("build/libplugin.so"), 3);
            assert_eq!((code(), code()), (31, 31), "{value}");
            std::fs::remove_dir_all(dir.join("build")).unwrap();
            assert_eq!((code(), code()), (1, 1), "{value}");
        }
    }
}

/// A constructor may open a library itself.
#[test]
fn a_library_opened_by_a_constructor_is_looked_for_by_each_start() {
    let source = "#include <dlfcn.h>\nint value(void); static int more; __attribute__((constructor)) static void open_it(void) {\
        void *library = dlopen(\"libplugin.so\", RTLD_NOW);\
        int (*other)(void) = library ? (int (*)(void))dlsym(library, \"value\") : 0; more = other ? 10 * other() : 0; }\
        int main(void) { return value() + more; }";
    for warm in launchers() {
        let (victim, dir) = user(source);
        let absolute = format!("{0}/build:{0}/more", dir.display());
        for value in [absolute.as_str(), "build:more", ":build:more"] {
            let code = || run(&warm, &victim, Some(value)).0;
            assert_eq!((code(), code()), (1, 1), "{value}");
            for (place, expected) in [("more", 2), ("build", 3)] {
                library(&dir.join(place).join("libplugin.so"), expected);
                let expected = 1 + 10 * expected as u8;
                assert_eq!((code(), code()), (expected, expected), "{value} {place}");
            }
            std::fs::remove_dir_all(dir.join("build")).unwrap();
            assert_eq!(code(), 21, "{value}");
            std::fs::remove_dir_all(dir.join("more")).unwrap();
            assert_eq!(code(), 1, "{value}");
        }
    }
}

#[test]
fn a_constructor_that_looks_at_the_variable_is_observed_with_each_value() {
    let ways = [
        "getenv(\"LD_LIBRARY_PATH\")",
        "find(\"LD_LIBRARY_PATH=\")",
        "getenv(\"HOME\") ? find(\"LD_LIBRARY_PATH=\") : find(\"LD_\")",
    ];
    for way in ways {
        let source = format!(
            "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint value(void); extern char **environ; static int kept;\
            static const char *find(const char *name) {{ for (char **at = environ; *at; at++)\
                if (strncmp(*at, name, strlen(name)) == 0) return *at + strlen(name); return 0; }}\
            __attribute__((constructor)) static void look(void) {{ const char *found = {way};\
                kept = found ? strstr(found, \"odd\") ? getpid() : 2 : 3; }}\
            int main(void) {{ return value() + (kept == getpid() ? 10 : kept); }}"
        );
        for warm in launchers() {
            let (victim, dir) = user(&source);
            let value = |name: &str| dir.join(name).display().to_string();
            for (name, expected) in [("even", 3), ("odd", 11), ("even", 3), ("odd2", 11)] {
                let (code, via) = run(&warm, &victim, Some(&value(name)));
                assert_eq!(code, expected, "{way} {name} {via:?}");
            }
            assert_eq!(run(&warm, &victim, None).0, 4, "{way}");
        }
    }
}
