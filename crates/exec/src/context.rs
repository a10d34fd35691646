//! The attributes that a process passes on to its children. A job inherits the server's, so the client's must be equal.
//!
//! Most are read from `/proc`, which a client cannot forge: a sandboxed client must not escape its sandbox through the
//! server. The client reports the rest itself; none of these is a matter of rights.

use std::os::fd::{AsFd, OwnedFd};

use hotstart_launch::{IGNORABLE, Limit, Resource, descriptors};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::path::Arg;

use crate::refusal::{Aspect, Refusal};
use crate::wire::{LIMITS, Run};

const NAMESPACES: [&str; 8] = ["mnt", "user", "net", "ipc", "uts", "cgroup", "time", "pid_for_children"];
/// SIGPIPE and SIGXFSZ: the launcher gives every process the default, whatever the server's own are.
const RESET: u64 = 1 << (13 - 1) | 1 << (25 - 1);
/// Signals that libc uses inside a process; glibc ignores them in its children. No program can use them.
const INTERNAL: u64 = 1 << (32 - 1) | 1 << (33 - 1);
const ADDRESS_SPACE: usize = 9;
const STACK: usize = 3;
const CORE: usize = 4;
const OPEN_FILES: usize = 7;
const FILE_SIZE: usize = 1;
const UNLIMITED: u64 = u64::MAX;

/// The attributes of one process, as `/proc` shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    identity: Vec<u8>,
    capabilities: Vec<u8>,
    sandbox: Vec<u8>,
    /// Seccomp filters. An older kernel tells only that there are some.
    filters: Option<u64>,
    /// Of a security module (AppArmor, SELinux); empty without one.
    label: Vec<u8>,
    affinity: Vec<u8>,
    traced: bool,
    ignored: u64,
    pub umask: u32,
    pub parent: i32,
    /// Process group.
    pub group: i32,
    pub has_terminal: bool,
    scheduling: [i64; 3],
    namespaces: [(u64, u64); NAMESPACES.len()],
    root: Place,
    control_group: Vec<u8>,
    out_of_memory: Vec<u8>,
}

/// The server's own attributes, read once.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    seen: Seen,
    io_priority: u32,
    personality: u32,
    securebits: u32,
    limits: [(u64, u64); LIMITS],
    /// The server has settings that its jobs would inherit, and no client has: one that has some does not ask.
    is_unusual: bool,
}

impl Context {
    /// Reads those of this process.
    pub(crate) fn own() -> Option<Context> {
        let personality = std::fs::read_to_string("/proc/self/personality").ok()?;
        Some(Context {
            seen: Seen::of("self")?,
            io_priority: hotstart_launch::io_priority(),
            personality: u32::from_str_radix(personality.trim(), 16).ok()?,
            securebits: rustix::thread::capabilities_secure_bits().ok()?.bits(),
            limits: own_limits(),
            is_unusual: !hotstart_launch::unusual_settings().is_empty(),
        })
    }

    /// Returns the first attribute of a client that differs. `None`: a job of the server is indistinguishable from the
    /// client's own child.
    pub(crate) fn difference(&self, seen: &Seen, run: &Run) -> Option<Aspect> {
        let own = &self.seen;
        let rights = [
            (seen.identity != own.identity, Aspect::Identity),
            (seen.capabilities != own.capabilities, Aspect::Capabilities),
            (run.securebits != self.securebits, Aspect::Capabilities),
            (seen.sandbox != own.sandbox || !seen.has_known_filters(), Aspect::Sandbox),
            (seen.label != own.label, Aspect::Label),
            (seen.namespaces != own.namespaces, Aspect::Namespaces),
            (seen.root != own.root, Aspect::Root),
            (seen.traced, Aspect::Traced),
        ];
        let habits = [
            (seen.control_group != own.control_group, Aspect::ControlGroup),
            (seen.scheduling != own.scheduling, Aspect::Scheduling),
            (run.io_priority != self.io_priority, Aspect::Scheduling),
            (seen.affinity != own.affinity, Aspect::Affinity),
            (self.ignored(seen).is_some_and(|set| set & !IGNORABLE != 0), Aspect::Signals),
            (run.blocked != 0, Aspect::Signals),
            (run.personality != self.personality, Aspect::Personality),
            (self.is_unusual, Aspect::Settings),
            (seen.out_of_memory != own.out_of_memory, Aspect::OutOfMemory),
        ];
        rights.into_iter().chain(habits).find_map(|(differs, aspect)| differs.then_some(aspect))
    }

