//! Builds the C runtime, and the one file that hides a preloaded allocator, into shared libraries that `image` embeds.
//!
//! HOTSTART_WITHOUT=NAME,NAME leaves out parts of what makes warm starts right (`HS_WITHOUT_NAME` in the runtime): only for
//! `tools/fuzz-bites`, which tests that the fuzzer notices.
//!
//! On aarch64 the runtime is built without resets and gate (HS_RESETS in `arch.h`).
//!
//! HOTSTART_CC names the C compiler. A build for an old glibc needs it: CC and the linker are zig's there, and the runtime
//! needs GCC. HOTSTART_WERROR makes its warnings errors, as continuous integration does.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 61] = [
    "fork/entry.c",
    "io.c",
    "fork/asked.c",
    "reset/marks.c",
    "maps.c",
    "own.c",
    "fork/title.c",
    "fork/snapshot.c",
    "fork/bind.c",
    "fork/child.c",
    "fork/decode.c",
    "fork/loader.c",
    "fork/imports.c",
    "fork/residue.c",
    "fork/server.c",
    "reset/worker.c",
    "reset/number.c",
    "reset/memory.c",
    "gate/gate.c",
    "gate/sites.c",
    "gate/slots.c",
    "gate/calls.c",
    "gate/cancel.c",
    "gate/children.c",
    "gate/files.c",
    "gate/paths.c",
    "gate/walk.c",
    "gate/places.c",
    "gate/signals.c",
    "gate/sockets.c",
    "gate/stacks.c",
    "gate/table.c",
    "gate/usage.c",
    "reset/mappings.c",
    "reset/page_cache.c",
    "reset/state.c",
    "deferred/point.c",
    "deferred/delta.c",
    "deferred/pays.c",
    "deferred/flags.c",
    "deferred/pointers.c",
    "deferred/dry.c",
    "reset/strings.c",
    "deferred/watch.c",
    "fork/affinity.c",
    "fork/outside.c",
    "fork/vdso.c",
    "extra/text.c",
    "extra/nested.c",
    "reset/threads.c",
    "python/api.c",
    "python/config.c",
    "python/hook.c",
    "python/traps.c",
    "python/functions.c",
    "python/finish.c",
    "python/harmless.c",
    "python/decoy.c",
    "python/lent.c",
    "python/place.c",
    "python/resume.c",
];
const PRELOAD: &str = "extra/preload.c";
const HEADERS: [&str; 6] =
    ["protocol.h", "arch.h", "runtime.h", "reset/strings.h", "python/python.h", "gate/file_systems.h"];

const WITHOUT: &str = "HOTSTART_WITHOUT";
const COMPILER: &str = "HOTSTART_CC";
const WERROR: &str = "HOTSTART_WERROR";

fn main() {
    println!("cargo::rerun-if-env-changed={WITHOUT}");
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let runtime = variable("CARGO_MANIFEST_DIR").join("runtime");
    for file in SOURCES.iter().chain(&HEADERS).chain(&[PRELOAD]) {
        println!("cargo::rerun-if-changed={}", runtime.join(file).display());
    }
    let without = without(&runtime);
    let library = |name: &str, sources: &[&str], options: &[&str]| {
        let options: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
        let output = variable("OUT_DIR").join(name);
        link(&runtime, &output, sources, &[&options[..], &without].concat());
        output
    };
    let output = library("hotstart-runtime.so", &SOURCES, &["-Wl,-z,now", "-Wl,-z,initfirst"]);
    println!("cargo::rustc-env=HOTSTART_RUNTIME={}", output.display());
    let output = library("hotstart-preload.so", &[PRELOAD], &["-Wl,-z,now", "-Wl,-z,initfirst"]);
    println!("cargo::rustc-env=HOTSTART_PRELOAD={}", output.display());
}

fn link(runtime: &Path, output: &Path, sources: &[&str], options: &[String]) {
    println!("cargo::rerun-if-env-changed={WERROR}");
    let compiler = compiler();
    let mut command = Command::new(compiler.path());
    command.args([
        "-std=gnu11",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Werror=undef",
    ]);
    if std::env::var_os(WERROR).is_some_and(|value| !value.is_empty()) {
        command.arg("-Werror");
    }
    command.arg("-I").arg(runtime).args(options).args(["-Wl,--build-id=none", "-s", "-o"]).arg(output);
    command.args(sources.iter().map(|file| runtime.join(file)));
    match command.status() {
        Ok(status) if status.success() => {}
        other => panic!("cannot build the runtime with {}: {other:?}", compiler.path().display()),
    }
}

/// GCC. Others ignore `#pragma GCC target("general-regs-only")`, without which the gate would change a tool's vector
/// registers.
fn compiler() -> cc::Tool {
    println!("cargo::rerun-if-env-changed={COMPILER}");
    let mut build = cc::Build::new();
    if let Some(named) = std::env::var_os(COMPILER).filter(|name| !name.is_empty()) {
        build.compiler(named);
    }
    let compiler = build.cargo_metadata(false).get_compiler();
    let path = compiler.path().display();
    assert!(
        compiler.is_like_gnu(),
        "the runtime needs GCC, and {path} is another compiler; set {COMPILER}=gcc"
    );
    compiler
}

/// One macro for each part that is left out.
fn without(runtime: &Path) -> Vec<String> {
    let names = std::env::var(WITHOUT).unwrap_or_default();
    let names: Vec<_> = names.split(',').filter(|name| !name.is_empty()).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        println!("cargo::warning=the runtime is built without {names}: for tests of the fuzzer only");
    }
    let files: Vec<_> = SOURCES.iter().chain(&HEADERS).map(|file| runtime.join(file)).collect();
    let texts: String =
        files.iter().map(|file| std::fs::read_to_string(file).expect("it is there")).collect();
    let macro_of = |name: &&str| {
        let name = format!("HS_WITHOUT_{}", name.to_uppercase().replace('-', "_"));
        assert!(texts.contains(&name), "{WITHOUT}: nothing in {} asks for {name}", runtime.display());
        format!("-D{name}")
    };
    names.iter().map(macro_of).collect()
}
