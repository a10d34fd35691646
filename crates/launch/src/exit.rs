//! The end of a process, the resources it used, and the way it was started.

use std::fmt;
use std::time::Duration;

use hotstart_model::Status;

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit code or signal.
    pub status: Status,
    /// Resources, as the kernel accounted them.
    pub usage: Usage,
    /// Time from the start request until the process was waited for.
    pub wall: Duration,
    /// The way it was started.
    pub via: Via,
    /// Whether the process died before the tool's `main` began (warm starts only). Nothing was run, and the status means
    /// nothing. The caller starts it again, cold.
    pub lost: bool,
    /// Whether the run was lost, or may differ from a cold one: in a persistent process it made a system call that is not
    /// known to be answered as in a fresh process, or had children, or crashed. No verdict may rest on it.
    pub doubtful: bool,
}

/// The kernel's account of a process, as `wait4` gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Peak resident memory in KiB.
    pub max_rss_kib: u64,
    /// Page faults served without reading from disk.
    pub minor_faults: u64,
    /// Page faults that read from disk.
    pub major_faults: u64,
    /// Context switches because the process waited for something.
    pub voluntary_switches: u64,
    /// Context switches because its time slice was over or another thread was preferred.
    pub involuntary_switches: u64,
}

/// The way a process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// By exec, for this reason.
    Cold(Reason),
    /// As a fork of the tool's zygote, which is stopped before `main`.
    Fork,
    /// In a persistent process, which had run `main` before and was reset.
    Reset,
}

/// The reason for a cold start. A cold start is always right; the reason shows how it could be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The launcher has no pool.
    OnlyWay,
    /// The process needs a limit or a file mode mask that is set on the way to exec.
    Limits,
    /// The settings keep the tool cold.
    Policy,
    /// The test, or its directory's config, opts out.
    OptOut,
    /// Not started often enough to pay.
    FewStarts,
    /// Not started often enough to pay for an observation of its constructors.
    Unobserved,
    /// Its warm starts take more CPU time than cold ones.
    DoesNotPay,
    /// To compare its CPU time with that of warm starts.
    Compared,
    /// Every zygote was in use.
    Busy,
    /// The program lies below a directory that tests write to.
    TestOutput,
    /// The program is a debugger or tracer.
    Debugger,
    /// ld.so would look for the program or a library relative to the working directory.
    RelativePath,
    /// LD_LIBRARY_PATH has directories relative to the working directory, and a zygote would find libraries there.
    LibraryPath,
    /// The environment has variables that control ld.so.
    LoaderVariable,
    /// More descriptors, or higher numbers, than a request can carry.
    ManyDescriptors,
    /// Arguments and environment are longer than a request can be.
    LargeRequest,
    /// The working directory or a descriptor is on a file system whose files may depend on the process.
    KernelFiles,
    /// Its file, or one that it reads before `main`, is on a file system mounted with `strictatime`.
    AccessTimes,
    /// The program cannot be read.
    Unreadable,
    /// Not an ELF file, or a damaged one.
    NotElf,
    /// A script.
    Script,
    /// Statically linked.
    Static,
    /// For another machine architecture.
    ForeignMachine,
    /// Its loader is not glibc's.
    ForeignLoader,
    /// Its entry point does not start it through libc.
    OwnStart,
    /// Runs with more rights than its caller, such as setuid.
    Privileged,
    /// Built with a sanitizer, for coverage or for profiling.
    Instrumented,
    /// Written in Go.
    Go,
    /// It did not stop before `main`, or failed to start.
    NotStopped,
    /// Its files changed while it was started.
    FilesChanging,
    /// The system refused a resource that an exact fork needs.
    System,
    /// Its zygote would own more memory than all zygotes may.
    Memory,
    /// The zygote was killed.
    ZygoteDied,
    /// The zygote could not serve this request.
    Refused,
    /// Quarantined: a warm start of it differed from a cold one.
    Quarantined,
    /// Its warm runs are doubtful too often.
    Doubtful,
    /// The last warm run of the same command was doubtful.
    KnownDoubtful,
    /// A constructor started a thread.
    Threads,
    /// A constructor opened a descriptor.
    Descriptors,
    /// It has writable shared memory before `main`.
    SharedMemory,
    /// A timer runs before `main`.
    Timers,
    /// Signals are blocked, pending or on their own stack before `main`, or this process was started with one blocked or SIGCHLD ignored.
    Signals,
    /// A standard stream was used before `main`.
    Stdio,
    /// A constructor left a child process.
    Children,
    /// The tool, or a library of its own, defines functions of libc's that the runtime calls.
    LibcFunctions,
    /// A constructor kept the argument list.
    KeepsArguments,
    /// A constructor uses the environment in a way that cannot be followed.
    ReadsEnvironment,
    /// A constructor asked for the working directory.
    ReadsDirectory,
    /// A constructor asked for the process's number.
    ReadsIdentity,
    /// A constructor asked for the time or random bytes.
    ReadsClock,
    /// A constructor read information about the system.
    ReadsSystem,
    /// A constructor wrote, made or removed a file.
    WritesFiles,
    /// A constructor made a system call that is not known to be harmless.
    ConstructorCall,
    /// Results of constructors differ between two starts.
    ConstructorsDiffer,
    /// A constructor inspects a standard stream, which in this start is of a kind that no zygote has.
    LooksAtStream,
    /// Constructors cannot be observed on this system.
    NotObserved,
    /// A Python script cannot be halted where it first looks at its request.
    NotPython,
    /// A Python script is to have a hash seed of its own, which forks of one zygote have not.
    HashSeed,
}

