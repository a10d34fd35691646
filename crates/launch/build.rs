//! Builds the C runtime, and the one file that hides a preloaded allocator, into shared libraries that `image` embeds.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 25] = [
    "entry.c",
    "io.c",
    "audit.c",
    "marks.c",
    "maps.c",
    "title.c",
    "snapshot.c",
    "bind.c",
    "finalize.c",
    "child.c",
    "decode.c",
    "server.c",
    "worker.c",
    "memory.c",
    "gate.c",
    "calls.c",
    "mappings.c",
    "kept.c",
    "state.c",
    "point.c",
    "watch.c",
    "place.c",
    "text.c",
    "nested.c",
    "threads.c",
];
const PRELOAD: &str = "preload.c";
const HEADERS: [&str; 3] = ["protocol.h", "arch.h", "runtime.h"];

fn main() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let runtime = variable("CARGO_MANIFEST_DIR").join("../../runtime");
    for file in SOURCES.iter().chain(&HEADERS).chain(&[PRELOAD]) {
        println!("cargo::rerun-if-changed={}", runtime.join(file).display());
    }
    let library = |name: &str, sources: &[&str], options: &[&str]| {
        let output = variable("OUT_DIR").join(name);
        let sources: Vec<_> = sources.iter().map(|file| runtime.join(file)).collect();
        link(&output, &sources, options);
        output
    };
    let output = library("hotstart-runtime.so", &SOURCES, &["-Wl,-z,now"]);
    println!("cargo::rustc-env=HOTSTART_RUNTIME={}", output.display());
    let output = library("hotstart-preload.so", &[PRELOAD], &["-Wl,-z,now", "-Wl,-z,initfirst"]);
    println!("cargo::rustc-env=HOTSTART_PRELOAD={}", output.display());
}

fn link(output: &Path, sources: &[PathBuf], options: &[&str]) {
    let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
    let mut command = Command::new(compiler.path());
    command.args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]);
    command.args(options).args(["-Wl,--build-id=none", "-s", "-o"]).arg(output).args(sources);
    match command.status() {
        Ok(status) if status.success() => {}
        other => panic!("cannot build the runtime with {}: {other:?}", compiler.path().display()),
    }
}
