//! `hotstart exec --compdb`: every entry of a compilation database.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use crate::bench::{Bench, await_begun, await_gone, kill, pid, told};

fn database(bench: &Bench, entries: &[(&str, &[&str])]) {
    let tool = bench.path("tool").display().to_string();
    let entry = |(file, words): &(&str, &[&str])| {
        let arguments: Vec<&str> = std::iter::once(&*tool).chain(words.iter().copied()).collect();
        json!({"directory": bench.path("").display().to_string(), "file": file, "arguments": arguments})
    };
    let list: Vec<_> = entries.iter().map(entry).collect();
    std::fs::write(bench.path("db.json"), json!(list).to_string()).unwrap();
}

fn run(bench: &Bench, words: &[&str]) -> Command {
    let mut command = bench.hotstart();
    command.args(["exec", "--compdb", "db.json"]).args(words);
    command
}

#[test]
fn all_entries_run_warm_and_failures_are_listed_with_their_commands() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let good: &[&str] = &["exit", "0"];
    database(
        &bench,
        &[("a.c", good), ("b's.c", &["exit", "3", "b's"]), ("c.c", good), ("d.c", &["die", "15"])],
    );
    let before = bench.warm_starts();
    let ran = run(&bench, &["-j", "2"]).output().expect("it runs");
    let text = told(&ran);
    assert_eq!(ran.status.code(), Some(1), "{text}");
    assert_eq!(bench.warm_starts(), before + 4, "{}", bench.status());
    let tool = bench.path("tool").display().to_string();
    for line in [
        "failed: b's.c: exit status 3".to_owned(),
        format!("&& {tool} exit 3 'b'\"'\"'s'"),
        "failed: d.c: signal 15".to_owned(),
        "2 of 4 failed".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in {text}");
    }
    let some = run(&bench, &["--filter", "^[ac]"]).output().expect("it runs");
    assert!(some.status.success() && some.stderr.is_empty(), "{}", told(&some));
    assert_eq!(bench.warm_starts(), before + 6);
    // The output of an entry is printed with its file.
    database(&bench, &[("a.c", &["tells"])]);
    let said = told(&run(&bench, &[]).output().expect("it runs"));
    assert!(said.contains("[1/1] a.c\n") && said.contains("argument tells"), "{said}");
}

#[test]
fn a_stop_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let bench = Bench::new();
        bench.warm_up(&bench.tool("tool"));
        let logs = ["one", "two"].map(|name| bench.path(name));
        let words = logs.clone().map(|log| log.display().to_string());
        let waits = words.each_ref().map(|log| ["wait", log, "gate"]);
        database(&bench, &[("a", &waits[0]), ("b", &waits[1]), ("c", &["exit", "1"])]);
        let mut batch = run(&bench, &["-j2"]).stderr(Stdio::piped()).spawn().expect("it runs");
        let jobs = logs.each_ref().map(|log| await_begun(log));
        kill(pid(&batch), signal);
        let ended = batch.wait().expect("it ends");
        assert_eq!(ended.signal(), Some(signal.as_raw()));
        jobs.into_iter().for_each(await_gone);
    }
}

/// A compiler removes its unfinished files on a signal. One that takes no notice of it is killed.
#[test]
fn what_a_stop_ends_can_clean_up() {
    let bench = Bench::new();
    let script = |on_signal: &str, log: &str| {
        format!("trap '{on_signal}' INT; mkfifo {log}.gate; echo begun $$ > {log}; read word < {log}.gate")
    };
    let scripts = [script(": > cleaned; exit 1", "cleans"), script("", "stays")];
    let entry = |script: &String| {
        let directory = bench.path("").display().to_string();
        json!({"directory": directory, "file": "a.c", "arguments": ["/bin/sh", "-c", script]})
    };
    let list: Vec<_> = scripts.iter().map(entry).collect();
    std::fs::write(bench.path("db.json"), json!(list).to_string()).unwrap();
    let mut batch = run(&bench, &["-j2"]).spawn().expect("it runs");
    let jobs = ["cleans", "stays"].map(|log| await_begun(&bench.path(log)));
    kill(pid(&batch), Signal::INT);
    assert_eq!(batch.wait().expect("it ends").signal(), Some(Signal::INT.as_raw()));
    jobs.into_iter().for_each(await_gone);
    assert!(bench.path("cleaned").exists());
}

