//! Tries each act by itself, to see which retire a worker.

use std::io;
use std::time::Instant;

use super::Statistics;
use super::check::compare;
use crate::generate::{Catalogue, Random, Request, Role, Sequence};
use crate::run::{Mode, Program, Session};

/// Runs each act twice, cold and in a worker, and notes in `catalogue` what it does to that; those that come first by chance,
/// until `deadline`. Sequences that differ are returned, to be looked into like all others.
pub fn calibrate(
    session: &Session,
    program: &Program,
    (catalogue, random): (&mut Catalogue, &mut Random),
    (statistics, deadline): (&mut Statistics, Instant),
) -> io::Result<Vec<Sequence>> {
    let mut left = catalogue.acts.clone();
    left.retain(|act| !matches!(act.role, Role::Before | Role::Rare));
    let mut differ = Vec::new();
    while !left.is_empty() && Instant::now() < deadline {
        let act = left.swap_remove(random.below(left.len()));
        let request = Request { acts: vec![act.name.clone()], ..Request::default() };
        let sequence = Sequence { before: Vec::new(), requests: vec![request; 2] };
        statistics.covers(&sequence);
        let mut run = |mode| {
            let outcome = session.run(&sequence, program, mode)?;
            statistics.tally.add(mode, &outcome);
            io::Result::Ok(outcome)
        };
        let (cold, warm) = (run(Mode::Cold)?, run(Mode::Reset)?);
        if warm.retired > 0 {
            catalogue.retiring.insert(act.name);
        }
        if compare(&cold, &warm, Mode::Reset).is_some() {
            differ.push(sequence);
        }
    }
    Ok(differ)
}
