//! One shard of a googletest executable: the program to run, and the outcome by what it has printed and written.
//!
//! A shard runs like any script, so schedule, deadlines and reports need no case of their own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_model::{Environment, Outcome, Program, Script, Transcript, Verdict};
use hotstart_python::text;
use serde_json::Value;

use super::{failures, header, list, member, read_results, text};
use crate::config::{Config, Session};
use crate::exception::{self, Exception};
use crate::judge;
use crate::settings::{Order, Settings};
use crate::suite::Test;
use crate::{render, script};

/// A shard's data while it runs.
#[derive(Debug)]
pub(crate) struct Shard {
    variables: Vec<(&'static str, String)>,
    command: String,
    results: PathBuf,
    shuffles: bool,
    limit: String,
    expected_to_fail: bool,
}

/// The settings that concern shards.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    shuffles: bool,
    sharding: bool,
    cwd: PathBuf,
}

impl Ways {
    pub fn new(settings: &Settings) -> Self {
        Ways {
            shuffles: settings.order == Order::Random,
            sharding: settings.gtest_sharding,
            cwd: settings.cwd.clone(),
        }
    }

    /// Returns the directory in which programs start.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }
}

/// Returns the program to run for a shard; `None` for a test without a results file, which fails silently.
pub(crate) fn prepare(
    session: &Session,
    config: &Config,
    run_under: &[String],
    test: &Test,
    ways: &Ways,
) -> Option<(Script, Shard)> {
    let detail = test.detail()?;
    let (results, file) = (detail.results.clone()?, detail.file.as_ref()?);
    let path = file.to_string_lossy().into_owned();
    let variables = variables(&results, &detail.components, ways);
    let mut env = Environment::clone(&config.environment);
    variables.iter().for_each(|(name, value)| env.set(*name, value));
    let mut argv: Vec<OsString> = session.valgrind_args.iter().map(OsString::from).collect();
    argv.extend(super::list::words_before(&path, run_under, &session.python));
    argv.push(path.into());
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let timeout = script::timeout(session, config);
    let shard = Shard {
        variables,
        command: words.join(" "),
        results,
        shuffles: ways.shuffles,
        limit: timeout.map(render::seconds).unwrap_or_default(),
        expected_to_fail: test.marks.xfail && !test.marks.xfail_not,
    };
    let program = Program { argv, merges_errors: true };
    let script = Script {
        timeout,
        cold: config.hotstart_cold.clone(),
        ..script::of_program(program, session.dialect, &ways.cwd, Arc::new(env))
    };
    Some((script, shard))
}

fn variables(results: &Path, components: &[String], ways: &Ways) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("GTEST_OUTPUT", format!("json:{}", results.to_string_lossy())),
        ("GTEST_SHUFFLE", u8::from(ways.shuffles).to_string()),
    ];
    let [.., index, total] = components else { return variables };
    if ways.sharding {
        for (name, value) in [("GTEST_TOTAL_SHARDS", total), ("GTEST_SHARD_INDEX", index)] {
            let own = std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
            variables.push((name, own.unwrap_or_else(|| value.clone())));
        }
    }
    variables
}

impl Shard {
    /// Returns the outcome for its program's transcript.
    pub fn conclude(&self, transcript: &Transcript) -> Outcome {
        let (verdict, output) = self
            .judge(transcript)
            .unwrap_or_else(|error| (Verdict::UNRESOLVED, exception::test_output(&error)));
        let (verdict, output) = judge::settle(verdict, output, &Ok(self.expected_to_fail));
        Outcome::decided(verdict, output)
    }

    fn judge(&self, transcript: &Transcript) -> Result<(Verdict, String), Exception> {
        if let Some(fault) = &transcript.fault {
            return Ok(judge::of_fault(fault));
        }
        let code = transcript.exit_code.unwrap_or(-9);
        let said = format!("\n{}\n--\nexit: {code}\n--\n", transcript.stdout);
        let header = self.header(None);
        if transcript.timed_out {
            return Ok((
                Verdict::TIMEOUT,
                format!("{header}{said}Reached timeout of {} seconds", self.limit),
            ));
        }
        if !self.results.exists() {
            let missing = format!("shard JSON output does not exist: {}", self.results.display());
            return Ok((Verdict::FAIL, format!("{header}{said}{missing}")));
        }
        if code == 0 {
            return Ok((Verdict::PASS, String::new()));
        }
        let results = read_results(&self.results)?;
        let seed = match self.shuffles {
            true => Some(member(&results, "random_seed")?.to_string()),
            false => None,
        };
        let mut output = self.header(seed.as_deref()) + "\n";
        // With a sanitizer, a shard can fail although all its tests passed.
        if !self.push_failures(&mut output, &results, &transcript.stdout)? {
            output.push_str(&said);
        }
        Ok((Verdict::FAIL, output))
    }

