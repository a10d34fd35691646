//! Tests the installed FileChecks while tests run.
//!
//! One thread checks now and then whether a FileCheck was used often enough. A test that has begun is completed after the
//! run, so that the next run has its result; a run of few tests never begins one.

use std::sync::Condvar;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use hotstart_shell::FileChecks;

/// The time between two checks.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `run`, and meanwhile tests the FileChecks that were used often enough.
pub fn while_testing<R>(filechecks: Option<&FileChecks>, run: impl FnOnce() -> R) -> R {
    let Some(filechecks) = filechecks else { return run() };
    let (is_over, ended) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        let name = "filecheck".to_owned();
        // Without a thread, no FileCheck is trusted.
        let tester = thread::Builder::new().name(name).spawn_scoped(scope, || {
            let mut over = is_over.lock().expect("no panic while locked");
            while !*over {
                drop(over);
                filechecks.test_pending(&|| false);
                over = is_over.lock().expect("no panic while locked");
                if !*over {
                    over = ended.wait_timeout(over, LOOK).expect("no panic while locked").0;
                }
            }
        });
        let result = run();
        *is_over.lock().expect("no panic while locked") = true;
        ended.notify_all();
        drop(tester);
        result
    })
}
