//! Address layouts: where the kernel has placed the memory of a process.
//!
//! All starts from one zygote have its layout. In cold starts it differs, and a test may be there to find that: it runs a tool twice, and
//! compares what depends on addresses, as an order by pointers. So a job's consecutive starts of a tool come from zygotes of their own.

/// Zygotes for each key, from which the starts of a job come in turn.
pub(crate) const LAYOUTS: usize = 2;

/// Which of them serves a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout(u8);

impl Layout {
    /// Returns the layout for a start of a tool that the job has started warm so often before.
    pub(crate) fn after(starts: usize) -> Layout {
        Layout((starts % LAYOUTS) as u8)
    }

    /// Returns what tells it from others in a key.
    pub(crate) fn byte(self) -> u8 {
        self.0
    }
}

/// Returns what a zygote's key has in common with those of the other layouts.
pub(crate) fn without(key: &[u8]) -> &[u8] {
    &key[..key.len().saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_starts_have_different_layouts() {
        for starts in 0..2 * LAYOUTS {
            assert_ne!(Layout::after(starts), Layout::after(starts + 1));
        }
        assert_eq!(Layout::after(0), Layout::default());
    }
}