impl Via {
    /// Returns whether it was a warm start.
    pub fn is_warm(self) -> bool {
        !matches!(self, Via::Cold(_))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::OnlyWay => "warm starts are not switched on",
            Reason::Limits => "limits or umask are set on the way to exec",
            Reason::Policy => "the settings say so",
            Reason::OptOut => "the test or its directory asks for it",
            Reason::FewStarts => "not started often enough yet",
            Reason::Unobserved => "not started often enough yet to have its constructors observed",
            Reason::DoesNotPay => "warm starts of it take more CPU time than cold ones",
            Reason::Compared => "to compare its CPU time with that of warm starts",
            Reason::Busy => "every zygote was in use",
            Reason::TestOutput => "the program lies where tests write",
            Reason::Debugger => "it is a debugger or tracer",
            Reason::RelativePath => "a path depends on the working directory",
            Reason::LibraryPath => "LD_LIBRARY_PATH leads to libraries relative to the working directory",
            Reason::LoaderVariable => "the environment steers the loader, by another LD_… than LD_LIBRARY_PATH and LD_PRELOAD",
            Reason::ManyDescriptors => "too many descriptors, or too high numbers",
            Reason::LargeRequest => "arguments and environment are too long",
            Reason::KernelFiles => "the working directory or a descriptor is on a file system that is not on the list",
            Reason::AccessTimes => "one of its files is on a file system that records every access (strictatime)",
            Reason::Unreadable => "the program cannot be read",
            Reason::NotElf => "not an ELF file",
            Reason::Script => "a script",
            Reason::Static => "statically linked",
            Reason::ForeignMachine => "built for another processor",
            Reason::ForeignLoader => "not loaded by glibc's loader",
            Reason::OwnStart => "does not start by way of libc",
            Reason::Privileged => "setuid, setgid or with file capabilities",
            Reason::Instrumented => "built with a sanitizer or for coverage",
            Reason::Go => "built by Go",
            Reason::NotStopped => "it could not be stopped before main",
            Reason::FilesChanging => "its files changed while a zygote was made",
            Reason::System => "the system refuses what an exact fork needs",
            Reason::Memory => "a zygote of it takes more memory than all may",
            Reason::ZygoteDied => "the zygote died",
            Reason::Refused => "the zygote could not serve this request",
            Reason::Quarantined => "a warm start differed from a cold one",
            Reason::KnownDoubtful => "such a command was doubtful when it was last warm: children, a signal, or an unknown system call",
            Reason::Doubtful => "its recent runs started others, ended by a signal, or made system calls that are not known to be harmless",
            Reason::Threads => "a thread runs before main",
            Reason::Descriptors => "a descriptor is opened before main",
            Reason::SharedMemory => "shared memory exists before main",
            Reason::Timers => "a timer runs before main",
            Reason::Signals => "signals are blocked, pending or ignored before main, or hotstart was started so",
            Reason::Stdio => "a standard stream is used before main",
            Reason::Children => "a child process exists before main",
            Reason::LibcFunctions => "it has functions of libc's of its own, which hotstart's runtime would call",
            Reason::KeepsArguments => "an argument, or their number, is kept before main",
            Reason::ReadsEnvironment => {
                "the environment is used before main in a way that cannot be followed"
            }
            Reason::ReadsDirectory => "the working directory is read before main",
            Reason::ReadsIdentity => "the process number is read before main",
            Reason::ReadsClock => "time or random bytes are read before main",
            Reason::ReadsSystem => "what the system tells about itself is read before main",
            Reason::WritesFiles => "a file is written, made or removed before main",
            Reason::ConstructorCall => "a system call before main is not known to be harmless",
            Reason::ConstructorsDiffer => "what is computed before main differs between two starts",
            Reason::LooksAtStream => {
                "a standard stream is looked at before main, and is of a kind that no zygote has"
            }
            Reason::NotPython => "a Python script that cannot be stopped where it looks at its request",
            Reason::HashSeed => "a Python script without PYTHONHASHSEED, whose hash seed would be shared",
            Reason::NotObserved => "what happens before main cannot be observed: the system refuses ptrace",
        })
    }
}
