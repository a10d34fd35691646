//! Runs the demo suite while zygotes are killed at random. No test is lost, no verdict changes, and no failure is seen first
//! and corrected later.
//!
//! `HOTSTART_KILLS` sets the number of zygotes to kill.

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

/// Returns the verdict of each test, in the order of their names.
fn verdicts(run: &Run) -> Vec<&str> {
    let name = |line| -> Option<&str> { Some(str::split_once(line, " (")?.0) };
    let mut verdicts: Vec<_> =
        run.out.lines().filter(|l| l.contains(": demo :: ")).filter_map(name).collect();
    verdicts.sort_unstable();
    verdicts
}

/// Returns the number of hotstart's faults.
fn faults(run: &Run) -> u64 {
    let line = run.err.lines().find(|l| l.starts_with("hotstart: failures confirmed cold"));
    let last = line.expect("--explain says it").rsplit(' ').next().expect("words");
    last.parse().expect("a number")
}

/// Returns the number of starts that found a dead zygote.
fn met_dead(run: &Run) -> u64 {
    let count = |line: &str| {
        line.trim().strip_suffix(": the zygote died")?.strip_prefix("cold ")?.parse::<u64>().ok()
    };
    run.err.lines().filter_map(count).sum()
}

/// Mappings that mark a process to kill, in addition to the runtime. Only a zygote has the slots; a process that runs a tool
/// has a page. The runner, and its children before their exec, have both, but not the runtime.
const ZYGOTES: &[&str] = &["hotstart-slots"];
const ZYGOTES_AND_TOOLS: &[&str] = &["hotstart-slots", "hotstart-page"];

fn maps_one_of(pid: i32, targets: &[&str]) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.contains("hotstart-runtime") && targets.iter().any(|target| maps.contains(target))
}

/// Kills processes of the runner until it has ended. Returns their number.
fn hail(runner: u32, targets: &[&str], over: &AtomicBool, random: &mut Random) -> u64 {
    let mut killed = 0;
    while !over.load(Ordering::SeqCst) {
        let found: Vec<_> =
            children_of(runner).into_iter().filter(|&pid| maps_one_of(pid, targets)).collect();
        if !found.is_empty() {
            let unlucky = found[random.below(found.len() as u64) as usize];
            let pid = Pid::from_raw(unlucky).expect("not zero");
            killed += u64::from(kill_process(pid, Signal::KILL).is_ok());
        }
        // Processes shall live for different times.
        std::thread::sleep(Duration::from_micros(random.below(12_000)));
    }
    killed
}

fn run_in_hail(results: &Path, start: &str, targets: &[&str], random: &mut Random) -> (Run, u64) {
    let child = command(results, &[start]).spawn().expect("hotstart starts");
    let (runner, over) = (child.id(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let hail = scope.spawn(|| hail(runner, targets, &over, random));
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
    let expected = verdicts(&calm);
    assert!(expected.len() > 100, "{calm:#?}");
    let (mut random, mut killed, mut dead, mut runs) = (Random::new(3), 0, 0, 0);
    while killed < wanted {
        runs += 1;
        assert!(runs < 10 + wanted, "{killed} zygotes killed in {runs} runs");
        let (run, now) = run_in_hail(&results(runs), "--start=fork", ZYGOTES, &mut random);
        assert_eq!(verdicts(&run), expected, "{run:#?}");
        assert_eq!(run.code, calm.code, "{run:#?}");
        // A failure seen warm and corrected cold is a FLAKYPASS, so the verdicts would differ.
        assert_eq!(faults(&run), 0, "{run:#?}");
        killed += now;
        dead += met_dead(&run);
        alone.await_nobody();
    }
    let tests = expected.len();
    println!("{killed} zygotes killed in {runs} runs of {tests} tests; {dead} starts met a dead one");
}

/// A killed persistent process ends the tool that it runs, as any killed process would: the test fails, and is confirmed
/// cold. The death of an idle one is noticed.
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
        let (run, now) = run_in_hail(&results(runs), "--start=rewind", ZYGOTES_AND_TOOLS, &mut random);
        assert_eq!(verdicts(&run), expected, "{run:#?}");
        assert_eq!(run.code, calm.code, "{run:#?}");
        killed += now;
        alone.await_nobody();
    }
    println!("{killed} zygotes and workers killed in {runs} runs of {} tests", expected.len());
}
