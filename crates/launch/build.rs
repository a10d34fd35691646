//! Builds the C runtime into a shared library that `warm::image` embeds.

use std::path::PathBuf;
use std::process::Command;

const SOURCES: [&str; 19] = [
    "entry.c",
    "io.c",
    "audit.c",
    "marks.c",
    "maps.c",
    "title.c",
    "snapshot.c",
    "bind.c",
    "child.c",
    "server.c",
    "worker.c",
    "memory.c",
    "mappings.c",
    "state.c",
    "point.c",
    "watch.c",
    "text.c",
    "nested.c",
    "threads.c",
];
const HEADERS: [&str; 3] = ["protocol.h", "arch.h", "runtime.h"];

fn main() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let runtime = variable("CARGO_MANIFEST_DIR").join("../../runtime");
    let output = variable("OUT_DIR").join("hotstart-runtime.so");
    for file in SOURCES.iter().chain(&HEADERS) {
        println!("cargo::rerun-if-changed={}", runtime.join(file).display());
    }
    let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
    let mut command = Command::new(compiler.path());
    command.args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]);
    command.args(["-Wl,-z,now", "-Wl,--build-id=none", "-s", "-o"]).arg(&output);
    command.args(SOURCES.iter().map(|file| runtime.join(file)));
    match command.status() {
        Ok(status) if status.success() => {}
        other => panic!("cannot build the runtime with {}: {other:?}", compiler.path().display()),
    }
    println!("cargo::rustc-env=HOTSTART_RUNTIME={}", output.display());
}
