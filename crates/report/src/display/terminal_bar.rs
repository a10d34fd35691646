//! lit's three-line bar: header, bar with percentage and expected time left, name of the last test.
//!
//! It uses control sequences that nearly every terminal understands, not terminfo's. Other terminals get the simple
//! bar.

use std::time::Instant;

use super::{Display, Progress};
use crate::Sink;
use crate::colors::{BOLD, CYAN, GREEN, NORMAL, RED, only_if};
use crate::histogram::center;

/// Properties of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Its width in characters.
    pub columns: usize,
}

impl Terminal {
    /// Returns the terminal behind standard output, if it supports drawing; `term` is `$TERM`.
    pub fn of_stdout(term: Option<&str>) -> Option<Terminal> {
        let stdout = std::io::stdout();
        if !rustix::termios::isatty(&stdout) || matches!(term, None | Some("" | "dumb" | "unknown")) {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        Some(Terminal { columns: if columns == 0 { 80 } else { columns } })
    }
}

const BEGIN_OF_LINE: &str = "\r";
const UP: &str = "\x1b[A";
const CLEAR_LINE: &str = "\x1b[K";

pub(super) struct TerminalBar {
    width: usize,
    colors: bool,
    header: String,
    color: &'static str,
    is_drawn: bool,
    min_interval: f64,
    started: Instant,
    last_update: Option<Instant>,
}

impl TerminalBar {
    pub(super) fn new(
        terminal: Terminal,
        colors: bool,
        header: &str,
        min_interval: f64,
        started: Instant,
    ) -> Self {
        let width = terminal.columns;
        let [bold, cyan, normal] = [BOLD, CYAN, NORMAL].map(|sequence| only_if(colors, sequence));
        TerminalBar {
            width,
            colors,
            header: format!("{bold}{cyan}{}{normal}\n\n", center(header, width)),
            color: GREEN,
            is_drawn: false,
            min_interval,
            started,
            last_update: None,
        }
    }

    fn draw(&mut self, to: &mut Sink, fraction: f64, name: &str, now: Instant) {
        let too_soon = |last: Instant| now.duration_since(last).as_secs_f64() < self.min_interval;
        if self.last_update.is_some_and(too_soon) {
            return;
        }
        self.last_update = Some(now);
        if !self.is_drawn {
            to.put(&self.header);
            self.is_drawn = true;
        }
        let prefix = format!("{:3}% ", (fraction * 100.0) as u32);
        let suffix = self.time_left(fraction, now);
        let bar_width = self.width.saturating_sub(prefix.len() + suffix.len() + 2);
        let done = ((bar_width as f64 * fraction) as usize).min(bar_width);
        let (full, empty) = ("=".repeat(done), "-".repeat(bar_width - done));
        let [color, bold, normal] = [self.color, BOLD, NORMAL].map(|sequence| only_if(self.colors, sequence));
        to.put(&format!("{BEGIN_OF_LINE}{UP}{CLEAR_LINE}"));
        to.put(&format!("{prefix}{color}[{bold}{full}{empty}{normal}{color}]{normal}{suffix}\n"));
        to.put(&format!("{CLEAR_LINE}{}", self.message(name)));
    }

    fn time_left(&self, fraction: f64, now: Instant) -> String {
        let elapsed = now.duration_since(self.started).as_secs_f64();
        if fraction <= 0.0001 || elapsed <= 1.0 {
            return String::new();
        }
        let left = (elapsed / fraction - elapsed).max(0.0) as u64;
        format!(" ETA: {:02}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60)
    }

    /// Returns the name, padded to the whole line, or as much of its end as fits.
    fn message(&self, name: &str) -> String {
        let length = name.chars().count();
        if length < self.width {
            return format!("{name:<width$}", width = self.width);
        }
        let tail: String = name.chars().skip(length - self.width.saturating_sub(4)).collect();
        format!("... {tail}")
    }

    fn clear(&mut self, to: &mut Sink) {
        if self.is_drawn {
            to.put(&format!("{BEGIN_OF_LINE}{CLEAR_LINE}{UP}{CLEAR_LINE}{UP}{CLEAR_LINE}"));
            self.is_drawn = false;
        }
    }
}

impl Display for TerminalBar {
    fn begin(&mut self, to: &mut Sink) {
        self.draw(to, 0.0, "", Instant::now());
    }

    fn make_room(&mut self, to: &mut Sink) {
        self.clear(to);
    }

    fn update(&mut self, to: &mut Sink, progress: Progress<'_>) {
        if progress.failed {
            self.color = RED;
        }
        self.draw(to, progress.fraction, progress.name, Instant::now());
    }

    fn end(&mut self, to: &mut Sink, interrupted: bool) {
        if self.is_drawn && interrupted {
            // The terminal has printed ^C in a line of its own.
            self.clear(to);
            to.put(&format!("{UP}{CLEAR_LINE}^C"));
        }
        self.clear(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::tests::Captured;
    use std::time::Duration;

    fn bar(started: Instant) -> TerminalBar {
        TerminalBar::new(Terminal { columns: 30 }, true, "-- h --", 0.0, started)
    }

    #[test]
    fn half_done_after_ten_seconds() {
        let captured = Captured::default();
        let started = Instant::now();
        let mut bar = bar(started);
        bar.draw(&mut captured.sink(), 0.5, "s :: a", started + Duration::from_secs(10));
        assert_eq!(
            captured.text(),
            "\x1b[1m\x1b[36m           -- h --            \x1b(B\x1b[m\n\n\
             \r\x1b[A\x1b[K 50% \x1b[32m[\x1b[1m====-----\x1b(B\x1b[m\x1b[32m]\x1b(B\x1b[m ETA: 00:00:10\n\
             \x1b[Ks :: a                        "
        );
    }

    #[test]
    fn long_names_keep_their_end() {
        let name = "suite :: some/long/directory/name.ll";
        assert_eq!(bar(Instant::now()).message(name), "... ome/long/directory/name.ll");
    }

    #[test]
    fn updates_are_limited() {
        let captured = Captured::default();
        let started = Instant::now();
        let mut bar = TerminalBar::new(Terminal { columns: 30 }, false, "h", 5.0, started);
        let mut to = captured.sink();
        bar.draw(&mut to, 0.1, "one", started);
        bar.draw(&mut to, 0.2, "two", started + Duration::from_secs(4));
        bar.draw(&mut to, 0.3, "three", started + Duration::from_secs(6));
        drop(to);
        assert!(!captured.text().contains("two") && captured.text().contains("three"));
    }

    #[test]
    fn a_bar_is_wiped_before_a_result() {
        let captured = Captured::default();
        let started = Instant::now();
        let mut bar = bar(started);
        let mut to = captured.sink();
        bar.make_room(&mut to);
        to.flush();
        assert_eq!(captured.text(), "");
        bar.draw(&mut to, 0.0, "", started);
        bar.make_room(&mut to);
        drop(to);
        assert!(captured.text().ends_with("\r\x1b[K\x1b[A\x1b[K\x1b[A\x1b[K"));
    }
}
