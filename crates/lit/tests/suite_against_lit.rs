//! A whole suite, test by test: hotstart must run exactly the commands that lit would run.
//!
//! Ignored unless asked for, as it needs HOTSTART_LLVM_SUITE, the directory of a configured suite. HOTSTART_LLVM_PARTS names the parts to
//! compare, separated by commas. HOTSTART_LLVM_OTHERS names further parts, of which only HOTSTART_LLVM_SAMPLE tests are
//! compared, spread evenly.

mod common;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::Driver;
use hotstart_lit::config::{Config, Format, Session, Substitution};
use hotstart_lit::script::{CompiledConfig, Compiler, Prepared, Request, prepare};
use hotstart_lit::suite::{Directory, Suite, Test};
use hotstart_model::VerdictTable;
use hotstart_python::re::{Pattern, Replacement};
use serde_json::{Value, json};

const BATCH: usize = 500;

struct Known {
    config: Arc<Config>,
    compiled: CompiledConfig,
}

struct Comparison {
    session: Session,
    compiler: Compiler,
    configs: HashMap<u64, Known>,
    tests: usize,
    commands: usize,
    differing: usize,
    took: Duration,
    compiling: Duration,
}

fn suite() -> PathBuf {
    std::env::var_os("HOTSTART_LLVM_SUITE")
        .expect("HOTSTART_LLVM_SUITE, the directory of a configured suite")
        .into()
}

#[test]
#[ignore = "needs a configured suite: HOTSTART_LLVM_SUITE=DIR, and --ignored"]
fn every_test_of_the_suite_is_prepared_as_by_lit() {
    let suite = suite();
    let parts = parts_named("HOTSTART_LLVM_PARTS", "Transforms");
    let others = parts_named("HOTSTART_LLVM_OTHERS", "");
    let sample = std::env::var("HOTSTART_LLVM_SAMPLE").map_or(2000, |n| n.parse().expect("a number"));
    for package in common::packages() {
        let mut driver = Driver::start(package.as_deref());
        let mut comparison = Comparison::new(common::session(driver.dialect()));
        let total =
            driver.ask(&json!({"op": "suite", "path": suite, "only": parts})).as_u64().expect("a number");
        comparison.run(&mut driver, total as usize, 1);
        if !others.is_empty() {
            let total = driver
                .ask(&json!({"op": "suite", "path": suite, "only": others}))
                .as_u64()
                .expect("a number");
            comparison.configs.clear();
            comparison.run(&mut driver, total as usize, (total as usize / sample).max(1));
        }
        comparison.report();
        assert!(comparison.tests > 0, "no test in {parts:?} of {suite:?}");
        assert_eq!(comparison.differing, 0, "of {} tests", comparison.tests);
    }
}

