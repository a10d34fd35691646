//! What constructors do before `main`, seen by watching them do it: a program is started twice under ptrace, up to where a
//! template stops, before there is a template of it.
//!
//! A template's constructors have run once, for all its copies. That is right where they would have done and found the same
//! in each: so each of their system calls must be on a list (`calls`); what they look at outside joins the template's key or
//! its files; arguments and environment cannot be read unseen (`secret`); and what two runs leave behind must be equal
//! (`compare`).

#[cfg(target_arch = "x86_64")]
mod calls;
#[cfg(target_arch = "x86_64")]
mod compare;
#[cfg(target_arch = "x86_64")]
mod maps;
#[cfg(target_arch = "x86_64")]
mod run;
#[cfg(target_arch = "x86_64")]
mod secret;
pub(crate) mod stdio;
#[cfg(target_arch = "x86_64")]
mod twice;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use super::identity::Files;
use super::key::{self, Asked, Looks};
use super::template::Means;
use crate::{Reason, Spec};

/// How much processor time a run may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Why a tool cannot be started warm, and what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub reason: Reason,
    pub detail: String,
}

/// What was found out about a program under one key.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// What its constructors asked the environment for, and what else they looked at.
    pub names: Vec<Vec<u8>>,
    pub looks: Looks,
    /// What they, and the loader before them, looked for.
    pub files: Files,
    /// Where the loader looked in vain, from the working directory.
    pub relative: Vec<PathBuf>,
    /// Why it is to be cold, if it is.
    pub refusal: Option<Refusal>,
    key: Vec<u8>,
}

/// Programs by their paths, and the allocators they are given.
type Known = HashMap<(PathBuf, Option<PathBuf>), Vec<Arc<Observed>>>;
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

impl Observed {
    fn asked(&self) -> Asked {
        let mut asked = Asked::default();
        self.names.iter().for_each(|name| _ = asked.add(name));
        asked.add_looks(&self.looks);
        asked
    }

    /// Whether it tells about this start, now.
    fn serves(&self, spec: &Spec<'_>) -> bool {
        key::of(spec, &self.asked()) == self.key && self.files.unchanged()
    }
}

/// What is known, or can be found out, about the constructors of `spec`'s program.
pub(crate) fn observe(spec: &Spec<'_>, means: Means<'_>) -> Arc<Observed> {
    let of = (spec.program.clone(), means.allocator.map(PathBuf::from));
    if let Some(known) = find(&of, spec) {
        return known;
    }
    let begun = SystemTime::now();
    let mut observed = observe_twice(spec, means);
    observed.key = key::of(spec, &observed.asked());
    let observed = Arc::new(observed);
    let reason = observed.refusal.as_ref().map(|refusal| refusal.reason);
    let is_final = !matches!(reason, Some(Reason::NotStopped | Reason::NotObserved));
    if is_final && observed.files.unchanged_since(begun) {
        keep(of, Arc::clone(&observed));
    }
    observed
}

fn find(of: &(PathBuf, Option<PathBuf>), spec: &Spec<'_>) -> Option<Arc<Observed>> {
    let mut known = KNOWN.lock().expect("no panic while locked");
    let of_program = known.get_or_insert_default().get_mut(of)?;
    of_program.retain(|observed| observed.files.unchanged());
    of_program.iter().find(|observed| observed.serves(spec)).cloned()
}

fn keep(of: (PathBuf, Option<PathBuf>), observed: Arc<Observed>) {
    let mut known = KNOWN.lock().expect("no panic while locked");
    known.get_or_insert_default().entry(of).or_default().push(observed);
}

#[cfg(target_arch = "x86_64")]
fn observe_twice(spec: &Spec<'_>, means: Means<'_>) -> Observed {
    // A thread is the tracer of what it starts, and nobody else may wait for it.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("observer".into());
        let observed = thread.spawn_scoped(scope, || twice::observe(spec, means));
        match observed.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(observed)) => observed,
            _ => Observed::refused(Reason::NotObserved, "no thread for it"),
        }
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn observe_twice(_: &Spec<'_>, _: Means<'_>) -> Observed {
    Observed::refused(Reason::NotObserved, "not on this kind of processor")
}

impl Observed {
    fn refused(reason: Reason, detail: &str) -> Observed {
        Observed {
            names: Vec::new(),
            looks: Looks::default(),
            files: Files::default(),
            relative: Vec::new(),
            refusal: Some(Refusal { reason, detail: detail.to_owned() }),
            key: Vec::new(),
        }
    }
}
