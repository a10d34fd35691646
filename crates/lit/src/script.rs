//! Turns a test file into a script to run, or into a verdict that needs no run.
//!
//! The order of the decisions is lit's: conditions that make a test unsupported are evaluated before its commands are
//! read, and commands are substituted only for tests that will run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotstart_model::{
    ColdTools, Command, Dialect, Environment, ExternalShell, Interpreter, Outcome, Program, Script, Verdict,
    Wrap,
};
use hotstart_python::{shlex, text};

use crate::boolexpr::Features;
use crate::config::{Config, Format, Session, has_limits_in_configs};
use crate::directives::{self, Directive, Directives, Rejection};
use crate::exception::{self, Exception};
use crate::judge::{self, Pending};
use crate::subst::{Entry, List, Pool, Substituter, TestPaths, tmp_dir};
use crate::suite::Test;

/// Compiles configs, and shares their common parts.
#[derive(Debug)]
pub struct Compiler(Mutex<(Pool, Vec<KnownFeatures>)>);

/// Features and the limits on them, with the compiled result.
type KnownFeatures = (Arc<BTreeSet<String>>, BTreeSet<String>, Arc<Features>);

impl Compiler {
    /// Creates the compiler of a run.
    pub fn new(dialect: Dialect) -> Self {
        Compiler(Mutex::new((Pool::new(dialect), Vec::new())))
    }

    /// Compiles a config for its tests. Costly: call it once per config.
    pub fn compile(&self, config: &Config) -> CompiledConfig {
        let mut shared = self.0.lock().expect("no thread panics while it holds the lock");
        let (pool, known) = &mut *shared;
        let extra = match &config.format {
            Some(Format::ShTest { extra_substitutions, .. }) => extra_substitutions.as_slice(),
            _ => &[],
        };
        let limits = &config.limit_to_features;
        CompiledConfig {
            features: features(known, &config.available_features, &BTreeSet::new()),
            limited: (!limits.is_empty()).then(|| features(known, &config.available_features, limits)),
            entries: pool.entries(extra.iter().chain(config.substitutions.iter())),
            env: Arc::clone(&config.environment),
        }
    }
}

fn features(
    known: &mut Vec<KnownFeatures>,
    all: &Arc<BTreeSet<String>>,
    without: &BTreeSet<String>,
) -> Arc<Features> {
    let same = |(set, limits, _): &&KnownFeatures| (Arc::ptr_eq(set, all) || set == all) && limits == without;
    if let Some((_, _, features)) = known.iter().find(same) {
        return Arc::clone(features);
    }
    let features = Arc::new(Features::new(all.difference(without)));
    known.push((Arc::clone(all), without.clone(), Arc::clone(&features)));
    features
}

/// The parts of a config that are costly to compile.
#[derive(Debug)]
pub struct CompiledConfig {
    /// The config's features, for conditions.
    pub features: Arc<Features>,
    /// The features without those that `limit_to_features` names, if it names any.
    limited: Option<Arc<Features>>,
    entries: Vec<Arc<Entry>>,
    env: Arc<Environment>,
}

/// A test to prepare, and everything that this depends on.
pub struct Request<'a> {
    /// Facts of the run.
    pub session: &'a Session,
    /// The test's config.
    pub config: &'a Config,
    /// The compiled config.
    pub compiled: &'a CompiledConfig,
    /// The test.
    pub test: &'a Test,
    /// Whether to prepare tests without running them (`--no-execute`).
    pub no_execute: bool,
    /// Retries of tests whose config sets none (`--max-retries-per-test`).
    pub max_retries: Option<u32>,
    /// Whether a failing test's output names the command that failed, in a line.
    pub annotate: bool,
    /// Whether the outcome contains the time of each RUN line.
    pub line_times: bool,
    /// Number of the repetition, if the test is repeated.
    pub repetition: Option<u32>,
    /// Tools that other programs start.
    pub wraps: &'a Arc<[Wrap]>,
}

/// The result of preparing a test.
#[derive(Debug)]
pub enum Prepared {
    /// A verdict.
    Decided(Box<Outcome>),
    /// A script to run, and the data to judge it.
    Script(Box<Script>, Box<Pending>),
}

