//! The Python helper: evaluates configs with the real `lit` package and sends their values.
//!
//! Its code is embedded here and goes to Python through the request pipe, so no file is left behind and none can be
//! missing. It gets two descriptors of its own: standard output and error stay the user's, as configs may print. It
//! ends when the request pipe is closed, also if the runner dies.

mod cache;
pub(crate) mod execute;
mod line;
mod process;
pub mod python;
mod start;
mod update;
pub(crate) mod updaters;
mod wire;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotstart_launch::{Child, StartError};
use hotstart_model::{Diagnostic, Severity, VerdictKind};

use self::line::Memory;
use self::python::Interpreter;
use self::wire::{Reply, Request, Text};
use crate::ahead::{self, Announced, Listener};
use crate::config::{Config, Origin};
use crate::settings::Settings;

/// The helper's process and the connection to it.
#[derive(Debug)]
pub struct Probe<'g> {
    child: Option<Child<'g>>,
    /// What the children of that process would have inherited when it was started.
    inherited: Option<process::Inherited>,
    requests: Option<File>,
    /// Dropped by `close`, so that the helper does not wait for a reader when it ends.
    replies: Option<BufReader<File>>,
    /// Standard error of the process until Python has started.
    said: Option<File>,
    line: Vec<u8>,
    diagnostics: Vec<Diagnostic>,
    about: About,
    waited: Duration,
    last_answer: Instant,
    /// Caches answers.
    memory: Memory<'g>,
    /// Receives the tool prediction, for these settings and this directory for temporary files.
    listener: Option<(Listener<'g>, &'g Settings, Option<PathBuf>)>,
}

/// The Python helper.
#[derive(Clone, Debug)]
pub struct About {
    /// The Python.
    pub python: PathBuf,
    /// The Python and the `lit` package that it was started with.
    pub interpreter: Interpreter,
    /// Version of its `lit` package.
    pub lit_version: (u32, u32, u32),
    /// The version as the package words it.
    pub lit_version_text: String,
    /// Directory of the package.
    pub package_dir: PathBuf,
}

/// Errors by which there is no helper, or no longer one.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No Python.
    #[error("cannot find '{}', which evaluates lit's configs; install Python 3 or name one by HOTSTART_LIT_PYTHON", .0.display())]
    NoPython(PathBuf),
    /// No Python has lit; lists the places that were searched.
    #[error(
        "no Python with the 'lit' package, which evaluates lit's configs, was found; looked at\n{}\ninstall it ('pip \
         install lit') for one of these Pythons, or name another one by --lit-python or HOTSTART_LIT_PYTHON",
        .0.iter().map(|tried| format!("  {tried}")).collect::<Vec<_>>().join("\n")
    )]
    Nowhere(Vec<String>),
    /// The Python is not executable.
    #[error("'{}', which is to evaluate lit's configs, is not executable; allow it with chmod +x, or name another Python", .0.display())]
    NotExecutable(PathBuf),
    /// Whether there is such a Python cannot be seen, for want of the right to search a directory.
    #[error("cannot look at '{}', which is to evaluate lit's configs: {error}; name another Python", python.display())]
    OutOfReach {
        /// The Python.
        python: PathBuf,
        /// The system's word.
        error: std::io::Error,
    },
    /// The helper cannot be started.
    #[error("cannot start the configuration helper: {0}")]
    Start(#[from] StartError),
    /// This Python has no usable lit.
    #[error(
        "'{}' has no usable 'lit' package ({reason}); install it ('pip install lit'), or name another Python by \
         HOTSTART_LIT_PYTHON", python.display()
    )]
    NoLit {
        /// The Python.
        python: PathBuf,
        /// Python's reason.
        reason: String,
    },
    /// The helper could not create its `lit_config`.
    #[error("the 'lit' package cannot be used: {0}")]
    Unusable(String),
    /// The helper died while it evaluated this config.
    #[error("the configuration helper ended while evaluating '{}'; a config must not end its process", .0.display())]
    Ended(PathBuf),
    /// Reading or writing failed.
    #[error("cannot talk to the configuration helper: {0}")]
    Io(#[from] io::Error),
    /// Configs have changed since they were cached.
    #[error("configs changed while they were evaluated; run it again")]
    Changed,
    /// The helper sent a malformed answer: a fault of hotstart.
    #[error("the configuration helper sent a malformed answer: {0}")]
    Malformed(String),
    /// A config ended the run.
    #[error("'{}' ended the run by sys.exit", config.display())]
    Exit {
        /// The config.
        config: PathBuf,
        /// Requested exit status.
        status: i32,
        /// Text that Python would have printed to standard error.
        text: Option<String>,
    },
}

