//! `hotstart completions` and `hotstart man`, as shells and readers use them.

use std::process::{Command, Output};

fn hotstart(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotstart")).args(args).output().expect("hotstart starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Returns bash's completions of the last word.
fn offered(words: &[&str]) -> Vec<String> {
    let script = text(&hotstart(&["completions", "bash"]).stdout).to_owned();
    let ask = "\nCOMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))\n_hotstart\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    let output =
        Command::new("bash").args(["-c", &(script + ask), "bash"]).args(words).output().expect("bash");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    text(&output.stdout).lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    assert_eq!(offered(&["hotstart", "d"]), ["doctor"]);
    assert_eq!(offered(&["hotstart", "lit", "--filter-o"]), ["--filter-out"]);
    assert_eq!(offered(&["/bin/hotstart-lit", "--lit-py"]), ["--lit-python"]);
    assert_eq!(offered(&["hotstart", "doctor", "--filter-o"]), [""; 0]);
    assert_eq!(offered(&["hotstart", "lit", "test/"]), [""; 0]);
    assert_eq!(offered(&["hotstart", "doctor", "--al"]), ["--allocator"]);
    assert_eq!(offered(&["hotstart", "server", "st"]), ["status", "stop"]);
    assert_eq!(offered(&["hotstart", "ab", "--", "make", "st"]), [""; 0]);
}

#[test]
fn each_shell_gets_a_script_and_others_an_error() {
    for (shell, begin) in [("zsh", "#compdef hotstart hotstart-lit\n"), ("fish", "complete -c hotstart ")] {
        let output = hotstart(&["completions", shell]);
        assert!(output.status.success() && text(&output.stdout).starts_with(begin), "{output:?}");
    }
    for args in [&["completions"][..], &["completions", "tcsh"]] {
        let output = hotstart(args);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stderr), "usage: hotstart completions bash|zsh|fish\n");
    }
}

#[test]
fn the_manual_page_goes_into_the_directory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().to_string_lossy().into_owned();
    assert!(hotstart(&["man", &path]).status.success());
    let page = std::fs::read_to_string(dir.path().join("hotstart.1")).expect("a page");
    assert!(
        page.starts_with(".TH HOTSTART 1 ") && page.contains("\\fB\\-\\-lit\\-python\\fR PATH"),
        "{page}"
    );
    let output = hotstart(&["man", &format!("{path}/nowhere")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nowhere/hotstart.1': No such file"), "{output:?}");
}
