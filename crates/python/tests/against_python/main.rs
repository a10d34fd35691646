//! Compares everything in this crate with a real Python: for all characters, and for generated inputs.

mod characters;
mod driver;
mod files;
mod locale;
mod patterns;
mod re;
mod strings;
