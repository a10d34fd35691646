//! The files that go with an action: the scripts, and their results. Both are written and read by the same program.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hotstart_model::{Environment, Script, Transcript};
use serde::{Deserialize, Serialize};

/// A batch of scripts, and what the input root cannot say.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Different environments.
    pub environments: Vec<Environment>,
    /// Their numbers.
    #[serde(skip)]
    pub numbers: HashMap<Arc<Environment>, usize>,
    /// Scripts without their environments, and the numbers of these.
    pub tests: Vec<(Script, usize)>,
    /// Symbolic links with their targets. Services differ in what they allow of links, so that the worker makes them.
    pub links: Vec<(String, String)>,
    /// Directories that must exist.
    pub directories: Vec<String>,
    /// Directories with inputs in which no test has its outputs. They need not be copied.
    pub fixed: Vec<String>,
    /// User and group of the tests.
    pub owner: (u32, u32),
    /// Scripts at a time.
    pub jobs: usize,
    /// Whether tools are started warm.
    pub is_warm: bool,
}

/// The result of a script.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub transcript: Transcript,
    pub elapsed: Duration,
}

/// The results of a batch, in its order. `None` for a script without a result that can be believed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub tests: Vec<Option<Ended>>,
}

impl Order {
    /// Adds a script.
    pub fn add(&mut self, script: Script) {
        // Each test of lit's has an environment of its own.
        let place = *self.numbers.entry(Arc::clone(&script.env)).or_insert_with(|| {
            self.environments.push(Environment::clone(&script.env));
            self.environments.len() - 1
        });
        self.tests.push((Script { env: Arc::default(), ..script }, place));
    }

    /// Returns the scripts with their environments. `None` if an environment is missing.
    pub fn scripts(self) -> Option<Vec<Script>> {
        let environments: Vec<Arc<Environment>> = self.environments.into_iter().map(Arc::new).collect();
        let whole = |(script, place): (Script, usize)| {
            Some(Script { env: Arc::clone(environments.get(place)?), ..script })
        };
        self.tests.into_iter().map(whole).collect()
    }
}
