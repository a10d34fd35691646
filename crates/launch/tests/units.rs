//! Unit tests of the C runtime, under AddressSanitizer and UndefinedBehaviorSanitizer: the parts that need no process of their own
//! (`runtime/tests/unit`). The other tests here run the whole runtime in real tools.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RUNTIME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime");
/// Files that are tested through their functions. Units include the others, to reach what is private to them.
const LINKED: [&str; 5] = ["io.c", "maps.c", "fork/decode.c", "fork/affinity.c", "fork/title.c"];

fn units() -> Vec<PathBuf> {
    let directory = Path::new(RUNTIME).join("tests/unit");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect()
}

fn build(program: &Path) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args([
        "-std=gnu11",
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
    ]);
    command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I", RUNTIME, "-o"]);
    command.arg(program).args(units()).args(LINKED.map(|file| Path::new(RUNTIME).join(file))).arg("-ldl");
    let built = command.output().unwrap_or_else(|error| panic!("{}: {error}", compiler.to_string_lossy()));
    assert!(built.status.success(), "{command:?}:\n{}", text(&built));
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[test]
fn units_of_the_runtime_hold_under_sanitizers() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("units");
    build(&program);
    // LeakSanitizer traces the process, which sandboxes often forbid. Only the tests themselves allocate.
    let ran = Command::new(&program).env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap();
    let text = text(&ran);
    assert!(ran.status.success() && text.contains("test result: ok."), "{text}");
    println!("{text}");
}

/// All files in a directory and below whose names end like this, except tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.filter(|path| !path.ends_with("tests")).flat_map(|path| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    });
    below.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect()
}

/// `make test-aarch64` runs it as well, which takes an hour.
#[test]
fn the_runtime_and_the_client_of_exec_compile_for_aarch64() {
    const COMPILER: &str = "aarch64-linux-gnu-gcc";
    if Command::new(COMPILER).arg("--version").output().is_err() {
        let why = format!(
            "not tried: there is no {COMPILER} (apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)\n"
        );
        return std::io::stderr().write_all(why.as_bytes()).unwrap();
    }
    let client = Path::new(RUNTIME).join("../../exec/client");
    let files = [sources(Path::new(RUNTIME)), sources(&client)].concat();
    assert!(files.len() > 50, "{files:?}");
    let mut command = Command::new(COMPILER);
    command.args([
        "-std=gnu11",
        "-O2",
        "-fPIC",
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        RUNTIME,
    ]);
    let compiled = command.args(files).output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled));
}
