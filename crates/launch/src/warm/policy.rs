//! Decides which tools are started warm, and how much memory that may take.
//!
//! A policy holds rules and no state. It is the only part of the pool that callers set, and it cannot make a start wrong, only slower.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::key;
use super::layout::LAYOUTS;
use super::pool::memory::default_budget;
use super::wire::{FDS_BESIDE, FDS_MAX, WORKER_TARGET_MAX};
use crate::{Reason, Spec};

/// The tools that are started warm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// No tool.
    Cold,
    /// Each tool, after this many cold starts under the same key.
    Auto {
        /// Cold starts before the first zygote.
        after: u32,
    },
    /// Each tool, once its constructors have been observed ([`Policy::observe_after`]): from its first start on for its first key.
    /// For other keys, or after eviction, from the second start on.
    Eager,
    /// Tools of these names (the last component of their path), from their first start on.
    Only(Vec<String>),
}

/// The exec client: asks the server to start a command, and execs it itself if the server refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nested {
    /// The client's file.
    pub client: PathBuf,
    /// The directory in which it finds the server.
    pub directory: PathBuf,
}

/// The consequence of a doubtful run for its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDoubt {
    /// The caller repeats the run cold, so a few are tolerated. A tool with many doubtful runs becomes cold.
    Repeat,
    /// Nobody repeats the run: the first system call that is not known to be harmless makes the tool cold. Children are
    /// tolerated, since a compiler driver has them.
    Stop,
    /// All are tolerated. For tests that inspect such runs.
    Bear,
}

/// The persistent processes that are clones of others (docs/design/reset.md, learned once).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clones {
    /// None.
    None,
    /// All that are made once one of their tool has learned a deferred snapshot.
    OfLearned,
    /// One for each two runs, a clone of the process that ran last: the first begins at `main`, the other may begin at the deferred
    /// snapshot. For tests.
    Each,
}

/// Settings of the pool.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The tools that are started warm.
    pub choice: Choice,
    /// Tools of these names are always cold.
    pub never: Vec<String>,
    /// Programs below these directories are always cold: tests make and overwrite them.
    pub cold_below: Vec<PathBuf>,
    /// Programs in a directory named `Output` somewhere below these are cold, too: lit's tests write there, while the
    /// project's own tools lie in the same tree.
    pub output_below: Vec<PathBuf>,
    /// Memory that all zygotes and persistent processes together may own, in bytes.
    pub memory: u64,
    /// Most zygotes of one tool at a time.
    pub zygotes_per_tool: usize,
    /// Number of starts after which a zygote or a persistent process is replaced, so that no memory layout is used for ever.
    pub starts_per_zygote: u32,
    /// Whether tools run in persistent processes, where they can.
    pub resets: bool,
    /// The persistent processes that are clones of others.
    pub clones: Clones,
    /// The client for the starts of compilers and linkers that tools make themselves. `None`: they make them unchanged.
    pub nested: Option<Nested>,
    /// Approximate number of starts at a time: tests that run at once.
    pub jobs: usize,
    /// Most persistent processes of one tool at a time.
    pub workers_per_tool: usize,
    /// Number of persistent processes with one key that suffices for all processors. If more starts go on than there are
    /// processors, further ones are made only if none comes back soon.
    pub workers_at_once: usize,
    /// Whether a request is taken up on the requester's processor: good for many short runs, whose requesters wait for them.
    /// A long run is better placed by the kernel, since the requester's processor may soon have other work.
    pub near: bool,
    /// How long a start waits for a tool's first zygote that another start is making. That takes as long as a cold start does
    /// until `main`, or several times as long if its constructors must be observed. A start that waits loses little, and one
    /// that did not would take the processor from the zygote.
    pub first_wait: Duration,
    /// Number of forks after which a zygote's text is put on large pages; 0 for never. That takes 60 ms for LLVM's 120 MB,
    /// ten times as much if memory is fragmented, and saves a fork 1 to 5 ms (docs/design/fork-server.md).
    pub enlarge_after: u32,
    /// The consequence of a doubtful run for its tool ([`crate::Exit::doubtful`]).
    pub on_doubt: OnDoubt,
    /// Whether a command whose warm run was doubtful starts cold later, in this and other runs with this `cache`.
    pub remembers_doubts: bool,
    /// One in this many resets is audited, after the first few of each tool; 0 for none.
    pub audit_one_in: u64,
    /// Whether deferred snapshots are learned from the first run with each number of arguments on, for tests. Otherwise where that is
    /// likely to pay.
    pub learn_at_once: bool,
    /// Whether CPU times are measured, and a tool whose warm starts take more than cold ones is left cold. Some starts are then
    /// cold to compare with ([`Reason::Compared`]).
    pub compare: bool,
    /// Whether scripts that Python runs are started warm.
    pub python: bool,
    /// CPU time that cold starts of a program must have taken, in this and earlier runs with this `cache`, before its constructors
    /// are observed. Zero observes them for the first warm start.
    pub observe_after: Duration,
    /// Whether scripts whose environment gives no hash seed are among them. A fresh interpreter has a random one; forks of one
    /// zygote have the zygote's.
    pub share_hash_seed: bool,
    /// Directory in which observations of constructors are stored; without it, each runner makes them anew.
    pub cache: Option<PathBuf>,
}

