//! A display of a header only, or of nothing.

use super::{Display, Progress};
use crate::Sink;

pub(super) struct Plain {
    pub header: Option<String>,
}

impl Display for Plain {
    fn shows_progress(&self) -> bool {
        false
    }

    fn begin(&mut self, to: &mut Sink) {
        if let Some(header) = &self.header {
            to.line(header);
        }
    }

    fn make_room(&mut self, _: &mut Sink) {}

    fn update(&mut self, _: &mut Sink, _: Progress<'_>) {}

    fn end(&mut self, _: &mut Sink, _: bool) {}
}
