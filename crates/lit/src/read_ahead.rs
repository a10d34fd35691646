//! Prefetches the files of coming tests from disk, where they are not in memory.
//!
//! After a boot, a checkout or a large build each test waits for its own file and does nothing else meanwhile. The next files are
//! known long before. Prefetching is adaptive: a test that was slow to prepare wakes a thread, which asks the kernel for the next
//! files until enough in a row are in memory. So a run whose files are in memory pays for two clock readings a test.
//!
//! The thread opens files but takes nothing from them: a test's file is read at its turn.

use std::fs::File;
use std::io::IoSliceMut;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use hotstart_model::JobId;
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

use crate::ahead::open_regular;
use crate::suite::Test;

/// A test whose preparation took longer may have waited for a disk: from memory it takes 20 to 60 µs, and reading from a
/// solid-state disk takes at least 50 µs.
const SLOW: Duration = Duration::from_micros(120);

/// Most files to request at once.
const FILES: u32 = 64;

/// Number of files in a row in memory after which the rest is assumed to be there too.
const PRESENT: u32 = 16;

/// Bytes to request of each file; the kernel's own read-ahead serves larger files.
const BYTES: u64 = 256 << 10;

/// Prefetches the files of one run.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    tests: Arc<[Test]>,
    /// The run's jobs, as places in `tests`.
    selected: Arc<[u32]>,
    reader: OnceLock<Option<Reader>>,
}

#[derive(Debug)]
struct Reader {
    /// `None` tells the thread to end.
    slow: Option<SyncSender<JobId>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    pub(crate) fn new(tests: Arc<[Test]>, selected: Arc<[u32]>) -> Self {
        ReadAhead { tests, selected, reader: OnceLock::new() }
    }

    /// Records the time that preparing a job took. The job's test is a file.
    pub(crate) fn prepared(&self, job: JobId, took: Duration) {
        if took < SLOW {
            return;
        }
        let reader = self.reader.get_or_init(|| Reader::start(self.tests.clone(), self.selected.clone()));
        if let Some(Reader { slow: Some(slow), .. }) = reader {
            // A thread that is at work need not be woken.
            let _ = slow.try_send(job);
        }
    }
}

impl Reader {
    /// Returns `None` if no thread can be started: then nothing is prefetched.
    fn start(tests: Arc<[Test]>, selected: Arc<[u32]>) -> Option<Self> {
        let (slow, noticed) = sync_channel(1);
        let work = move || serve(&noticed, &tests, &selected);
        let thread = std::thread::Builder::new().name("read-ahead".to_owned()).spawn(work).ok()?;
        Some(Reader { slow: Some(slow), thread: Some(thread) })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.slow = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(noticed: &Receiver<JobId>, tests: &[Test], selected: &[u32]) {
    // Files up to here were requested, or found in memory.
    let mut done = 0;
    while let Ok(JobId(slow)) = noticed.recv() {
        let from = done.max(slow + 1).min(selected.len() as u32);
        let coming = &selected[from as usize..];
        let path = |place: &u32| tests[*place as usize].source_path();
        done = from + ask_for(coming.iter().take(FILES as usize).map(path), request);
    }
}

/// Requests files until [`PRESENT`] in a row were in memory. Returns the number of files checked. `request` returns whether a
/// file was in memory.
fn ask_for<P: AsRef<Path>>(files: impl Iterator<Item = P>, request: impl Fn(&Path) -> bool) -> u32 {
    let (mut looked_at, mut present) = (0, 0);
    for file in files {
        looked_at += 1;
        present = if request(file.as_ref()) { present + 1 } else { 0 };
        if present == PRESENT {
            break;
        }
    }
    looked_at
}

/// Has the kernel read the beginning of a file, without waiting. Returns true if it is in memory, or is no regular file that opens.
fn request(path: &Path) -> bool {
    let Some(file) = open_regular(path) else { return true };
    let is_present = is_in_memory(&file);
    if !is_present {
        let _ = rustix::fs::fadvise(&file, 0, BYTES.try_into().ok(), Advice::WillNeed);
    }
    is_present
}

/// Returns whether its first byte can be read without waiting.
fn is_in_memory(file: &File) -> bool {
    let mut byte = [0];
    let read = rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT);
    read != Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use std::cell::RefCell;

    use super::*;

    /// Returns the number of files checked if those at these places are not in memory.
    fn looked_at(count: u32, absent: &[u32]) -> u32 {
        let seen = RefCell::new(Vec::new());
        let looked_at = ask_for((0..count).map(|n| n.to_string()), |path| {
            let place: u32 = path.to_str().unwrap().parse().unwrap();
            seen.borrow_mut().push(place);
            !absent.contains(&place)
        });
        assert_eq!(seen.into_inner(), (0..looked_at).collect::<Vec<_>>());
        looked_at
    }

    #[test]
    fn it_goes_on_as_long_as_files_are_missing_now_and_then() {
        assert_eq!(looked_at(60, &[]), PRESENT);
        assert_eq!(looked_at(5, &[]), 5);
        assert_eq!(looked_at(60, &[3]), 4 + PRESENT);
        assert_eq!(looked_at(60, &[3, 3 + PRESENT]), 4 + 2 * PRESENT);
        assert_eq!(looked_at(60, &(0..60).collect::<Vec<_>>()), 60);
    }

    #[test]
    fn a_file_that_was_dropped_from_memory_is_read_again() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("test.ll");
        std::fs::write(&path, vec![b'x'; 100_000]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        assert!(request(&path), "what was just written is in memory");
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        // The first check may itself start the read, so check only once.
        if request(&path) {
            // Past the test harness, which keeps the output of tests that pass.
            std::io::stderr()
                .write_all(b"not tried: this file system keeps what it was asked to drop\n")
                .unwrap();
            return;
        }
        let read = || {
            let mut last = [0];
            rustix::io::preadv2(&file, &mut [IoSliceMut::new(&mut last)], 99_999, ReadWriteFlags::NOWAIT)
        };
        while read() == Err(Errno::AGAIN) {
            std::thread::yield_now();
        }
        assert!(request(&path));
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(request(&dir.path().join("absent")));
        assert!(request(dir.path()));
        assert!(request(Path::new("/dev/zero")));
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert!(request(&pipe));
    }
}