/// Returns the directory in which knowledge about tools is stored between runs: `HOTSTART_CACHE_DIR`, or `hotstart` in the
/// user's cache directory.
pub fn cache_directory() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let users = || {
        Some(absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?.join("hotstart"))
    };
    absolute("HOTSTART_CACHE_DIR").or_else(users)
}

impl Policy {
    /// Returns a policy that starts everything cold.
    pub fn cold() -> Self {
        Policy { choice: Choice::Cold, ..Policy::default() }
    }

    /// Returns the reason for which `program` must be cold; `None` if it may be warm.
    pub(crate) fn refuses(&self, program: &Path) -> Option<Reason> {
        let name = program.file_name().unwrap_or_default();
        let named = |names: &[String]| names.iter().any(|n| OsStr::new(n) == name);
        match &self.choice {
            Choice::Cold => return Some(Reason::Policy),
            Choice::Only(names) if !named(names) => return Some(Reason::Policy),
            _ => {}
        }
        if named(&self.never) {
            return Some(Reason::Policy);
        }
        if DEBUGGERS.iter().any(|d| d.as_bytes() == name.as_bytes()) {
            return Some(Reason::Debugger);
        }
        if !program.is_absolute() {
            return Some(Reason::RelativePath);
        }
        self.is_test_output(program).then_some(Reason::TestOutput)
    }

    /// Returns whether `program` lies where tests write.
    pub(crate) fn is_test_output(&self, program: &Path) -> bool {
        self.cold_below.iter().any(|dir| program.starts_with(dir))
            || self.output_below.iter().any(|dir| is_in_output(program, dir))
    }

    /// Returns whether `spec`, if it is a Python script, must have a hash seed of its own.
    pub(crate) fn refuses_seed(&self, spec: &Spec<'_>) -> bool {
        !self.share_hash_seed && !key::has_hash_seed(&spec.env)
    }

    /// Returns the default policy for `jobs` starts at a time.
    pub fn for_jobs(jobs: usize) -> Self {
        let default = Policy::default();
        let workers_per_tool = (LAYOUTS * 2 * jobs).clamp(default.workers_per_tool.min(4), WORKERS_MOST);
        Policy { jobs, workers_per_tool, ..default }
    }

    /// Returns the number of starts at a time for each processor, rounded up.
    pub(crate) fn crowding(&self) -> u32 {
        u32::try_from(self.jobs.div_ceil(processors())).unwrap_or(u32::MAX).clamp(1, CROWDING_MOST)
    }

    /// Returns whether a persistent process may run `spec`, as far as settings and request allow: limits would stay with it.
    pub(crate) fn may_reset(&self, spec: &Spec<'_>) -> bool {
        let own_limits = spec.limits.iter().all(|limit| limit.resource.is_of_zygote());
        let low = spec.extra_fds.iter().all(|(to, _)| *to < WORKER_TARGET_MAX);
        self.resets && own_limits && low && spec.extra_fds.len() + FDS_BESIDE <= FDS_MAX
    }

    /// Returns whether `spec` may be started cold to compare with warm starts: settings that a cold start makes by a second exec
    /// would be measured, too.
    pub(crate) fn compares(&self, spec: &Spec<'_>) -> bool {
        let is_direct = spec.umask.is_none() && spec.limits.iter().all(|limit| limit.resource.is_of_zygote());
        self.compare && is_direct && self.cold_starts() > 0
    }

