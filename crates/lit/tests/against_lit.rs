//! Generated expressions and test files: hotstart's results must equal lit's.

mod common;

use std::path::Path;
use std::sync::Arc;

use base64ish::encode;
use common::{Driver, Random, count, last_line_only, normalized, packages, session, strings};
use hotstart_lit::boolexpr::Features;
use hotstart_lit::config::{Config, Format, Session, Substitution};
use hotstart_lit::script::{Compiler, Prepared, Request, prepare};
use hotstart_lit::suite::{Directory, Suite, Test};
use hotstart_model::VerdictTable;
use serde_json::{Value, json};

const BATCH: usize = 250;

#[test]
fn boolean_expressions_are_lits() {
    const PARTS: &[&str] = &[
        "a",
        "b-1",
        "x86_64",
        "target=",
        "{{.*}}",
        "{{a|b}}",
        "{{",
        "}}",
        "{{}}",
        "{{[}}",
        "{{(}}",
        " ",
        " && ",
        " || ",
        "!",
        "(",
        ")",
        " && ",
        "&",
        "|",
        "'",
        "true",
        "é",
        "\t",
        "{{x86.+}}",
        "{{(a)\\1}}",
        "*",
        ",",
        "\"",
    ];
    let names = ["a", "b-1", "target=x86_64-linux", "aa"].map(str::to_owned);
    let features = Features::new(&names);
    let mut driver = Driver::start(None);
    let mut random = Random::new(3);
    for _ in 0..count(5_000).div_ceil(BATCH) {
        let cases: Vec<_> = (0..BATCH).map(|_| (random.join(PARTS, 8), &names)).collect();
        let answers = driver.ask(&json!({"op": "boolean", "cases": cases}));
        for ((expression, _), answer) in cases.iter().zip(answers.as_array().expect("a list")) {
            let ours = match features.evaluate(expression) {
                Ok(value) => json!({ "value": value }),
                Err(error) => json!({"error": error.to_string()}),
            };
            assert_eq!(&ours, answer, "{expression:?}");
        }
    }
}

