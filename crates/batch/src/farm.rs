//! Workers behind a service as other machines for the scheduler: batches become actions, outputs become runs.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotstart_launch::cache_directory;
use hotstart_model::{Elsewhere, Environment, Script};
use hotstart_remote::{Action, Client, Content, Counts, Digest, Ended, Settings, Tree};
use hotstart_run::{Answer, Farm, RanElsewhere, RemoteCounts, Sent};
use rustix::process::{getegid, geteuid};

use crate::digests::Digests;
use crate::files::Files;
use crate::needs::Needs;
use crate::order::{self, Order};
use crate::{ANSWER, BATCH, ENTER, FAULT, FILES, MADE, NOT_ALL_PASSED, ORDER, OWN, PROGRAM, UNFIT};

/// The least time limit of an action.
const LIMIT: Duration = Duration::from_secs(600);
/// Stands for lit's directory for temporary files, whose name differs in each run.
const TMP_DIR: &str = "/tmp/lit-tmp-hotstart";

/// How batches are made.
#[derive(Clone, Debug)]
pub struct FarmSettings {
    /// Batches on their way at a time.
    pub slots: usize,
    /// Most tests of a batch.
    pub batch: usize,
    /// Tests of a batch that run at a time.
    pub jobs: usize,
    /// Whether tests may run here that did not pass elsewhere.
    pub falls_back: bool,
    /// Whether tools are started warm.
    pub is_warm: bool,
    /// lit's directory for temporary files.
    pub tmp_dir: Option<PathBuf>,
}

/// Workers behind a service.
#[derive(Debug)]
pub struct Cluster {
    client: Client,
    settings: FarmSettings,
    needs: Needs,
    digests: Digests,
    /// This program with its libraries, and the files of the C library.
    base: Base,
    /// Batches that could not be made into actions.
    refused: Mutex<Vec<(u64, String)>>,
    counts: Mutex<RemoteCounts>,
}

#[derive(Debug)]
struct Base {
    files: Files,
    program: (PathBuf, Digest),
    /// The loader, and the directories of the program's libraries, which start it where there is no C library.
    loader: (String, Vec<String>),
}

impl Cluster {
    /// Connects to a service. The error says why tests cannot run there.
    pub fn new(service: Settings, settings: FarmSettings) -> Result<Cluster, String> {
        let needs = Needs::default();
        let digests = Digests::kept_in(cache_directory());
        let base = base(&needs, &digests)?;
        let client = Client::new(service)?;
        Ok(Cluster {
            client,
            settings,
            needs,
            digests,
            base,
            refused: Mutex::default(),
            counts: Mutex::default(),
        })
    }

    /// Returns what became of tests, and what was sent.
    pub fn counts(&self) -> (RemoteCounts, Counts) {
        (self.counts.lock().expect("no panic while locked").clone(), self.client.counts())
    }

    fn action(&self, batch: &[Sent], is_again: bool) -> Result<Action, String> {
        let mut order = Order {
            owner: (geteuid().as_raw(), getegid().as_raw()),
            jobs: self.settings.jobs,
            is_warm: self.settings.is_warm,
            ..Order::default()
        };
        let mut files = self.base.files.clone();
        let (mut limit, mut known) = (Duration::ZERO, HashSet::new());
        for sent in batch {
            self.needs.of(&sent.script, &sent.place)?.add_to(&mut files, &mut known);
            order.add(self.for_elsewhere(&sent.script));
            limit += sent.script.timeout.unwrap_or_default();
        }
        order.fixed = fixed(batch);
        if self.settings.tmp_dir.is_some() {
            files.make(Path::new(TMP_DIR));
        }
        let mut inputs = Tree::default();
        files.into_inputs(&self.digests, &mut inputs, &mut order)?;
        let (program, digest) = &self.base.program;
        inputs.add(&format!("{OWN}/{PROGRAM}"), *digest, Content::File(program.clone()), true);
        let text =
            serde_json::to_vec(&order).map_err(|error| format!("a batch cannot be written: {error}"))?;
        inputs.add_bytes(&format!("{OWN}/{ORDER}"), text);
        let (loader, libraries) = &self.base.loader;
        let arguments =
            [loader, "--library-path", &libraries.join(":"), &format!("{OWN}/{PROGRAM}"), BATCH, ENTER];
        Ok(Action {
            arguments: arguments.map(str::to_owned).to_vec(),
            environment: Vec::new(),
            inputs,
            output: format!("{MADE}/{OWN}/{ANSWER}"),
            timeout: limit.max(LIMIT),
            is_cached: !is_again,
        })
    }

