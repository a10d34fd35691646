//! Forks, mappings and allocations for experiments. `crate::probe` describes their purpose.
//!
//! Children that are forked here run in a copy of a process that may have threads: until they exec or end they call
//! only what is async-signal-safe (memory accesses, `clock_gettime`, `_exit`), and allocate nothing.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::probe::{Fault, Faulted, Filled, StartCost, Way, Workers};
use crate::sys;
use crate::sys::shared::Table;

/// Exit code of a child that could not exec.
const NO_EXEC: i32 = 127;

fn last_error<T>() -> io::Result<T> {
    Err(io::Error::last_os_error())
}

/// Starts `program` once, and waits for it.
pub(crate) fn start(way: Way, program: &Path) -> io::Result<StartCost> {
    let program = CString::new(program.as_os_str().as_bytes())?;
    let begun = Instant::now();
    let pid = match way {
        Way::PosixSpawn => posix_spawn(&program),
        Way::Vfork => vfork_exec(&program),
        Way::ForkExec => fork_child(|| exec(&program)),
        Way::Fork => fork_child(|| 0),
    }?;
    let call = begun.elapsed();
    let (status, _) = sys::wait::reap(pid);
    let ended = begun.elapsed();
    if status.success() { Ok(StartCost { call, ended }) } else { Err(io::Error::other("the child failed")) }
}

