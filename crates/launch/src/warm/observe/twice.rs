//! The observation runs of a program.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use rustix::thread::CpuSet;

use super::block::Place;
use super::calls::refuse;
use super::compare::Found;
use super::counts;
use super::numbers::Numbers;
use super::parts;
use super::plain;
use super::residue;
use super::run::{PAGE, Run, Seen};
use super::{Live, Observed, Refusal, compare, secret, stdio};
use crate::Reason;
use crate::Spec;
use crate::sys::channel;
use crate::warm::eligible;
use crate::warm::refused::{LONGEST, Size};
use crate::warm::zygote::{self, Means};

/// Arguments of the first run, as many as a zygote of usual requests has. In a run with fewer, the others are variables. They are empty:
/// to constructors one empty string is like another, but the variables begin elsewhere, and so the number of arguments differs.
///
/// That proves nothing about a constructor that compares the number with a constant. So there is a run with each number that a start, or
/// its zygote, may have.
const ARGUMENTS: usize = Size::Usual.arguments();
/// Arguments of a run that has its environment, and its auxiliary vector, further from the list of arguments than other runs: by more than
/// the addresses that have all but two bytes in common, and not by a round number.
const MANY: usize = ARGUMENTS + 17_208;

/// Runs the program up to its `main` with the most arguments, with each of these `numbers` of them, and without the runtime. Returns the
/// result.
pub(super) fn observe(spec: &Spec<'_>, numbers: &BTreeSet<usize>, means: Means<'_>, live: &Live) -> Observed {
    let (mut observed, run) = run_with(spec, numbers, true, means, live);
    let further = |run: Run<'_>| {
        confirm(spec, means, &run, &observed.parts(), live)?;
        run_without(spec, means, &run, &observed.counts, live)
    };
    match run.map(further) {
        Some(Ok(residue)) => observed.residue = residue,
        Some(Err(refusal)) => observed.refusal = Some(refusal),
        None => {}
    }
    observed
}

/// The same, but not without the runtime.
pub(super) fn observe_numbers(
    spec: &Spec<'_>,
    numbers: &BTreeSet<usize>,
    means: Means<'_>,
    live: &Live,
) -> Observed {
    run_with(spec, numbers, false, means, live).0
}

/// Refuses if these words do not have parts of an address on the stack in further processes.
fn confirm(
    spec: &Spec<'_>,
    means: Means<'_>,
    one: &Run<'_>,
    places: &[counts::Place],
    live: &Live,
) -> Result<(), Refusal> {
    /// Together they are mistaken once in a hundred million times.
    const PROCESSES: usize = 3;
    /// One start in four has its stack where it must be.
    const STARTS_MAX: usize = 100;
    if places.is_empty() {
        return Ok(());
    }
    let everywhere = rustix::thread::sched_getaffinity(None).ok();
    let mut left = PROCESSES;
    for _ in 0..STARTS_MAX {
        let mut other = start(spec, means, everywhere, live)?;
        if parts::have_like_frames(one, &other) {
            reach_main(&mut other, everywhere.as_ref())?;
            parts::confirm(one, &other, places)?;
            left -= 1;
        }
        if left == 0 {
            return Ok(());
        }
    }
    refuse(Reason::NotObserved, "its stack is never where it was")
}

/// Runs the program without the runtime, and compares what it has computed with what it has in `with`, a run with the runtime. Returns what
/// it has left on its stack.
fn run_without(
    spec: &Spec<'_>,
    means: Means<'_>,
    with: &Run<'_>,
    places: &[counts::Place],
    live: &Live,
) -> Result<Vec<u64>, Refusal> {
    let main = residue::Main::of(with)?;
    let cold = |arguments| residue::run(spec, arguments, means, &main, live);
    let runs = [cold(0)?, cold(2)?];
    if with.seen.is_served {
        // It has time and random bytes in its memory.
        return residue::of_cold(runs.each_ref(), &main);
    }
    let places = counts::addresses(places, with.pid);
    let Some(places) = places else { return refuse(Reason::KeepsArguments, "their number elsewhere") };
    plain::compare(with, runs.each_ref(), &places, || {
        let everywhere = rustix::thread::sched_getaffinity(None).ok();
        let mut with = start(spec, means, everywhere, live)?;
        reach_main(&mut with, everywhere.as_ref())?;
        Ok([with, cold(1)?])
    })?;
    residue::of_cold(runs.each_ref(), &main)
}

