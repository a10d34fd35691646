//! Real build systems, configured and built with links to the client: the results are the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::bench::{Bench, clang, told};

const FILES: usize = 8;

/// Writes a program of several files, described to meson, with checks that run the compiler and the linker.
fn project(place: &Path) {
    std::fs::create_dir_all(place).unwrap();
    let calls: String = (0..FILES).map(|n| format!(" + value{n}(1)")).collect();
    let declared: String = (0..FILES).map(|n| format!("int value{n}(int);\n")).collect();
    for n in 0..FILES {
        let text = format!("int value{n}(int a) {{ return a + {n}; }}\n");
        std::fs::write(place.join(format!("f{n}.c")), text).unwrap();
    }
    let main = format!("{declared}#include \"config.h\"\nint main(void) {{ return LONG{calls}; }}\n");
    std::fs::write(place.join("main.c"), main).unwrap();
    let sources: String = (0..FILES).map(|n| format!("'f{n}.c', ")).collect();
    let described = format!(
        "project('p', 'c')\ncc = meson.get_compiler('c')\nconfig = configuration_data()\n\
         config.set('LONG', cc.sizeof('long'))\nconfig.set10('HAS', cc.has_function('strlcpy'))\n\
         configure_file(output: 'config.h', configuration: config)\n\
         executable('p', {sources}'main.c', include_directories: include_directories('.'))\n"
    );
    std::fs::write(place.join("meson.build"), described).unwrap();
}

/// Runs a step with links to the client first in PATH, and returns its output.
fn step(bench: &Bench, how: &str, words: &[&str]) -> String {
    let mut command = bench.command(Path::new(words[0]));
    let own = std::env::var("PATH").expect("a PATH");
    let path = format!("{}:{}:{own}", bench.path("bin").display(), clang().parent().unwrap().display());
    command.args(&words[1..]).env("PATH", path).env("CC", "clang").env("HOTSTART_EXEC", how);
    let run = command.output().expect("it runs");
    assert!(run.status.success(), "{words:?}: {}", told(&run));
    told(&run)
}

/// Returns object files, the program and the results of configuring, by their names.
fn made(place: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for dir in [place.to_path_buf(), place.join("p.p")] {
        for entry in std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if name.ends_with(".o") || name == "p" && entry.is_file() || name == "config.h" {
                found.insert(entry.strip_prefix(place).unwrap().to_owned(), std::fs::read(&entry).unwrap());
            }
        }
    }
    found
}

/// Returns meson, which is beside the Python that the tests use.
fn meson() -> String {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python");
    let python = std::env::var_os("HOTSTART_LIT_PYTHON").map_or_else(|| own.into(), PathBuf::from);
    let meson = python.with_file_name("meson");
    assert!(meson.exists(), "no {}: run `make venv`", meson.display());
    meson.display().to_string()
}

#[test]
fn meson_configures_and_builds_through_links() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    std::os::unix::fs::symlink("hotstart-exec", bench.path("bin/clang")).unwrap();
    project(&bench.path("source"));
    let meson = meson();
    let build = |how: &str| {
        step(&bench, how, &[&meson, "setup", "--buildtype=debug", "out", "source"]);
        step(&bench, how, &[&meson, "compile", "-C", "out"]);
        let made = made(&bench.path("out"));
        std::fs::remove_dir_all(bench.path("out")).unwrap();
        made
    };
    let cold = build("cold");
    assert_eq!(cold.len(), FILES + 3, "{:?}", cold.keys());
    let before = bench.warm_starts();
    let warm = build("warm");
    assert!(cold == warm, "the same files");
    // The compiler runs for each file and for some checks, warm after the first. The linker is the distribution's choice.
    let started = bench.warm_starts() - before;
    assert!(started > FILES as u64, "{started} warm\n{}", bench.status());
}

/// A small project ends before anything would be warm by itself.
#[test]
fn each_compiler_start_of_a_small_project_is_warm_after_the_server_was_told() {
    let bench = Bench::starting("auto");
    let warmed = bench.hotstart().args(["server", "warm", "gcc"]).output().expect("it runs");
    assert!(warmed.status.success(), "{}", told(&warmed));
    std::os::unix::fs::symlink("hotstart-exec", bench.path("bin/gcc")).unwrap();
    std::fs::create_dir(bench.path("source")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(bench.path("source").join(name), text).unwrap();
    write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\nproject(three C)\nadd_executable(p a.c b.c c.c)\n",
    );
    write("a.c", "int b(void);\nint main(void) { return b(); }\n");
    write("b.c", "int c(void);\nint b(void) { return c(); }\n");
    write("c.c", "int c(void) { return 0; }\n");
    let before = bench.status_json();
    let run = |words: &[&str]| {
        let mut command = bench.command(words[0].as_ref());
        let path = format!("{}:{}", bench.path("bin").display(), std::env::var("PATH").expect("a PATH"));
        let run = command.args(&words[1..]).env("PATH", path).env("CC", "gcc").output().expect("it runs");
        assert!(run.status.success(), "{words:?}: {}", told(&run));
    };
    run(&["cmake", "-S", "source", "-B", "out"]);
    run(&["cmake", "--build", "out"]);
    assert!(bench.command(&bench.path("out/p")).status().expect("it runs").success());
    let after = bench.status_json();
    let count = |status: &serde_json::Value, name: &str| status[name].as_u64().expect("a count");
    // At least cc1 and as for each file, and the driver for each of them.
    assert!(count(&after, "warm") >= count(&before, "warm") + 9, "{}", bench.status());
    for name in ["cold", "compared"] {
        assert_eq!(count(&after, name), count(&before, name), "{}", bench.status());
    }
}