    /// Returns the number of cold starts under one key before its zygote is made. The first start of an eager choice is an
    /// exception.
    pub(crate) fn cold_starts(&self) -> u32 {
        match self.choice {
            Choice::Auto { after } => after,
            Choice::Eager => 1,
            Choice::Cold | Choice::Only(_) => 0,
        }
    }
}

/// Returns whether a directory named `Output` stands between `program` and `dir`.
fn is_in_output(program: &Path, dir: &Path) -> bool {
    let is_output = |component: Component<'_>| component.as_os_str() == "Output";
    let below = program.strip_prefix(dir).ok().and_then(Path::parent);
    below.is_some_and(|below| below.components().any(is_output))
}

/// Debuggers and tracers. The programs that they run must see an ordinary exec.
const DEBUGGERS: [&str; 8] = ["gdb", "lldb", "valgrind", "strace", "ltrace", "perf", "rr", "qemu-user"];

/// Most persistent processes of one tool, however many starts go on at a time.
const WORKERS_MOST: usize = 256;
/// Largest factor by which a start waits longer in a crowd.
const CROWDING_MOST: u32 = 64;

/// Returns the number of processors that this process may use.
pub(super) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Whether the runtime has a gate for this kind of processor. Where it has none, nothing notices a doubtful run, so tools are warm on
/// demand only (docs/design/fork-server.md, aarch64).
const HAS_GATE: bool = cfg!(target_arch = "x86_64");

impl Default for Policy {
    fn default() -> Self {
        let cores = processors();
        Policy {
            choice: if HAS_GATE { Choice::Auto { after: 1 } } else { Choice::Cold },
            never: Vec::new(),
            cold_below: Vec::new(),
            output_below: Vec::new(),
            memory: default_budget(),
            zygotes_per_tool: LAYOUTS * cores.clamp(2, 16),
            starts_per_zygote: 2000,
            resets: true,
            // A lock that is held at the deferred snapshot has the number of the process that was cloned (reset.md).
            clones: Clones::OfLearned,
            nested: None,
            jobs: cores,
            workers_per_tool: (LAYOUTS * 2 * cores).clamp(4, WORKERS_MOST),
            workers_at_once: cores.clamp(2, WORKERS_MOST),
            near: true,
            first_wait: Duration::from_millis(60),
            enlarge_after: 32,
            on_doubt: OnDoubt::Stop,
            remembers_doubts: false,
            audit_one_in: 200,
            learn_at_once: false,
            compare: false,
            python: false,
            observe_after: Duration::ZERO,
            share_hash_seed: false,
            cache: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opt_outs_win_over_choice() {
        let policy = Policy {
            choice: Choice::Only(vec!["opt".into(), "llc".into()]),
            never: vec!["llc".into()],
            cold_below: vec!["/out".into()],
            output_below: vec!["/build".into()],
            ..Policy::default()
        };
        assert_eq!(policy.refuses(Path::new("/bin/opt")), None);
        assert_eq!(policy.refuses(Path::new("/bin/llc")), Some(Reason::Policy));
        assert_eq!(policy.refuses(Path::new("/bin/cat")), Some(Reason::Policy));
        assert_eq!(policy.refuses(Path::new("/out/t/opt")), Some(Reason::TestOutput));
        assert_eq!(policy.refuses(Path::new("/build/test/Output/a.tmp/opt")), Some(Reason::TestOutput));
        assert_eq!(policy.refuses(Path::new("/build/bin/opt")), None);
        assert_eq!(policy.refuses(Path::new("/elsewhere/Output/opt")), None);
        assert_eq!(policy.refuses(Path::new("opt")), Some(Reason::RelativePath));
        assert_eq!(Policy::cold().refuses(Path::new("/bin/opt")), Some(Reason::Policy));
        let eager = Policy { choice: Choice::Eager, ..Policy::default() };
        assert_eq!(eager.refuses(Path::new("/usr/bin/gdb")), Some(Reason::Debugger));
        assert_eq!(eager.refuses(Path::new("/bin/opt")), None);
        // Without a gate, only on demand.
        assert_eq!(Policy::default().refuses(Path::new("/bin/opt")).is_none(), HAS_GATE);
    }
}
