//! Wrong commands: each gets a message that names it, no process or file is left, and earlier measurements are kept.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::run::{Place, Run, await_end_of, await_pid, runs};

#[test]
fn a_command_that_does_not_exist_is_named_before_anything_runs() {
    let place = Place::new();
    let mut command = place.command(&["-r", "3"], &["echo ran > ran"]);
    let run = Run::from(command.args(["--", "no-such-tool", "x"]).output().expect("hotstart starts"));
    run.fails_saying("there is no program 'no-such-tool' along PATH");
    assert!(!place.path("ran").exists(), "nothing was to run");
}

#[test]
fn a_file_that_cannot_be_executed_is_named() {
    let place = Place::new();
    std::fs::write(place.path("text"), "text").expect("a file");
    let mut command = place.command(&[], &[]);
    let run = Run::from(command.args(["--", "./text"]).output().expect("hotstart starts"));
    run.fails_saying("'./text' could not be started in the check before all timing: cannot execute");
}

#[test]
fn failing_in_the_check_or_the_warm_up_ends_it_with_what_was_said() {
    let place = Place::new();
    let run = place.run(&["-r", "3"], &["true", "echo oh dear >&2; exit 7"]);
    run.fails_saying("ended with exit code 7 in the check before all timing, where exit code 0 was expected");
    assert!(run.err.contains("It said:\noh dear"), "{run:#?}");
    let late = "test -e once && exit 7; touch once";
    place.run(&["-r", "3"], &[late]).fails_saying("ended with exit code 7 in warm-up 1");
    assert_eq!(place.run(&["-r", "3", "-q", "--exit-code=0,7"], &[late]).code, Some(0));
}

#[test]
fn being_killed_in_a_run_is_told_and_the_runs_before_are_written() {
    let place = Place::new();
    let script = "echo x >> n; test $(wc -l < n) -lt 6 || kill -9 $$";
    let run = place.run(&["-r", "9", "--json", "report.json", "--csv", "report.csv"], &["true", script]);
    run.fails_saying("was killed by SIGKILL in run 4");
    let report = place.json("report.json");
    assert_eq!((report["complete"].as_bool(), runs(&report, 1)), (Some(false), 3));
    assert!(report["failure"].as_str().is_some_and(|text| text.contains("SIGKILL")));
    let lines = std::fs::read_to_string(place.path("report.csv")).expect("a CSV report").lines().count();
    assert_eq!(lines, 1 + runs(&report, 0) + runs(&report, 1));
}

#[test]
fn a_gigabyte_of_output_is_compared_in_little_memory_and_limited_on_request() {
    let place = Place::new();
    let script = "head -c 1000000000 /dev/zero";
    let options = ["-r", "1", "-w", "0", "--same-output", "--json", "report.json"];
    let run = place.run(&options, &[script, script]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let report = place.json("report.json");
    assert_eq!(report["same_output"].as_bool(), Some(true));
    let own = report["machine"]["own_memory_kib"].as_u64().expect("own memory");
    assert!(own < 64 << 10, "{own} KiB");
    let run = place.run(&["--output-limit", "1M"], &["echo $$ > pid; exec yes"]);
    run.fails_saying("printed more than 1048576 bytes in the check before all timing and was killed");
    await_end_of(await_pid(&place.path("pid")));
}

#[test]
fn outputs_that_differ_are_shown_and_nothing_is_timed() {
    let place = Place::new();
    let run = place.run(&["--same-output", "--json", "report.json"], &["echo a; echo b", "echo a; echo c"]);
    run.fails_saying("prints: in line 2, \"b\" and \"c\"; nothing was timed");
    assert_eq!(runs(&place.json("report.json"), 0), 0);
}

#[test]
fn a_command_that_never_ends_is_killed_with_its_children() {
    let place = Place::new();
    let script = "echo x >> n; test $(wc -l < n) -lt 4 || { sleep 1000 & echo $! > pid; wait; }";
    let run = place.run(&["-r", "9", "--timeout", "2", "--json", "report.json"], &[script]);
    run.fails_saying("had not ended in run 2 after 2 s and was killed");
    await_end_of(await_pid(&place.path("pid")));
    assert_eq!(runs(&place.json("report.json"), 0), 1);
}

#[test]
fn signals_kill_what_runs_and_keep_the_runs_before() {
    // Ctrl-C, `kill`, a closed terminal.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let script = "echo x >> n; test $(wc -l < n) -lt 5 || { echo $$ > pid; exec sleep 1000; }";
        let mut command = place.command(&["-r", "9", "--json", "report.json"], &[script]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotstart starts");
        let pid = await_pid(&place.path("pid"));
        let runner = Pid::from_raw(child.id() as i32).expect("a process number");
        kill_process(runner, signal).expect("the runner is there");
        let output = child.wait_with_output().expect("hotstart ends");
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "it dies of the signal");
        let run = Run::from(output);
        await_end_of(pid);
        assert!(run.err.contains("interrupted; the report is of what was measured until then"), "{run:#?}");
        assert_eq!(runs(&place.json("report.json"), 0), 2);
    }
}

#[test]
fn hooks_that_fail_are_named() {
    let place = Place::new();
    place
        .run(&["--setup", "echo no >&2; exit 1"], &["true"])
        .fails_saying("the setup command `echo no >&2; exit 1`");
    let run = place.run(&["-r", "3", "--cleanup", "exit 4"], &["true"]);
    run.fails_saying("the cleanup command `exit 4` ended with exit code 4");
    assert!(run.out.contains("A: sh -c true"), "{run:#?}");
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_after_the_others() {
    let place = Place::new();
    let run = place.run(&["-r", "2", "--json", "no/dir/x.json", "--json", "y.json"], &["true"]);
    run.fails_saying("cannot write 'no/dir/x.json'");
    assert!(place.path("y.json").exists());
}
