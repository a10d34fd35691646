//! Tries single acts, cold and in a persistent process, before any are drawn together.

use std::io;

use super::Statistics;
use super::{compare, run_against};
use crate::generate::{Catalogue, Request, Role, Sequence};
use crate::run::{Mode, Program, Session};

/// The result for a sequence.
#[derive(Debug)]
pub struct Tried {
    /// Whether one of its runs retired a persistent process.
    pub retires: bool,
    /// Whether it differs from its cold run. It must then be examined like any other.
    pub differs: bool,
}

/// Returns two runs of `act`.
pub fn twice(act: &str) -> Sequence {
    sequence(&[act.to_owned()], &[act.to_owned()])
}

/// Returns a run of `act`, and one of all acts that may show the state it left.
pub fn observed(act: &str, catalogue: &Catalogue) -> Option<Sequence> {
    let act = catalogue.find(act).filter(|act| act.role == Role::Disturbs)?;
    let observers = catalogue.of(Role::Observes, Some(&act.family));
    // A retiring act would make the run doubtful, and the run would show nothing.
    let observers = observers.iter().filter(|observer| !catalogue.retiring.contains(&observer.name));
    let observers: Vec<_> = observers.map(|observer| observer.name.clone()).collect();
    Some(sequence(std::slice::from_ref(&act.name), &observers))
}

/// Returns two runs, twice. The first time, they run in a persistent process with audits, which may end it before a
/// difference shows; then in one without. The very first run is a fork.
fn sequence(first: &[String], second: &[String]) -> Sequence {
    let request = |acts: &[String]| Request { acts: acts.to_vec(), ..Request::default() };
    let runs = [&[], first, second, &[], first, second];
    Sequence { before: Vec::new(), arguments: 0, requests: runs.map(request).to_vec() }
}

/// Runs `sequence` cold and in `mode`, which resets.
pub fn calibrate(
    session: &Session,
    sequence: &Sequence,
    program: &Program,
    mode: Mode,
    statistics: &mut Statistics,
) -> io::Result<Tried> {
    statistics.covers(sequence);
    let cold = session.run(sequence, program, Mode::Cold)?;
    statistics.tally.add(Mode::Cold, &cold);
    let warm = run_against(session, sequence, program, mode, &cold)?;
    statistics.tally.add(mode, &warm);
    Ok(Tried { retires: warm.retired > 0, differs: compare(&cold, &warm, mode).is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_is_followed_by_what_observes_its_family() {
        let catalogue = Catalogue::parse("a x disturbs\nb x observes\nc y observes\nd x both\n").unwrap();
        let sequence = observed("a", &catalogue).unwrap();
        assert_eq!([&sequence.requests[1].acts, &sequence.requests[2].acts], [&["a"], &["b"]]);
        assert_eq!(observed("d", &catalogue), None);
        assert_eq!(twice("d").acts(), 4);
    }
}
