//! Scripts that run on another machine: which ones can, the files that they need, and the process there that runs them.
//!
//! An action is this program with a batch of scripts (`order`). On the worker it makes a root directory in which every file has
//! the path that it has here (`root`), and runs the scripts with warm tools (`worker`). So tests see the same absolute paths,
//! libraries and loader, and nothing else: a file that was not sent is missing, and the test runs here. `farm` joins this to the
//! network and to the scheduler.
#![forbid(unsafe_code)]

mod digests;
mod farm;
mod files;
mod needs;
mod order;
mod root;
mod words;
mod worker;

pub use farm::{Cluster, FarmSettings};
pub use hotstart_remote::{Client, Endpoint, Settings, Shelf, Tls};

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// First argument by which the binary recognizes that it runs a batch.
const BATCH: &str = "__hotstart-batch";
/// Second argument: makes the root, and runs this program in it.
const ENTER: &str = "enter";
/// Second argument: runs the batch.
const RUN: &str = "run";

/// The directory of hotstart's own files, in the input root and in the root that is made of it.
const OWN: &str = "hotstart";
/// The program in it.
const PROGRAM: &str = "program";
/// The scripts.
const ORDER: &str = "order.json";
/// The results.
const ANSWER: &str = "answer.json";
/// The directory with the files of this machine, by their paths.
const FILES: &str = "files";
/// The root directory that a worker makes.
const MADE: &str = "root";

/// Exit code: some scripts did not pass, so that the result should not be stored.
const NOT_ALL_PASSED: u8 = 1;
/// Exit code: the worker cannot run batches at all.
const UNFIT: u8 = 90;
/// Exit code: this batch could not be run.
const FAULT: u8 = 91;

/// Runs the process that a worker starts. Call it in the binary's `main` before any thread is started, with the process's arguments. `None`
/// if the arguments are not those of a batch; otherwise the exit code.
pub fn enter(args: &[OsString]) -> Option<u8> {
    let [_, first, second] = args else { return None };
    if first != OsStr::new(BATCH) {
        return None;
    }
    let (result, code) = match second.to_str() {
        Some(ENTER) => (root::enter(Path::new(".")).map(|never| match never {}), UNFIT),
        Some(RUN) => (worker::run(&Path::new("/").join(OWN)), FAULT),
        _ => (Err("unknown arguments".to_owned()), FAULT),
    };
    Some(result.unwrap_or_else(|error| {
        // The worker's log is the only place for it.
        let _ = rustix::io::write(std::io::stderr(), format!("hotstart: {error}\n").as_bytes());
        code
    }))
}