    /// Returns the client's file mode mask if it is not the server's.
    pub(crate) fn umask(&self, seen: &Seen) -> Option<u32> {
        (seen.umask != self.seen.umask).then_some(seen.umask)
    }

    /// Returns the signals that a job must find ignored; `None` if the launcher's default is the same.
    pub(crate) fn ignored(&self, seen: &Seen) -> Option<u64> {
        (seen.ignored != self.seen.ignored & !RESET).then_some(seen.ignored)
    }

    /// Returns the limits that differ from the server's, which the job must be given.
    pub(crate) fn limits(&self, run: &Run) -> Result<Vec<Limit>, Refusal> {
        let mut limits = Vec::new();
        for (index, (wanted, own)) in run.limits.iter().zip(&self.limits).enumerate() {
            if wanted == own {
                continue;
            }
            let resource = match index {
                OPEN_FILES => Resource::OpenFiles,
                FILE_SIZE => Resource::FileSize,
                ADDRESS_SPACE => Resource::AddressSpace,
                // The server cannot give a job more than it may have itself.
                STACK if wanted.1 <= own.1 => Resource::Stack,
                CORE if wanted.1 <= own.1 => Resource::Core,
                _ => return Err(Refusal::Differs(Aspect::Limits)),
            };
            limits.push(Limit { resource, soft: value(wanted.0), hard: value(wanted.1) });
        }
        Ok(limits)
    }
}

fn value(value: u64) -> Option<u64> {
    (value != UNLIMITED).then_some(value)
}

fn own_limits() -> [(u64, u64); LIMITS] {
    use rustix::process::Resource::*;
    // In the order of their numbers.
    const ALL: [rustix::process::Resource; LIMITS] = [
        Cpu, Fsize, Data, Stack, Core, Rss, Nproc, Nofile, Memlock, As, Locks, Sigpending, Msgqueue, Nice,
        Rtprio, Rttime,
    ];
    ALL.map(|resource| {
        let mut limit = rustix::process::getrlimit(resource);
        // A child process is given the limit on descriptors that this process was started with.
        if let (rustix::process::Resource::Nofile, Some((soft, hard))) = (resource, descriptors::inherited())
        {
            (limit.current, limit.maximum) = (soft, hard);
        }
        (limit.current.unwrap_or(UNLIMITED), limit.maximum.unwrap_or(UNLIMITED))
    })
}

/// A directory, and the mount by which it is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The minor number, and 32 bits higher the major one.
    pub device: u64,
    pub inode: u64,
    /// 0 where the kernel does not tell it (before Linux 5.8).
    pub mount: u64,
}

impl Place {
    /// Looks at a path below a directory, or at an absolute one. Links are followed.
    pub(crate) fn of(dir: impl AsFd, path: impl Arg) -> Option<Place> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = rustix::fs::statx(dir, path, AtFlags::empty(), wanted).ok()?;
        let tells_mount = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Some(Place {
            device: u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor),
            inode: found.stx_ino,
            mount: if tells_mount { found.stx_mnt_id } else { 0 },
        })
    }
}

impl Seen {
    /// Whether it has no seccomp filters but those of its container.
    fn has_known_filters(&self) -> bool {
        self.filters == Some(0) || self.filters.is_some_and(hotstart_launch::has_filters_of_first)
    }

