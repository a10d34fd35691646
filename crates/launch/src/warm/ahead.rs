//! Prefork: makes zygotes before the first start, while a config waits for Python.
//!
//! The choice of tools is a guess. But such a zygote, like any other, serves only starts of its own key, and only while its
//! files are those that a cold start would load.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::observe::stdio::{self, Class, Stand};
use super::observe::{self, Observed, numbers};
use super::pool::Process;
use super::zygote::{Means, Zygote};
use super::{Choice, Policy, Runtime, eligible, key, try_runtime};
use crate::slots::Slots;
use crate::{EnvBlock, Spec};

/// Makes zygotes in the background, one after the other, until it is dropped. [`crate::Launcher::with_policy`] gives them to
/// the launcher's pool.
#[derive(Debug)]
pub struct Ahead {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    slots: Arc<Slots>,
    runtime: Arc<Runtime>,
    state: Mutex<State>,
    made: Condvar,
    is_over: AtomicBool,
    /// Whether programs that were never observed are not to be observed now, either.
    is_frugal: AtomicBool,
}

#[derive(Debug)]
struct State {
    policy: Policy,
    /// Programs whose zygotes will be made, unless that fails.
    waiting: Vec<PathBuf>,
    ready: Vec<Made<Zygote>>,
}

/// The usual numbers of arguments of tests' commands, the name included: `opt -passes=… -S < FILE`, `FileCheck FILE`.
const NUMBERS: [usize; 3] = [2, 3, 4];

/// A zygote, and the guess that its key is made of.
#[derive(Debug)]
pub(crate) struct Made<Z> {
    program: PathBuf,
    pub zygote: Z,
    pub observed: Arc<Observed>,
    /// Whether the observation was made for this zygote.
    pub is_new: bool,
    pub guess: Guess,
}

/// An expected start: a stage of a pipeline that is not the last, with a pipe for its output and a temporary file for its errors.
/// Constructors of LLVM's tools look at standard error.
#[derive(Debug)]
pub(crate) struct Guess {
    name: OsString,
    env: EnvBlock,
    null: OwnedFd,
    stands: [Stand; 2],
}

impl Guess {
    fn new(name: OsString, env: EnvBlock) -> Option<Guess> {
        let null = File::options().read(true).write(true).open("/dev/null").ok()?.into();
        let stands = [stdio::placeholder(Class::Pipe).ok()?, stdio::placeholder(Class::TEMPORARY).ok()?];
        Some(Guess { name, env, null, stands })
    }

    /// Returns the expected start of `program`.
    pub(crate) fn spec(&self, program: &Path) -> Spec<'_> {
        let [output, errors] = self.stands.each_ref().map(|stand| stand.fd.as_fd());
        let stdio = [self.null.as_fd(), output, errors];
        Spec { stdio, ..Spec::plain(program, self.name.clone(), self.env.clone(), &self.null) }
    }
}

impl Ahead {
    /// Creates a prefork for starts that the provisional `policy` allows.
    pub(crate) fn new(policy: Policy, slots: Arc<Slots>, runtime: Arc<Runtime>) -> Arc<Ahead> {
        let is_frugal = AtomicBool::new(!policy.observe_after.is_zero());
        let state = Mutex::new(State { policy, waiting: Vec::new(), ready: Vec::new() });
        let is_over = AtomicBool::new(false);
        let shared = Arc::new(Shared { slots, runtime, state, made: Condvar::new(), is_over, is_frugal });
        Arc::new(Ahead { shared, threads: Mutex::default() })
    }

    /// Begins to make a zygote of each of `tools`, given as a program and its invoked name, for starts with `env`.
    pub fn make(&self, mut tools: Vec<(PathBuf, OsString)>, env: EnvBlock) {
        crate::sys::spawn::keep_inherited_private();
        let mut state = self.shared.lock();
        tools.retain(|(program, _)| {
            let is_new = !state.is_known(program) && allows(&state.policy, program);
            state.waiting.extend(is_new.then(|| program.clone()));
            is_new
        });
        drop(state);
        let shared = Arc::clone(&self.shared);
        let programs: Vec<PathBuf> = tools.iter().map(|(program, _)| program.clone()).collect();
        let work =
            move || tools.into_iter().for_each(|(program, name)| shared.make(program, name, env.clone()));
        match std::thread::Builder::new().name("ahead".to_owned()).spawn(work) {
            Ok(thread) => self.threads.lock().expect("no panic while locked").push(thread),
            Err(_) => self.shared.lock().waiting.retain(|waiting| !programs.contains(waiting)),
        }
    }