/// Starts a run with the runtime, which may use these processors.
fn start<'a>(
    spec: &Spec<'_>,
    means: Means<'a>,
    everywhere: Option<CpuSet>,
    live: &Live,
) -> Result<Run<'a>, Refusal> {
    let pid = spawn(spec, means);
    let pid = pid.or_else(|error| refuse(Reason::NotObserved, error.to_string()))?;
    Run::of(pid, means, everywhere, live)
}

/// Runs the program to its `main`, which moves this thread from processor to processor. Then all are allowed to it again.
fn reach_main(run: &mut Run<'_>, everywhere: Option<&CpuSet>) -> Result<(), Refusal> {
    let ran = run.reach_main();
    everywhere.iter().for_each(|all| _ = rustix::thread::sched_setaffinity(None, all));
    ran
}

/// Makes the runs with the runtime. Returns as well the one with the most arguments, if nothing keeps the program cold.
fn run_with<'a>(
    spec: &Spec<'_>,
    numbers: &BTreeSet<usize>,
    is_first: bool,
    means: Means<'a>,
    live: &Live,
) -> (Observed, Option<Run<'a>>) {
    let mut seen = Seen::default();
    let (refusal, found, run) = match compare_all(spec, numbers, is_first, means, live, &mut seen) {
        Ok((found, run)) => (None, found, Some(run)),
        Err(refusal) => (Some(refusal), Found::default(), None),
    };
    let observed = Observed {
        names: seen.names,
        looks: seen.looks,
        files: seen.files,
        relative: seen.relative.into_iter().collect(),
        exe: seen.exe,
        libraries: seen.libraries,
        counts: found.counts,
        ends: found.ends,
        uppers: found.uppers,
        residue: Vec::new(),
        numbers: Numbers::of(numbers.iter().copied().chain([ARGUMENTS])),
        place: 0,
        line: String::new(),
        refusal,
        key: Vec::new(),
    };
    (observed, run)
}