/// Reads a test's file and decides on its verdict or its script.
pub fn prepare(request: &Request<'_>) -> Prepared {
    let mut conditions = Conditions::default();
    if request.test.marks.xfail {
        conditions.xfails.push("*".to_owned());
    }
    match prepare_script(request, &mut conditions) {
        Ok((script, attempts)) => {
            let expected = conditions.expected_to_fail(request);
            let pending = Pending::new(request, &script, expected, attempts);
            Prepared::Script(Box::new(script), Box::new(pending))
        }
        Err(decided) => {
            let expected = conditions.expected_to_fail(request);
            let (verdict, output) = judge::settle(decided.verdict, decided.output, &expected);
            let mut outcome = Outcome::decided(verdict, output);
            outcome.missing_features = decided.missing;
            Prepared::Decided(Box::new(outcome))
        }
    }
}

/// A verdict before XFAIL is applied.
struct Decided {
    verdict: Verdict,
    output: String,
    missing: Vec<String>,
}

impl Decided {
    fn new(verdict: Verdict, output: impl Into<String>) -> Self {
        Decided { verdict, output: output.into(), missing: Vec::new() }
    }
}

impl From<Exception> for Decided {
    fn from(error: Exception) -> Self {
        Decided::new(Verdict::UNRESOLVED, exception::test_output(&error))
    }
}

impl From<Rejection> for Decided {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Malformed(text) => Decided::new(Verdict::UNRESOLVED, text),
            Rejection::Exception(error) => error.into(),
        }
    }
}

/// The XFAIL items of a test that are known so far.
#[derive(Default)]
struct Conditions {
    xfails: Vec<String>,
}

