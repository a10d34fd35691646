//! The observation runs of a program.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use super::calls::refuse;
use super::counts::Place;
use super::numbers::{self, Numbers};
use super::run::{Run, Seen};
use super::{Live, Observed, Refusal, arguments, compare, secret, stdio};
use crate::Reason;
use crate::Spec;
use crate::sys::channel;
use crate::warm::template::{self, Means};
use crate::warm::wire;

/// Arguments of the first run, as many as a start can have. In the second all but the name are variables: to constructors an
/// empty one is as good as another, but where they begin to be variables differs, and with it the number of arguments. A word
/// that is equal to the number in both is so for all numbers in between, whatever bounds its maker may have set it.
///
/// That says nothing about a constructor that compares the number with a constant. Where one can read it, there is a run with
/// the number of the start itself as well.
const ARGUMENTS: usize = wire::ROOM;

/// What a comparison of runs has shown.
struct Found {
    /// Where the number of arguments is kept.
    counts: Vec<Place>,
    /// For which numbers that is so.
    numbers: Arc<Numbers>,
}

/// Runs the program up to its main with the most and the fewest arguments, and, if need be, with as many as `spec` has; tells
/// what was found.
pub(super) fn observe(spec: &Spec<'_>, means: Means<'_>, live: &Live) -> Observed {
    run_all(spec, &[1], means, live)
}

/// Runs it with the most arguments, and with as many as `spec` has.
pub(super) fn extend(spec: &Spec<'_>, means: Means<'_>, live: &Live) -> Observed {
    run_all(spec, &[], means, live)
}

fn run_all(spec: &Spec<'_>, numbers: &[usize], means: Means<'_>, live: &Live) -> Observed {
    let mut seen = Seen::default();
    let (refusal, found) = match compare_all(spec, numbers, means, live, &mut seen) {
        Ok(found) => (None, found),
        Err(refusal) => (Some(refusal), Found { counts: Vec::new(), numbers: Arc::default() }),
    };
    Observed {
        names: seen.names,
        looks: seen.looks,
        files: seen.files,
        relative: seen.relative.into_iter().collect(),
        counts: found.counts,
        numbers: found.numbers,
        refusal,
        key: Vec::new(),
    }
}

/// Compares the run with the most arguments with those that have one of `numbers`, and, unless no constructor can read the
/// number, with the one that has as many as `spec`.
fn compare_all(
    spec: &Spec<'_>,
    numbers: &[usize],
    means: Means<'_>,
    live: &Live,
    seen: &mut Seen,
) -> Result<Found, Refusal> {
    seen.files.watch(&spec.program);
    let runtime = rustix::fs::fstat(means.runtime).map_or(0, |stat| stat.st_ino);
    let everywhere = rustix::thread::sched_getaffinity(None).ok();
    let pid = spawn(spec, means);
    let pid = pid.or_else(|error| refuse(Reason::NotObserved, error.to_string()))?;
    let mut one = Run::of(pid, means, everywhere, live)?;
    let own = numbers::of(spec);
    let fork = |number: usize| one.fork(ARGUMENTS.saturating_sub(number) as u64, live);
    // All are made before the first one runs.
    let others = numbers.iter().map(|&number| fork(number)).collect::<Result<Vec<_>, _>>()?;
    let last = if numbers.contains(&own) { None } else { Some(fork(own)?) };
    let mut reach_main = |run: &mut Run<'_>| {
        let ran = run.reach_main();
        everywhere.iter().for_each(|all| _ = rustix::thread::sched_setaffinity(None, all));
        take(run, seen);
        ran
    };
    reach_main(&mut one)?;
    let is_unread = arguments::unread(&one, &one.maps()?, runtime).is_ok();
    let mut counts: Option<Vec<Place>> = None;
    for mut other in others.into_iter().chain(last.filter(|_| !is_unread)) {
        reach_main(&mut other)?;
        let found = compare::compare(&one, &other, runtime)?;
        if counts.as_ref().is_some_and(|counts| *counts != found) {
            return refuse(Reason::ConstructorsDiffer, "where the number of arguments is");
        }
        counts = Some(found);
    }
    let numbers = if is_unread { Numbers::all() } else { Numbers::of([own]) };
    Ok(Found { counts: counts.unwrap_or_default(), numbers })
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