/// Compares the run with the most arguments with those that have one of `numbers`, and in a program's first observation with two more.
/// Returns what it has found, and the run with the most arguments.
fn compare_all<'a>(
    spec: &Spec<'_>,
    numbers: &BTreeSet<usize>,
    is_first: bool,
    means: Means<'a>,
    live: &Live,
    seen: &mut Seen,
) -> Result<(Found, Run<'a>), Refusal> {
    if rustix::param::page_size() as u64 != PAGE {
        return refuse(Reason::NotObserved, "pages of another size than 4 KiB");
    }
    seen.files.watch(&spec.program);
    seen.libraries.extend(eligible::names(&spec.program));
    let runtime = rustix::fs::fstat(means.runtime).map_or(0, |stat| stat.st_ino);
    let everywhere = rustix::thread::sched_getaffinity(None).ok();
    let mut one = start(spec, means, everywhere, live)?;
    // All forks are made before the first one runs.
    let mut numbers: Vec<usize> = numbers.iter().copied().filter(|&number| number != ARGUMENTS).collect();
    if numbers.is_empty() {
        numbers.push(1);
    }
    let elsewhere = [(numbers[0], Place::Anywhere), (MANY, Place::Anywhere)];
    let further = numbers.iter().map(|&number| (number, Place::Quarters));
    let further = further.chain(elsewhere.into_iter().filter(|_| is_first));
    let others = further.map(|(number, place)| Ok((place, one.fork(number, place, live)?)));
    let others = others.collect::<Result<Vec<_>, Refusal>>()?;
    let mut observe = |run: &mut Run<'_>| {
        let ran = reach_main(run, everywhere.as_ref());
        take(run, seen);
        ran
    };
    observe(&mut one)?;
    let mut counts: Option<Vec<counts::Place>> = None;
    let (mut near, mut far): (Found, Option<Found>) = Default::default();
    for (place, mut other) in others {
        observe(&mut other)?;
        let now = compare::compare(&one, &other, runtime)?;
        if *counts.get_or_insert_with(|| now.counts.clone()) != now.counts {
            return refuse(Reason::ConstructorsDiffer, "where the number of arguments is");
        }
        match (place, &far) {
            // The lowest two bytes are the same there, so not all parts show, and some look like whole addresses.
            (Place::Quarters, _) => near.add(now),
            (Place::Anywhere, None) => far = Some(now),
            (Place::Anywhere, Some(far)) if far.has_parts_of(&now) && now.has_parts_of(far) => {}
            (Place::Anywhere, Some(_)) => {
                return refuse(Reason::ConstructorsDiffer, "where bytes of an address are");
            }
        }
    }
    let found = far.unwrap_or_else(|| near.clone());
    if !found.has_parts_of(&near) {
        return refuse(Reason::ConstructorsDiffer, "where bytes of an address are");
    }
    let found = Found { counts: counts.unwrap_or_default(), ..found };
    if seen.compares_files && looks_at_file(spec, &seen.looks.stdio) {
        return refuse(Reason::Stdio, "a standard descriptor and other files: they may be one");
    }
    Ok((found, one))
}

/// Returns whether one of the streams that constructors have looked at is another file in each start.
fn looks_at_file(spec: &Spec<'_>, looked: &[bool; 3]) -> bool {
    stdio::classes(spec).iter().zip(looked).any(|(class, looked)| *looked && *class != stdio::Class::Null)
}

/// Adds the inputs that a run has seen to `seen`.
pub(super) fn take(run: &mut Run<'_>, seen: &mut Seen) {
    seen.files.join(&run.seen.files);
    seen.relative.append(&mut run.seen.relative);
    seen.libraries.append(&mut run.seen.libraries);
    seen.looks.stdio = std::array::from_fn(|fd| seen.looks.stdio[fd] | run.seen.looks.stdio[fd]);
    seen.compares_files |= run.seen.compares_files;
    seen.looks.processors |= run.seen.looks.processors;
    seen.looks.limits.extend(&run.seen.looks.limits);
    seen.looks.system |= run.seen.looks.system;
    if !run.seen.exe.is_empty() {
        seen.exe.clone_from(&run.seen.exe);
    }
    for name in &run.seen.names {
        if !seen.names.contains(name) {
            seen.names.push(name.clone());
        }
    }
}

/// Starts a run, with this thread as its tracer.
fn spawn(spec: &Spec<'_>, means: Means<'_>) -> std::io::Result<i32> {
    let (_socket, theirs) = channel::pair()?;
    let classes = stdio::classes(spec);
    let placeholder = |fd: usize| stdio::placeholder(classes[fd]);
    let ends = zygote::ends(theirs, means.runtime, means.slots, placeholder)?;
    let (environment, variables) = zygote::environment(spec, means.allocator);
    let program = CString::new(spec.program.as_os_str().as_bytes())?;
    let filling = secret::filling(&program, environment.len(), ARGUMENTS - 2);
    let mut arguments = vec![CString::default(); ARGUMENTS];
    arguments[0] = zygote::name(spec)?;
    arguments[1] = CString::new(vec![b'x'; filling])?;
    // Only the first run has this one. So a constructor differs that compares their length with a bound.
    arguments[ARGUMENTS - 1] = zygote::long_argument(LONGEST);
    let inherited = zygote::Inherited::of(spec);
    zygote::spawn(&program, &arguments, &environment, variables, &ends, &inherited, true)
        .map_err(std::io::Error::from_raw_os_error)
}