    /// Gives lit's directory for temporary files a name that is the same in each run. lit's Python is not sent.
    fn for_elsewhere(&self, script: &Script) -> Script {
        let mut script = Script { lit_python: None, ..script.clone() };
        let Some(dir) = self.settings.tmp_dir.as_deref().and_then(Path::to_str) else { return script };
        let rename = |(name, value): (&std::ffi::OsStr, &std::ffi::OsStr)| {
            let value =
                value.to_str().map_or_else(|| value.to_owned(), |text| text.replace(dir, TMP_DIR).into());
            (name.to_owned(), value)
        };
        script.env = Arc::new(script.env.iter().map(rename).collect::<Environment>());
        for command in &mut script.commands {
            command.text = command.text.replace(dir, TMP_DIR);
        }
        script
    }
}

impl Farm for Cluster {
    fn slots(&self) -> usize {
        self.settings.slots
    }

    fn batch(&self) -> usize {
        self.settings.batch
    }

    fn refuses(&self, script: &Script, place: &Elsewhere) -> Option<String> {
        self.needs.of(script, place).err()
    }

    fn submit(&self, number: u64, batch: &[Sent], is_again: bool) {
        match self.action(batch, is_again) {
            Ok(action) => self.client.submit(number, action),
            Err(why) => self.refused.lock().expect("no panic while locked").push((number, why)),
        }
    }

    fn next(&self, within: Duration) -> Option<(u64, Answer)> {
        if let Some((number, why)) = self.refused.lock().expect("no panic while locked").pop() {
            return Some((number, Answer::Failed(why)));
        }
        let (number, ended) = self.client.next(within)?;
        Some((number, answer(ended)))
    }

    fn falls_back(&self) -> bool {
        self.settings.falls_back
    }

    fn ended(&self, counts: RemoteCounts) {
        *self.counts.lock().expect("no panic while locked") = counts;
        self.digests.save();
    }
}

fn answer(ended: Ended) -> Answer {
    let (exit_code, output, stderr, is_cached) = match ended {
        Ended::Done { exit_code, output, stderr, is_cached, .. } => (exit_code, output, stderr, is_cached),
        Ended::Failed(why) => return Answer::Failed(why),
        Ended::Gone(why) => return Answer::Gone(format!("the service is gone: {why}")),
    };
    let stderr = stderr.trim();
    let code = u8::try_from(exit_code).unwrap_or(FAULT);
    match (code, output) {
        (UNFIT, _) => Answer::Gone(format!("workers cannot run tests: {stderr}")),
        (0 | NOT_ALL_PASSED, Some(output)) => match serde_json::from_slice::<order::Answer>(&output) {
            Ok(answer) => {
                Answer::Ran { runs: answer.tests.into_iter().map(|of| of.map(ran)).collect(), is_cached }
            }
            Err(error) => Answer::Failed(format!("an answer cannot be read: {error}")),
        },
        _ => Answer::Failed(format!("the batch ended with exit code {exit_code}: {stderr}")),
    }
}

/// Returns the directories of tests in which none of these tests has its outputs.
fn fixed(batch: &[Sent]) -> Vec<String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut outputs: BTreeSet<&Path> = BTreeSet::new();
    for Sent { script, .. } in batch {
        outputs.extend(script.make_dirs.iter().map(PathBuf::as_path).chain([&*script.cwd]));
        outputs.extend(script.tmp_base.parent());
    }
    let outputs: BTreeSet<PathBuf> = outputs.into_iter().map(real).collect();
    let directories: BTreeSet<&Path> = batch.iter().map(|sent| sent.place.directory.as_path()).collect();
    let mut fixed: Vec<PathBuf> = Vec::new();
    for directory in directories.into_iter().map(real) {
        let has_outputs = outputs.iter().any(|output| output.starts_with(&directory));
        let is_covered = fixed.iter().any(|known| directory.starts_with(known));
        if !has_outputs && !is_covered && directory.is_dir() {
            fixed.push(directory);
        }
    }
    fixed.into_iter().filter_map(|path| path.to_str().map(str::to_owned)).collect()
}

fn ran(ended: order::Ended) -> RanElsewhere {
    RanElsewhere { transcript: ended.transcript, elapsed: ended.elapsed }
}

fn base(needs: &Needs, digests: &Digests) -> Result<Base, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("where this program lies is unknown: {error}"))?;
    let told = |error: std::io::Error| format!("cannot read '{}': {error}", program.display());
    let found = std::fs::metadata(&program).map_err(told)?;
    let digest = digests.of(&program, &found).map_err(told)?;
    let own = needs.program(&program, &Environment::new())?;
    let libraries = own.libraries();
    let loader = libraries
        .iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-")));
    let loader = loader.ok_or("this program's loader is unknown")?;
    let inside = |path: &Path| format!("{FILES}{}", path.display());
    let mut directories: Vec<String> =
        libraries.iter().filter_map(|path| path.parent()).map(inside).collect();
    directories.dedup();
    let loader = (inside(loader), directories);
    let mut files = needs.of_the_system()?;
    files.extend(&own);
    Ok(Base { files, program: (program, digest), loader })
}
