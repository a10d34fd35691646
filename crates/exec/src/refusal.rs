//! The reasons why a command was not started warm, so that the client executes it itself.

use std::fmt;

use hotstart_launch::Reason;

/// A reason, counted and shown by `hotstart server status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Refusal {
    /// A reason of the launcher.
    Launch(Reason),
    /// The client has an inherited attribute that the tools of this server do not have.
    Differs(Aspect),
    /// The program may use its terminal, which a job of the server does not have.
    Terminal,
    /// The request does not follow the protocol.
    Malformed,
    /// The server already runs as many jobs as it takes.
    Busy,
    /// The client cannot be inspected, or has ended meanwhile.
    Unseen,
}

/// Attributes that a process passes on to its children and that no request can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Aspect {
    /// User, group, supplementary groups.
    Identity,
    /// Capabilities and securebits.
    Capabilities,
    /// Seccomp filters, no_new_privs, protection against speculation.
    Sandbox,
    /// The label of a security module.
    Label,
    /// Any namespace.
    Namespaces,
    /// Root directory.
    Root,
    /// A tracer is attached.
    Traced,
    /// Control group.
    ControlGroup,
    /// Nice value, policy, priority, I/O priority.
    Scheduling,
    /// Processors and memory nodes.
    Affinity,
    /// Resource limits other than those that can be passed.
    Limits,
    /// Blocked signals, or ignored ones that cannot be passed.
    Signals,
    /// Execution domain (`setarch`).
    Personality,
    /// The server itself has settings that its clients have not.
    Settings,
    /// The kernel's preference for killing the process when memory runs out (`oom_score_adj`).
    OutOfMemory,
    /// The path of the working directory leads to another directory, or by another mount.
    Directory,
}

impl Aspect {
    /// Returns whether a server that this client starts would suit it: the attribute is no matter of rights.
    pub(crate) fn is_of_habit(self) -> bool {
        use Aspect::*;
        matches!(
            self,
            ControlGroup | Scheduling | Affinity | Limits | Signals | Personality | Settings | OutOfMemory
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Refusal::Launch(reason) => return reason.fmt(f),
            Refusal::Differs(aspect) => return aspect.fmt(f),
            Refusal::Terminal => "it may use its terminal",
            Refusal::Malformed => "the request is malformed, or the server had no descriptors left",
            Refusal::Busy => "the server has too many jobs",
            Refusal::Unseen => "the client cannot be looked at",
        };
        f.write_str(text)
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Aspect::Identity => "another user or other groups than the server's",
            Aspect::Capabilities => "other capabilities than the server's",
            Aspect::Sandbox => "a seccomp filter of its own, or other restrictions than the server's",
            Aspect::Label => "another security label than the server's",
            Aspect::Namespaces => "other namespaces than the server's",
            Aspect::Root => "another root directory than the server's",
            Aspect::Traced => "it is traced",
            Aspect::ControlGroup => "another control group than the server's",
            Aspect::Scheduling => "another priority or scheduling policy than the server's",
            Aspect::Affinity => "other processors or memory nodes than the server's",
            Aspect::Limits => "other resource limits than the server's",
            Aspect::Signals => "signals are blocked, or such are ignored as tell of a fault",
            Aspect::Personality => "another execution domain than the server's",
            Aspect::Settings => "the server was started with settings (prctl) that its clients have not",
            Aspect::OutOfMemory => "another oom_score_adj than the server's",
            Aspect::Directory => "its working directory was renamed, or is below another mount",
        })
    }
}
