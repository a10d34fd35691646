//! Tests that are executable files. They pass if they exit with 0.

use std::path::Path;
use std::sync::Arc;

use hotstart_model::{Environment, Outcome, Program, Script, Transcript, Verdict};

use crate::config::Session;
use crate::exception::Exception;
use crate::suite::Test;
use crate::{judge, script};

/// Variables that name the directory for temporary files.
const TMP_VARIABLES: [&str; 4] = ["TMP", "TMPDIR", "TEMP", "TEMPDIR"];

/// Returns the program to run. It gets the runner's own environment, not the config's.
pub(crate) fn prepare(session: &Session, test: &Test, cwd: &Path) -> Result<Script, Exception> {
    if test.config().unsupported {
        // lit's format returns a value that lit rejects by an assertion.
        return Err(Exception::new("AssertionError", ""));
    }
    let mut env: Environment = std::env::vars_os().collect();
    if let Some(dir) = &session.tmp_dir {
        TMP_VARIABLES.iter().for_each(|name| env.set(*name, dir));
    }
    let program = Program { argv: vec![test.source_path().into()], merges_errors: false };
    let script = script::of_program(program, session.dialect, cwd, Arc::new(env));
    Ok(Script { cold: test.config().hotstart_cold.clone(), ..script })
}

/// Returns the outcome for the program's transcript.
pub(crate) fn conclude(transcript: &Transcript, xfail: bool) -> Outcome {
    let (verdict, output) = match &transcript.fault {
        Some(fault) => judge::of_fault(fault),
        None if transcript.exit_code == Some(0) => (Verdict::PASS, String::new()),
        None => (Verdict::FAIL, transcript.stdout.clone() + &transcript.stderr),
    };
    let (verdict, output) = judge::settle(verdict, output, &Ok(xfail));
    Outcome::decided(verdict, output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exit_code_zero_passes() {
        let ended = |exit_code| Transcript {
            exit_code: Some(exit_code),
            stdout: "o".into(),
            stderr: "e".into(),
            ..Transcript::default()
        };
        let judged = |code, xfail| {
            let outcome = conclude(&ended(code), xfail);
            (outcome.verdict, outcome.output)
        };
        assert_eq!(judged(0, false), (Verdict::PASS, String::new()));
        assert_eq!(judged(-11, false), (Verdict::FAIL, "oe".into()));
        assert_eq!(judged(1, true).0, Verdict::XFAIL);
        assert_eq!(judged(0, true).0, Verdict::XPASS);
    }
}
