//! One observation run: a tool traced from its exec to the place where a zygote stops.
//!
//! It is traced with ptrace and not watched by the preloaded runtime: constructors may make system calls of their own, and may run before
//! the runtime does. Nothing here judges what it sees (`calls`, `compare`).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::thread::CpuSet;

use super::block::{Block, Place, random};
use super::calls::{self, After, Entry, Opened, refuse};
use super::kernels;
use super::maps::{self, Mapping};
use super::old;
use super::secret::{self, Secret};
use super::variables::{self, Variables};
use super::vary::RANDOM;
use super::{Live, Refusal};
use crate::Reason;
use crate::sys::registers::{self, BEHIND_BREAKPOINT, BREAKPOINT, CALL, Registers};
use crate::sys::trace::{self, Call, Stop};
use crate::sys::{clock, vdso, wait};
use crate::warm::exe;
use crate::warm::files::Files;
use crate::warm::identity::Aspect;
use crate::warm::key::Looks;
use crate::warm::wire;
use crate::warm::zygote::Means;

/// elf.h.
const AT_IGNORE: u64 = 1;
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;
const AT_RANDOM: u64 = 25;
const AT_SYSINFO_EHDR: u64 = 33;

/// Longest path of a program, and the size of a page.
const PATH_MAX: usize = 4096;
pub(super) const PAGE: u64 = 4096;

/// As the kernel lists the runtime.
pub(super) const RUNTIME: &str = "/memfd:hotstart-runtime";

/// Code that a system call replaces.
type Code = [u8; CALL.len()];

/// Inputs that constructors have looked at.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub files: Files,
    /// By their bytes: a path with a slash at its end is another one.
    known: HashSet<(OsString, Aspect)>,
    /// The path in `/proc/self/exe`.
    pub exe: Vec<u8>,
    /// Paths, relative to the working directory, at which the loader looked for libraries in vain.
    pub relative: BTreeSet<PathBuf>,
    /// Names by which the loader looked for libraries, and of other files that it opened.
    pub libraries: BTreeSet<OsString>,
    pub looks: Looks,
    /// Whether other code than the loader has asked what a file is, or what a directory holds.
    pub compares_files: bool,
    /// Variables that they asked for.
    pub names: Vec<Vec<u8>>,
    /// The address at which the kernel clears the thread's number, and the area in which it writes the thread's processor.
    pub thread_id: u64,
    pub rseq: (u64, u64),
    /// The address of the program's `environ`.
    pub environ: u64,
    /// The place in a Python script where it has stopped.
    pub place: u64,
    /// The line of that place.
    pub line: String,
    /// The address of the program's `main`.
    pub main: u64,
    /// What calls have told the kernel about signals, in words.
    pub signals: Vec<Vec<u64>>,
    /// Whether constructors have opened libraries, in a run without the runtime.
    pub opens_libraries: bool,
    /// Whether a library has asked for time or random bytes that is known to forget them, and got others than a cold process gets.
    pub is_served: bool,
    /// Memory that the kernel may take away at any time, and that is still mapped.
    pub lazily_freed: Vec<Range<u64>>,
}

impl Seen {
    pub(super) fn asked_for(&mut self, name: &[u8]) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_vec());
        }
    }
}

/// What the kernel tells a program of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    base: u64,
    pub entry: u64,
    /// Addresses of the entry that tells of the kernel's library, and of the random bytes.
    library: Option<u64>,
    random: u64,
}

