//! Tries each act by itself: which retire a worker, and which are not deterministic.

use std::io;

use super::{Statistics, Verdict, check};
use crate::generate::{Catalogue, Request, Role, Sequence};
use crate::run::{Mode, Program, Session};

/// Runs each act twice, cold and in a worker, and notes in `catalogue` what it does to that. Sequences that differ are
/// returned, to be looked into like all others.
pub fn calibrate(
    session: &Session,
    program: &Program,
    catalogue: &mut Catalogue,
    statistics: &mut Statistics,
) -> io::Result<Vec<Sequence>> {
    let mut differ = Vec::new();
    for act in catalogue.acts.clone() {
        if matches!(act.role, Role::Before | Role::Rare) {
            continue;
        }
        let request = Request { acts: vec![act.name.clone()], ..Request::default() };
        let sequence = Sequence { before: Vec::new(), requests: vec![request; 2] };
        let retired = statistics.tally.retired;
        statistics.covers(&sequence);
        match check(session, (&sequence, program), &[Mode::Reset], &mut statistics.tally)? {
            Verdict::Same => {}
            Verdict::Nondeterministic(at) => statistics.nondeterministic(&sequence, at),
            Verdict::Differs(_) => differ.push(sequence),
        }
        if statistics.tally.retired > retired {
            catalogue.retiring.insert(act.name);
        }
    }
    Ok(differ)
}
