//! Tests which persistent process serves a start: the one last requested from the same processor.

mod common;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use common::{plain_spec, resetting_policy};
use hotstart_launch::{Clones, Group, Launcher, Policy};
use hotstart_model::Status;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Runs `cat` on this thread's processor, and returns its process number. It does not end before `meanwhile` has returned.
fn number(launcher: &Launcher, meanwhile: impl FnOnce()) -> i32 {
    let [(input, to), (from, output)] = [(); 2].map(|()| pipe_with(PipeFlags::CLOEXEC).unwrap());
    let [mut to, mut from] = [to, from].map(File::from);
    let null = File::options().write(true).open("/dev/null").unwrap();
    let stdio = [input.as_fd(), output.as_fd(), null.as_fd()];
    let argv = ["cat"];
    let spec = plain_spec(Path::new("/bin/cat"), &argv, Path::new("/"), stdio);
    let group = Group::new();
    let child = launcher.start(&spec, &group).unwrap();
    let pid = child.pid();
    // Once it has written something, it runs.
    to.write_all(b"+").unwrap();
    from.read_exact(&mut [0]).unwrap();
    meanwhile();
    drop(to);
    let exit = child.wait();
    assert!(exit.status == Status::Exited(0) && exit.via.is_warm() && !exit.lost, "{exit:?}");
    pid
}

fn bind(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).unwrap();
}

#[test]
fn each_processor_keeps_its_worker() {
    let allowed = sched_getaffinity(None).unwrap();
    let cpus: Vec<_> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(2).collect();
    let [one, other] = cpus[..] else {
        // Past the test harness, which keeps the output of tests that pass.
        std::io::stderr().write_all(b"not tried: affinity needs two processors\n").unwrap();
        return;
    };
    // A process that has learned less than others is replaced by a clone of these.
    let launcher = Launcher::new().with_policy(Policy { clones: Clones::None, ..resetting_policy(&["cat"]) });
    let mut workers = HashMap::new();
    bind(one);
    // Both run at the same time, so there are two processes.
    let first = number(&launcher, || {
        bind(other);
        workers.insert(other, number(&launcher, || ()));
        bind(one);
    });
    workers.insert(one, first);
    assert_ne!(workers[&one], workers[&other]);
    for cpu in [other, one, one, other, other, one, other, one] {
        bind(cpu);
        assert_eq!(number(&launcher, || ()), workers[&cpu], "on processor {cpu} of {workers:?}");
    }
}
