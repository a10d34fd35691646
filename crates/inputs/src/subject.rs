//! What is traced, which says what may matter to it.

use serde::{Deserialize, Serialize};

/// What is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A test.
    #[default]
    Test,
    /// A start of a program whose source is known, so that the time, random numbers and the like do not matter to it. It may look in vain
    /// for the name service's cache.
    Known,
    /// A start of a program that is to be the same in each working directory, but for files there, and on each machine.
    Anywhere,
}