/// A child outlives the signal of which its parent dies.
#[test]
fn a_stop_ends_what_commands_leave_behind() {
    for setting in ["cold", ""] {
        let bench = Bench::new();
        bench.warm_up(&bench.tool("tool"));
        let logs = ["child", "parent"].map(|name| bench.path(name));
        let [child, parent] = logs.each_ref().map(|log| log.display().to_string());
        database(&bench, &[("a", &["leave", &child, "gate", &parent])]);
        let before = bench.warm_starts();
        let mut batch = run(&bench, &[]).env("HOTSTART_EXEC", setting).spawn().expect("it runs");
        let jobs = logs.each_ref().map(|log| await_begun(log));
        assert_eq!(bench.warm_starts() - before, u64::from(setting.is_empty()));
        kill(pid(&batch), Signal::INT);
        assert_eq!(batch.wait().expect("it ends").signal(), Some(Signal::INT.as_raw()));
        jobs.into_iter().for_each(await_gone);
    }
}

/// Who sends a second signal does not want to wait.
#[test]
fn a_second_stop_ends_what_takes_no_notice_of_the_first() {
    let bench = Bench::new();
    let script = "trap '' INT TERM; mkfifo gate; echo begun $$ > log; read word < gate";
    let directory = bench.path("").display().to_string();
    let entry = json!({"directory": directory, "file": "a.c", "arguments": ["/bin/sh", "-c", script]});
    std::fs::write(bench.path("db.json"), json!([entry]).to_string()).unwrap();
    let mut batch = run(&bench, &[]).spawn().expect("it runs");
    let job = await_begun(&bench.path("log"));
    kill(pid(&batch), Signal::INT);
    kill(pid(&batch), Signal::TERM);
    // The first alone would end it two seconds later, by SIGINT. The system gives the lower number first.
    assert_eq!(batch.wait().expect("it ends").signal(), Some(Signal::TERM.as_raw()));
    await_gone(job);
}

/// The thread that writes a command's output waits for a reader for ever.
#[test]
fn a_stop_needs_nobody_who_reads_the_output() {
    let bench = Bench::new();
    let directory = bench.path("").display().to_string();
    let script = "echo begun $$ > log; head -c 1000000 /dev/zero";
    let entry = json!({"directory": directory, "file": "a.c", "arguments": ["/bin/sh", "-c", script]});
    std::fs::write(bench.path("db.json"), json!([entry]).to_string()).unwrap();
    let (unread, output) = rustix::pipe::pipe().unwrap();
    let mut batch = run(&bench, &[]).stderr(output).spawn().expect("it runs");
    await_gone(await_begun(&bench.path("log")));
    kill(pid(&batch), Signal::TERM);
    assert_eq!(batch.wait().expect("it ends").signal(), Some(Signal::TERM.as_raw()));
    drop(unread);
}

#[test]
fn a_signal_that_the_caller_ignores_stops_nothing() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let log = bench.path("log").display().to_string();
    let gate = bench.path("gate").display().to_string();
    database(&bench, &[("a", &["wait", &log, &gate])]);
    let words = "trap '' HUP; exec \"$0\" exec --compdb db.json";
    let mut command = bench.command("/bin/sh".as_ref());
    let mut batch = command.args(["-c", words, env!("CARGO_BIN_EXE_hotstart")]).spawn().expect("it runs");
    await_begun(&bench.path("log"));
    kill(pid(&batch), Signal::HUP);
    std::fs::write(&gate, "").unwrap();
    assert!(batch.wait().expect("it ends").success());
}

/// One of make's two tokens is its own. If no token can be taken, one entry runs at a time.
#[test]
fn a_jobserver_is_heeded() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let good: &[&str] = &["exit", "0"];
    database(&bench, &[("a", good), ("b", good), ("c", good)]);
    let makefile = "all:\n\t+@\"$(HOTSTART)\" exec --compdb db.json -j8\n";
    std::fs::write(bench.path("Makefile"), makefile).unwrap();
    for jobs in ["-j1", "-j3"] {
        let mut make = bench.command("make".as_ref());
        make.arg(jobs).env("HOTSTART", env!("CARGO_BIN_EXE_hotstart"));
        let made = make.output().expect("make runs");
        assert!(made.status.success(), "{}", told(&made));
    }
}

/// Windows' tools begin a file with a byte order mark.
#[test]
fn a_byte_order_mark_is_no_error() {
    let bench = Bench::new();
    database(&bench, &[]);
    let text = std::fs::read(bench.path("db.json")).unwrap();
    std::fs::write(bench.path("db.json"), [b"\xef\xbb\xbf", &text[..]].concat()).unwrap();
    let ran = run(&bench, &[]).output().expect("it runs");
    assert!(ran.status.success(), "{}", told(&ran));
}

#[test]
fn a_database_that_cannot_be_used_is_an_error_that_names_it() {
    let bench = Bench::new();
    for (text, why) in
        [("{", "'db.json': "), ("{}", "not a list"), ("[{\"file\": 1}]", "entry 0: it needs 'directory'")]
    {
        std::fs::write(bench.path("db.json"), text).unwrap();
        let ran = run(&bench, &[]).output().expect("it runs");
        assert!(ran.status.code() == Some(2) && told(&ran).contains(why), "{}", told(&ran));
    }
}
