//! Evaluated configs are used again, but never after a change to anything that they depend on.

mod changes;
mod place;
mod refusals;