impl Conditions {
    fn expected_to_fail(&self, request: &Request<'_>) -> Result<bool, String> {
        if request.test.marks.xfail_not {
            return Ok(false);
        }
        for item in &self.xfails {
            if item == "*" || holds(item, &request.compiled.features, "XFAIL").map_err(|e| e.message)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn holds(item: &str, features: &Features, list: &str) -> Result<bool, Exception> {
    features.evaluate(item).map_err(|mut error| {
        if error.kind == "ValueError" {
            error.message = format!("Error in {list} list:\n{}", error.message);
        }
        error
    })
}

fn holding(items: &[String], value: bool, features: &Features, list: &str) -> Result<Vec<String>, Exception> {
    let mut found = Vec::new();
    for item in items {
        if holds(item, features, list)? == value {
            found.push(item.clone());
        }
    }
    Ok(found)
}

fn prepare_script(request: &Request<'_>, conditions: &mut Conditions) -> Result<(Script, u32), Decided> {
    let config = request.config;
    if config.unsupported {
        return Err(Decided::new(Verdict::UNSUPPORTED, "Test is unsupported"));
    }
    let (preamble, external) = match &config.format {
        Some(Format::ShTest { preamble_commands, execute_external, .. }) => {
            (preamble_commands.as_slice(), *execute_external)
        }
        _ => (&[][..], false),
    };
    let source = request.test.source_path();
    let mut found = directives::read(&source, &request.compiled.features, preamble.is_empty())?;
    conditions.xfails.append(&mut found.xfails);
    check_conditions(request, conditions, &found)?;
    if request.no_execute {
        return Err(Decided::new(Verdict::PASS, ""));
    }
    let exec = request.test.exec_path();
    let lines = substituted_lines(request, preamble, &found.script, &source, &exec, external)?;
    let commands = commands(request, lines, external);
    let attempts = attempts(request, found.allowed_retries)?;
    let cold = found.cold.with(&config.hotstart_cold);
    Ok((Script { cold, ..assemble(request, commands, &exec, external) }, attempts))
}

fn check_conditions(
    request: &Request<'_>,
    conditions: &Conditions,
    found: &Directives,
) -> Result<(), Decided> {
    if request.test.marks.exclude_xfail && conditions.expected_to_fail(request).map_err(Exception::value)? {
        return Err(Decided::new(Verdict::EXCLUDED, "excluding XFAIL tests"));
    }
    let features = &request.compiled.features;
    let missing = holding(&found.requires, false, features, "REQUIRES")?;
    if !missing.is_empty() {
        let text = format!("Test requires the following unavailable features: {}", missing.join(", "));
        return Err(Decided { missing, ..Decided::new(Verdict::UNSUPPORTED, text) });
    }
    if !request.test.marks.unsupported_not {
        let mut hits = holding(&found.unsupported, true, features, "UNSUPPORTED")?;
        if request.test.marks.unsupported {
            // lit uses a feature and a condition of this name.
            hits.insert(0, "lit-unsupported-marker".to_owned());
        }
        if !hits.is_empty() {
            let hits = hits.join(", ");
            let text = format!("Test does not support the following features and/or targets: {hits}");
            return Err(Decided::new(Verdict::UNSUPPORTED, text));
        }
    }
    let Some(limited) = &request.compiled.limited else { return Ok(()) };
    if holding(&found.requires, false, limited, "REQUIRES")?.is_empty() {
        let limits: Vec<_> = request.config.limit_to_features.iter().map(String::as_str).collect();
        let limits = limits.join(", ");
        let text =
            format!("Test does not require any of the features specified in limit_to_features: {limits}");
        return Err(Decided::new(Verdict::UNSUPPORTED, text));
    }
    Ok(())
}

/// Returns the commands after substitution, still in lit's internal form.
fn substituted_lines(
    request: &Request<'_>,
    preamble: &[String],
    script: &[Directive],
    source: &Path,
    exec: &Path,
    external: bool,
) -> Result<Vec<String>, Exception> {
    let session = request.session;
    let wants_slashes = external
        || (session.dialect == Dialect::V23
            && session.params.get("use_normalized_slashes").is_some_and(|value| !value.is_empty()));
    let paths = TestPaths::new(source, exec, request.repetition, session.dialect, wants_slashes);
    let mut substituter = Substituter {
        list: List::new(&request.compiled.entries),
        features: &request.compiled.features,
        paths: &paths,
        recursion_limit: request.config.recursive_expansion_limit,
    };
    let mut lines = Vec::with_capacity(preamble.len() + script.len());
    for command in preamble {
        lines.push(substituter.apply(&format!("%dbg(preamble command line) {command}"))?);
    }
    for directive in script {
        match directive {
            Directive::Definition(definition) => substituter.list.define(definition)?,
            Directive::Command { text, .. } => lines.push(substituter.apply(text)?),
        }
    }
    Ok(lines)
}

/// Parses lit's internal form.
fn commands(request: &Request<'_>, lines: Vec<String>, external: bool) -> Vec<Command> {
    let session = request.session;
    let make = |(index, mut line): (usize, String)| {
        if external && session.dialect == Dialect::V23 {
            line = read_files_by_cat(line);
        }
        let (label, text) = split_label(&line);
        let text = if session.per_test_coverage {
            let profile = coverage_profile(&request.test.path_in_suite(), session.dialect, index);
            format!("export LLVM_PROFILE_FILE={profile}; {text}")
        } else {
            text::strip_start(text).to_owned()
        };
        Command { label: label.to_owned(), text }
    };
    lines.into_iter().enumerate().map(make).collect()
}

/// Splits `%dbg(LABEL) COMMAND` into label and command. Substitution may have destroyed that form.
pub(crate) fn split_label(line: &str) -> (&str, &str) {
    let split = line.strip_prefix("%dbg(").and_then(|rest| {
        let end = rest.find([')', '\'', '"'])?;
        rest[end..].strip_prefix(')').map(|text| (&rest[..end], text))
    });
    split.unwrap_or(("command line", line))
}

fn coverage_profile(path: &[String], dialect: Dialect, index: usize) -> String {
    match dialect {
        Dialect::V19 => {
            let name = path.last().map_or("", String::as_str);
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            format!("{stem}{index}.profraw")
        }
        Dialect::V23 => format!("{}-%p-%m{index}.profraw", path.join("_")),
    }
}

/// Replaces `%{readfile:PATH}` for an external shell. A `cat` in a word alone would hide that the file is missing.
fn read_files_by_cat(line: String) -> String {
    const OPEN: &str = "%{readfile:";
    if !line.contains(OPEN) {
        return line;
    }
    let mut out = String::with_capacity(line.len());
    let mut tests = String::new();
    let mut rest = line.as_str();
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((path, after)) = after.split_once('}') else { break };
        out.push_str(&format!("{before}$(cat {})", shlex::quote(path)));
        tests.push_str(&format!(" && test -e {path}"));
        rest = after;
    }
    out + rest + &tests
}

/// Returns the number of attempts allowed, the first included.
fn attempts(request: &Request<'_>, own: Option<i128>) -> Result<u32, Exception> {
    let configured = request.config.test_retry_attempts.or(request.max_retries);
    let retries = own.unwrap_or(i128::from(configured.unwrap_or(0)));
    match u32::try_from(retries.saturating_add(1)) {
        Ok(0) | Err(_) if retries < 0 => {
            let message = "cannot access local variable 'i' where it is not associated with a value";
            Err(Exception::new("UnboundLocalError", message).at("ALLOW_RETRIES is negative"))
        }
        attempts => Ok(attempts.unwrap_or(u32::MAX)),
    }
}

fn assemble(request: &Request<'_>, commands: Vec<Command>, exec: &Path, external: bool) -> Script {
    let session = request.session;
    let tmp = tmp_dir(exec, request.repetition);
    let tmp_base = tmp.join(exec.file_name().unwrap_or_default());
    let interpreter = if external {
        let mut script = tmp_base.clone().into_os_string();
        script.push(".script");
        let shell = session.bash.clone().unwrap_or_else(|| "/bin/sh".into());
        let prefix = session.valgrind_args.clone();
        let may_be_native = session.native_shell;
        Interpreter::External(ExternalShell { shell, script_path: script.into(), prefix, may_be_native })
    } else {
        Interpreter::Internal
    };
    let env = match session.dialect {
        Dialect::V19 => Arc::clone(&request.compiled.env),
        Dialect::V23 => {
            let mut env = Environment::clone(&request.compiled.env);
            env.set("LIT_CURRENT_TESTCASE", request.test.full_name());
            Arc::new(env)
        }
    };
    Script {
        commands,
        dialect: session.dialect,
        interpreter,
        pipefail: request.config.pipefail,
        cwd: exec.parent().unwrap_or(Path::new("/")).to_path_buf(),
        make_dirs: vec![tmp],
        env,
        timeout: timeout(session, request.config),
        tmp_base,
        captures: false,
        lit_package_dir: Some(session.package_dir.clone()),
        lit_python: Some(session.python.clone()),
        cold: ColdTools::None,
        wraps: Arc::clone(request.wraps),
    }
}

/// Creates a script that is a single program.
pub(crate) fn of_program(program: Program, dialect: Dialect, cwd: &Path, env: Arc<Environment>) -> Script {
    Script {
        commands: Vec::new(),
        dialect,
        interpreter: Interpreter::Program(program),
        pipefail: true,
        cwd: cwd.to_path_buf(),
        make_dirs: Vec::new(),
        env,
        timeout: None,
        tmp_base: PathBuf::new(),
        captures: false,
        lit_package_dir: None,
        lit_python: None,
        cold: ColdTools::None,
        wraps: Default::default(),
    }
}

pub(crate) fn timeout(session: &Session, config: &Config) -> Option<Duration> {
    let own = config.max_individual_test_time.filter(|_| has_limits_in_configs(session.lit_version));
    session.max_individual_test_time.or(own).filter(|limit| !limit.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_taken_off() {
        assert_eq!(split_label("%dbg(RUN: at line 3) a (b)"), ("RUN: at line 3", " a (b)"));
        assert_eq!(split_label("%dbg(RUN: at line 3)"), ("RUN: at line 3", ""));
        assert_eq!(split_label("%dbg(it's) a"), ("command line", "%dbg(it's) a"));
        assert_eq!(split_label("a"), ("command line", "a"));
    }

    #[test]
    fn files_are_read_by_cat_in_an_external_shell() {
        let line = read_files_by_cat("a %{readfile:x y} %{readfile:b}".to_owned());
        assert_eq!(line, "a $(cat 'x y') $(cat b) && test -e x y && test -e b");
    }

    #[test]
    fn coverage_files_are_numbered() {
        let path = ["a".to_owned(), "b.c.ll".to_owned()];
        assert_eq!(coverage_profile(&path, Dialect::V19, 2), "b.c2.profraw");
        assert_eq!(coverage_profile(&path, Dialect::V23, 0), "a_b.c.ll-%p-%m0.profraw");
    }
}
