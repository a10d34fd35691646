//! FileChecks among the stages of a pipeline: which may pass without a process, and their input.

use std::path::Path;

use hotstart_python::path::join;

use super::{Call, Open, Waiting, regular_file, whole};
use crate::assembly::{Assembly, enterable};
use crate::pump::Port;
use crate::redirect::Slot;
use crate::stage::Running;
use crate::state::Shell;

/// Any process can be started with arguments and an environment of this size: the kernel accepts 128 KiB whatever the
/// stack limit.
const MAX_STRINGS: usize = 64 * 1024;

impl<'a> Assembly<'_, 'a> {
    /// Returns a FileCheck that needs no process, or not yet. Otherwise returns the arguments, and the question that it has
    /// to answer, if there is one. This is only for the last stage, if its output is captured and nothing about its start
    /// is special.
    pub(crate) fn file_check(
        &mut self,
        shell: &mut Shell,
        program: &str,
        args: Vec<String>,
        slots: [Slot; 3],
    ) -> Result<Running<'a>, (Vec<String>, Option<Open>)> {
        let Some(filechecks) = self.context.filechecks else { return Err((args, None)) };
        let has_upstream = slots[0] == Slot::Upstream && self.upstream.is_some();
        if !self.may_match(shell, program, slots) || !(has_upstream || self.pipeline.stages.len() == 1) {
            return Err((args, None));
        }
        let env = shell.vars.all();
        if args.iter().any(|arg| arg.contains('\0')) || env.iter().any(|(_, value)| has_nul(value)) {
            return Err((args, None));
        }
        let strings =
            args.iter().map(String::len).chain(env.iter().map(|(name, value)| name.len() + value.len()));
        if enterable(shell.cwd()).is_err() || strings.sum::<usize>() > MAX_STRINGS {
            return Err((args, None));
        }
        let call = Call { program: Path::new(program), args: &args[1..], env: &env, cwd: shell.cwd() };
        let Some((question, input_file)) = filechecks.prepare(&call) else { return Err((args, None)) };
        let mut running = Running { stderr_is_piped: true, ..Running::default() };
        if let (Some(upstream), None, true) = (&self.upstream, &input_file, has_upstream) {
            self.ports.push(Port::input(self.stages.len(), upstream.clone()));
            running.wait_for_input(Waiting {
                scene: question.scene.clone(),
                question: Some(question),
                open: None,
                filechecks,
                launcher: self.context.launcher,
                group: self.context.group,
                program: program.to_owned(),
                args,
                env: shell.vars.block(),
                cwd: shell.cwd_path(),
                merges_errors: slots[2] == Slot::Stdout,
            });
            return Ok(running);
        }
        let input = match (input_file, slots[0]) {
            _ if has_upstream => None,
            (Some(file), _) => regular_file(&join(shell.cwd(), &file)),
            (None, Slot::File(index)) => self.opened[index].file.as_ref().and_then(|file| whole(file)),
            (None, _) => None,
        };
        let Some(input) = input else { return Err((args, None)) };
        if let Err(open) = filechecks.decide(question, &input) {
            return Err((args, Some(open)));
        }
        running.has_matched();
        running.ended = Some(self.begun.elapsed());
        Ok(running)
    }

    /// Whether a stage of this kind, at this place, may pass without a process.
    fn may_match(&self, shell: &Shell, program: &str, slots: [Slot; 3]) -> bool {
        let is_last = self.stages.len() + 1 == self.pipeline.stages.len();
        let is_captured = slots[1] == Slot::Pipe && matches!(slots[2], Slot::Pipe | Slot::Stdout);
        let is_plain = shell.limits.is_empty() && matches!(shell.process_umask(), Ok(None));
        let script = self.context.script;
        let program = Path::new(program);
        let has_own_start = script.cold.covers(program) || !script.wraps.is_empty();
        // The test may replace it at any time.
        let is_output = self.context.launcher.is_test_output(program);
        is_last && is_captured && is_plain && !has_own_start && !is_output
    }
}

/// Whether a process could not be started with this variable.
fn has_nul(value: &std::ffi::OsStr) -> bool {
    value.as_encoded_bytes().contains(&0)
}
