//! The live display for people (`--live`): progress, speed and expected time of the run, and each worker's test, redrawn
//! below the result lines. Without a terminal it writes a line after every tenth of the tests.
//!
//! lit has no such view, so nothing here must look like lit's.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::{Display, Progress, Terminal};
use crate::Sink;
use crate::colors::{BOLD, CYAN, GREEN, NORMAL, RED, only_if};

/// Least time between two redraws; eyes would not see more.
const REDRAW: Duration = Duration::from_millis(80);
/// Most workers shown: those whose tests have run longest.
const SHOWN_WORKERS: usize = 8;
/// Number of lines about the whole run, without a terminal.
const PLAIN_LINES: u32 = 10;
/// Time without a line, without a terminal, after which one is due.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) struct Live {
    header: String,
    terminal: Option<Terminal>,
    colors: bool,
    jobs: u32,
    completed: u32,
    failed: u32,
    fraction: f64,
    started: Instant,
    workers: Vec<Option<(String, Instant)>>,
    /// Number of lines on the screen to redraw.
    drawn: usize,
    last: Option<Instant>,
}

impl Live {
    pub(super) fn new(
        header: String,
        terminal: Option<Terminal>,
        colors: bool,
        jobs: u32,
        workers: usize,
        started: Instant,
    ) -> Self {
        Live {
            header,
            terminal,
            colors,
            jobs,
            completed: 0,
            failed: 0,
            fraction: 0.0,
            started,
            workers: vec![None; workers],
            drawn: 0,
            last: None,
        }
    }

    fn redraw(&mut self, to: &mut Sink, now: Instant) {
        let Some(columns) = self.terminal.as_ref().map(|terminal| terminal.columns) else { return };
        if self.last.is_some_and(|last| now.duration_since(last) < REDRAW) {
            return;
        }
        self.last = Some(now);
        self.clear(to);
        let mut lines = vec![self.summary(now, columns)];
        lines.extend(self.running(now, columns));
        self.drawn = lines.len();
        lines.iter().for_each(|line| to.line(line));
    }

    fn clear(&mut self, to: &mut Sink) {
        if self.drawn > 0 {
            to.put(&format!("\r\x1b[{}A\x1b[J", self.drawn));
            self.drawn = 0;
        }
    }

    /// Returns `[=====-----] 50% 12/24 tests, 1 failed, 8.0/s, ETA 0:00:02`; the bar is as wide as fits.
    fn summary(&self, now: Instant, columns: usize) -> String {
        let figures = format!(" {:3}% {}", (self.fraction * 100.0) as u32, self.figures(now));
        let room = columns.saturating_sub(figures.chars().count() + 3).min(40);
        let done = ((room as f64 * self.fraction) as usize).min(room);
        let color = only_if(self.colors, if self.failed > 0 { RED } else { GREEN });
        let normal = only_if(self.colors, NORMAL);
        let bar = match room {
            0..10 => String::new(),
            _ => format!("{color}[{}{}]{normal}", "=".repeat(done), "-".repeat(room - done)),
        };
        let figures: String = figures.chars().take(columns.saturating_sub(1)).collect();
        format!("{bar}{figures}")
    }

    fn figures(&self, now: Instant) -> String {
        let seconds = now.duration_since(self.started).as_secs_f64();
        let mut text = format!("{}/{} tests, {} failed", self.completed, self.jobs, self.failed);
        if seconds > 0.0 && self.completed > 0 {
            let _ = write!(text, ", {:.1}/s", f64::from(self.completed) / seconds);
        }
        if self.fraction > 0.0001 && self.completed < self.jobs {
            let left = (seconds / self.fraction - seconds).max(0.0) as u64;
            let _ = write!(text, ", ETA {}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60);
        }
        text
    }

    /// Returns the busy workers' tests, longest first.
    fn running(&self, now: Instant, columns: usize) -> Vec<String> {
        let busy = |(index, work): (usize, &Option<(String, Instant)>)| {
            work.as_ref().map(|(name, since)| (index + 1, name.clone(), *since))
        };
        let mut busy: Vec<_> = self.workers.iter().enumerate().filter_map(busy).collect();
        busy.sort_by_key(|(index, _, since)| (*since, *index));
        let more = busy.len().saturating_sub(SHOWN_WORKERS);
        let line = |(worker, name, since): &(usize, String, Instant)| {
            let seconds = now.duration_since(*since).as_secs_f64();
            let start = format!("{worker:4} {seconds:7.1} s  ");
            let (cyan, normal) = (only_if(self.colors, CYAN), only_if(self.colors, NORMAL));
            format!("{cyan}{start}{normal}{}", tail(name, columns.saturating_sub(start.len() + 1)))
        };
        let mut lines: Vec<_> = busy.iter().take(SHOWN_WORKERS).map(line).collect();
        if more > 0 {
            lines.push(format!("     and {more} more"));
        }
        lines
    }

    /// Writes the line for readers of a file or a pipe, if one is due.
    fn plain_line(&mut self, to: &mut Sink, now: Instant) {
        let step =
            |completed: u32| u64::from(completed) * u64::from(PLAIN_LINES) / u64::from(self.jobs.max(1));
        let passed_tenth = self.completed > 0 && step(self.completed) > step(self.completed - 1);
        let silent = now.duration_since(self.last.unwrap_or(self.started)) >= SILENCE;
        if self.terminal.is_some() || !(passed_tenth && self.fraction > 0.0 || silent) {
            return;
        }
        self.last = Some(now);
        to.line(&format!("hotstart: {:3}% {}", (self.fraction * 100.0) as u32, self.figures(now)));
        if silent {
            self.running(now, usize::MAX).iter().for_each(|line| to.line(line));
        }
    }
}

/// Returns the name, or as much of its end as fits.
fn tail(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length - room.saturating_sub(3)).collect();
    format!("...{end}")
}