/// Result of loading a config.
#[derive(Debug)]
pub enum Loaded {
    /// The evaluated config.
    Config(Box<Config>),
    /// The config has an error.
    Failed(Diagnostic),
}

/// State of `lit_config` after the configs have run.
#[derive(Debug)]
pub struct State {
    /// Calls of `lit_config.error`.
    pub errors: u32,
    /// Calls of `lit_config.warning`.
    pub warnings: u32,
    /// Groups and their sizes.
    pub parallelism_groups: Vec<(String, Option<u32>)>,
    /// Limit per test for all suites.
    pub max_individual_test_time: Option<Duration>,
    /// Whether each command gets a coverage file.
    pub per_test_coverage: bool,
    /// Words of `--vg`.
    pub valgrind_args: Vec<String>,
    /// Parameters.
    pub params: Vec<(String, String)>,
    /// `getBashPath()`, if requested.
    pub bash: Option<PathBuf>,
    /// Result codes that configs defined.
    pub result_codes: Vec<VerdictKind>,
}

/// A test that a format written in Python found.
#[derive(Debug)]
pub struct FoundTest {
    /// The components of its path below the suite.
    pub components: Vec<OsString>,
    /// The file that it comes from, if its path does not name it.
    pub file: Option<PathBuf>,
    /// File for googletest's results.
    pub results: Option<PathBuf>,
    /// Its pickle, if the format has given it more than a name.
    pub carried: Option<String>,
}

/// Names a suite in a request.
#[derive(Clone, Copy, Debug)]
pub struct SuiteRef<'a> {
    /// Its name.
    pub name: &'a str,
    /// Directory of the tests.
    pub source_root: &'a Path,
    /// Directory below which they run.
    pub exec_root: &'a Path,
    /// Number of the suite's config.
    pub config: u32,
}

impl<'g> Probe<'g> {
    /// Sends `listener` the tools that the tests of `settings` will probably start, if a config waits for a process. The
    /// tests' temporary files will be in `tmp_dir`.
    pub fn listen(&mut self, listener: Listener<'g>, settings: &'g Settings, tmp_dir: Option<&Path>) {
        self.listener = Some((listener, settings, tmp_dir.map(Path::to_path_buf)));
    }

    /// Returns facts about the Python helper.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the time spent waiting for answers so far, and the time of the last answer.
    pub fn timing(&self) -> (Duration, Instant) {
        (self.waited, self.last_answer)
    }

