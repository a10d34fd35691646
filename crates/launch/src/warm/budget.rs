//! How much memory all templates own together. Each holds its share for as long as it exists, whoever drops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sum of all shares, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Budget(Arc<AtomicU64>);

/// What one template owns; no longer counted when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Budget {
    /// Counts `bytes` until the share is dropped.
    pub(crate) fn take(&self, bytes: u64) -> Share {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Share { used: Arc::clone(&self.0), bytes }
    }

    /// What is taken now.
    pub(crate) fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Counts `bytes` from now on.
    pub(crate) fn resize(&mut self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_share_is_free_again() {
        let budget = Budget::default();
        let (first, second) = (budget.take(3), budget.take(4));
        assert_eq!(budget.used(), 7);
        drop(first);
        assert_eq!(budget.used(), 4);
        let mut second = second;
        second.resize(9);
        assert_eq!(budget.used(), 9);
        drop(second);
        assert_eq!(budget.used(), 0);
    }
}