impl Display for Live {
    fn begin(&mut self, to: &mut Sink) {
        let (bold, normal) = (only_if(self.colors, BOLD), only_if(self.colors, NORMAL));
        to.line(&format!("{bold}{}{normal}", self.header));
    }

    fn make_room(&mut self, to: &mut Sink) {
        self.clear(to);
        // Redraw the cleared lines at the next occasion.
        if self.terminal.is_some() {
            self.last = None;
        }
    }

    fn shows_starts(&self) -> bool {
        self.terminal.is_some()
    }

    fn started(&mut self, to: &mut Sink, worker: usize, name: String) {
        if worker >= self.workers.len() {
            self.workers.resize(worker + 1, None);
        }
        let now = Instant::now();
        self.workers[worker] = Some((name, now));
        self.redraw(to, now);
    }

    fn update(&mut self, to: &mut Sink, progress: Progress<'_>) {
        let now = Instant::now();
        self.completed += 1;
        self.failed += u32::from(progress.failed);
        self.fraction = progress.fraction;
        if let Some(work) = self.workers.get_mut(progress.worker) {
            *work = None;
        }
        self.plain_line(to, now);
        self.redraw(to, now);
    }

    fn tick(&mut self, to: &mut Sink) {
        let now = Instant::now();
        if self.terminal.is_none() {
            // While no test ends, only silence makes a line due.
            if now.duration_since(self.last.unwrap_or(self.started)) >= SILENCE {
                self.plain_line(to, now);
            }
            return;
        }
        self.redraw(to, now);
    }

    fn end(&mut self, to: &mut Sink, _: bool) {
        self.clear(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::tests::Captured;

    fn live(columns: Option<usize>) -> Live {
        let terminal = columns.map(|columns| Terminal { columns });
        Live::new("-- h --".into(), terminal, false, 20, 2, Instant::now())
    }

    fn progress(fraction: f64, failed: bool) -> Progress<'static> {
        Progress { fraction, name: "n", failed, worker: 0 }
    }

    #[test]
    fn a_terminal_shows_figures_and_workers() {
        let mut live = live(Some(70));
        (live.completed, live.failed, live.fraction) = (10, 1, 0.5);
        let now = live.started + Duration::from_secs(5);
        live.workers = vec![Some(("s :: late".into(), now)), Some(("s :: early".into(), live.started))];
        assert_eq!(
            live.summary(now, 70),
            "[==========----------]  50% 10/20 tests, 1 failed, 2.0/s, ETA 0:00:05"
        );
        assert_eq!(live.running(now, 70), ["   2     5.0 s  s :: early", "   1     0.0 s  s :: late"]);
        assert_eq!(live.running(now, 24)[0], "   2     5.0 s  ...arly");
        assert!(live.summary(now, 20).len() < 20);
    }

    #[test]
    fn what_is_drawn_is_wiped_before_a_result() {
        let captured = Captured::default();
        let (mut live, mut to) = (live(Some(70)), captured.sink());
        live.started(&mut to, 0, "s :: a".into());
        live.make_room(&mut to);
        to.line("FAIL: s :: a");
        live.update(&mut to, progress(0.1, true));
        live.end(&mut to, false);
        drop(to);
        let text = captured.text();
        assert!(text.contains("s :: a\n\r\x1b[2A\x1b[JFAIL: s :: a\n["), "{text:?}");
        assert!(
            text.ends_with("1/20 tests, 1 failed, 0.0/s, ETA 0:00:00\n\r\x1b[1A\x1b[J")
                || text.contains("ETA")
        );
        assert!(!text.contains("\x1b[31m"), "no colours: {text:?}");
    }

    #[test]
    fn without_a_terminal_there_is_a_line_for_each_tenth() {
        let captured = Captured::default();
        let (mut live, mut to) = (live(None), captured.sink());
        live.begin(&mut to);
        assert!(!live.shows_starts());
        for test in 1..=20 {
            live.update(&mut to, progress(f64::from(test) / 20.0, test == 7));
            live.tick(&mut to);
        }
        live.end(&mut to, false);
        drop(to);
        let text = captured.text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 11, "{text}");
        assert!(lines[1].starts_with("hotstart:  10% 2/20 tests, 0 failed"), "{text}");
        assert!(lines[10].starts_with("hotstart: 100% 20/20 tests, 1 failed"), "{text}");
    }
}
