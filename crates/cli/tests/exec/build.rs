//! Builds by make and clang: the object files are the same, whatever happens to the server meanwhile.

use std::process::Command;

use rustix::process::Signal;

use crate::bench::{Bench, await_that, clang, kill, told};

const FILES: usize = 200;

fn sources(bench: &Bench, count: usize) {
    for number in 0..count {
        let text = format!("int value{number}(int a) {{ return a * {number} + 1; }}\n");
        std::fs::write(bench.path(&format!("f{number}.c")), text).unwrap();
    }
    let objects: String = (0..count).map(|number| format!(" f{number}.o")).collect();
    let rules = format!("all:{objects}\n%.o: %.c\n\t$(CC) -O0 -c $< -o $@\n");
    std::fs::write(bench.path("Makefile"), rules).unwrap();
}

fn make(bench: &Bench, launcher: &str) -> Command {
    let mut make = bench.command("make".as_ref());
    make.args(["-s", "-j2"]).arg(format!("CC={launcher} {}", clang().display()));
    make
}

/// Returns the content of each object file.
fn objects(bench: &Bench, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| std::fs::read(bench.path(&format!("f{number}.o"))).expect("an object file"))
        .collect()
}

#[test]
fn killing_the_server_in_the_middle_of_a_build_loses_nothing() {
    let bench = Bench::new();
    sources(&bench, FILES);
    bench.warm_up(&bench.tool("tool"));
    let client = bench.path("bin/hotstart-exec").display().to_string();
    let mut build = make(&bench, &client).spawn().expect("make runs");
    // After a third of the files, and again with the server that started after that.
    for part in [FILES / 3, FILES * 2 / 3] {
        await_that("a part of the build", || bench.path(&format!("f{part}.o")).exists());
        if let Some(server) = bench.server() {
            kill(server, Signal::KILL);
        }
    }
    assert!(build.wait().expect("make ends").success());
    let built = objects(&bench, FILES);
    assert!(built.iter().all(|object| object.starts_with(b"\x7fELF")));
    // Comparing a sample with objects built without hotstart is enough.
    for number in [0, FILES / 3, FILES * 2 / 3, FILES - 1] {
        std::fs::remove_file(bench.path(&format!("f{number}.o"))).unwrap();
    }
    assert!(make(&bench, "").status().expect("make runs").success());
    assert!(built == objects(&bench, FILES), "the same object files");
}

#[test]
fn a_jobserver_is_passed_on() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let client = bench.path("bin/hotstart-exec");
    // Make's own pipes, of whatever kind its version uses, work for a make started by the client.
    let rules =
        format!("all:\n\t+{0} {1} tell > told\n\t+{0} $(MAKE) -f inner\n", client.display(), tool.display());
    std::fs::write(bench.path("Makefile"), rules).unwrap();
    std::fs::write(bench.path("inner"), "all: a b\na b:\n\ttouch $@\n").unwrap();
    let before = bench.warm_starts();
    let run = bench.command("make".as_ref()).args(["-j2"]).output().expect("make runs");
    assert!(run.status.success(), "{}", told(&run));
    assert!(!told(&run).contains("jobserver unavailable"), "{}", told(&run));
    assert!(bench.warm_starts() > before, "{}", bench.status());
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    let auth = told.split("--jobserver-auth=").nth(1).expect("make passes a jobserver").to_owned();
    if let Some((read, _)) = auth.split_once(',').filter(|(read, _)| read.parse::<i32>().is_ok()) {
        assert!(told.contains(&format!("fd {read} pipe ")), "{told}");
    }
    assert!(bench.path("a").exists() && bench.path("b").exists());
}
