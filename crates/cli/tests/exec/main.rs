//! `hotstart exec` and its server from a build's point of view: the real binary, the real client, real processes.

mod ahead;
mod bench;
mod build;
mod clang;
mod compare;
mod compdb;
mod death;
mod nested;
mod parity;
mod refusal;
mod server;
mod systems;
mod wrappers;