fn posix_spawn(program: &CString) -> io::Result<i32> {
    let (argv, envp) = ([program.as_ptr().cast_mut(), ptr::null_mut()], [ptr::null_mut()]);
    let mut pid = 0;
    // SAFETY: both arrays are null-terminated and point to strings that live during the call, which modifies none.
    let errno = unsafe {
        libc::posix_spawn(&mut pid, program.as_ptr(), ptr::null(), ptr::null(), argv.as_ptr(), envp.as_ptr())
    };
    if errno == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// Becomes `program`. Returns the exit code if that fails. Async-signal-safe.
fn exec(program: &CString) -> i32 {
    let (argv, envp) = ([program.as_ptr(), ptr::null()], [ptr::null()]);
    // SAFETY: both arrays are null-terminated and point to strings that live until the process is replaced.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    NO_EXEC
}

/// Forks; the child ends with the code that `work` returns. `work` must be async-signal-safe and must not unwind.
fn fork_child(work: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: the child runs only `work`, which is async-signal-safe, and ends without returning from here.
    match unsafe { libc::fork() } {
        -1 => last_error(),
        0 => {
            let code = work();
            // SAFETY: _exit has no precondition and runs nothing of this process's.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(pid),
    }
}

extern "C" fn exec_in_child(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `vfork_exec` passes a CString, which lives while it waits for this child to exec or end.
    exec(unsafe { &*argument.cast::<CString>() })
}

/// Does what vfork does. vfork itself cannot be called from Rust, since it returns twice into the same frame.
fn vfork_exec(program: &CString) -> io::Result<i32> {
    let mut stack = vec![0u128; 2048];
    let top = stack.as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let argument = ptr::from_ref(program).cast_mut().cast();
    // SAFETY: the child has a stack of its own, aligned to 16 bytes and large enough for an execve; it shares this
    // memory, but this thread is stopped until the child has execed or ended, and the child only calls execve.
    let pid = unsafe { libc::clone(exec_in_child, top.cast(), flags, argument) };
    drop(stack);
    if pid == -1 { last_error() } else { Ok(pid) }
}

/// A private mapping.
#[derive(Debug)]
pub(crate) struct Region {
    base: *mut u8,
    length: usize,
    writable: bool,
}

// SAFETY: the mapping is memory of this process; each experiment gives a region to one thread at a time, and the only
// accesses are single volatile bytes.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps zeroed memory; `huge` chooses the page size.
    pub(crate) fn anonymous(length: usize, huge: Option<bool>) -> io::Result<Region> {
        // Huge pages need aligned space: map more, keep the aligned part, and return the rest.
        let slack = if huge == Some(true) { HUGE_PAGE } else { 0 };
        let region = Region::map(length + slack, true, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
        let region = if slack > 0 { region.aligned(length) } else { region };
        let advice = match huge {
            Some(true) => libc::MADV_HUGEPAGE,
            Some(false) => libc::MADV_NOHUGEPAGE,
            None => return Ok(region),
        };
        // A kernel without huge pages refuses both. Then all pages are small, which the count of faults shows.
        region.advise(advice).ok();
        Ok(region)
    }

    fn file(fd: BorrowedFd<'_>, length: usize) -> io::Result<Region> {
        if rustix::fs::fstat(fd)?.st_size < length as i64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Region::map(length, false, libc::MAP_PRIVATE, fd.as_raw_fd())
    }

    fn map(length: usize, writable: bool, flags: i32, fd: i32) -> io::Result<Region> {
        let prot = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, prot, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            last_error()
        } else {
            Ok(Region { base: base.cast(), length, writable })
        }
    }

    /// Returns the part that begins at a huge page's boundary, and unmaps the parts before and after it.
    fn aligned(self, length: usize) -> Region {
        let before = self.base.align_offset(HUGE_PAGE).min(self.length - length);
        let after = self.length - length - before;
        // SAFETY: both offsets lie within the mapping, by the line above.
        let (base, end) = unsafe { (self.base.add(before), self.base.add(before + length)) };
        for (from, bytes) in [(self.base, before), (end, after)] {
            if bytes > 0 {
                // SAFETY: the range is a part of this mapping, page-aligned, to which nobody refers.
                unsafe { libc::munmap(from.cast(), bytes) };
            }
        }
        let writable = self.writable;
        std::mem::forget(self);
        Region { base, length, writable }
    }

    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the range is this mapping; the advices used change page sizes or make pages present, no contents.
        if unsafe { libc::madvise(self.base.cast(), self.length, advice) } == 0 {
            Ok(())
        } else {
            last_error()
        }
    }

    /// Touches each small page once, by a write if it is writable. Async-signal-safe.
    pub(crate) fn touch_all(&self) {
        for offset in (0..self.length).step_by(SMALL_PAGE) {
            // SAFETY: the offset lies within the mapping, which allows this access.
            unsafe {
                let byte = self.base.add(offset);
                if self.writable {
                    byte.write_volatile(1);
                } else {
                    byte.read_volatile();
                }
            }
        }
    }

    fn fill(&self, value: u8) {
        // SAFETY: the mapping is writable and of this length; no reference to it exists.
        unsafe { ptr::write_bytes(self.base, value, self.length) };
        std::hint::black_box(self.base);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and nobody refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// The step in which pages are touched. Larger pages are touched more often than needed.
const SMALL_PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

/// Makes the pages of a worker's region present.
fn work(kind: &Fault<'_>, region: &Region) {
    match kind {
        // Kernels before 5.14 refuse it. Then no page is made present, which the count of faults shows.
        Fault::Bulk => drop(region.advise(libc::MADV_POPULATE_WRITE)),
        _ => region.touch_all(),
    }
}

/// Returns nanoseconds of the monotonic clock. Async-signal-safe.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

pub(crate) fn fault(kind: Fault<'_>, workers: Workers, bytes: usize) -> io::Result<Faulted> {
    let (Workers::Threads(count) | Workers::Processes(count)) = workers;
    let region = || match kind {
        Fault::Fresh | Fault::Bulk | Fault::Copied => Region::anonymous(bytes, Some(false)),
        Fault::FreshHuge => Region::anonymous(bytes, Some(true)),
        Fault::File(fd) => Region::file(fd, bytes),
    };
    let regions: Vec<Region> = (0..count).map(|_| region()).collect::<io::Result<_>>()?;
    if matches!(kind, Fault::Copied) {
        regions.iter().for_each(Region::touch_all);
    }
    match workers {
        Workers::Threads(_) => by_threads(kind, &regions),
        Workers::Processes(_) => by_processes(kind, &regions),
    }
}

fn by_threads(kind: Fault<'_>, regions: &[Region]) -> io::Result<Faulted> {
    // A child shares the pages, so the first write to each makes a copy.
    let sharer = matches!(kind, Fault::Copied).then(|| fork_child(wait_for_end)).transpose()?;
    let before = own_faults();
    let barrier = Barrier::new(regions.len());
    let times: Vec<(i64, i64)> = std::thread::scope(|scope| {
        let work_on = |region| {
            barrier.wait();
            let begun = now();
            work(&kind, region);
            (begun, now())
        };
        let threads: Vec<_> = regions.iter().map(|region| scope.spawn(move || work_on(region))).collect();
        threads.into_iter().map(|thread| thread.join().expect("experiments do not panic")).collect()
    });
    let faults = own_faults() - before;
    if let Some(pid) = sharer {
        sys::wait::kill(pid);
        sys::wait::reap(pid);
    }
    Ok(Faulted { elapsed: span(&times), faults })
}

/// Waits for a signal that ends the process. Async-signal-safe.
fn wait_for_end() -> i32 {
    loop {
        // SAFETY: pause has no precondition.
        unsafe { libc::pause() };
    }
}

/// Runs workers as processes. Slots of the shared table: a gate, then begin, end and faults of each worker.
fn by_processes(kind: Fault<'_>, regions: &[Region]) -> io::Result<Faulted> {
    let memory = rustix::fs::memfd_create("hotstart-probe", rustix::fs::MemfdFlags::CLOEXEC)?;
    let slots = 1 + regions.len() * 3;
    rustix::fs::ftruncate(&memory, Table::bytes(slots) as u64)?;
    let table = Table::map(&memory, slots)?;
    let slots = table.slots();
    let mut children = Vec::with_capacity(regions.len());
    let mut failure = None;
    for (index, region) in regions.iter().enumerate() {
        let slots = &slots[1 + index * 3..];
        match fork_child(|| work_in_child(&kind, region, &table.slots()[0], slots)) {
            Ok(pid) => children.push(pid),
            Err(error) => failure = Some(error),
        }
    }
    slots[0].store(1, Ordering::SeqCst);
    for pid in children {
        sys::wait::reap(pid);
    }
    if let Some(error) = failure {
        return Err(error);
    }
    let value = |slot: usize| slots[slot].load(Ordering::SeqCst);
    let times: Vec<(i64, i64)> = (0..regions.len()).map(|n| (value(1 + n * 3), value(2 + n * 3))).collect();
    let faults = (0..regions.len()).map(|n| value(3 + n * 3) as u64).sum();
    Ok(Faulted { elapsed: span(&times), faults })
}

/// Async-signal-safe.
fn work_in_child(kind: &Fault<'_>, region: &Region, gate: &AtomicI64, slots: &[AtomicI64]) -> i32 {
    while gate.load(Ordering::SeqCst) == 0 {
        // SAFETY: sched_yield has no precondition.
        unsafe { libc::sched_yield() };
    }
    let before = own_faults();
    slots[0].store(now(), Ordering::SeqCst);
    work(kind, region);
    slots[1].store(now(), Ordering::SeqCst);
    slots[2].store((own_faults() - before) as i64, Ordering::SeqCst);
    0
}

fn span(times: &[(i64, i64)]) -> Duration {
    let begun = times.iter().map(|t| t.0).min().unwrap_or(0);
    let ended = times.iter().map(|t| t.1).max().unwrap_or(0);
    Duration::from_nanos(ended.saturating_sub(begun).max(0) as u64)
}

/// Returns the minor faults of this process so far. Async-signal-safe.
fn own_faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writes.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: a zeroed rusage is a valid one, and getrusage writes only valid values.
    unsafe { usage.assume_init() }.ru_minflt as u64
}

pub(crate) fn fill(bytes: usize, huge: bool) -> io::Result<Filled> {
    let region = Region::anonymous(bytes, Some(huge))?;
    let before = own_faults();
    let begun = Instant::now();
    region.fill(1);
    let first = begun.elapsed();
    let faults = own_faults() - before;
    let begun = Instant::now();
    region.fill(2);
    Ok(Filled { first, again: begun.elapsed(), faults })
}

pub(crate) fn allocate(threads: usize, count: usize) -> Duration {
    let barrier = Barrier::new(threads);
    let times: Vec<(i64, i64)> = std::thread::scope(|scope| {
        let run = |seed: usize| {
            barrier.wait();
            let begun = now();
            churn(seed as u64, count);
            (begun, now())
        };
        let threads: Vec<_> = (0..threads).map(|seed| scope.spawn(move || run(seed))).collect();
        threads.into_iter().map(|thread| thread.join().expect("experiments do not panic")).collect()
    });
    span(&times)
}

/// Blocks alive at a time in each thread.
const ALIVE: usize = 4096;

fn churn(seed: u64, count: usize) {
    let mut blocks = vec![ptr::null_mut::<u8>(); ALIVE];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (place, size) = ((state >> 40) as usize % ALIVE, 16 + (state >> 20) as usize % 1024);
        // SAFETY: each pointer is null or was given by malloc and is freed once; a block is written to only within
        // its size, and only if malloc gave one.
        unsafe {
            libc::free(blocks[place].cast());
            blocks[place] = libc::malloc(size).cast();
            if !blocks[place].is_null() {
                blocks[place].write_volatile(1);
            }
        }
    }
    for block in blocks {
        // SAFETY: as above.
        unsafe { libc::free(block.cast()) };
    }
}
