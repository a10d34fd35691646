//! Starts the tools that `not` starts warm, by a server in this process that shares the run's launcher (`hotstart_exec`).
//!
//! LLVM's configs turn every `| not` and `not --crash` into the program of that name, which starts one tool, waits for it
//! and inverts its status. Only tools in its own directory are warm: `not` itself starts programs that a test has made, and
//! the system's. Other tools that start children are excluded, since it is unknown how they use the children and the act of
//! starting them.

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
    /// Warm starts are off.
    Off,
    /// Created, but not serving yet.
    Prepared(Prepared),
    /// It serves requests.
    Serving(Attached),
    /// It cannot be created. That costs time and nothing else.
    Impossible(String),
}

impl Nesting {
    /// Creates the server's directory and client for the policy. `launcher`'s guard removes the directory if this process is killed.
    pub fn prepare(settings: &WarmSettings, launcher: &Launcher) -> Nesting {
        if !settings.is_on() {
            return Nesting::Off;
        }
        if settings.chooses_allocators() {
            // A cold tool would have libc's allocator, since `not` starts it.
            return Nesting::impossible("with a chosen allocator a tool would have another one than cold");
        }
        let announce = |directory: &Path| launcher.remove_if_killed(directory);
        Prepared::new(announce).map_or_else(Nesting::impossible, Nesting::Prepared)
    }

    fn impossible(why: impl Display) -> Nesting {
        Nesting::Impossible(why.to_string())
    }

    /// Returns the policy's part for nested starts.
    pub fn nested(&self) -> Option<Nested> {
        match self {
            Nesting::Prepared(prepared) => Some(prepared.nested(&ColdTools::STARTERS)),
            _ => None,
        }
    }

    /// Starts serving. Adds the time of each started tool to `times`, since the tool's parent does not report it.
    pub fn serve(self, launcher: &Arc<Launcher>, times: Option<Arc<ToolTimes>>) -> Nesting {
        let Nesting::Prepared(prepared) = self else { return self };
        let ended = Box::new(move |program: &Path, exit: &Exit| {
            if let Some(times) = &times {
                times.add_run(program, exit.usage.user + exit.usage.system, exit.wall);
            }
        });
        prepared.serve(Arc::clone(launcher), ended).map_or_else(Nesting::impossible, Nesting::Serving)
    }

    /// Returns the text for `--explain`: the tools that were started, and the reasons for cold starts.
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
