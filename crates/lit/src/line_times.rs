//! Times of RUN lines, computed from the times of their stages.
//!
//! A stage's elapsed time counts from the start of its pipeline, so a pipeline took as long as its longest stage. Of a script in an
//! external shell only the total time is known.

use std::time::Duration;

use hotstart_model::{Command, LineTime, Stage, Step, Transcript};

/// Returns a time for each command that began.
pub(crate) fn of(commands: &[Command], transcript: &Transcript) -> Vec<LineTime> {
    let mut lines: Vec<LineTime> = Vec::new();
    let mut pipeline = None;
    for step in &transcript.steps {
        match step {
            Step::Begin(index) => {
                let label = commands.get(*index).map(|command| command.label.clone()).unwrap_or_default();
                lines.push(LineTime { label, wall: Duration::ZERO, cpu: Duration::ZERO });
                pipeline = None;
            }
            Step::Stage(stage) => {
                if let Some(line) = lines.last_mut() {
                    add(line, stage, &mut pipeline);
                }
            }
        }
    }
    lines
}

/// Adds a stage. `pipeline` is the last stage's pipeline and its time so far.
fn add(line: &mut LineTime, stage: &Stage, pipeline: &mut Option<(usize, Duration)>) {
    let counted =
        pipeline.filter(|(number, _)| *number == stage.pipeline).map_or(Duration::ZERO, |(_, wall)| wall);
    line.wall += stage.wall.saturating_sub(counted);
    line.cpu += stage.cpu;
    *pipeline = Some((stage.pipeline, counted.max(stage.wall)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(pipeline: usize, wall: u64) -> Step {
        Step::Stage(Stage {
            args: Vec::new(),
            stdout: String::new(),
            stderr: String::new(),
            status: 0,
            process: None,
            timed_out: false,
            redirected: Vec::new(),
            pipeline,
            position: (0, 1),
            wall: Duration::from_millis(wall),
            cpu: Duration::from_millis(1),
        })
    }

    #[test]
    fn a_pipeline_takes_as_long_as_its_longest_stage() {
        let command = |label: &str| Command { label: label.into(), text: String::new() };
        let commands = [command("RUN: at line 1"), command("RUN: at line 2")];
        let steps = vec![
            Step::Begin(0),
            stage(0, 5),
            stage(0, 3),
            stage(1, 10),
            Step::Begin(1),
            stage(2, 7),
            stage(2, 9),
        ];
        let lines = of(&commands, &Transcript { steps, ..Transcript::default() });
        let walls: Vec<_> = lines.iter().map(|line| (line.label.as_str(), line.wall.as_millis())).collect();
        assert_eq!(walls, [("RUN: at line 1", 15), ("RUN: at line 2", 9)]);
        assert_eq!(lines[0].cpu.as_millis(), 3);
    }
}