/// A traced process, which is ended when this is dropped.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub pid: i32,
    pub means: Means<'a>,
    /// 1 for the first run, 2 for one made of it.
    pub turn: u8,
    /// The number of the first run's process.
    pub(super) first: i32,
    /// What numbers that differ from start to start differ by in a further run from those of the first: all bits, so that each one shows,
    /// or random ones, so that it shows what is made of them.
    pub(super) mask: u64,
    /// The processors on which this process may run.
    everywhere: Option<CpuSet>,
    pub memory: File,
    pub(super) loader: (u64, u64),
    /// Where the kernel's own library (vDSO) is mapped, and whether the runtime has hidden it.
    pub kernels: Range<u64>,
    pub has_hidden_kernels: bool,
    /// The loader's file, as the kernel names it.
    loader_file: String,
    pub block: Block,
    /// Where the kernel has placed the stack, and where it and the strings are instead, if that is elsewhere.
    pub home: Range<u64>,
    pub away: [Range<u64>; 2],
    /// The strings of the variables.
    pub strings: Vec<Range<u64>>,
    /// Address of the kernel's random bytes, and whether they are other ones than the first run's.
    pub random: u64,
    pub has_other_random: bool,
    /// The block and all behind it, as the loader has left it.
    laid: Vec<u8>,
    pub opened: HashMap<i32, Opened>,
    pub seen: Seen,
    pub secret: Option<Secret>,
    pub variables: Variables,
    /// Addresses of code where breakpoints have been.
    pub planted: BTreeSet<u64>,
    /// Whether a library that is known to forget them asks for time and random bytes.
    is_known: bool,
    /// The stack pointer where it has stopped, and the frame pointer, 0 where that is of no interest.
    pub stack: u64,
    pub frame: u64,
    has_ended: bool,
    /// Whether libc has registered the list of locks that the thread holds.
    pub has_robust_list: bool,
}

pub(super) fn lost(error: std::io::Error) -> Refusal {
    Refusal { reason: Reason::NotObserved, detail: error.to_string() }
}

/// Ends a traced process.
fn end(pid: i32) {
    wait::kill(pid);
    while !matches!(trace::wait(pid), Ok(Stop::Ended) | Err(_)) {}
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            super::spend(clock::of_process(self.pid));
            end(self.pid);
        }
    }
}

impl<'a> Run<'a> {
    /// Takes over a traced child that is about to become the program. Its memory is another one from then on, and the file of its memory
    /// leads to the one that it had when the file was opened: after vfork, perhaps this process's.
    pub(super) fn executed(
        pid: i32,
        means: Means<'a>,
        everywhere: Option<CpuSet>,
        live: &Live,
    ) -> Result<Self, Refusal> {
        let entered = live.enter(pid).map_err(lost);
        let stopped = match trace::wait(pid).map_err(lost)? {
            Stop::Signal(libc::SIGTRAP) => entered,
            Stop::Ended => return refuse(Reason::NotStopped, "exec"),
            _ => refuse(Reason::NotStopped, "exec"),
        };
        if let Err(refusal) = stopped {
            end(pid);
            return Err(refusal);
        }
        Run::new(pid, means, everywhere)
    }

    /// Takes over such a child for an observation.
    pub(super) fn of(
        pid: i32,
        means: Means<'a>,
        everywhere: Option<CpuSet>,
        live: &Live,
    ) -> Result<Self, Refusal> {
        let mut run = Run::executed(pid, means, everywhere, live)?;
        run.prepare()?;
        Ok(run)
    }

    fn new(pid: i32, means: Means<'a>, everywhere: Option<CpuSet>) -> Result<Self, Refusal> {
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let memory = match memory {
            Ok(memory) => memory,
            Err(error) => {
                end(pid);
                return Err(lost(error));
            }
        };
        Ok(Run {
            pid,
            means,
            turn: 1,
            first: pid,
            mask: 0,
            everywhere,
            memory,
            loader: (0, 0),
            kernels: 0..0,
            has_hidden_kernels: false,
            loader_file: String::new(),
            block: Block::default(),
            home: 0..0,
            away: [0..0, 0..0],
            strings: Vec::new(),
            random: 0,
            has_other_random: false,
            laid: Vec::new(),
            opened: HashMap::new(),
            seen: Seen::default(),
            secret: None,
            variables: Variables::default(),
            planted: BTreeSet::new(),
            is_known: false,
            stack: 0,
            frame: 0,
            has_ended: false,
            has_robust_list: false,
        })
    }

    /// At the exec: finds what the kernel has put on the stack.
    pub(super) fn look_at_start(&mut self) -> Result<Told, Refusal> {
        trace::set_options(self.pid).map_err(lost)?;
        let start = Registers::of(self.pid).map_err(lost)?.stack();
        let argc = self.word(start)?;
        let argv = start + 8;
        let envp = argv + 8 * (argc + 1);
        let (name, strings) = (self.word(argv)?, self.word(argv + 8)?);
        let mut at = envp;
        while self.word(at)? != 0 {
            at += 8;
        }
        for place in (envp..at).step_by(8) {
            let string = self.word(place)?;
            self.strings.push(string..self.string_end(string)?);
        }
        self.block = Block { start, argc, argv, envp, auxiliary: at + 8, end: start, name, strings };
        at += 8;
        let mut told = Told::default();
        loop {
            match self.word(at)? {
                0 => {
                    self.block.end = at + 16;
                    return Ok(told);
                }
                AT_SYSINFO_EHDR => told.library = Some(at),
                AT_BASE => told.base = self.word(at + 8)?,
                AT_ENTRY => told.entry = self.word(at + 8)?,
                AT_RANDOM => told.random = self.word(at + 8)?,
                _ => {}
            }
            at += 16;
        }
    }

