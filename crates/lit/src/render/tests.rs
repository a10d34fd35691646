//! Unit tests of the output of transcripts, in the words of both lits.

use hotstart_model::{RedirectedOutput, Status};

use super::*;

fn commands() -> Vec<Command> {
    let command = |line, text: &str| Command { label: format!("RUN: at line {line}"), text: text.to_owned() };
    vec![command(1, "opt %s | FileCheck x"), command(2, "")]
}

fn stage(args: &[&str], stdout: &str, status: i32, position: (usize, usize)) -> Step {
    Step::Stage(Stage {
        args: args.iter().map(|&a| a.to_owned()).collect(),
        stdout: stdout.to_owned(),
        stderr: String::new(),
        status,
        process: Some(if status < 0 { Status::Signaled(-status) } else { Status::Exited(status) }),
        timed_out: false,
        redirected: Vec::new(),
        pipeline: 0,
        position,
        wall: Duration::ZERO,
        cpu: Duration::ZERO,
    })
}

fn failing() -> Transcript {
    let steps = vec![
        Step::Begin(1),
        Step::Begin(0),
        stage(&["opt", "a b"], "", -11, (0, 2)),
        stage(&["!", "FileCheck", "x"], "no\n\u{2028}", 1, (1, 2)),
    ];
    Transcript { steps, exit_code: Some(1), ..Transcript::default() }
}

fn shown(dialect: Dialect, transcript: &Transcript, timeout: Option<Duration>) -> String {
    let commands = commands();
    let view = View { commands: &commands, dialect, external: false, timeout, output_limit: 5 };
    output(&view, transcript)
}

#[test]
fn the_trace_is_lits() {
    let expected = "Exit Code: 1\n\nCommand Output (stdout):\n--\n\
        # RUN: at line 2 has no command after substitutions\n\
        # RUN: at line 1\nopt %s | FileCheck x\n\
        # executed command: opt 'a b'\n\
        # note: command had no output on stdout or stderr\n\
        # error: command failed with exit status: -11\n\
        # executed command: ! FileCheck x\n\
        # .---command stdout------------\n# | no\n# | \n# `-----------------------------\n\
        # error: command failed with exit status: 1\n\n--\n";
    assert_eq!(shown(Dialect::V23, &failing(), None), expected);
    assert_eq!(shown(Dialect::V19, &failing(), None), expected);
}

#[test]
fn contents_of_files_are_told_as_far_as_they_were_there() {
    let with = |text: Option<&str>| {
        let announced = vec![(0, text.map(str::to_owned))];
        shown(Dialect::V23, &Transcript { announced, ..failing() }, None)
    };
    assert!(
        with(Some(" opt x")).contains("# RUN: at line 1\nopt x\n# executed command: opt"),
        "{}",
        with(Some(""))
    );
    assert!(with(None).contains("# RUN: at line 1\n# executed command: opt"), "{}", with(None));
}

#[test]
fn colours_are_carried_and_long_output_cut() {
    let mut out = String::new();
    push_block(&mut out, "t", "\x1b[1mab\ncdefgh", 8, Dialect::V23);
    let message = "data was truncated (8/13) (change limit with -D output_limit=N)";
    let expected = format!(
        "# .---t{}\n# | \x1b[1mab\n\x1b[0m# | \x1b[1mc\n\x1b[0m# | \x1b[1m...\n\x1b[0m# `---{message}\n",
        "-".repeat(25)
    );
    assert_eq!(out, expected);
    let shown = |limit: i64| {
        let mut out = String::new();
        push_block(&mut out, "t", "abcde", limit, Dialect::V23);
        out.lines().nth(1).map(str::to_owned)
    };
    assert_eq!([shown(-2), shown(-9)], [Some("# | abc".to_owned()), Some("# | ".to_owned())]);
    let mut old = String::new();
    push_block(&mut old, "t", "abc", 2, Dialect::V19);
    assert!(old.ends_with("# | ab\n# | ...\n# `---data was truncated--------\n"), "{old}");
}

#[test]
fn timeouts_are_told() {
    let mut transcript = failing();
    transcript.timed_out = true;
    transcript.exit_code = None;
    let text = shown(Dialect::V23, &transcript, Some(Duration::from_millis(1500)));
    assert!(text.starts_with("Exit Code: None\nTimeout: Reached timeout of 1.5 seconds\n\n"), "{text}");
}

#[test]
fn redirected_output_is_shown() {
    let mut transcript = failing();
    if let Step::Stage(stage) = &mut transcript.steps[2] {
        let data = b"a\xffb".to_vec();
        stage.redirected.push(RedirectedOutput { name: "o".into(), path: "/o".into(), data });
    }
    let text = shown(Dialect::V19, &transcript, None);
    assert!(text.contains("# .---redirected output from 'o'\n# | a\u{fffd}b\n"), "{text}");
}

#[test]
fn parse_errors_run_nothing() {
    let fault = Some(Fault::Parse { command: 0, message: "x".into() });
    let transcript = Transcript { fault, ..Transcript::default() };
    let expected = "Exit Code: 1\n\nCommand Output (stdout):\n--\n\
        # shell parser error on RUN: at line 1: opt %s | FileCheck x\n\n--\n";
    assert_eq!(shown(Dialect::V23, &transcript, None), expected);
}

#[test]
fn the_summary_names_stages_and_signals() {
    let summary = failure_summary(&commands(), &failing()).unwrap();
    let expected = "RUN: at line 1, stage 1 of 2 (opt 'a b') was killed by SIGSEGV; \
        stage 2 of 2 ('!' FileCheck x) exited with 1";
    assert_eq!(summary.to_string(), expected);
    assert_eq!(failure_summary(&commands(), &Transcript { exit_code: Some(0), ..failing() }), None);
    assert_eq!((signal_name(9), signal_name(31), signal_name(64)), (Some("SIGKILL"), Some("SIGSYS"), None));
}
