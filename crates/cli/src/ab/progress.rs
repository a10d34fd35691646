//! The progress line of a measurement, on terminals only.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use hotstart_bench::measure::{Observer, Phase, Progress, Silent};
use hotstart_bench::render::terminal;
use hotstart_report::Sink;

/// Shortest time between two drawings, which happen only between runs.
const PAUSE: Duration = Duration::from_millis(200);

/// Returns an observer that draws on standard error if that is a terminal.
pub(crate) fn observer(quiet: bool) -> Box<dyn Observer> {
    if quiet || !std::io::stderr().is_terminal() {
        return Box::new(Silent);
    }
    Box::new(Line { err: Sink::stderr(), drawn: None })
}

struct Line {
    err: Sink,
    drawn: Option<Instant>,
}

impl Line {
    fn draw(&mut self, text: &str) {
        let columns = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).map_or(80, |s| s.ws_col.max(20));
        let text: String = text.chars().take(usize::from(columns) - 1).collect();
        self.err.put(&format!("\r\x1b[K{text}"));
        self.err.flush();
        self.drawn = Some(Instant::now());
    }
}

impl Observer for Line {
    fn preparing(&mut self, name: &str, phase: Phase) {
        self.draw(&format!("{name} {phase}"));
    }

    fn ran(&mut self, progress: &Progress<'_>) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= PAUSE) {
            self.draw(&terminal::progress(progress));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.err.put("\r\x1b[K");
    }
}
