//! Tests the installed FileChecks while tests run.
//!
//! One thread waits for a FileCheck that was used often enough. A test that has begun is completed after the run, so that the next
//! run has its result, unless the user has interrupted the run; a run of few tests never begins one.

use std::sync::Arc;
use std::thread;

use hotstart_shell::FileChecks;

use crate::interrupt::Interrupt;
use crate::watch::Watch;

/// Ends the testing when it is dropped, also by a panic: the thread would otherwise wait for ever.
struct Testing<'f>(&'f FileChecks);

impl Drop for Testing<'_> {
    fn drop(&mut self) {
        self.0.end_testing();
    }
}

/// Runs `run`, and meanwhile tests the FileChecks that were used often enough.
pub fn while_testing<R>(
    filechecks: Option<&FileChecks>,
    interrupt: &Interrupt,
    run: impl FnOnce() -> R,
) -> R {
    let Some(filechecks) = filechecks else { return run() };
    let watch = Arc::new(Watch::default());
    let _watched = watch.over(filechecks.group(), None);
    interrupt.reaches(&watch);
    thread::scope(|scope| {
        filechecks.begin_testing();
        let _testing = Testing(filechecks);
        let name = "filecheck".to_owned();
        let tester = thread::Builder::new().name(name).spawn_scoped(scope, || filechecks.test_pending());
        if tester.is_err() {
            // Nobody waits for a test that does not come. No FileCheck is trusted.
            filechecks.end_testing();
        }
        run()
    })
}