    /// Returns the diagnostics of configs since the last call, in order.
    pub fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.diagnostics)
    }

    /// Evaluates a suite's config.
    pub fn load_suite(&mut self, path: &Path, tmp_dir: Option<&Path>) -> Result<Loaded, ProbeError> {
        let request = Request::op("suite").path("path", path).raw("ahead", self.listener.is_some());
        self.load(request, path, Config::default(), None, tmp_dir)
    }

    /// Evaluates a directory's config on a copy of `parent`.
    pub fn load_local(
        &mut self,
        path: &Path,
        parent: &Config,
        tmp_dir: Option<&Path>,
    ) -> Result<Loaded, ProbeError> {
        let request = Request::op("local").path("path", path).raw("parent", parent.id);
        self.load(request, path, parent.clone(), Some(parent.id), tmp_dir)
    }

    fn load(
        &mut self,
        request: Request,
        path: &Path,
        mut config: Config,
        parent: Option<u32>,
        tmp_dir: Option<&Path>,
    ) -> Result<Loaded, ProbeError> {
        let reply = self.ask(request, path)?;
        if let Some(failure) = reply.error {
            return Ok(Loaded::Failed(describe_failure(failure, path)));
        }
        let (Some(id), Some(changes)) = (reply.id, reply.changes) else {
            return Err(ProbeError::Malformed("an evaluated config without its values".into()));
        };
        config.id = id;
        config.origin = Some(Arc::new(Origin { file: path.to_path_buf(), parent }));
        update::apply(&mut config, changes, tmp_dir);
        Ok(Loaded::Config(Box::new(config)))
    }

    /// Lets a format written in Python find its tests in a directory, or for one path. Paths are relative to the suite.
    pub fn find_tests(
        &mut self,
        suite: SuiteRef<'_>,
        config: u32,
        path: &Path,
        directory: bool,
    ) -> Result<Result<Vec<FoundTest>, Diagnostic>, ProbeError> {
        let request = about_test("tests", suite, config, path).raw("directory", directory);
        let source = suite.source_root.join(path);
        let reply = self.ask(request, &source)?;
        if let Some(failure) = reply.error {
            return Ok(Err(describe_failure(failure, &source)));
        }
        let plain = |components: Vec<Text>| {
            let components = components.into_iter().map(Text::into_os).collect();
            FoundTest { components, file: None, results: None, carried: None }
        };
        let mut tests: Vec<FoundTest> = reply.tests.unwrap_or_default().into_iter().map(plain).collect();
        for (place, file, results) in reply.details {
            if let Some(test) = tests.get_mut(place) {
                test.file = Some(file.into_path());
                test.results = results.map(Text::into_path);
            }
        }
        for (place, pickle) in reply.carried {
            if let Some(test) = tests.get_mut(place) {
                test.carried = Some(pickle.into_string());
            }
        }
        Ok(Ok(tests))
    }

    /// Asks a config's function for the parallelism group of a test.
    pub fn parallelism_group(
        &mut self,
        suite: SuiteRef<'_>,
        config: u32,
        path: &Path,
    ) -> Result<Result<Option<String>, Diagnostic>, ProbeError> {
        let source = suite.source_root.join(path);
        let reply = self.ask(about_test("group", suite, config, path), &source)?;
        if let Some(failure) = reply.error {
            return Ok(Err(describe_failure(failure, &source)));
        }
        Ok(Ok(reply.group.map(Text::into_string)))
    }

    /// Returns the state of `lit_config`. Updates `configs`, which are indexed by their numbers, as later configs can
    /// change earlier ones.
    pub fn state(
        &mut self,
        configs: &mut [Option<Config>],
        with_bash: bool,
        tmp_dir: Option<&Path>,
    ) -> Result<State, ProbeError> {
        let reply = self.ask(Request::op("state").raw("bash", with_bash), Path::new("lit_config"))?;
        if let Some(failure) = reply.error {
            return Err(ProbeError::Unusable(failure.text.into_string()));
        }
        for (id, changes) in reply.late {
            if let Some(Some(config)) = configs.get_mut(id as usize) {
                update::apply(config, changes, tmp_dir);
            }
        }
        self.diagnostics.extend(self.change_of_process());
        let state = reply.state.ok_or_else(|| ProbeError::Malformed("no state".into()))?;
        Ok(describe_state(state))
    }

    /// Returns a warning if configs have changed what the children of their process inherit: the tests, with lit.
    fn change_of_process(&self) -> Option<Diagnostic> {
        let now = process::Inherited::of(self.child.as_ref()?.pid())?;
        let changes = self.inherited.as_ref()?.changes(&now)?;
        let message = format!(
            "a config has changed its own process ({changes}). lit's tests would inherit that, hotstart's do not: set it \
             before hotstart is started"
        );
        Some(Diagnostic { severity: Severity::Warning, place: None, message })
    }

    fn ask(&mut self, request: Request, about: &Path) -> Result<Reply, ProbeError> {
        let begun = Instant::now();
        let reply = self.reply(&request.end(), about);
        self.last_answer = Instant::now();
        self.waited += self.last_answer - begun;
        let reply = reply?;
        let Reply { diagnostics, exit, .. } = reply;
        self.diagnostics.extend(diagnostics.into_iter().map(describe_message));
        match exit {
            None => Ok(Reply { diagnostics: Vec::new(), exit: None, ..reply }),
            Some(stop) => Err(ProbeError::Exit {
                config: about.to_path_buf(),
                status: stop.status,
                text: stop.text.map(Text::into_string),
            }),
        }
    }

    /// Sends the listener, once, the tools that the tests will probably start.
    fn tell(&mut self, ahead: wire::Ahead, config: &Path) {
        if let Some((listener, settings, tmp_dir)) = self.listener.take() {
            let announced = Announced {
                environment: update::environment(ahead.environment, tmp_dir.as_deref()),
                values: ahead.values.into_iter().map(Text::into_string).collect(),
                directory: config.parent().unwrap_or(Path::new("/")).to_path_buf(),
                source_root: ahead.source_root.map(Text::into_path),
                exec_root: ahead.exec_root.map(Text::into_path),
            };
            listener.0(ahead::expected(announced, settings));
        }
    }

    fn greet(&mut self) -> Result<(), ProbeError> {
        let (hello, ready) = self.greeting()?;
        let python = self.about.python.clone();
        if hello.litprobe != start::PROTOCOL {
            return Err(ProbeError::Malformed(format!(
                "protocol {} in place of {}",
                hello.litprobe,
                start::PROTOCOL
            )));
        }
        if let Some(reason) = hello.missing {
            return Err(ProbeError::NoLit { python, reason: reason.into_string() });
        }
        let version = hello.lit_version.unwrap_or_default();
        let part = |index: usize| version.get(index).copied().unwrap_or(0);
        // The name it was found by may be a script's; tests in Python need the interpreter itself.
        if let Some(executable) = hello.executable.filter(|path| !path.bytes().is_empty()) {
            self.about.python = executable.into_path();
        }
        self.about.lit_version = (part(0), part(1), part(2));
        self.about.lit_version_text = hello.lit_version_text.unwrap_or_default().into_string();
        self.about.package_dir = hello.package_dir.unwrap_or_default().into_path();
        let Some(ready) = ready else {
            return Err(ProbeError::NoLit { python, reason: "it ended at once".into() });
        };
        self.diagnostics.extend(ready.diagnostics.into_iter().map(describe_message));
        self.last_answer = Instant::now();
        match ready.error {
            Some(failure) => Err(ProbeError::Unusable(failure.text.into_string())),
            None => Ok(()),
        }
    }
}

