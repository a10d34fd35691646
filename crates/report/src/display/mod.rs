//! The display while tests run, apart from result lines: a header, and on request a progress bar.
//!
//! One trait has four implementations: lit's three displays and hotstart's own (`live`).

mod live;
mod plain;
mod predictor;
mod simple_bar;
mod terminal_bar;

use std::time::Instant;

pub(crate) use predictor::Predictor;
pub use terminal_bar::Terminal;

use crate::{Levels, Sink};

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress<'a> {
    /// From 0 to 1.
    pub fraction: f64,
    /// The test that ended last.
    pub name: &'a str,
    /// Whether that one failed.
    pub failed: bool,
    /// The worker that ran it.
    pub worker: usize,
}

/// Draws around the result lines.
pub(crate) trait Display: Send {
    /// Returns whether it needs progress, which costs a prediction.
    fn shows_progress(&self) -> bool {
        true
    }

    /// The run begins.
    fn begin(&mut self, to: &mut Sink);

    /// Makes room for a result line.
    fn make_room(&mut self, to: &mut Sink);

    /// A test ended; its result line, if it has one, is written.
    fn update(&mut self, to: &mut Sink, progress: Progress<'_>);

    /// Returns whether it needs the starts of tests.
    fn shows_starts(&self) -> bool {
        false
    }

    /// A worker started a test.
    fn started(&mut self, _: &mut Sink, _worker: usize, _name: String) {}

    /// Some time has passed.
    fn tick(&mut self, _: &mut Sink) {}

    /// The run ended; `interrupted` by Ctrl-C, which has left its mark on a terminal.
    fn end(&mut self, to: &mut Sink, interrupted: bool);
}

/// The kind of a requested progress bar.
#[derive(Clone, Debug)]
pub enum Bar {
    /// Percentages in one line, for files and plain terminals.
    Simple,
    /// Three lines that are redrawn.
    Terminal(Terminal),
}

/// Returns the display for these levels, with the header for `selected` of `discovered` tests.
pub(crate) fn choose(
    levels: &Levels,
    bar: &Bar,
    selected: u32,
    discovered: usize,
    workers: usize,
) -> Box<dyn Display> {
    if levels.is_silent() {
        return Box::new(plain::Plain { header: None });
    }
    let of_all = if selected as usize == discovered { String::new() } else { format!(" of {discovered}") };
    let header = format!("-- Testing: {selected}{of_all} tests, {workers} workers --");
    if levels.live {
        let terminal = match bar {
            Bar::Simple => None,
            Bar::Terminal(terminal) => Some(terminal.clone()),
        };
        let live = live::Live::new(header, terminal, levels.colors, selected, workers, Instant::now());
        return Box::new(live);
    }
    if !levels.progress_bar {
        return Box::new(plain::Plain { header: Some(header) });
    }
    match bar {
        Bar::Simple => Box::new(simple_bar::SimpleBar::new(header)),
        Bar::Terminal(terminal) => Box::new(terminal_bar::TerminalBar::new(
            terminal.clone(),
            levels.colors,
            &header,
            levels.min_output_interval,
            Instant::now(),
        )),
    }
}
