//! `--remote`: tests on other machines.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotstart_batch::{Cluster, FarmSettings, Shelf};
use hotstart_inputs::Shared;
use hotstart_lit::config::Alone;
use hotstart_lit::load::Discovered;
use hotstart_lit::suite::Test;
use hotstart_run::{Memory, RemoteCounts};

use super::{Session, told as say};
use crate::args::Remember;

/// What is remembered of tests, as a value in a service's action cache.
#[derive(Debug)]
struct OnShelf {
    shelf: Shelf,
    name: String,
    /// Whether a failure was reported.
    is_told: AtomicBool,
}

impl OnShelf {
    fn told<T>(&self, result: Result<T, String>) -> Option<T> {
        let tell = |why| {
            if !self.is_told.swap(true, Ordering::Relaxed) {
                say(&format!("hotstart: --remote-cache: {why}\n"));
            }
        };
        result.map_err(tell).ok()
    }
}

impl Shared for OnShelf {
    fn get(&self) -> Option<Vec<u8>> {
        self.told(self.shelf.get(&self.name)).flatten()
    }

    fn put(&self, value: Vec<u8>) {
        self.told(self.shelf.put(&self.name, value));
    }
}

impl Session<'_> {
    /// Connects to the service that the options name. `None` if they name none, or tests run here for another reason, which is
    /// reported.
    pub(super) fn cluster(&self, discovered: &Discovered) -> Result<Option<Arc<Cluster>>, String> {
        let own = &self.options.own;
        if own.remote.shelf().is_some() && own.remember != Remember::Nothing {
            return Ok(None);
        }
        let Some((exec, cache)) = own.remote.endpoints()? else { return Ok(None) };
        if let Some(why) = self.hindrance(discovered) {
            say(&format!("hotstart: --remote is not used: {why}\n"));
            return Ok(None);
        }
        let service = own.remote.settings(exec, cache)?;
        let settings = FarmSettings {
            slots: own.remote.slots(),
            batch: own.remote.batch(),
            jobs: own.remote.jobs.unwrap_or(1),
            falls_back: !own.remote.no_fallback,
            is_warm: self.warm.is_on(),
            tmp_dir: discovered.session.tmp_dir.clone(),
        };
        match Cluster::new(service, settings) {
            Ok(cluster) => Ok(Some(Arc::new(cluster))),
            Err(why) if own.remote.no_fallback => Err(format!("--remote: {why}")),
            Err(why) => {
                say(&format!("hotstart: --remote: {why}; the tests run here\n"));
                Ok(None)
            }
        }
    }

    /// Has a memory keep what it knows in a service's action cache as well, if the options name one.
    pub(super) fn shared(&self, memory: Memory) -> Result<Memory, String> {
        let remote = &self.options.own.remote;
        let Some(endpoint) = remote.shelf() else { return Ok(memory) };
        match Shelf::new(&remote.settings(endpoint.clone(), endpoint.clone())?) {
            Ok(shelf) => {
                Ok(memory.shared_in(|name| OnShelf { shelf, name, is_told: AtomicBool::new(false) }))
            }
            Err(why) => {
                say(&format!("hotstart: --remote-cache: {why}; passes are remembered here only\n"));
                Ok(memory)
            }
        }
    }

    /// Returns the reason why all tests run here.
    fn hindrance(&self, discovered: &Discovered) -> Option<&'static str> {
        let own = &self.options.own;
        let is_alone = |test: &Test| test.config().hotstart_alone != Alone::default();
        match () {
            () if !cfg!(target_arch = "x86_64") => Some("it needs x86-64"),
            () if own.remember != Remember::Nothing => Some("--cache remembers passes of runs here"),
            () if self.warm.checks().is_parity() => Some("--parity compares runs here"),
            () if self.warm.chooses_allocators() => Some("another allocator was chosen"),
            () if self.options.use_valgrind => Some("valgrind was chosen"),
            () if self.options.no_execute => Some("nothing runs"),
            () if own.replay_record.is_some() => Some("--replay-record chooses the workers"),
            () if own.alone.is_some() => Some("--alone has tests run one by one"),
            () if discovered.tests.iter().any(is_alone) => Some("a config has tests run alone"),
            () => None,
        }
    }
}

/// Reports what ran where: a line, and the reasons if `explain`.
pub(super) fn told(cluster: &Cluster, explain: bool) -> String {
    let (RemoteCounts { passed, cached, batches, failed, here }, sent) = cluster.counts();
    let at_home: u64 = here.values().sum();
    let mut text = format!(
        "hotstart: --remote: {passed} tests passed in {batches} actions, {cached} of them remembered; {at_home} run here; \
         {:.1} MB sent\n",
        sent.uploaded as f64 / 1e6
    );
    if failed > 0 || sent.repeated > 0 {
        let _ = writeln!(
            text,
            "hotstart: --remote: {failed} actions did not run to their end, {} calls were repeated",
            sent.repeated
        );
    }
    if explain {
        for (why, count) in here {
            let _ = writeln!(text, "{count:>9}  run here: {why}");
        }
    }
    text
}
