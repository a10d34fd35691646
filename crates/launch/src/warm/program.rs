//! What is known of one program: whether it can be warm, what its key is made of, its templates.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::eligible::{self, Traits};
use super::key::{self, Asked};
use super::template::Template;
use super::{Policy, ToolStatistics};
use crate::{EnvBlock, ProcessGroup, Reason, Spec, Via};

/// How long a start waits for a template that others use: about the time of two copies.
const WAIT: Duration = Duration::from_millis(3);
/// Keys that are counted; a tool whose environment never repeats stays cold.
const KEYS_MAX: usize = 1024;

/// One program, shared by all who start it.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    state: Mutex<State>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Result of reading the file, or why it stays cold.
    verdict: Option<Result<Traits, Reason>>,
    asked: Asked,
    /// Starts by key, while they are cold for being few.
    seen: HashMap<Vec<u8>, u32>,
    idle: Vec<Template>,
    /// Templates that exist or are being made.
    live: usize,
    statistics: ToolStatistics,
}

/// What a start is to do.
pub(crate) enum Plan {
    /// This template is now the caller's.
    Use(Box<Template>),
    /// Make one: the caller has claimed a place for it.
    Make,
}

impl Program {
    pub(crate) fn new(path: &Path) -> Self {
        let statistics = ToolStatistics { program: path.to_owned(), ..ToolStatistics::default() };
        let state = State { statistics, ..State::default() };
        Program { path: path.to_owned(), state: Mutex::new(state), given_back: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }

    /// Decides how to start; waits shortly where all templates are in use.
    pub(crate) fn plan(&self, spec: &Spec<'_>, policy: &Policy) -> Result<Plan, Reason> {
        let mut state = self.lock();
        if let Some(Err(reason)) = state.verdict {
            return Err(reason);
        }
        let key = key::of(spec, &state.asked);
        if let Some(template) = state.take(&key) {
            return Ok(Plan::Use(Box::new(template)));
        }
        if !state.pays(&key, policy) {
            return Err(Reason::FewStarts);
        }
        if state.verdict.is_none() {
            let verdict = eligible::examine(&self.path);
            state.verdict = Some(verdict.clone());
            verdict?;
        }
        if state.live < policy.templates_per_tool || state.drop_idle() {
            state.live += 1;
            return Ok(Plan::Make);
        }
        let until = Instant::now() + WAIT;
        loop {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return Err(Reason::Busy) };
            state = self.given_back.wait_timeout(state, left).expect("no panic while locked").0;
            if let Some(template) = state.take(&key) {
                return Ok(Plan::Use(Box::new(template)));
            }
        }
    }

    /// Claims a place for a template in the place of one just retired.
    pub(crate) fn claim(&self, policy: &Policy) -> Result<(), Reason> {
        let mut state = self.lock();
        // What changed on disk may be the program itself.
        let verdict = eligible::examine(&self.path);
        state.verdict = Some(verdict.clone());
        verdict?;
        if state.live >= policy.templates_per_tool {
            return Err(Reason::Busy);
        }
        state.live += 1;
        Ok(())
    }

    /// Makes a template in a claimed place.
    pub(crate) fn make(&self, spec: &Spec<'_>, image: &OwnedFd) -> Result<Template, Reason> {
        let traits = match &self.lock().verdict {
            Some(Ok(traits)) => traits.clone(),
            _ => Traits::default(),
        };
        let mut made = Template::start(spec, &traits, image);
        if matches!(made, Err(Reason::KeepsArguments)) {
            // The length that was found may be a number of the tool's own; next time it is another one.
            made = Template::start(spec, &traits, image);
        }
        let mut template = made?;
        let mut state = self.lock();
        let mut learned = false;
        for name in &template.names {
            learned |= state.asked.add(name);
        }
        if learned {
            // Older templates lack the new names in their keys; theirs is not known to be equal.
            let dropped = state.idle.len();
            state.idle.clear();
            state.live -= dropped;
        }
        template.key = key::of(spec, &state.asked);
        state.statistics.templates += 1;
        state.statistics.template_time += template.start_time;
        Ok(template)
    }

    /// Gives up a claimed place; a reason that lies in the tool keeps it cold.
    pub(crate) fn failed(&self, reason: Reason) {
        let mut state = self.lock();
        state.live -= 1;
        if !matches!(reason, Reason::FilesChanging | Reason::Busy) {
            state.verdict = Some(Err(reason));
        }
    }

    /// Keeps it cold: a warm start was seen to differ from a cold one.
    pub(crate) fn distrust(&self) {
        let mut state = self.lock();
        state.verdict = Some(Err(Reason::Distrusted));
        state.live -= state.idle.len();
        state.idle.clear();
    }

    pub(crate) fn retired(&self) {
        self.lock().live -= 1;
    }

    pub(crate) fn give_back(&self, template: Template) {
        self.lock().idle.push(template);
        self.given_back.notify_one();
    }

    /// When the idle template that was not used for longest was used.
    pub(crate) fn oldest_idle(&self) -> Option<u64> {
        self.lock().idle.iter().map(|t| t.last_use).min()
    }

    pub(crate) fn take_oldest(&self) -> Option<Template> {
        self.lock().take_oldest()
    }

    pub(crate) fn statistics(&self) -> ToolStatistics {
        self.lock().statistics.clone()
    }

    pub(crate) fn record(&self, via: Via, took: Duration) {
        let statistics = &mut self.lock().statistics;
        match via {
            Via::Cold(reason) => {
                *statistics.cold.entry(reason).or_default() += 1;
                statistics.cold_time += took;
            }
            Via::Fork => {
                statistics.forks += 1;
                statistics.fork_time += took;
            }
        }
    }
}

impl State {
    fn take(&mut self, key: &[u8]) -> Option<Template> {
        let at = self.idle.iter().rposition(|t| t.key == key)?;
        Some(self.idle.swap_remove(at))
    }

    /// Whether there were enough starts under this key; counts this one.
    fn pays(&mut self, key: &[u8], policy: &Policy) -> bool {
        if policy.cold_starts() == 0 {
            return true;
        }
        if self.seen.len() >= KEYS_MAX && !self.seen.contains_key(key) {
            return false;
        }
        let starts = self.seen.entry(key.to_vec()).or_default();
        *starts += 1;
        *starts > policy.cold_starts()
    }

    fn take_oldest(&mut self) -> Option<Template> {
        let at = self.idle.iter().enumerate().min_by_key(|(_, t)| t.last_use)?.0;
        self.live -= 1;
        Some(self.idle.swap_remove(at))
    }

    /// Makes room by dropping a template of another key.
    fn drop_idle(&mut self) -> bool {
        self.take_oldest().is_some()
    }
}

/// Whether a program can be stopped by the runtime on this system at all.
pub(crate) fn probe(image: &OwnedFd) -> bool {
    let path = Path::new("/bin/sh");
    let Ok(traits) = eligible::examine(path) else { return false };
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    let Ok(null) = null else { return false };
    let spec = Spec {
        program: path.to_owned(),
        argv: vec!["sh".into()],
        env: EnvBlock::new(&hotstart_model::Environment::new()),
        cwd: Path::new("/").into(),
        stdio: [null.as_fd(), null.as_fd(), null.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        keep_cold: false,
        process_group: ProcessGroup::Inherit,
    };
    let started = Template::start(&spec, &traits, image);
    !matches!(started, Err(Reason::NotStopped | Reason::System))
}
