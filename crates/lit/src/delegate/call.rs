//! Serves the calls of a test written in Python: turns a call into a script, and the transcript into the values that
//! lit's own functions return.

use std::path::PathBuf;
use std::sync::Arc;

use hotstart_model::{
    Command, ExternalShell, Fault, Interpreter, Program, RunScript, Script, Step, Transcript,
};
use hotstart_python::text;

use super::is_interruption;
use crate::config::{Config, Session};
use crate::probe::execute::{Answer, Call, Kind};
use crate::probe::updaters::Described;
use crate::render::{self, View};
use crate::script::split_label;

/// The calls of one test.
pub(super) struct Calls<'a> {
    session: &'a Session,
    config: &'a Config,
    run_script: &'a RunScript<'a>,
    /// Scripts that have run already.
    scripts: Vec<(PathBuf, Vec<Command>)>,
    /// Whether the run was interrupted during a call.
    pub interrupted: bool,
}

impl<'a> Calls<'a> {
    pub fn new(session: &'a Session, config: &'a Config, run_script: &'a RunScript<'a>) -> Self {
        Calls { session, config, run_script, scripts: Vec::new(), interrupted: false }
    }

    pub fn answer(&mut self, call: &Call) -> Answer {
        let script = self.script(call);
        let attempt = match call.kind() {
            // A program leaves no files that hotstart knows of: it is confirmed like any first attempt.
            Kind::Program => 1,
            Kind::Internal | Kind::External => {
                let before = self
                    .scripts
                    .iter()
                    .filter(|(base, commands)| *base == script.tmp_base && *commands == script.commands);
                let attempt = before.count() + 1;
                self.scripts.push((script.tmp_base.clone(), script.commands.clone()));
                u32::try_from(attempt).unwrap_or(u32::MAX)
            }
        };
        let transcript = (self.run_script)(&script, attempt);
        self.interrupted |= is_interruption(transcript.fault.as_ref());
        values(call, &script, transcript)
    }

    fn script(&self, call: &Call) -> Script {
        let tmp_base = call.tmp_base();
        let interpreter = match call.kind() {
            Kind::Internal => Interpreter::Internal,
            Kind::External => {
                let mut script_path = tmp_base.clone().into_os_string();
                script_path.push(".script");
                Interpreter::External(ExternalShell {
                    shell: call.argv().next().map_or_else(|| "/bin/sh".into(), PathBuf::from),
                    script_path: script_path.into(),
                    prefix: call.prefix().collect(),
                    may_be_native: self.session.native_shell,
                })
            }
            Kind::Program => Interpreter::Program(Program {
                argv: call.argv().collect(),
                merges_errors: call.merges_errors,
            }),
        };
        Script {
            commands: call.lines().map(|line| command(&line)).collect(),
            dialect: self.session.dialect,
            interpreter,
            pipefail: call.pipefail,
            cwd: call.cwd(),
            make_dirs: Vec::new(),
            env: Arc::new(call.env().collect()),
            timeout: call.timeout(),
            tmp_base,
            captures: false,
            lit_package_dir: Some(self.session.package_dir.clone()),
            lit_python: Some(self.session.python.clone()),
            cold: self.config.hotstart_cold.clone(),
            wraps: Arc::default(),
        }
    }
}

fn command(line: &str) -> Command {
    let (label, text) = split_label(line);
    Command { label: label.to_owned(), text: text::strip_start(text).to_owned() }
}

fn values(call: &Call, script: &Script, transcript: Transcript) -> Answer {
    let mut answer =
        Answer { code: transcript.exit_code, timed_out: transcript.timed_out, ..Answer::default() };
    match &transcript.fault {
        None => {}
        Some(Fault::Parse { command, .. }) => {
            answer.fatal = script.commands.get(*command).map(render::parser_error);
            return answer;
        }
        Some(Fault::Exception { kind, message }) => {
            answer.fault = Some((kind.clone(), message.clone()));
            return answer;
        }
        Some(Fault::Internal(what)) => {
            let text = format!("hotstart could not run this test, for a reason of its own: {what}");
            answer.fault = Some(("RuntimeError".to_owned(), text));
            return answer;
        }
        Some(Fault::Interrupted) => {
            answer.fault = Some(("KeyboardInterrupt".to_owned(), String::new()));
            return answer;
        }
    }
    match call.kind() {
        Kind::External if transcript.run_by.is_internal() => add_output(&mut answer, &transcript),
        Kind::External | Kind::Program => (answer.out, answer.err) = (transcript.stdout, transcript.stderr),
        Kind::Internal if call.trace => {
            let view = View {
                commands: &script.commands,
                dialect: script.dialect,
                external: false,
                timeout: script.timeout,
                output_limit: call.output_limit,
            };
            answer.out = render::trace(&view, &transcript);
            if call.wants_failures {
                answer.failures = failures(&view, &transcript);
            }
        }
        Kind::Internal => add_output(&mut answer, &transcript),
    }
    answer
}

fn failures(view: &View<'_>, transcript: &Transcript) -> Vec<Described> {
    let (steps, failures) = super::update::failures(transcript);
    let seen = |steps: usize| {
        let seen = Transcript { steps: transcript.steps[..steps].to_vec(), ..Transcript::default() };
        render::trace(view, &seen)
    };
    steps.iter().zip(&failures).map(|(&steps, failure)| Described::new(failure).seen(&seen(steps))).collect()
}

fn add_output(answer: &mut Answer, transcript: &Transcript) {
    for step in &transcript.steps {
        if let Step::Stage(stage) = step {
            answer.out.push_str(&stage.stdout);
            answer.err.push_str(&stage.stderr);
        }
    }
}