    /// Reads the attributes of the process with this number, or of "self".
    pub(crate) fn of(process: &str) -> Option<Seen> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(format!("/proc/{process}"), flags, Mode::empty()).ok()?;
        let mut buffer = [0; 8192];
        let mut seen = Seen::from_status(read(&dir, "status", &mut buffer)?)?;
        (seen.parent, seen.group, seen.has_terminal, seen.scheduling) =
            parse_stat(read(&dir, "stat", &mut buffer)?)?;
        seen.control_group = read(&dir, "cgroup", &mut buffer).unwrap_or_default().to_vec();
        seen.out_of_memory = read(&dir, "oom_score_adj", &mut buffer)?.to_vec();
        seen.root = Place::of(&dir, "root")?;
        seen.label = read(&dir, "attr/current", &mut buffer).unwrap_or_default().to_vec();
        for (namespace, found) in NAMESPACES.iter().zip(&mut seen.namespaces) {
            // Kernels can be built without some of them; then no process has them.
            *found = identity(&dir, &format!("ns/{namespace}")).unwrap_or_default();
        }
        Some(seen)
    }

    fn from_status(status: &[u8]) -> Option<Seen> {
        let mut seen = Seen {
            identity: Vec::new(),
            capabilities: Vec::new(),
            sandbox: Vec::new(),
            filters: Some(0),
            label: Vec::new(),
            affinity: Vec::new(),
            traced: false,
            ignored: 0,
            umask: u32::MAX,
            parent: 0,
            group: 0,
            has_terminal: false,
            scheduling: [0; 3],
            namespaces: Default::default(),
            root: Place::default(),
            control_group: Vec::new(),
            out_of_memory: Vec::new(),
        };
        let (mut has_filters, mut filters) = (false, None);
        for line in status.split(|&byte| byte == b'\n') {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let value = line[colon + 1..].trim_ascii();
            match &line[..colon] {
                b"Uid" | b"Gid" | b"Groups" => seen.identity.extend_from_slice(line),
                b"CapInh" | b"CapPrm" | b"CapEff" | b"CapBnd" | b"CapAmb" => {
                    seen.capabilities.extend_from_slice(line);
                }
                b"Seccomp_filters" => filters = Some(number(value, 10)?),
                b"Seccomp" => {
                    has_filters = value != b"0";
                    seen.sandbox.extend_from_slice(line);
                }
                b"Cpus_allowed" | b"Mems_allowed" => seen.affinity.extend_from_slice(line),
                b"TracerPid" => seen.traced = value != b"0",
                b"SigIgn" => seen.ignored = number(value, 16)? & !INTERNAL,
                b"Umask" => seen.umask = number(value, 8)? as u32,
                name if is_of_one_process(name) => {}
                // no_new_privs, protection against speculation, and what later kernels show.
                _ => seen.sandbox.extend_from_slice(line),
            }
        }
        seen.filters = if has_filters { filters } else { Some(0) };
        (seen.umask != u32::MAX && !seen.identity.is_empty()).then_some(seen)
    }
}

/// Returns whether a line of the status with this name tells what no process passes on to its children, or what other lines tell as well.
fn is_of_one_process(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 22] = [
        b"Name",
        b"State",
        b"Tgid",
        b"Ngid",
        b"Pid",
        b"PPid",
        b"FDSize",
        b"NStgid",
        b"NSpid",
        b"NSpgid",
        b"NSsid",
        b"HugetlbPages",
        b"CoreDumping",
        b"Threads",
        b"SigQ",
        b"SigPnd",
        b"ShdPnd",
        b"SigBlk",
        b"SigCgt",
        b"Cpus_allowed_list",
        b"Mems_allowed_list",
        b"voluntary_ctxt_switches",
    ];
    const BEGINNINGS: [&[u8]; 4] = [b"Vm", b"Rss", b"nonvoluntary", b"x86_Thread_features"];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Returns the parent, the process group, whether there is a controlling terminal, and nice value, real-time priority and policy.
fn parse_stat(stat: &[u8]) -> Option<(i32, i32, bool, [i64; 3])> {
    // The second field, the name, may contain spaces and parentheses.
    let behind = stat.iter().rposition(|&byte| byte == b')')?;
    let text = std::str::from_utf8(&stat[behind + 1..]).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
    Some((field(4)? as i32, field(5)? as i32, field(7)? != 0, [field(19)?, field(40)?, field(41)?]))
}

fn number(text: &[u8], base: u32) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, base).ok()
}

fn read<'b>(dir: &OwnedFd, name: &str, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let file = rustix::fs::openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut *buffer).ok()?;
    // If the text fills the buffer, some of it may be missing.
    (length < buffer.len()).then(|| &buffer[..length])
}

