//! `hotstart server warm`: tools are warm before a build begins, and so are the programs that they start.

use crate::bench::{Bench, await_that, compile, told};

#[test]
fn a_compiler_and_what_it_starts_are_warm_from_the_first_start() {
    let bench = Bench::starting("auto");
    let warm = |tool: &str| bench.hotstart().args(["server", "warm", tool]).output().expect("it runs");
    let done = warm("gcc");
    assert!(done.status.success(), "{}", told(&done));
    let told_of = String::from_utf8(done.stdout).unwrap();
    let is_warm = |name: &str| told_of.lines().any(|line| line.starts_with("warm ") && line.ends_with(name));
    assert!(["/gcc", "/cc1", "/as", "/collect2", "/ld"].into_iter().all(is_warm), "{told_of}");
    let cold = |status: &serde_json::Value| status["cold"].as_u64().unwrap();
    let before = cold(&bench.status_json());
    std::fs::write(bench.path("a.c"), "int main(void) { return 3; }").unwrap();
    for out in ["one", "another"] {
        let built = bench.client().args(["gcc", "a.c", "-o", out]).output().expect("it runs");
        assert!(built.status.success(), "{}", told(&built));
        let ran = bench.command(&bench.path(out)).status().expect("it runs");
        assert_eq!(ran.code(), Some(3));
    }
    let status = bench.status_json();
    assert_eq!(cold(&status), before, "{status:#}");
}

/// All clients wait for the one zygote that the first of them causes.
#[test]
fn parallel_first_clients_are_warm() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let first = bench.path("first");
    compile(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exec/victim.c").as_ref(), &first);
    // Starts of a file that has just changed are cold.
    let changed = std::fs::metadata(&first).unwrap().modified().unwrap();
    await_that("the file to age", || changed.elapsed().is_ok_and(|age| age.as_millis() > 20));
    let before = bench.warm_starts();
    let mut clients: Vec<_> =
        (0..8).map(|_| bench.client().arg(&first).args(["exit", "0"]).spawn().expect("it runs")).collect();
    assert!(clients.iter_mut().all(|client| client.wait().expect("it ends").success()));
    assert_eq!(bench.warm_starts(), before + 8, "{}", bench.status());
}

#[test]
fn a_tool_that_is_nowhere_is_an_error() {
    let bench = Bench::new();
    for command in [&["server", "warm", "no-such-tool"][..], &["exec", "--install", "links", "no-such-tool"]]
    {
        let run = bench.hotstart().args(command).output().expect("it runs");
        assert_eq!(run.status.code(), Some(2));
        assert!(
            String::from_utf8_lossy(&run.stderr).contains("no program 'no-such-tool' in PATH"),
            "{}",
            told(&run)
        );
    }
    assert!(!bench.path("links").exists());
}