fn parts_named(variable: &str, default: &str) -> Vec<String> {
    let parts = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    parts.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

impl Comparison {
    fn new(session: Session) -> Self {
        Comparison {
            compiler: Compiler::new(session.dialect),
            session,
            configs: HashMap::new(),
            tests: 0,
            commands: 0,
            differing: 0,
            took: Duration::ZERO,
            compiling: Duration::ZERO,
        }
    }

    /// Compares every `step`th of the tests found last.
    fn run(&mut self, driver: &mut Driver, total: usize, step: usize) {
        let batch = BATCH * step;
        for start in (0..total).step_by(batch) {
            let answers =
                driver.ask(&json!({"op": "take", "start": start, "stop": start + batch, "step": step}));
            for answer in answers.as_array().expect("a list") {
                self.compare(answer);
            }
        }
    }

    fn compare(&mut self, answer: &Value) {
        let number = answer["config"].as_u64().expect("a number");
        if !answer["description"].is_null() {
            let config = Arc::new(config_of(&answer["description"], text(&answer["suite_name"])));
            let begin = Instant::now();
            let compiled = self.compiler.compile(&config);
            self.compiling += begin.elapsed();
            self.configs.insert(number, Known { config, compiled });
        }
        let known = &self.configs[&number];
        let test = test_of(answer, &known.config);
        let request = Request {
            session: &self.session,
            config: &known.config,
            compiled: &known.compiled,
            test: &test,
            no_execute: false,
            max_retries: None,
            annotate: false,
            line_times: false,
            repetition: None,
            wraps: &std::sync::Arc::default(),
        };
        let begin = Instant::now();
        let prepared = prepare(&request);
        self.took += begin.elapsed();
        self.tests += 1;
        let (ours, commands) = in_words(&prepared);
        self.commands += commands;
        let theirs = common::normalized(&answer["result"]);
        if ours != theirs {
            self.differing += 1;
            if self.differing <= 10 {
                eprintln!("{}\n  ours   {ours}\n  theirs {theirs}", test.full_name());
            }
        }
    }

    fn report(&self) {
        let per_test = self.took / self.tests.max(1) as u32;
        eprintln!(
            "{:?}: {} tests, {} commands, {} configs; {per_test:?} per test, {:?} to compile all configs",
            self.session.dialect,
            self.tests,
            self.commands,
            self.configs.len(),
            self.compiling,
        );
    }
}

fn in_words(prepared: &Prepared) -> (Value, usize) {
    match prepared {
        Prepared::Decided(outcome) => {
            let code = VerdictTable::default().kind(outcome.verdict).name.clone();
            (json!({"code": code, "output": common::last_line_only(&outcome.output)}), 0)
        }
        Prepared::Script(script, pending) => {
            let commands: Vec<_> =
                script.commands.iter().map(|c| (c.label.clone(), c.text.clone())).collect();
            let count = commands.len();
            (json!({"commands": commands, "expected_to_fail": pending.is_expected_to_fail()}), count)
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn config_of(description: &Value, name: String) -> Config {
    let pair = |entry: &Value| Substitution {
        key: text(&entry[0]),
        value: text(&entry[1]),
        captures: entry[2].as_bool().expect("a truth value"),
    };
    let environment = description["environment"].as_array().expect("a list");
    Config {
        name,
        format: Some(Format::ShTest {
            execute_external: description["external"].as_bool().expect("a truth value"),
            extra_substitutions: Vec::new(),
            preamble_commands: Vec::new(),
        }),
        environment: Arc::new(environment.iter().map(|entry| (text(&entry[0]), text(&entry[1]))).collect()),
        substitutions: Arc::new(
            description["substitutions"].as_array().expect("a list").iter().map(pair).collect(),
        ),
        available_features: Arc::new(common::strings(&description["features"]).into_iter().collect()),
        limit_to_features: common::strings(&description["limit"]).into_iter().collect(),
        unsupported: description["unsupported"].as_bool().expect("a truth value"),
        recursive_expansion_limit: description["recursion"].as_u64().map(|n| n as u32),
        pipefail: true,
        ..Config::default()
    }
}

fn test_of(answer: &Value, config: &Arc<Config>) -> Test {
    let suite = Suite {
        index: 0,
        name: text(&answer["suite_name"]),
        source_root: text(&answer["source_root"]).into(),
        exec_root: text(&answer["exec_root"]).into(),
        config: Arc::clone(config),
    };
    let path: PathBuf = common::strings(&answer["path"]).iter().collect();
    let directory = path.parent().expect("a file has a directory").to_path_buf();
    let directory = Directory { suite: Arc::new(suite), path: directory, config: Arc::clone(config) };
    Test::new(Arc::new(directory), path.file_name().expect("a file").into())
}

/// Generates texts for a key, from words that keys concern.
fn made_up(random: &mut common::Random, key: &str, pattern: &Pattern) -> Vec<String> {
    const WORDS: [&str; 18] = [
        "opt",
        "llc",
        "FileCheck",
        "not",
        "count",
        "| ",
        "%s",
        "%t",
        "-",
        ".",
        "/",
        " ",
        "%",
        "llvm-",
        "objdump",
        "lli",
        "%{fs-sep}",
        "<",
    ];
    // The texts must contain the key's own word.
    let own: String = key.replace("\\b", "").replace('\\', "");
    let own =
        own.split([')', '(']).find(|part| part.len() > 1 && !part.starts_with(['?', '.'])).unwrap_or("");
    let words: Vec<&str> = WORDS.iter().copied().chain([own, own, pattern.literal()]).collect();
    (0..40).map(|_| random.join(&words, 8)).collect()
}

#[test]
#[ignore = "needs a configured suite: HOTSTART_LLVM_SUITE=DIR, and --ignored"]
fn the_suites_keys_match_as_in_python() {
    let suite = suite();
    let mut driver = Driver::start(None);
    let only =
        [parts_named("HOTSTART_LLVM_PARTS", "Transforms"), parts_named("HOTSTART_LLVM_OTHERS", "")].concat();
    let total = driver.ask(&json!({"op": "suite", "path": suite, "only": only}));
    let keys = driver.ask(&json!({"op": "keys"}));
    let keys: Vec<String> = keys.as_array().expect("a list").iter().map(|pair| text(&pair[0])).collect();
    // Compare every key on lines from the whole suite, also of directories without that key.
    let step = (total.as_u64().expect("a number") / 1000).max(1);
    let lines = common::strings(&driver.ask(&json!({"op": "lines", "step": step})));
    let mut random = common::Random::new(5);
    let mut compared = 0;
    for key in &keys {
        let pattern = Pattern::new(key).expect("a valid key");
        let mut texts = made_up(&mut random, key, &pattern);
        texts.extend_from_slice(&lines);
        let cases: Vec<_> = texts.iter().map(|subject| (key, "<>", subject)).collect();
        let answers = driver.ask(&json!({"op": "sub", "cases": cases}));
        for (subject, answer) in texts.iter().zip(answers.as_array().expect("a list")) {
            let value =
                pattern.sub(&Replacement::Literal("<>".to_owned()), subject).expect("a match or none");
            assert_eq!(
                answer["value"].as_str(),
                Some(value.as_deref().unwrap_or(subject)),
                "{key:?} in {subject:?}"
            );
        }
        compared += cases.len();
    }
    eprintln!("{} keys, {} lines of tests, {compared} comparisons", keys.len(), lines.len());
    assert!(compared > 0, "no test in {only:?} of {suite:?}");
}
