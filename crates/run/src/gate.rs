//! Parallelism groups: limits how many jobs of a group run at once.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};

/// Counts running jobs by group.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    running: Mutex<HashMap<String, u32>>,
    left: Condvar,
}

/// A place in a group. Dropping it frees the place.
pub(crate) struct Place<'a> {
    gate: &'a Gate,
    group: String,
}

impl Gate {
    /// Waits for a place in `group`, which has `size` of them.
    pub(crate) fn enter(&self, group: String, size: u32) -> Place<'_> {
        let mut running = self.running.lock().expect("no panic while locked");
        while running.get(&group).copied().unwrap_or(0) >= size.max(1) {
            running = self.left.wait(running).expect("no panic while locked");
        }
        *running.entry(group.clone()).or_default() += 1;
        Place { gate: self, group }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut running = self.gate.running.lock().expect("no panic while locked");
        if let Some(count) = running.get_mut(&self.group) {
            *count -= 1;
        }
        self.gate.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn no_more_than_the_size_are_inside() {
        let (gate, inside, most) = (Gate::default(), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _place = gate.enter("g".to_owned(), 2);
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 2);
    }
}