fn identity(dir: &OwnedFd, name: &str) -> Option<(u64, u64)> {
    let found = rustix::fs::statat(dir, name, AtFlags::empty()).ok()?;
    Some((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(context: &Context) -> Run {
        Run {
            argc: 1,
            envc: 0,
            fd_count: 3,
            io_priority: context.io_priority,
            personality: context.personality,
            securebits: context.securebits,
            blocked: 0,
            directory: Place::default(),
            limits: context.limits,
        }
    }

    #[test]
    fn a_process_like_this_one_does_not_differ() {
        let context = Context::own().unwrap();
        let mut seen = Seen::of(&std::process::id().to_string()).unwrap();
        // Rust's runtime ignores SIGPIPE.
        seen.ignored &= !RESET;
        assert_eq!(context.difference(&seen, &run(&context)), None);
        assert_eq!(context.limits(&run(&context)), Ok(Vec::new()));
    }

    #[test]
    fn each_difference_has_its_aspect() {
        let context = Context::own().unwrap();
        let same = Seen { ignored: context.seen.ignored & !RESET, ..context.seen.clone() };
        let differs = |change: fn(&mut Seen)| {
            let mut seen = same.clone();
            change(&mut seen);
            context.difference(&seen, &run(&context))
        };
        assert_eq!(differs(|_| ()), None);
        assert_eq!(differs(|s| s.identity.push(b'1')), Some(Aspect::Identity));
        assert_eq!(differs(|s| s.capabilities.push(b'1')), Some(Aspect::Capabilities));
        assert_eq!(differs(|s| s.sandbox.push(b'1')), Some(Aspect::Sandbox));
        assert_eq!(differs(|s| s.namespaces[0].1 ^= 1), Some(Aspect::Namespaces));
        assert_eq!(differs(|s| s.root.inode ^= 1), Some(Aspect::Root));
        assert_eq!(differs(|s| s.root.mount ^= 1), Some(Aspect::Root));
        assert_eq!(differs(|s| s.filters = None), Some(Aspect::Sandbox));
        assert_eq!(differs(|s| s.filters = Some(u64::MAX)), Some(Aspect::Sandbox));
        assert_eq!(differs(|s| s.label.push(b'x')), Some(Aspect::Label));
        assert_eq!(differs(|s| s.traced = true), Some(Aspect::Traced));
        assert_eq!(differs(|s| s.control_group.push(b'x')), Some(Aspect::ControlGroup));
        assert_eq!(differs(|s| s.scheduling[0] += 1), Some(Aspect::Scheduling));
        assert_eq!(differs(|s| s.affinity.push(b'1')), Some(Aspect::Affinity));
        assert_eq!(differs(|s| s.ignored |= 1 << 10), Some(Aspect::Signals), "SIGSEGV");
        assert_eq!(differs(|s| s.ignored |= 1 << 34), Some(Aspect::Signals), "a real-time signal");
        assert_eq!(differs(|s| s.ignored |= 1 | 1 << 12), None, "SIGHUP, SIGPIPE");
        assert_eq!(differs(|s| s.out_of_memory.push(b'1')), Some(Aspect::OutOfMemory));
        let mut blocked = run(&context);
        blocked.blocked = 1 << 14;
        assert_eq!(context.difference(&same, &blocked), Some(Aspect::Signals));
    }

    #[test]
    fn some_limits_can_be_passed() {
        let context = Context::own().unwrap();
        let mut wanted = run(&context);
        wanted.limits[OPEN_FILES] = (100, 200);
        let passed = Limit { resource: Resource::OpenFiles, soft: Some(100), hard: Some(200) };
        assert_eq!(context.limits(&wanted), Ok(vec![passed]));
        wanted.limits[STACK].0 = 64 << 20;
        let stack =
            Limit { resource: Resource::Stack, soft: Some(64 << 20), hard: value(wanted.limits[STACK].1) };
        assert_eq!(context.limits(&wanted), Ok(vec![stack, passed]));
        wanted.limits[0] = (1, 1);
        assert_eq!(context.limits(&wanted), Err(Refusal::Differs(Aspect::Limits)));
    }

    #[test]
    fn odd_names_do_not_confuse() {
        let front = b"7 (a) b (c) S 5 6 7 34816 7 4194304 1 0 0 0 1 2 0 0 20 -5 1 0 100 0 0 ";
        let mut stat = front.to_vec();
        stat.extend_from_slice("0 ".repeat(14).as_bytes());
        stat.extend_from_slice(b"0 3 1 0\n");
        let (parent, group, terminal, scheduling) = parse_stat(&stat).unwrap();
        assert!(parent == 5 && group == 6 && terminal);
        assert_eq!(scheduling, [-5, 3, 1]);
    }
}