    fn header(&self, seed: Option<&str>) -> String {
        let seed = seed.map(|seed| format!("GTEST_RANDOM_SEED={seed}"));
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let variables: Vec<String> = variables.chain(seed).collect();
        format!("Script(shard):\n--\n{} {}\n--\n", variables.join(" "), self.command)
    }

    /// Appends the output of each test that failed. Returns whether there is one.
    fn push_failures(&self, output: &mut String, results: &Value, said: &str) -> Result<bool, Exception> {
        let mut found = false;
        for group in list(results, "testsuites")? {
            for test in list(group, "testsuite")? {
                let result = text(test, "result")?;
                if matches!(result, "SUPPRESSED" | "SKIPPED") {
                    continue;
                }
                let name = format!("{}.{}", text(group, "name")?, text(test, "name")?);
                if let Some(messages) = failures(test)? {
                    found = true;
                    output.push_str(&header(&self.command, &name));
                    let own = said_by(&name, said)?;
                    if !own.is_empty() {
                        output.push_str(&format!("{own}\n\n"));
                    }
                    messages.iter().for_each(|message| output.push_str(&format!("{message}\n")));
                    output.push('\n');
                } else if result != "COMPLETED" {
                    output.push_str(&header(&self.command, &name));
                    output.push_str("unresolved test result\n");
                }
            }
        }
        Ok(found)
    }
}

/// Returns the text that a test wrote between the lines that announce it and its failure.
fn said_by(test: &str, output: &str) -> Result<String, Exception> {
    let (begin, end) = (format!("[ RUN      ] {test}"), format!("[  FAILED  ] {test}"));
    let mut own: Option<Vec<&str>> = None;
    for line in text::split_lines(output) {
        if line.starts_with(&begin) {
            own.get_or_insert_default();
        } else if line.starts_with(&end) {
            return Ok(own.unwrap_or_default().join("\n"));
        } else if let Some(own) = &mut own {
            own.push(line);
        }
    }
    Err(Exception::new("AssertionError", format!("gtest did not report the result for {test}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(results: PathBuf) -> Shard {
        Shard {
            variables: vec![("GTEST_OUTPUT", "json:r".into()), ("GTEST_SHUFFLE", "0".into())],
            command: "/x/T".into(),
            results,
            shuffles: false,
            limit: "3".into(),
            expected_to_fail: false,
        }
    }

    fn transcript(code: i32, stdout: &str) -> Transcript {
        Transcript { exit_code: Some(code), stdout: stdout.to_owned(), ..Transcript::default() }
    }

    const RESULTS: &str = r#"{"testsuites": [{"name": "A", "testsuite": [
        {"name": "ok", "result": "COMPLETED"},
        {"name": "bad", "result": "COMPLETED", "failures": [{"failure": "a.cc:3\nno"}]},
        {"name": "odd", "result": "INTERRUPTED"}]}]}"#;

    #[test]
    fn failing_tests_are_shown_with_what_they_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let results = dir.path().join("r.json");
        std::fs::write(&results, RESULTS).unwrap();
        let said = "[ RUN      ] A.bad\nhello\n[  FAILED  ] A.bad (0 ms)\n";
        let outcome = shard(results.clone()).conclude(&transcript(1, said));
        assert_eq!(outcome.verdict, Verdict::FAIL);
        let expected = "Script(shard):\n--\nGTEST_OUTPUT=json:r GTEST_SHUFFLE=0 /x/T\n--\n\n\
            Script:\n--\n/x/T --gtest_filter=A.bad\n--\nhello\n\na.cc:3\nno\n\n\
            Script:\n--\n/x/T --gtest_filter=A.odd\n--\nunresolved test result\n";
        assert_eq!(outcome.output, expected);
        let silent = shard(results).conclude(&transcript(1, ""));
        assert_eq!(silent.verdict, Verdict::UNRESOLVED);
        assert!(silent.output.contains("AssertionError: gtest did not report the result for A.bad"));
    }

    #[test]
    fn without_results_a_shard_fails_whatever_its_exit_code() {
        let outcome = shard("/nonesuch/r.json".into()).conclude(&transcript(0, "x"));
        assert_eq!(outcome.verdict, Verdict::FAIL);
        assert!(
            outcome
                .output
                .ends_with("\nx\n--\nexit: 0\n--\nshard JSON output does not exist: /nonesuch/r.json")
        );
        let late = Transcript { timed_out: true, ..transcript(-9, "x") };
        let outcome = shard("/nonesuch/r.json".into()).conclude(&late);
        assert_eq!(outcome.verdict, Verdict::TIMEOUT);
        assert!(outcome.output.ends_with("exit: -9\n--\nReached timeout of 3 seconds"));
    }
}
