//! Evaluated configs are used again, and never where anything that they depend on has changed.

mod changes;
mod place;
mod refusals;
