//! The demo suite under a hail of SIGKILL: templates are killed at random while tests run. No test is lost and no
//! verdict changes, nor is a failure first seen and then put right.
//!
//! `HOTSTART_KILLS` sets how many templates are killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::suite::{Run, prepare};
use crate::{Alone, Random, children_of};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/suite");

fn command(results: &Path, options: &[&str]) -> Command {
    let llvm = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/llvm-bin")).output().unwrap();
    let llvm = String::from_utf8(llvm.stdout).unwrap();
    assert!(llvm.starts_with('/'), "no LLVM tools; run `make setup`");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotstart"));
    command.args(["lit", "-j3", "--verify=0", "--explain"]).args(options);
    command.arg(format!("-Dllvm_bin={}", llvm.trim())).arg(format!("-Dexec_root={}", results.display()));
    command.arg(DEMO).stdout(Stdio::piped()).stderr(Stdio::piped());
    prepare(&mut command);
    command
}

/// The verdict of each test, in the order of their names.
fn verdicts(run: &Run) -> Vec<&str> {
    let name = |line| -> Option<&str> { Some(str::split_once(line, " (")?.0) };
    let mut verdicts: Vec<_> =
        run.out.lines().filter(|l| l.contains(": demo :: ")).filter_map(name).collect();
    verdicts.sort_unstable();
    verdicts
}

/// How many failures were seen warm and run again cold; and how many faults of hotstart there were.
fn checks(run: &Run) -> (u64, u64) {
    let line = run.err.lines().find(|l| l.starts_with("hotstart: failures confirmed cold"));
    let number = |part: &str| part.rsplit(' ').next().expect("words").parse().expect("a number");
    let parts: Vec<u64> = line.expect("--explain says it").split(';').map(number).collect();
    (parts[0], parts[3])
}

/// How many starts met a template that was dead.
fn met_dead(run: &Run) -> u64 {
    let count = |line: &str| {
        line.trim().strip_suffix(": the template died")?.strip_prefix("cold ")?.parse::<u64>().ok()
    };
    run.err.lines().filter_map(count).sum()
}

/// Or a worker. Copies have the runtime in memory as well, but neither slots nor a page; the runner, and its children on
/// the way to exec, have these, but not the runtime.
fn is_template(pid: i32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let shares = maps.contains("hotstart-slots") || maps.contains("hotstart-page");
    shares && maps.contains("hotstart-runtime")
}

/// Kills templates of the runner until it has ended; how many.
fn hail(runner: u32, over: &AtomicBool, random: &mut Random) -> u64 {
    let mut killed = 0;
    while !over.load(Ordering::SeqCst) {
        let templates: Vec<_> = children_of(runner).into_iter().filter(|&pid| is_template(pid)).collect();
        if !templates.is_empty() {
            let unlucky = templates[random.below(templates.len() as u64) as usize];
            let pid = Pid::from_raw(unlucky).expect("not zero");
            killed += u64::from(kill_process(pid, Signal::KILL).is_ok());
        }
        // Templates shall live for different times.
        std::thread::sleep(Duration::from_micros(random.below(12_000)));
    }
    killed
}

fn run_in_hail(results: &Path, start: &str, random: &mut Random) -> (Run, u64) {
    let child = command(results, &[start]).spawn().expect("hotstart starts");
    let (runner, over) = (child.id(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let hail = scope.spawn(|| hail(runner, &over, random));
        let output = child.wait_with_output();
        over.store(true, Ordering::SeqCst);
        (Run::from(output.expect("it ends")), hail.join().expect("no panic"))
    })
}

fn wanted() -> u64 {
    std::env::var("HOTSTART_KILLS").map_or(60, |n| n.parse().expect("HOTSTART_KILLS is a number"))
}

#[test]
fn killed_templates_lose_no_test_and_change_no_verdict() {
    let alone = Alone::begin();
    let wanted = wanted();
    let dir = tempfile::tempdir().unwrap();
    let results = |number: u64| -> PathBuf { dir.path().join(number.to_string()) };
    let calm = Run::from(command(&results(0), &["--start=fork"]).output().expect("hotstart starts"));
    let (expected, expected_checks) = (verdicts(&calm), checks(&calm));
    assert!(expected.len() > 100, "{calm:#?}");
    let (mut random, mut killed, mut dead, mut runs) = (Random::new(3), 0, 0, 0);
    while killed < wanted {
        runs += 1;
        assert!(runs < 10 + wanted, "{killed} templates killed in {runs} runs");
        let (run, now) = run_in_hail(&results(runs), "--start=fork", &mut random);
        assert_eq!(verdicts(&run), expected, "{run:#?}");
        assert_eq!(run.code, calm.code, "{run:#?}");
        // Tests that fail on purpose are the only ones; where such a command met a dead template, it was cold at once.
        assert!(checks(&run).0 <= expected_checks.0 && checks(&run).1 == 0, "{:?}: {run:#?}", checks(&run));
        killed += now;
        dead += met_dead(&run);
        alone.await_nobody();
    }
    let tests = expected.len();
    println!("{killed} templates killed in {runs} runs of {tests} tests; {dead} starts met a dead one");
}

/// A worker that is killed takes the tool that it runs with it, as any killed process would: its test fails, and is
/// confirmed cold. One that is killed while it waits is noticed.
#[test]
fn killed_workers_change_no_verdict() {
    let alone = Alone::begin();
    let wanted = wanted();
    let dir = tempfile::tempdir().unwrap();
    let results = |number: u64| -> PathBuf { dir.path().join(number.to_string()) };
    let calm = Run::from(command(&results(0), &["--cold"]).output().expect("hotstart starts"));
    let expected = verdicts(&calm);
    let (mut random, mut killed, mut runs) = (Random::new(5), 0, 0);
    while killed < wanted {
        runs += 1;
        assert!(runs < 10 + wanted, "{killed} processes killed in {runs} runs");
        let (run, now) = run_in_hail(&results(runs), "--start=rewind", &mut random);
        assert_eq!(verdicts(&run), expected, "{run:#?}");
        assert_eq!(run.code, calm.code, "{run:#?}");
        killed += now;
        alone.await_nobody();
    }
    println!("{killed} templates and workers killed in {runs} runs of {} tests", expected.len());
}
