//! Tries an act by itself, to see whether it retires a worker.

use std::io;

use super::Statistics;
use super::check::compare;
use crate::generate::{Request, Sequence};
use crate::run::{Mode, Program, Session};

/// What an act does by itself.
#[derive(Debug)]
pub struct Alone {
    /// Whether a worker is not used again after it.
    pub retires: bool,
    /// The sequence, if it differs from what it is cold: to be looked into like all others.
    pub differs: Option<Sequence>,
}

/// Runs `act` twice, cold and in a worker.
pub fn calibrate(
    session: &Session,
    program: &Program,
    act: &str,
    statistics: &mut Statistics,
) -> io::Result<Alone> {
    let request = Request { acts: vec![act.to_owned()], ..Request::default() };
    let sequence = Sequence { before: Vec::new(), requests: vec![request; 2] };
    statistics.covers(&sequence);
    let mut run = |mode| {
        let outcome = session.run(&sequence, program, mode)?;
        statistics.tally.add(mode, &outcome);
        io::Result::Ok(outcome)
    };
    let (cold, warm) = (run(Mode::Cold)?, run(Mode::Reset)?);
    let differs = compare(&cold, &warm, Mode::Reset).map(|_| sequence);
    Ok(Alone { retires: warm.retired > 0, differs })
}
