//! Templates made before anybody asks for them, while who will ask still waits for something else.
//!
//! What is made so is a guess, and nothing but time hangs on it: a template serves only starts of its own key, and only
//! while its files are those that a cold start would load, like any other.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::template::Template;
use super::{Policy, Runtime, eligible, key, try_runtime};
use crate::slots::Slots;
use crate::{EnvBlock, Spec};

/// Makes templates in the background, one after the other. Given to the launcher's pool with [`crate::Launcher::with_policy`].
#[derive(Debug)]
pub struct Ahead {
    policy: Policy,
    slots: Arc<Slots>,
    runtime: Arc<Runtime>,
    state: Mutex<State>,
    made: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they are made; the first one may be in the making.
    waiting: VecDeque<PathBuf>,
    ready: Vec<Made>,
}

/// A template, and what its key is made of.
#[derive(Debug)]
pub(crate) struct Made {
    pub program: PathBuf,
    pub template: Template,
    pub name: OsString,
    pub env: EnvBlock,
}

impl Ahead {
    /// For starts that `policy` allows, as far as it can be known by now.
    pub(crate) fn new(policy: Policy, slots: Arc<Slots>, runtime: Arc<Runtime>) -> Arc<Ahead> {
        Arc::new(Ahead { policy, slots, runtime, state: Mutex::default(), made: Condvar::new() })
    }

    /// Begins to make a template of each of `tools`, a program and the name it is called by, for starts with `env`.
    pub fn make(self: &Arc<Self>, tools: Vec<(PathBuf, OsString)>, env: EnvBlock) {
        crate::sys::spawn::keep_inherited_private();
        let known = |program: &Path| self.policy.refuses(program).is_none();
        let tools: Vec<_> = tools.into_iter().filter(|(program, _)| known(program)).collect();
        self.state
            .lock()
            .expect("no panic while locked")
            .waiting
            .extend(tools.iter().map(|(program, _)| program.clone()));
        let ahead = Arc::clone(self);
        let work =
            move || tools.into_iter().for_each(|(program, name)| ahead.make_one(program, name, env.clone()));
        if std::thread::Builder::new().name("ahead".to_owned()).spawn(work).is_err() {
            self.state.lock().expect("no panic while locked").waiting.clear();
        }
    }

    fn make_one(&self, program: PathBuf, name: OsString, env: EnvBlock) {
        // Why there is none will be found out again by who needs it, who can tell.
        let template = self.template(&program, &name, &env);
        let mut state = self.state.lock().expect("no panic while locked");
        state.waiting.retain(|waiting| *waiting != program);
        state.ready.extend(template.map(|template| Made { program, template, name, env }));
        self.made.notify_all();
    }

    fn template(&self, program: &Path, name: &OsString, env: &EnvBlock) -> Option<Template> {
        let null = File::options().read(true).write(true).open("/dev/null").ok()?;
        let spec = Spec::plain(program, name.clone(), env.clone(), &null);
        if key::refuses(&spec).is_some() {
            return None;
        }
        let runtime = try_runtime(&self.runtime, None, &self.slots)?;
        let traits = eligible::examine(program).ok()?;
        Template::start(&spec, &traits, runtime, &self.slots, None).ok()
    }

    /// The template of `program`, if one is there; waits so long for one that is being made.
    pub(crate) fn take(&self, program: &Path, patience: Duration) -> Option<Made> {
        let state = self.state.lock().expect("no panic while locked");
        let is_coming = |state: &mut State| state.waiting.iter().any(|waiting| waiting == program);
        let (mut state, _) =
            self.made.wait_timeout_while(state, patience, is_coming).expect("no panic while locked");
        let at = state.ready.iter().position(|made| made.program == program)?;
        Some(state.ready.swap_remove(at))
    }
}