    /// At the exec: gives both runs the same random bytes. A Python interpreter is not told where the kernel's own library is, so that
    /// reading the clock is a system call; others cannot use that or its data until main (runtime/fork/vdso.c), if it is not sealed.
    fn prepare(&mut self) -> Result<(), Refusal> {
        let Told { base, library, random, .. } = self.look_at_start()?;
        self.seen.exe = exe::of_process(self.pid).map_err(lost)?;
        if let Some(entry) = library.filter(|_| self.means.python.is_some() || vdso::is_sealed()) {
            self.write(entry, &AT_IGNORE.to_ne_bytes())?;
        }
        if random != 0 {
            self.random = random;
            self.write(random, RANDOM)?;
        }
        let maps = self.maps()?;
        self.kernels = kernels::find(&maps);
        let stack = maps.iter().find(|mapping| (mapping.from..mapping.to).contains(&self.block.start));
        self.home = stack.map_or(0..0, |stack| stack.from..stack.to);
        let loader = maps.iter().find(|mapping| mapping.from == base);
        let Some(path) = loader.map(|mapping| mapping.path.clone()).filter(|path| !path.is_empty()) else {
            return refuse(Reason::ForeignLoader, "no loader");
        };
        let end = maps.iter().filter(|mapping| mapping.path == path).map(|mapping| mapping.to).max();
        self.loader = (base, end.unwrap_or(base));
        self.loader_file = path;
        if self.means.python.is_none() && !vdso::is_sealed() {
            kernels::hide(self, &maps)?;
        }
        self.forgo_time()
    }

