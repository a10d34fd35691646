//! Statistics of plain numbers: nothing here knows what was measured.

pub mod drift;
pub mod interval;
pub mod random;
pub mod summary;

pub use drift::Drift;
pub use interval::Interval;
pub use summary::Summary;
