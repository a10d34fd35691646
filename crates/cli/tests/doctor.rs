//! `hotstart doctor` from its users' point of view.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn doctor(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotstart")).arg("doctor").args(args).output().expect("hotstart starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn it_measures_all_within_a_minute_and_says_what_it_could_not() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let script = dir.path().join("script");
    std::fs::write(&script, format!("#!/bin/sh\nexit 0\n{}", "#".repeat(64))).expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, executable).expect("it is ours");
    let (script, page) = (script.to_string_lossy().into_owned(), dir.path().join("page.html"));
    let begun = Instant::now();
    let args =
        ["--html", &page.to_string_lossy(), "--allocator=odd=/no/lib.so", "/bin/true", &script, "sleep 1000"];
    let output = doctor(&args);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let (out, page) = (text(&output.stdout), std::fs::read_to_string(page).expect("a page"));
    assert!(output.status.success(), "{out}\n{}", text(&output.stderr));
    for part in [
        "starting a process, by size of the parent",
        "by threads of the parent",
        "page faults: time for each 4 KiB",
        "malloc and free: time for each",
        "/bin/true: where a cold start goes",
        "/bin/true: started cold and warm, interleaved",
        "\n  constructors ",
        "\n  warm, forked ",
        "sleep 1000 could not be measured because it had not ended after 5 s and was killed",
        "odd could not be measured because there is no file",
        "a warm start could not be measured because it cannot be warm: a script",
        "\nadvice\n",
    ] {
        assert!(out.contains(part), "{part:?} is not in {out}");
    }
    assert!(page.contains("<figure data-plot>") && page.contains("\"mark\":\"line\""), "{page}");
}

#[test]
fn wrong_words_are_named() {
    for (args, said) in [
        (vec!["--frob"], "there is no option '--frob'"),
        (vec!["--html"], "--html needs a value"),
        (vec!["--allocator", "x"], "write NAME=FILE"),
        // Before anything is measured.
        (vec!["true", "no-such-tool"], "there is no program 'no-such-tool' along PATH"),
    ] {
        let output = doctor(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}
