//! The data that hotstart's stages exchange.
//!
//! Plain data and two traits, no input or output: every other crate may import this one, and this one imports none of
//! them. `lit` describes a test as a [`Script`], `shell` answers with a [`Transcript`], `lit` turns that into an
//! [`Outcome`], and `run` announces it as an [`Event`], which `report` shows. A later stage sees nothing else of the
//! earlier ones.
#![forbid(unsafe_code)]

mod cold_tools;
mod environment;
mod event;
mod job;
mod outcome;
mod script;
mod transcript;

pub use cold_tools::ColdTools;
pub use environment::Environment;
pub use event::{Diagnostic, Event, Events, RunEnd, Severity, StartCounts};
pub use job::{Elsewhere, JobId, JobSource, LikelyFailure, RunScript, Work};
pub use outcome::{LineTime, MetricValue, Outcome, Verdict, VerdictKind, VerdictTable};
pub use script::{Command, Dialect, ExternalShell, Interpreter, Program, Script, Wrap};
pub use transcript::{Again, Captured, Fault, RedirectedOutput, RunBy, Stage, Status, Step, Transcript};
