//! What `not` starts, started warm: by a server in this process, which shares the run's launcher (`hotstart_exec`).
//!
//! LLVM's configs make every `| not` and `not --crash` the program of that name, which starts one tool, waits for it and
//! turns its status round. The tools meant are those beside it: what a test has made, and the system's programs, are
//! started by `not` itself. Other tools that start some are left alone: what they make of their children, and of having
//! started them, is not known.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use hotstart_exec::{Attached, Prepared};
use hotstart_launch::{Exit, Launcher, Nested};
use hotstart_model::ColdTools;
use hotstart_run::ToolTimes;

use super::warm::WarmSettings;

/// The server, from before the launcher knows its policy until the run's end.
pub(super) enum Nesting {
    /// Nothing is started warm.
    Off,
    /// Not begun yet.
    Prepared(Prepared),
    /// It serves.
    Serving(Attached),
    /// It cannot be had, which costs time and nothing else.
    Impossible(String),
}

impl Nesting {
    /// What the policy needs to know of. `launcher`'s guard removes the directory if this process is killed.
    pub fn prepare(settings: &WarmSettings, launcher: &Launcher) -> Nesting {
        if !settings.is_on() {
            return Nesting::Off;
        }
        if settings.chooses_allocators() {
            // Cold it has libc's, since `not` starts it.
            return Nesting::impossible("with a chosen allocator a tool would have another one than cold");
        }
        let announce = |directory: &Path| launcher.remove_if_killed(directory);
        Prepared::new(announce).map_or_else(Nesting::impossible, Nesting::Prepared)
    }

    fn impossible(why: impl Display) -> Nesting {
        Nesting::Impossible(why.to_string())
    }

    /// For the policy.
    pub fn nested(&self) -> Option<Nested> {
        match self {
            Nesting::Prepared(prepared) => Some(prepared.nested(&ColdTools::STARTERS)),
            _ => None,
        }
    }

    /// Begins to serve. The time of what is started so is added to `times`: whoever started it is not told of it.
    pub fn serve(self, launcher: &Arc<Launcher>, times: Option<Arc<ToolTimes>>) -> Nesting {
        let Nesting::Prepared(prepared) = self else { return self };
        let ended = Box::new(move |program: &Path, exit: &Exit| {
            if let Some(times) = &times {
                times.add_run(program, exit.usage.user + exit.usage.system, exit.wall);
            }
        });
        prepared.serve(Arc::clone(launcher), ended).map_or_else(Nesting::impossible, Nesting::Serving)
    }

    /// For `--explain`: what tools started, and why some of it cold.
    pub fn told(&self) -> String {
        let of_whom = format!("hotstart: what '{}' started", ColdTools::STARTERS.join("', '"));
        match self {
            Nesting::Serving(attached) => match attached.told() {
                counts if counts.is_empty() => counts,
                counts => format!("{of_whom}: {counts}"),
            },
            Nesting::Impossible(why) => format!("{of_whom} was cold: {why}\n"),
            Nesting::Off | Nesting::Prepared(_) => String::new(),
        }
    }
}