impl Probe<'_> {
    /// Closes the connection, which ends the helper. Dropping the probe waits for it.
    pub fn close(&mut self) {
        (self.requests, self.replies) = (None, None);
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.close();
        if let Some(child) = self.child.take() {
            child.wait();
        }
    }
}

#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz_line(line: &[u8]) {
    drop(serde_json::from_slice::<wire::Hello>(line));
    let Ok(reply) = serde_json::from_slice::<Reply>(line) else { return };
    reply.diagnostics.into_iter().map(describe_message).for_each(drop);
    drop(reply.error.map(|failure| describe_failure(failure, Path::new("lit.cfg"))));
    drop(reply.state.map(describe_state));
    let mut config = Config::default();
    let late = reply.late.into_iter().map(|(_, changes)| changes);
    reply.changes.into_iter().chain(late).for_each(|changes| {
        update::apply(&mut config, changes, Some(Path::new("/tmp")));
    });
}

fn about_test(op: &str, suite: SuiteRef<'_>, config: u32, path: &Path) -> Request {
    let roots = [suite.source_root, suite.exec_root].map(|root| root.as_os_str().as_bytes());
    Request::op(op)
        .raw("config", config)
        .raw("suite_config", suite.config)
        .list("suite", [suite.name.as_bytes(), roots[0], roots[1]])
        .list("path", path.iter().map(OsStrExt::as_bytes))
}

fn describe_message(message: wire::Message) -> Diagnostic {
    let severity = match message.kind.bytes() {
        b"debug" => Severity::Debug,
        b"note" => Severity::Note,
        b"warning" => Severity::Warning,
        b"error" => Severity::Error,
        _ => Severity::Fatal,
    };
    let place = Some(format!("{}:{}", message.file.into_path().display(), message.line));
    Diagnostic { severity, place, message: message.message.into_string() }
}

fn describe_failure(failure: wire::Failure, path: &Path) -> Diagnostic {
    let file = failure.file.map_or_else(|| path.to_path_buf(), Text::into_path);
    let place = Some(format!("{}:{}", file.display(), failure.line.unwrap_or(1)));
    let text = failure.text.into_string();
    // lit 23 refuses what the configs of LLVM 19 and older ask for.
    let advice = match text.contains("execute_external") {
        true => {
            "set LIT_USE_INTERNAL_SHELL=1 if the suite is LLVM's, name the tree's own lit with --lit-package, or correct the config"
        }
        false => "correct the config",
    };
    let message =
        format!("{}\nthe tests below this config's directory are not run; {advice}", text.trim_end());
    Diagnostic { severity: Severity::Fatal, place, message }
}

fn describe_state(state: wire::State) -> State {
    let code = |(name, label, is_failure): (Text, Text, bool)| VerdictKind {
        name: name.into_string(),
        label: label.into_string(),
        is_failure,
    };
    State {
        errors: state.errors,
        warnings: state.warnings,
        parallelism_groups: state
            .parallelism_groups
            .into_iter()
            .map(|(n, size)| (n.into_string(), size))
            .collect(),
        max_individual_test_time: update::seconds(state.max_individual_test_time),
        per_test_coverage: state.per_test_coverage,
        valgrind_args: state.valgrind_args.into_iter().map(Text::into_string).collect(),
        params: state.params.into_iter().map(|(k, v)| (k.into_string(), v.into_string())).collect(),
        bash: state.bash.map(Text::into_path),
        result_codes: state.result_codes.into_iter().map(code).collect(),
    }
}
