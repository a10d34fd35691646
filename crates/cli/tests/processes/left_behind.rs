//! No process, file, shared memory or message queue is left after a run, however it ended.
//!
//! `HOTSTART_RUNNERS` sets the number of runs that are killed at random moments.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::suite::{Run, Suite};
use crate::{Alone, Random};

/// A suite whose tests start tools warm and write files, some of them slowly; and the directory for temporary files.
struct Place {
    suite: Suite,
    shared: Shared,
}

/// Names of objects that outlive their creators.
#[derive(Debug, PartialEq, Eq)]
struct Shared {
    memory: Vec<PathBuf>,
    segments: usize,
    queues: usize,
    semaphores: usize,
}

impl Shared {
    fn now() -> Self {
        let lines = |name: &str| {
            std::fs::read_to_string(format!("/proc/sysvipc/{name}")).unwrap_or_default().lines().count()
        };
        let mut memory: Vec<_> =
            std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        memory.retain(|path| path.to_string_lossy().contains("hotstart"));
        Shared { memory, segments: lines("shm"), queues: lines("msg"), semaphores: lines("sem") }
    }
}

impl Place {
    fn new(long: bool) -> Self {
        let suite = Suite::new("");
        for number in 0..24 {
            let text = "RUN: sort %s | head -n 1 | sort > %t\nRUN: mktemp\nRUN: sh -c 'exit 0'\n";
            suite.file(&format!("{number:02}.test"), text);
        }
        if long {
            suite.file("50-tool.test", "RUN: sleep 1000 | sort\n");
            suite.file("51-shell.test", "RUN: sh -c 'sleep 1000 & sleep 1000' | sort\n");
            suite.file("52-other.test", "RUN: /usr/bin/env true\nRUN: /usr/bin/env sleep 1000 | sort\n");
        }
        std::fs::create_dir(suite.path("tmp")).unwrap();
        Place { suite, shared: Shared::now() }
    }

    fn command(&self, start: &str) -> Command {
        let mut command = self.suite.command(&["-j4", start, "--order=lexical", "."]);
        command.env("TMPDIR", self.suite.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, start: &str) -> Child {
        self.command(start).spawn().expect("hotstart starts")
    }

    /// Waits until tests have run.
    fn await_tests(&self) {
        let (last, begun) = (self.suite.path("Output/23.test.tmp"), Instant::now());
        while !last.exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "no test was started");
            std::thread::yield_now();
        }
    }

    /// Asserts that nothing is left of the run.
    fn check(&self, alone: &Alone) {
        alone.await_nobody();
        let left: Vec<_> = std::fs::read_dir(self.suite.path("tmp")).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(Shared::now(), self.shared);
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the runner is there");
}

fn ended(child: Child) -> Run {
    Run::from(child.wait_with_output().expect("it ends"))
}

const WAYS: [&str; 2] = ["--start=cold", "--start=fork"];

#[test]
fn nothing_is_left_after_a_run() {
    let alone = Alone::begin();
    for start in WAYS {
        let place = Place::new(false);
        ended(place.start(start)).ends_with(0).says("Passed: 24");
        place.check(&alone);
    }
}

#[test]
fn nothing_is_left_after_ctrl_c() {
    let alone = Alone::begin();
    for start in WAYS {
        let place = Place::new(true);
        let child = place.start(start);
        place.await_tests();
        signal(&child, Signal::INT);
        let run = ended(child);
        assert_eq!(run.err.matches("interrupted by user").count(), 1, "{run:#?}");
        place.check(&alone);
    }
}

#[test]
fn nothing_is_left_when_the_runner_ends_at_once() {
    let alone = Alone::begin();
    for number in [Signal::TERM, Signal::HUP, Signal::KILL] {
        for start in WAYS {
            let place = Place::new(true);
            let child = place.start(start);
            place.await_tests();
            signal(&child, number);
            assert_eq!(ended(child).code, None, "{number:?}");
            place.check(&alone);
        }
    }
}

/// The runner is killed at any moment: while configs are read, zygotes are made, or the last tools end.
#[test]
fn nothing_is_left_when_the_runner_is_killed_at_random() {
    let alone = Alone::begin();
    let rounds =
        std::env::var("HOTSTART_RUNNERS").map_or(8, |n| n.parse().expect("HOTSTART_RUNNERS is a number"));
    let mut random = Random::new(7);
    for round in 0..rounds {
        let place = Place::new(round % 2 == 0);
        let child = place.start(WAYS[round % 2]);
        // At most about as long as a run takes.
        std::thread::sleep(Duration::from_micros(random.below(400_000)));
        if round % 4 >= 2 {
            // A start that the runner has requested goes on without it for a while.
            signal(&child, Signal::STOP);
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(&child, Signal::KILL);
        drop(ended(child));
        place.check(&alone);
    }
}
