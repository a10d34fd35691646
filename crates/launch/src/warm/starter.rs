//! The thread that starts zygotes. It is the real parent of these, and so of every fork (clone with CLONE_PARENT).
//!
//! PR_SET_PDEATHSIG fires when the parent *thread* ends, so this thread must live as long as the process does.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

type Task = Box<dyn FnOnce() + Send>;

static TASKS: OnceLock<Option<Sender<Task>>> = OnceLock::new();

fn tasks() -> Option<&'static Sender<Task>> {
    let start = || {
        let (sender, receiver) = channel::<Task>();
        let thread = std::thread::Builder::new().name("zygotes".into()).stack_size(256 << 10);
        thread.spawn(move || receiver.into_iter().for_each(|task| task())).ok()?;
        Some(sender)
    };
    TASKS.get_or_init(start).as_ref()
}

/// Has the thread do `work`, and waits for its result; `None` if the thread could not be started.
pub(crate) fn ask<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let (sender, receiver) = channel();
    tell(move || {
        // The receiver waits below until this is sent.
        let _ = sender.send(work());
    });
    receiver.recv().ok()
}

/// Has the thread do `work` later.
pub(crate) fn tell(work: impl FnOnce() + Send + 'static) {
    if let Some(tasks) = tasks() {
        // The thread ends only with the process.
        let _ = tasks.send(Box::new(work));
    }
}
