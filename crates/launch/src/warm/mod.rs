//! Warm starts: zygotes, which are tools stopped before `main`, their forks, and persistent processes.
//!
//! `pool` decides which start gets which process, `maker` makes the processes, `observe` proves that a tool may have a
//! zygote, and `runtime/` is the other end. A start that cannot be warm is cold for a recorded [`Reason`], at no loss. See
//! docs/design/fork-server.md.

mod affinity;
mod ahead;
mod doubts;
pub(crate) mod eligible;
mod exe;
mod file_systems;
mod files;
mod held;
mod identity;
pub(crate) mod image;
mod key;
mod layout;
mod made_up;
mod maker;
pub(crate) mod observe;
mod policy;
mod pool;
mod refused;
mod request;
pub(crate) mod script;
mod search;
mod starter;
pub(crate) mod wire;
mod worker;
mod zygote;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub use ahead::Ahead;
pub use eligible::has_fixed_search;
pub use file_systems::{holds_files, reports_changes, stamps_accesses, stamps_changes};
pub use files::{StatCache, is_missed_by_loader};
pub use held::Hold;
pub use image::needed_glibc;
pub use key::{is_read_by_libraries, may_steer_loader};
pub use made_up::leads_through_made_up;
pub use policy::{Choice, Clones, Nested, OnDoubt, Policy, cache_directory};
pub use pool::{CpuTime, Retirement, Statistics, Stopped, ToolStatistics};

use crate::slots::Slots;
use crate::spec::{IGNORABLE, Resource};
use crate::{EnvBlock, Reason, Spec};
pub(crate) use doubts::{KnownDoubts, Outcome, Request};
pub(crate) use layout::Layout;
use maker::Maker;
pub(crate) use worker::Ended;
use zygote::{Means, Zygote};

/// The pool of real processes, and the values that it hands out.
pub(crate) type Pool = pool::Pool<Maker>;
pub(crate) type Tool = pool::tool::Tool<Maker>;
pub(crate) type Started<'p> = pool::Started<'p, Maker>;
pub(crate) type Lease<'p> = pool::Lease<'p, Maker>;
pub(crate) type ActiveRun<'p> = pool::ActiveRun<'p, Maker>;

/// The runtime's file, once it was tested; `None` if it does not work here.
pub(crate) type Runtime = OnceLock<Option<OwnedFd>>;

/// Creates the pool of a runner.
pub(crate) fn pool(
    policy: Policy,
    slots: Option<Arc<Slots>>,
    runtime: Arc<Runtime>,
    ahead: Option<Arc<Ahead>>,
) -> Pool {
    crate::sys::spawn::keep_inherited_private();
    let maker = Maker { policy: policy.clone(), slots, runtime, ahead };
    Pool::new(policy, maker)
}

/// Tests the runtime once, on a program that does no harm if it is not stopped: without the runtime, a tool would run its
/// `main` with no arguments.
pub(crate) fn try_runtime<'r>(
    runtime: &'r Runtime,
    nested: Option<&Nested>,
    slots: &Slots,
) -> Option<&'r OwnedFd> {
    runtime.get_or_init(|| image::open_runtime(nested).filter(|image| probe(image, slots))).as_ref()
}

/// Returns whether the runtime can stop a program on this system at all.
fn probe(image: &OwnedFd, slots: &Slots) -> bool {
    let path = Path::new("/bin/sh");
    let Ok(traits) = eligible::examine(path) else { return false };
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    let Ok(null) = null else { return false };
    let env = EnvBlock::new(&hotstart_model::Environment::new());
    let spec = Spec::plain(path, "sh".into(), env, &null);
    let means = Means { runtime: image, slots, allocator: None, kept: None, python: None, is_over: None };
    let started = Zygote::start(&spec, &traits, means, None);
    !matches!(started, Err(Reason::NotStopped | Reason::System))
}

/// Returns the reason for which this request, whatever the program, is started cold.
fn refuses(spec: &Spec<'_>) -> Option<Reason> {
    if spec.keep_cold {
        return Some(Reason::OptOut);
    }
    if spec.limits.iter().any(|limit| limit.resource == Resource::AddressSpace) || spec.limits.len() > 8 {
        return Some(Reason::Limits);
    }
    if spec.ignored.is_some_and(|set| set & !IGNORABLE != 0) {
        return Some(Reason::Signals);
    }
    // Each process behind the gate has its socket to the runner at this number.
    let fits = |fd: &i32| (3..wire::TARGET_MAX).contains(fd) && *fd != wire::CONTROL_FD;
    if spec.extra_fds.len() + wire::FDS_BESIDE > wire::FDS_MAX
        || !spec.extra_fds.iter().all(|(to, _)| fits(to))
    {
        return Some(Reason::ManyDescriptors);
    }
    refused::refuses(spec).or_else(|| key::refuses(spec))
}
