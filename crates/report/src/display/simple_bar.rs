//! A bar that only appends: ` 0.. 10.. 20.. `, one character per two percent.

use super::{Display, Progress};
use crate::Sink;

pub(super) struct SimpleBar {
    header: String,
    /// Steps of two percent drawn on the current line; `None` if there is no such line.
    drawn: Option<u32>,
}

impl SimpleBar {
    pub(super) fn new(header: String) -> Self {
        SimpleBar { header, drawn: None }
    }

    fn draw(&mut self, to: &mut Sink, fraction: f64) {
        let drawn = self.drawn.get_or_insert_with(|| {
            to.put("Testing: ");
            0
        });
        let next = (fraction * 50.0) as u32;
        for step in *drawn..next {
            match step % 5 {
                0 => to.put(&format!("{:2}", step * 2)),
                // The number takes two columns.
                1 => {}
                4 => to.put(" "),
                _ => to.put("."),
            }
        }
        *drawn = next;
    }
}

impl Display for SimpleBar {
    fn begin(&mut self, to: &mut Sink) {
        to.line(&self.header);
        self.draw(to, 0.0);
    }

    fn make_room(&mut self, to: &mut Sink) {
        if self.drawn.take().is_some() {
            to.put("\n");
        }
    }

    fn update(&mut self, to: &mut Sink, progress: Progress<'_>) {
        self.draw(to, progress.fraction);
    }

    fn end(&mut self, to: &mut Sink, interrupted: bool) {
        if !interrupted {
            self.make_room(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::tests::Captured;

    fn progress(fraction: f64) -> Progress<'static> {
        Progress { fraction, name: "n", failed: false, worker: 0 }
    }

    #[test]
    fn a_whole_line() {
        let captured = Captured::default();
        let mut to = captured.sink();
        let mut bar = SimpleBar::new("-- h --".into());
        bar.begin(&mut to);
        for step in 1..=10 {
            bar.update(&mut to, progress(f64::from(step) / 10.0));
        }
        bar.end(&mut to, false);
        drop(to);
        let expected = "-- h --\nTesting:  0.. 10.. 20.. 30.. 40.. 50.. 60.. 70.. 80.. 90.. \n";
        assert_eq!(captured.text(), expected);
    }

    #[test]
    fn it_starts_again_below_a_result() {
        let captured = Captured::default();
        let mut to = captured.sink();
        let mut bar = SimpleBar::new("h".into());
        bar.begin(&mut to);
        bar.update(&mut to, progress(0.25));
        bar.make_room(&mut to);
        to.line("FAIL: x");
        bar.update(&mut to, progress(0.3));
        bar.end(&mut to, true);
        drop(to);
        assert_eq!(captured.text(), "h\nTesting:  0.. 10.. 20\nFAIL: x\nTesting:  0.. 10.. 20.. ");
    }
}