    /// Makes another run of the same exec with the same layout: a fork of this one before its first instruction. It has so many arguments,
    /// its stack in this place, and its strings elsewhere.
    pub(super) fn fork(&self, arguments: usize, place: Place, live: &Live) -> Result<Run<'a>, Refusal> {
        let (start, code) =
            self.lead_to_call(libc::SYS_clone, &[(libc::CLONE_PARENT | libc::SIGCHLD) as u64])?;
        self.expect(self.pid, Stop::Call, true)?;
        self.expect(self.pid, Stop::Signal(libc::SIGTRAP), true)?;
        let pid = trace::forked(self.pid).map_err(lost)?;
        live.enter(pid).map_err(lost)?;
        let mut other = Run::new(pid, self.means, self.everywhere)?;
        (other.turn, other.loader, other.block, other.random) = (2, self.loader, self.block, self.random);
        other.first = self.pid;
        other.mask = match place {
            Place::Quarters => u64::MAX,
            Place::Anywhere => random(),
        };
        other.kernels = self.kernels.clone();
        other.loader_file.clone_from(&self.loader_file);
        other.strings.clone_from(&self.strings);
        other.home = self.home.clone();
        self.expect(self.pid, Stop::Call, true)?;
        self.expect(pid, Stop::Signal(libc::SIGSTOP), false)?;
        for run in [self, &other] {
            run.write(start.ip(), &code)?;
            start.set(run.pid).map_err(lost)?;
        }
        other.go_away(arguments as u64, place)?;
        Ok(other)
    }

    /// Puts a system call in the place of the next instruction. Returns the registers and the code that were there.
    fn lead_to_call(&self, number: i64, arguments: &[u64]) -> Result<(Registers, Code), Refusal> {
        let start = Registers::of(self.pid).map_err(lost)?;
        let mut code = CALL;
        self.memory.read_exact_at(&mut code, start.ip()).map_err(lost)?;
        self.write(start.ip(), &CALL)?;
        let mut registers = start;
        registers.set_call(number, arguments);
        registers.set(self.pid).map_err(lost)?;
        Ok((start, code))
    }

    /// Has the process forgo the time stamp counter, before its first instruction.
    fn forgo_time(&self) -> Result<(), Refusal> {
        trace::FORGO_TIME.map_or(Ok(()), |call| self.call_first(call, "the clock cannot be hidden"))
    }

    /// Has the process read the time stamp counter as others may.
    pub(super) fn regain_time(&self) -> Result<(), Refusal> {
        trace::REGAIN_TIME.map_or(Ok(()), |call| self.call_first(call, "the clock stays hidden"))
    }

    /// Makes a system call before the first instruction; `failure` says what it means that it fails.
    pub(super) fn call_first(
        &self,
        (number, arguments): (i64, [u64; 3]),
        failure: &str,
    ) -> Result<(), Refusal> {
        match self.result_of(number, &arguments)? {
            0 => Ok(()),
            _ => refuse(Reason::NotObserved, failure),
        }
    }

    /// Makes a system call before the first instruction, and returns its result.
    pub(super) fn result_of(&self, number: i64, arguments: &[u64]) -> Result<i64, Refusal> {
        let (start, code) = self.lead_to_call(number, arguments)?;
        self.expect(self.pid, Stop::Call, true)?;
        self.expect(self.pid, Stop::Call, true)?;
        let Call::Exit { result } = trace::call(self.pid).map_err(lost)? else {
            return refuse(Reason::NotObserved, "a system call has not returned");
        };
        self.write(start.ip(), &code)?;
        start.set(self.pid).map_err(lost)?;
        Ok(result)
    }

    /// Runs the process, unobserved, to this instruction. Returns its stack pointer there.
    pub(super) fn break_at(&mut self, address: u64) -> Result<u64, Refusal> {
        let mut code = BREAKPOINT;
        self.memory.read_exact_at(&mut code, address).map_err(lost)?;
        self.write(address, &BREAKPOINT)?;
        trace::resume_to_signal(self.pid).map_err(lost)?;
        let stop = self.wait()?;
        if stop == Stop::Ended {
            return refuse(Reason::NotObserved, "it ends before main in a cold process");
        }
        let mut registers = Registers::of(self.pid).map_err(lost)?;
        if stop != Stop::Signal(libc::SIGTRAP) || registers.ip() != address + BEHIND_BREAKPOINT {
            return refuse(Reason::NotObserved, format!("{stop:?} in a cold process"));
        }
        self.write(address, &code)?;
        registers.set_ip(address);
        registers.set(self.pid).map_err(lost)?;
        Ok(registers.stack())
    }

    fn expect(&self, pid: i32, stop: Stop, resumed: bool) -> Result<(), Refusal> {
        if resumed {
            trace::resume(pid).map_err(lost)?;
        }
        match trace::wait(pid).map_err(lost)? {
            found if found == stop => Ok(()),
            found => refuse(Reason::NotObserved, format!("{found:?} instead of {stop:?}")),
        }
    }

    /// Moves the process to its tracer's processor: waking a process on another processor takes longer than most calls.
    pub(super) fn stay_together(&self) {
        let mut one = CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        self.put_on(&one);
    }

    /// Moves the process to one processor, a different one for each run, so that the processor's number shows in the results
    /// of constructors. Moves the tracer as well, since the runs are interleaved.
    pub(super) fn place(&self) {
        let Some(all) = &self.everywhere else { return };
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
        let Some(cpu) = allowed.nth(usize::from(self.turn) - 1) else { return };
        let mut one = CpuSet::new();
        one.set(cpu);
        self.put_on(&one);
    }

    /// Moves the process and its tracer to these processors.
    fn put_on(&self, processors: &CpuSet) {
        for process in [None, rustix::process::Pid::from_raw(self.pid)] {
            // If this is refused, the kernel chooses.
            let _ = rustix::thread::sched_setaffinity(process, processors);
        }
    }

    /// Allows the process every processor, before it asks for its affinity.
    pub(super) fn free(&self) {
        if let Some(all) = &self.everywhere {
            // If this is refused, both runs see one processor.
            let _ = rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(self.pid), all);
        }
    }

    /// Runs the process until the runtime takes over.
    pub(super) fn reach_main(&mut self) -> Result<(), Refusal> {
        self.stay_together();
        loop {
            trace::resume(self.pid).map_err(lost)?;
            match self.wait()? {
                Stop::Call => {}
                Stop::Signal(signal) => {
                    self.signal(signal)?;
                    continue;
                }
                Stop::Ended => return refuse(Reason::NotStopped, "it has ended"),
            }
            let Call::Entry { number, args, ip } = trace::call(self.pid).map_err(lost)? else {
                return refuse(Reason::NotObserved, "a system call has returned twice");
            };
            let call = Entry { number, args, ip };
            match args[0] {
                wire::MARK_MAIN if number == libc::SYS_close => {
                    self.restore_random()?;
                    (self.stack, self.frame) = (args[2], args[3]);
                    self.learn(args[1])?;
                    return self.check_request();
                }
                wire::MARK_KNOWN | wire::MARK_KNOWN_END if number == libc::SYS_close => {
                    self.is_known = args[0] == wire::MARK_KNOWN;
                    self.leave_call()?;
                    continue;
                }
                _ => {}
            }
            if number == libc::SYS_close {
                variables::watch(self, args[0] as i32)?;
            }
            // Before the loader opens its first file, it has read the environment, and no other code has run.
            if self.secret.is_none() && matches!(number, libc::SYS_openat | old::SYS_open) {
                self.laid = self.read_block(self.block_size()?)?;
                secret::hide(self, call)?;
                continue;
            }
            secret::guard(self, call)?;
            self.has_hidden_kernels |= kernels::is_hidden_by(self, call);
            self.vary_random(number)?;
            let after = calls::judge(self, call)?;
            self.finish(after)?;
        }
    }

    pub(super) fn wait(&mut self) -> Result<Stop, Refusal> {
        let stop = trace::wait(self.pid).map_err(lost)?;
        self.has_ended = stop == Stop::Ended;
        Ok(stop)
    }

    /// Runs the process to the next entry or exit of a system call, which must come next.
    pub(super) fn leave_call(&mut self) -> Result<(), Refusal> {
        trace::resume(self.pid).map_err(lost)?;
        match self.wait()? {
            Stop::Call => Ok(()),
            Stop::Signal(signal) => refuse(Reason::Signals, format!("signal {signal}")),
            Stop::Ended => refuse(Reason::NotStopped, "it has ended"),
        }
    }

    /// Lets the process make an allowed call, and then does the action for it.
    pub(super) fn finish(&mut self, after: After) -> Result<(), Refusal> {
        self.leave_call()?;
        let Call::Exit { result } = trace::call(self.pid).map_err(lost)? else {
            return refuse(Reason::NotObserved, "a system call has not returned");
        };
        if result == -i64::from(libc::EFAULT) {
            // The call's memory may be hidden only now.
            return refuse(Reason::KeepsArguments, "the system reads what cannot be read");
        }
        match after {
            // From there on, numbers are the runtime's.
            After::Opened(_) if result >= i64::from(wire::RUNTIME_FD) => {
                return refuse(Reason::Limits, format!("{result} descriptors are open before main"));
            }
            After::Opened(what) if result >= 0 => drop(self.opened.insert(result as i32, what)),
            After::Stat { buffer, is_stream } if result == 0 && self.turn == 2 => {
                self.vary_file(buffer, is_stream)?
            }
            After::Number if result > 0 && self.turn == 2 => self.vary_number()?,
            After::Compared => self.seen.compares_files |= result == 0,
            After::Time { buffer } if result == 0 && buffer != 0 => {
                self.seen.is_served = true;
                self.write(buffer, &[0; 16])?
            }
            After::Random { buffer, size, is_libcs } if result > 0 => {
                self.seen.is_served |= !is_libcs;
                // A byte that shows that the call works must not be kept.
                let byte = if size == 1 { self.turn } else { 0x11 };
                self.write(buffer, &vec![byte; result.min(PAGE as i64) as usize])?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles a signal: a fault at the time stamp counter, or at a hidden string.
    pub(super) fn signal(&mut self, signal: i32) -> Result<(), Refusal> {
        if signal == libc::SIGTRAP && variables::arrived(self)? {
            return Ok(());
        }
        if signal != libc::SIGSEGV {
            return refuse(Reason::Signals, format!("signal {signal}"));
        }
        let registers = Registers::of(self.pid).map_err(lost)?;
        let address = trace::fault_address(self.pid).map_err(lost)?;
        if self.secret.is_some_and(|secret| secret.has(address)) {
            return secret::look(self, address);
        }
        if self.kernels.contains(&address) {
            return kernels::answer(self, registers, address);
        }
        let mut code = [0; 4];
        let _ = self.memory.read_at(&mut code, registers.ip());
        if !registers::reads_time(code) {
            return refuse(Reason::Signals, "signal 11");
        }
        // The loader measures its own time, and reveals it to no other code.
        if !self.is_loader(registers.ip()) {
            return refuse(Reason::ReadsClock, "the time stamp counter");
        }
        registers.skip_time(self.pid, code).map_err(lost)
    }

    /// So many bytes of arguments and environment.
    fn read_block(&self, size: usize) -> Result<Vec<u8>, Refusal> {
        let mut bytes = vec![0; size];
        self.memory.read_exact_at(&mut bytes, self.block.start).map_err(lost)?;
        Ok(bytes)
    }

    /// How large arguments and environment are, to the end of the stack, before any of it is hidden.
    fn block_size(&self) -> Result<usize, Refusal> {
        let start = self.block.start;
        let stack = self.maps()?.into_iter().find(|mapping| (mapping.from..mapping.to).contains(&start));
        Ok(stack.map_or(0, |stack| (stack.to - start) as usize))
    }

    /// Refuses a program that has memory which the kernel may take away at any time.
    pub(super) fn check_memory(&self) -> Result<(), Refusal> {
        match self.seen.lazily_freed.is_empty() {
            true => Ok(()),
            false => refuse(Reason::ConstructorCall, format!("madvise({})", libc::MADV_FREE)),
        }
    }

    /// Refuses a program whose constructors have changed arguments or environment, which each start has anew.
    fn check_request(&self) -> Result<(), Refusal> {
        self.check_memory()?;
        let odd = self.seen.names.iter().find(|name| name.contains(&b'='));
        if let Some(name) = odd {
            return refuse(Reason::ReadsEnvironment, format!("'{}'", String::from_utf8_lossy(name)));
        }
        if self.read_block(self.laid.len())? == self.laid {
            return Ok(());
        }
        refuse(Reason::KeepsArguments, "arguments or environment are changed")
    }

    /// Reads the runtime's report from the place where it takes over (`struct hs_observed`).
    pub(super) fn learn(&mut self, told: u64) -> Result<(), Refusal> {
        let [names, length, environ, place, main] = wire::OBSERVED.map(|offset| self.word(told + offset));
        let (names, length) = (names?, length?.min(64 << 10) as usize);
        self.seen.environ = environ?;
        self.seen.place = place?;
        self.seen.main = main?;
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, names).map_err(lost)?;
        let names = bytes.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        names.for_each(|name| self.seen.asked_for(name));
        Ok(())
    }

    pub(super) fn word(&self, at: u64) -> Result<u64, Refusal> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, at).map_err(lost)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Returns where the string at `at` ends, behind its NUL.
    fn string_end(&self, mut at: u64) -> Result<u64, Refusal> {
        loop {
            let mut bytes = [0; 256];
            let found = self.memory.read_at(&mut bytes, at).map_err(lost)?;
            match memchr::memchr(0, &bytes[..found]) {
                Some(end) => return Ok(at + end as u64 + 1),
                None if found == 0 => return refuse(Reason::NotObserved, "a string without an end"),
                None => at += found as u64,
            }
        }
    }

    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.memory.write_all_at(bytes, at).map_err(lost)
    }

    pub(super) fn maps(&self) -> Result<Vec<Mapping>, Refusal> {
        maps::of(self.pid).map_err(lost)
    }

    /// Reads the path at an address.
    pub(super) fn path(&self, at: u64) -> Result<PathBuf, Refusal> {
        if self.secret.is_some_and(|secret| secret.has(at)) {
            // The kernel could not read it there.
            return refuse(Reason::ReadsEnvironment, "a path of the environment is opened");
        }
        let mut bytes = Vec::new();
        while bytes.len() < PATH_MAX {
            let here = at + bytes.len() as u64;
            let size = (PAGE - here % PAGE) as usize;
            let begun = bytes.len();
            bytes.resize(begun + size, 0);
            if self.memory.read_exact_at(&mut bytes[begun..], here).is_err() {
                break;
            }
            if bytes[begun..].contains(&0) {
                return Ok(calls::path_of(&bytes));
            }
        }
        refuse(Reason::ConstructorCall, "a path that cannot be read")
    }

    pub(super) fn is_loader(&self, ip: u64) -> bool {
        (self.loader.0..self.loader.1).contains(&ip)
    }

    /// Returns whether the instruction is the runtime's.
    pub(super) fn is_runtime(&self, ip: u64) -> bool {
        let maps = self.maps().unwrap_or_default();
        maps.iter()
            .any(|mapping| (mapping.from..mapping.to).contains(&ip) && mapping.path.starts_with(RUNTIME))
    }

    /// Returns whether this file is the loader, or the libc that belongs to it.
    pub(super) fn is_libc(&self, path: &str) -> bool {
        maps::is_libc(path, &self.loader_file)
    }

    pub(super) fn is_loader_file(&self, path: &str) -> bool {
        path == self.loader_file
    }

    /// Returns whether a library requests time and random bytes that is known to forget them (runtime/fork/asked.c), or the allocator
    /// of the user's choice does.
    pub(super) fn is_known_library(&self, ip: u64) -> bool {
        self.is_known || self.is_allocators(ip)
    }

    /// Returns whether the instruction is the allocator's, or libc's and the allocator has called it: the first address on the stack
    /// that is in neither libc nor the runtime.
    fn is_allocators(&self, ip: u64) -> bool {
        const WORDS: u64 = 64;
        let Some(allocator) = self.means.allocator.and_then(|path| path.canonicalize().ok()) else {
            return false;
        };
        let (Ok(maps), Ok(registers)) = (self.maps(), Registers::of(self.pid)) else { return false };
        let (stack, signature) = (registers.stack(), registers::signature(self.pid));
        let words = (0..WORDS).map_while(|index| self.word(stack + 8 * index).ok());
        let words = words.map(|word| word & !signature);
        let code = std::iter::once(ip).chain(words).filter_map(|address| {
            let has = |mapping: &&Mapping| (mapping.from..mapping.to).contains(&address);
            maps.iter().find(has).filter(|mapping| mapping.access[2] == b'x')
        });
        let is_between = |path: &str| {
            self.is_libc(path) || maps::is_libpthread(path, &self.loader_file) || path.starts_with(RUNTIME)
        };
        let caller = code.map(|mapping| mapping.path.as_str()).find(|path| !is_between(path));
        caller.is_some_and(|path| Path::new(path) == allocator)
    }

    /// Returns whether the path is one of hotstart's own files in a zygote, and no part of the tool.
    pub(super) fn is_ours(&self, path: &Path) -> bool {
        path == Path::new(&format!("/proc/self/fd/{}", wire::RUNTIME_FD))
            || Some(path) == self.means.allocator
    }

    /// Returns whether an instruction is libc's or the loader's.
    pub(super) fn is_libcs(&self, ip: u64) -> bool {
        if self.is_loader(ip) {
            return true;
        }
        let Ok(maps) = self.maps() else { return false };
        let owner = maps::owners(&maps);
        let at = maps.iter().position(|mapping| (mapping.from..mapping.to).contains(&ip));
        // By `syscall` anybody makes any call.
        let is_anybodys = self.variables.syscall.is_some_and(|(from, to)| (from..=to).contains(&ip));
        !is_anybodys
            && at.is_some_and(|at| {
                self.is_libc(owner[at]) || maps::is_libpthread(owner[at], &self.loader_file)
            })
    }

    /// Returns whether libc has its data at this address.
    pub(super) fn is_libc_data(&self, address: u64) -> bool {
        let Ok(maps) = self.maps() else { return false };
        let owner = maps::owners(&maps);
        let at = maps.iter().position(|mapping| (mapping.from..mapping.to).contains(&address));
        at.is_some_and(|at| maps[at].access[1] == b'w' && self.is_libc(owner[at]))
    }

    /// Records what is behind a path now. If the path does not exist, records its first missing part.
    pub(super) fn watch(&mut self, path: &Path, aspect: Aspect) {
        let mut first = path;
        if aspect != Aspect::Content && std::fs::symlink_metadata(path).is_err() {
            let is_missing = |path: &&Path| std::fs::symlink_metadata(path).is_err();
            first = path.ancestors().take_while(is_missing).last().unwrap_or(path);
        }
        let name = first.as_os_str().to_owned();
        if aspect == Aspect::File && self.seen.known.contains(&(name.clone(), Aspect::Stat)) {
            return;
        }
        if self.seen.known.insert((name, aspect)) {
            self.seen.files.watch_for(first, aspect);
        }
    }
}