/// Generates a test file, as bytes.
fn test_file(random: &mut Random) -> Vec<u8> {
    const KEYWORDS: &[&str] = &[
        "RUN:",
        "RUN:",
        "RUN:",
        "RUN:",
        "DEFINE:",
        "DEFINE:",
        "REDEFINE:",
        "XFAIL:",
        "REQUIRES:",
        "UNSUPPORTED:",
        "ALLOW_RETRIES:",
        "END.",
        "PRERUN:",
        "",
        "; RUN:",
    ];
    const COMMAND: &[&str] = &[
        " echo",
        " %s",
        " %t",
        "%{a}",
        " %{b} ",
        "%%",
        " %(line)",
        " %(line + 2)",
        "%(line-1)",
        "%if yes %{",
        "%}",
        " %else %{",
        "%if no %{ x %}",
        "%if yes %{ y %} %else %{ z %}",
        " \\",
        "  ",
        "=",
        "é",
        "%basename_t",
        "%tool",
        "x",
        "%T",
        "%{s:stem}",
        "'",
        "%dbg(",
        ")",
        " RUN: ",
        "\r",
    ];
    const DEFINITION: &[&str] = &[
        " %{a} = ", "%{a}=", " %{b} =", "%{b}", "x", " %{a}", " %s", "\\1", " \\", "=", "%{c-d}", "  ",
        "%(line)",
    ];
    const CONDITION: &[&str] =
        &["yes", "no", "*", ", ", " || ", " && ", "!", "(", ")", " \\", " ", "true", "{{y.*}}", "&"];
    let mut file = Vec::new();
    for _ in 0..random.below(7) + 1 {
        let keyword = random.pick(KEYWORDS);
        let rest = match keyword.trim_start_matches("; ") {
            "DEFINE:" | "REDEFINE:" => random.join(DEFINITION, 4),
            "XFAIL:" | "REQUIRES:" | "UNSUPPORTED:" => random.join(CONDITION, 4),
            "ALLOW_RETRIES:" => random.pick(&[" 1", "2", " x", " 0", "+1", "1_0", " 1 2"]).to_owned(),
            "END." => random.pick(&["", " ", " x"]).to_owned(),
            _ => random.join(COMMAND, 6),
        };
        file.extend_from_slice(keyword.as_bytes());
        file.extend_from_slice(rest.as_bytes());
        if random.below(60) == 0 {
            file.extend_from_slice(random.pick(&[&b"\xff"[..], b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f"]));
        }
        file.push(b'\n');
    }
    if random.below(4) == 0 {
        file.pop();
    }
    file
}

fn script_case(random: &mut Random, root: &str) -> Value {
    let mut pairs = Vec::new();
    const PAIRS: &[(&str, &str)] = &[
        ("%{a}", "A %{b}"),
        ("%{b}", "B"),
        (r"%tool\b", "/bin/tool"),
        ("x(y|z)", r"\1"),
        ("%{b} ", "C"),
        ("%else", "no"),
        (r"(?<!/)\btool\b", "T%s"),
        ("echo", "%%"),
        ("%", r"\q"),
        ("(", "x"),
        ("RUN", "PLAY"),
        ("", "-"),
    ];
    for _ in 0..random.below(4) {
        // The last ones make most tests fail, so they are rare.
        let range = if random.below(12) == 0 { PAIRS.len() } else { 8 };
        pairs.push(PAIRS[random.below(range)]);
    }
    json!({
        "root": root,
        "content": encode(&test_file(random)),
        "substitutions": pairs,
        "features": if random.below(2) == 0 { vec!["yes"] } else { vec!["yes", "yours"] },
        "limit": if random.below(10) == 0 { vec!["yours"] } else { vec![] },
        "recursion": if random.below(4) == 0 { Some(random.below(3)) } else { None },
        "retries": if random.below(8) == 0 { Some(1) } else { None },
        "preamble": if random.below(10) == 0 { vec!["first %s"] } else { vec![] },
    })
}

fn config_of(case: &Value) -> Config {
    let pair = |pair: &Value| Substitution {
        key: pair[0].as_str().expect("a key").to_owned(),
        value: pair[1].as_str().expect("a value").to_owned(),
        captures: false,
    };
    Config {
        name: "suite".to_owned(),
        format: Some(Format::ShTest {
            execute_external: false,
            extra_substitutions: Vec::new(),
            preamble_commands: strings(&case["preamble"]),
        }),
        substitutions: Arc::new(case["substitutions"].as_array().expect("a list").iter().map(pair).collect()),
        available_features: Arc::new(strings(&case["features"]).into_iter().collect()),
        limit_to_features: strings(&case["limit"]).into_iter().collect(),
        recursive_expansion_limit: case["recursion"].as_u64().map(|n| n as u32),
        test_retry_attempts: case["retries"].as_u64().map(|n| n as u32),
        pipefail: true,
        ..Config::default()
    }
}

/// Returns the test `test.txt` in a suite's root.
fn test_in(root: &str, config: &Arc<Config>) -> Test {
    let suite = Suite {
        index: 0,
        name: "suite".to_owned(),
        source_root: root.into(),
        exec_root: root.into(),
        config: Arc::clone(config),
    };
    let directory = Directory { suite: Arc::new(suite), path: "".into(), config: Arc::clone(config) };
    Test::new(Arc::new(directory), std::ffi::OsStr::new("test.txt").into())
}

/// Returns hotstart's result for a test, in the driver's format.
fn prepared(session: &Session, config: &Arc<Config>, test: &Test) -> Value {
    let compiled = Compiler::new(session.dialect).compile(config);
    let request = Request {
        session,
        config,
        compiled: &compiled,
        test,
        no_execute: false,
        max_retries: None,
        annotate: false,
        line_times: false,
        repetition: None,
        wraps: &std::sync::Arc::default(),
    };
    match prepare(&request) {
        Prepared::Decided(outcome) => {
            let code = &VerdictTable::default().kind(outcome.verdict).name.clone();
            json!({"code": code, "output": last_line_only(&outcome.output)})
        }
        Prepared::Script(script, pending) => {
            let commands: Vec<_> =
                script.commands.iter().map(|c| (c.label.clone(), c.text.clone())).collect();
            json!({"commands": commands, "expected_to_fail": pending.is_expected_to_fail()})
        }
    }
}

#[test]
fn test_files_are_read_as_by_lit() {
    for package in packages() {
        let mut driver = Driver::start(package.as_deref());
        let session = session(driver.dialect());
        let directory = tempfile::tempdir().expect("a directory");
        let root = std::fs::canonicalize(directory.path()).expect("its real path");
        let root = root.to_str().expect("UTF-8");
        let mut random = Random::new(4);
        for _ in 0..count(2_000).div_ceil(BATCH) {
            let cases: Vec<_> = (0..BATCH).map(|_| script_case(&mut random, root)).collect();
            let answers = driver.ask(&json!({"op": "script", "cases": cases}));
            for (case, answer) in cases.iter().zip(answers.as_array().expect("a list")) {
                check_script(case, answer, &session, root);
            }
        }
    }
}

fn check_script(case: &Value, answer: &Value, session: &Session, root: &str) {
    let content = base64ish::decode(case["content"].as_str().expect("text"));
    std::fs::write(Path::new(root).join("test.txt"), &content).expect("the test is written");
    let config = Arc::new(config_of(case));
    let ours = prepared(session, &config, &test_in(root, &config));
    let shown = String::from_utf8_lossy(&content);
    assert_eq!(ours, normalized(answer), "dialect {:?}\n{case}\n{shown}", session.dialect);
}

/// Encodes bytes as text that Python's `base64` reads.
mod base64ish {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    pub fn encode(bytes: &[u8]) -> String {
        let mut out = String::new();
        for chunk in bytes.chunks(3) {
            let word =
                chunk.iter().fold(0u32, |word, &b| word << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
            for i in 0..4 {
                let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize];
                out.push(if i <= chunk.len() { char::from(letter) } else { '=' });
            }
        }
        out
    }

    pub fn decode(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in text.as_bytes().chunks(4) {
            let value = |&b: &u8| LETTERS.iter().position(|&l| l == b).unwrap_or(0) as u32;
            let word = chunk.iter().fold(0u32, |word, b| word << 6 | value(b));
            let len = 3 - chunk.iter().filter(|&&b| b == b'=').count();
            out.extend_from_slice(&word.to_be_bytes()[1..=len]);
        }
        out
    }
}
