//! The two observation runs of a program.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use super::calls::refuse;
use super::counts::Place;
use super::run::{Run, Seen};
use super::{Live, Observed, Refusal, compare, secret, stdio};
use crate::Reason;
use crate::Spec;
use crate::sys::channel;
use crate::warm::template::{self, Means};
use crate::warm::wire;

/// Arguments of the first run, as many as a start can have. In the second all but the name are variables: to constructors an
/// empty one is as good as another, but where they begin to be variables differs, and with it the number of arguments. A word
/// that is equal to the number in both is so for all numbers in between, whatever bounds its maker may have set it.
const ARGUMENTS: usize = wire::ROOM;
const FEWER: u64 = ARGUMENTS as u64 - 1;

/// Runs the program twice up to its main, and tells what was found.
pub(super) fn observe(spec: &Spec<'_>, means: Means<'_>, live: &Live) -> Observed {
    let mut seen = Seen::default();
    let (refusal, counts) = match run_twice(spec, means, live, &mut seen) {
        Ok(counts) => (None, counts),
        Err(refusal) => (Some(refusal), Vec::new()),
    };
    Observed {
        names: seen.names,
        looks: seen.looks,
        files: seen.files,
        relative: seen.relative.into_iter().collect(),
        counts,
        refusal,
        key: Vec::new(),
    }
}

/// Tells where the number of arguments is kept.
fn run_twice(spec: &Spec<'_>, means: Means<'_>, live: &Live, seen: &mut Seen) -> Result<Vec<Place>, Refusal> {
    seen.files.watch(&spec.program);
    let runtime = rustix::fs::fstat(means.runtime).map_or(0, |stat| stat.st_ino);
    let everywhere = rustix::thread::sched_getaffinity(None).ok();
    let pid = spawn(spec, means);
    let pid = pid.or_else(|error| refuse(Reason::NotObserved, error.to_string()))?;
    let mut one = Run::of(pid, means, everywhere, live)?;
    let mut other = one.fork(FEWER, live)?;
    for run in [&mut one, &mut other] {
        let ran = run.reach_main();
        everywhere.iter().for_each(|all| _ = rustix::thread::sched_setaffinity(None, all));
        take(run, seen);
        ran?;
    }
    compare::compare(&one, &other, runtime)
}

/// Adds to `seen` what a run has seen.
fn take(run: &mut Run<'_>, seen: &mut Seen) {
    seen.files.join(&run.seen.files);
    seen.relative.append(&mut run.seen.relative);
    seen.looks.stdio = std::array::from_fn(|fd| seen.looks.stdio[fd] | run.seen.looks.stdio[fd]);
    seen.looks.processors |= run.seen.looks.processors;
    seen.looks.limits.extend(&run.seen.looks.limits);
    for name in &run.seen.names {
        if !seen.names.contains(name) {
            seen.names.push(name.clone());
        }
    }
}

/// Starts a run, of which this thread is the tracer.
fn spawn(spec: &Spec<'_>, means: Means<'_>) -> std::io::Result<i32> {
    let (_socket, theirs) = channel::pair()?;
    let classes = stdio::classes(spec);
    let stand_in = |fd: usize| stdio::stand_in(classes[fd]);
    let ends = template::ends(theirs, means.runtime, means.slots, stand_in)?;
    let (environment, variables) = template::environment(spec, means.allocator);
    let program = CString::new(spec.program.as_os_str().as_bytes())?;
    let filling = secret::filling(&program, environment.len(), ARGUMENTS - 2);
    let mut arguments = vec![CString::default(); ARGUMENTS];
    arguments[0] = template::name(spec)?;
    arguments[1] = CString::new(vec![b'x'; filling])?;
    let inherited = template::Inherited::of(spec);
    template::spawn(&program, &arguments, (&environment, variables), &ends, &inherited, true)
        .map_err(std::io::Error::from_raw_os_error)
}
