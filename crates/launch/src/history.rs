//! Earlier runs of persistent processes. If a run in one fails and a cold one passes, an earlier run may be the cause.
//!
//! The history is kept for reports and decides nothing. A persistent process keeps its last runs. A job records which of them
//! ran its tools, and how many runs each had made before. Both cost one small allocation per start.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::Spec;

/// Runs that are kept for each persistent process.
const KEPT: usize = 64;
/// Bytes of a command line that are kept.
const COMMAND_MAX: usize = 300;

/// One run in a persistent process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The job's number, given to [`crate::Group::of_job`].
    pub job: Option<u32>,
    /// The words of the command line, shortened if they are long.
    pub command: String,
}

/// A run in a persistent process that had run other commands before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The persistent process's number.
    pub worker: i32,
    /// The command that this job ran in it.
    pub command: String,
    /// Number of runs before it.
    pub earlier: u64,
    /// The last of these runs, oldest first.
    pub last: Vec<Served>,
}

/// The last runs of one persistent process.
#[derive(Debug, Default)]
pub(crate) struct History {
    kept: Mutex<Kept>,
    is_doubted: AtomicBool,
    /// That of the process of which this one is a clone: what its runs may have left is here, too.
    parent: Option<Arc<History>>,
}

#[derive(Debug, Default)]
struct Kept {
    count: u64,
    last: VecDeque<Arc<Served>>,
}

/// A run's place in the history of a persistent process.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    worker: i32,
    history: Arc<History>,
    /// Number of runs before this one.
    earlier: u64,
    own: Arc<Served>,
}

impl History {
    /// Begins the history of a clone.
    pub(crate) fn after(parent: &Arc<History>) -> Arc<History> {
        Arc::new(History { parent: Some(Arc::clone(parent)), ..History::default() })
    }

    /// Returns whether the persistent process must not be used again: a run in it is doubted, or in one of which it is a clone.
    pub(crate) fn is_doubted(&self) -> bool {
        let mut of = Some(self);
        while let Some(history) = of {
            if history.is_doubted.load(Ordering::Relaxed) {
                return true;
            }
            of = history.parent.as_deref();
        }
        false
    }

    /// Adds a run of `spec` by `job`.
    pub(crate) fn add(self: &Arc<Self>, worker: i32, spec: &Spec<'_>, job: Option<u32>) -> Mark {
        let own = Arc::new(Served { job, command: command(&spec.argv) });
        let mut kept = self.kept.lock().expect("no panic while locked");
        let earlier = kept.count;
        kept.count += 1;
        if kept.last.len() == KEPT {
            kept.last.pop_front();
        }
        kept.last.push_back(Arc::clone(&own));
        Mark { worker, history: Arc::clone(self), earlier, own }
    }
}

impl Mark {
    /// Marks the persistent process as not to be used again, wherever it is now.
    pub(crate) fn doubt(&self) {
        self.history.is_doubted.store(true, Ordering::Relaxed);
    }

    /// Returns this run and the runs before it, at most `most` of them.
    pub(crate) fn visit(&self, most: usize) -> Visit {
        let kept = self.history.kept.lock().expect("no panic while locked");
        let first = kept.count - kept.last.len() as u64;
        let before = usize::try_from(self.earlier.saturating_sub(first)).unwrap_or(0);
        let last = kept.last.iter().take(before).skip(before.saturating_sub(most));
        Visit {
            worker: self.worker,
            command: self.own.command.clone(),
            earlier: self.earlier,
            last: last.map(|run| Served::clone(run)).collect(),
        }
    }
}

fn command(argv: &[OsString]) -> String {
    let mut text = String::new();
    for word in argv {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&word.to_string_lossy());
        if text.len() > COMMAND_MAX {
            let end = (0..=COMMAND_MAX).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
            text.push_str("...");
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec<'fd>(null: &'fd std::fs::File, argument: &str) -> Spec<'fd> {
        let env = crate::EnvBlock::new(&hotstart_model::Environment::new());
        let mut spec = Spec::plain(std::path::Path::new("/bin/tool"), "tool".into(), env, null);
        spec.argv.push(argument.into());
        spec
    }

    #[test]
    fn a_run_is_told_what_came_before_it_and_nothing_later() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let history = Arc::new(History::default());
        let marks: Vec<_> = (0..100).map(|n| history.add(7, &spec(&null, &n.to_string()), Some(n))).collect();
        let visit = marks[98].visit(3);
        assert_eq!((visit.worker, visit.earlier, visit.command.as_str()), (7, 98, "tool 98"));
        let last: Vec<_> = visit.last.iter().map(|run| (run.job, run.command.as_str())).collect();
        assert_eq!(last, [(Some(95), "tool 95"), (Some(96), "tool 96"), (Some(97), "tool 97")]);
        assert_eq!(marks[0].visit(3).last, []);
        // Runs that are no longer kept are not reported.
        assert_eq!(marks[36].visit(3).last, []);
        assert_eq!(marks[37].visit(3).last.len(), 1);
    }

    #[test]
    fn a_doubted_run_concerns_all_clones_and_no_other_process() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let first = Arc::new(History::default());
        let second = History::after(&first);
        let third = History::after(&second);
        second.add(8, &spec(&null, "x"), None).doubt();
        assert_eq!([&first, &second, &third].map(|history| history.is_doubted()), [false, true, true]);
    }

    #[test]
    fn long_command_lines_are_shortened_between_characters() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let history = Arc::new(History::default());
        let mark = history.add(7, &spec(&null, &"ä".repeat(1000)), None);
        let command = mark.visit(1).command;
        assert!(command.len() <= COMMAND_MAX + 3 && command.ends_with("ä..."), "{command}");
    }
}