    /// Drops zygotes that the final `policy` does not allow, and ends an observation that it wants later.
    pub(crate) fn settle(&self, policy: &Policy) {
        let is_frugal = !policy.observe_after.is_zero() && policy.choice != Choice::Eager;
        self.shared.is_frugal.store(is_frugal, Ordering::Relaxed);
        let mut state = self.shared.lock();
        state.policy = policy.clone();
        state.waiting.retain(|program| allows(policy, program));
        state.ready.retain(|made| allows(policy, &made.program) && made.zygote.mapped() <= policy.memory);
    }

    /// Takes the zygote of `program`, if there is one. Waits up to `patience` for one that is being made, but only once.
    pub(crate) fn take(&self, program: &Path, patience: Duration) -> Option<Made<Zygote>> {
        let is_coming = |state: &mut State| state.waiting.iter().any(|waiting| waiting == program);
        let waited = self.shared.made.wait_timeout_while(self.shared.lock(), patience, is_coming);
        let mut state = waited.expect("no panic while locked").0;
        state.waiting.retain(|waiting| waiting != program);
        let at = state.ready.iter().position(|made| made.program == program)?;
        Some(state.ready.swap_remove(at))
    }
}

impl Drop for Ahead {
    /// Stops the making of zygotes, and waits until it has ended.
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.is_frugal.store(true, Ordering::Relaxed);
        for thread in self.threads.get_mut().expect("no panic while locked").drain(..) {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl State {
    fn is_known(&self, program: &Path) -> bool {
        self.waiting.iter().any(|waiting| waiting == program)
            || self.ready.iter().any(|made| made.program == program)
    }
}

/// Returns whether a zygote with the common runtime and libc's allocator may serve starts of `program`.
fn allows(policy: &Policy, program: &Path) -> bool {
    policy.refuses(program).is_none() && policy.nested.is_none()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }

    fn make(&self, program: PathBuf, name: OsString, env: EnvBlock) {
        // On a failure the start that needs the zygote finds the reason again, and can report it.
        let made = Guess::new(name, env).and_then(|guess| self.zygote(program.clone(), guess));
        let mut state = self.lock();
        if let Some(at) = state.waiting.iter().position(|waiting| *waiting == program) {
            state.waiting.swap_remove(at);
            let made = made.filter(|made| made.zygote.mapped() <= state.policy.memory);
            state.ready.extend(made);
        }
        self.made.notify_all();
    }

    fn zygote(&self, program: PathBuf, guess: Guess) -> Option<Made<Zygote>> {
        let spec = guess.spec(&program);
        if key::refuses(&spec).is_some() || self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let runtime = try_runtime(&self.runtime, None, &self.slots)?;
        let traits = eligible::examine(&program).ok()?;
        let cache = self.lock().policy.cache.clone();
        let (slots, is_over) = (&self.slots, Some(&self.is_over));
        let means = Means { runtime, slots, allocator: None, kept: cache.as_deref(), python: None, is_over };
        if self.is_frugal.load(Ordering::Relaxed) && !observe::is_known(&spec, means) {
            return None;
        }
        let numbers: Vec<usize> = NUMBERS.into_iter().chain([numbers::of_zygote(&spec)]).collect();
        let observing = Means { is_over: Some(&self.is_frugal), ..means };
        let (observed, is_new) = observe::observe(&spec, &numbers, observing);
        if observed.refusal.is_some() {
            return None;
        }
        let zygote = Zygote::start(&spec, &traits, means, Some(&observed)).ok()?;
        drop(spec);
        Some(Made { program, zygote, observed, is_new, guess })
    }
}
