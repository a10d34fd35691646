//! Builds the client that `image` embeds, and marks it, so that one client recognizes another (`HX_MARK` in wire.h).
//!
//! HOTSTART_CC names the C compiler, as in the build of `launch`.

use std::path::PathBuf;
use std::process::Command;

const SOURCES: [&str; 7] = ["main.c", "find.c", "describe.c", "connect.c", "job.c", "stop.c", "text.c"];
const HEADERS: [&str; 3] = ["wire.h", "client.h", "system.h"];
const MARK: &[u8] = b"hotstrt";
/// The padding of an ELF file's identification, which kernel and tools ignore.
const MARK_OFFSET: usize = 9;
const COMPILER: &str = "HOTSTART_CC";

fn main() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let sources = variable("CARGO_MANIFEST_DIR").join("client");
    let output = variable("OUT_DIR").join("hotstart-exec");
    for file in SOURCES.iter().chain(&HEADERS) {
        println!("cargo::rerun-if-changed={}", sources.join(file).display());
    }
    println!("cargo::rerun-if-env-changed={COMPILER}");
    let mut build = cc::Build::new();
    if let Some(named) = std::env::var_os(COMPILER).filter(|name| !name.is_empty()) {
        build.compiler(named);
    }
    let compiler = build.cargo_metadata(false).get_compiler();
    let mut command = Command::new(compiler.path());
    // One segment of code and one of zeroes: a new process pays a page fault for each page.
    command.args(["-std=gnu11", "-Os", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie"]);
    command.args(["-fno-asynchronous-unwind-tables", "-Wall", "-Wextra", "-nostdlib", "-static"]);
    command.args(["-Wl,-z,noseparate-code,-z,norelro,-z,noexecstack,--build-id=none", "-s", "-o"]);
    command.arg(&output).args(SOURCES.iter().map(|file| sources.join(file)));
    match command.status() {
        Ok(status) if status.success() => {}
        other => panic!("cannot build the client with {}: {other:?}", compiler.path().display()),
    }
    let mut image = std::fs::read(&output).expect("just written");
    image[MARK_OFFSET..MARK_OFFSET + MARK.len()].copy_from_slice(MARK);
    std::fs::write(&output, image).expect("cargo's directory can be written");
    println!("cargo::rustc-env=HOTSTART_CLIENT={}", output.display());
}
