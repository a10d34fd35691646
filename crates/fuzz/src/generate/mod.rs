//! Sequences of requests, drawn at random from a seed.

mod catalogue;
mod draw;
mod random;
mod sequence;

pub use catalogue::{Act, Catalogue, Role};
pub use draw::{Draw, Known};
pub use random::Random;
pub use sequence::{Input, Limited, Request, Sequence};
