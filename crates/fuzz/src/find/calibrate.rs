//! Tries acts by themselves, cold and in a worker, before any are drawn together.

use std::io;

use super::Statistics;
use super::{compare, run_against};
use crate::generate::{Catalogue, Request, Role, Sequence};
use crate::run::{Mode, Program, Session};

/// What a sequence did.
#[derive(Debug)]
pub struct Tried {
    /// Whether a worker was not used again after one of its runs.
    pub retires: bool,
    /// Whether it differs from what it is cold: it is to be looked into like all others.
    pub differs: bool,
}

/// Two runs of `act`.
pub fn twice(act: &str) -> Sequence {
    sequence(&[act.to_owned()], &[act.to_owned()])
}

/// A run of `act`, and one of all that may show what it has left behind.
pub fn observed(act: &str, catalogue: &Catalogue) -> Option<Sequence> {
    let act = catalogue.find(act).filter(|act| act.role == Role::Disturbs)?;
    let observers = catalogue.of(Role::Observes, Some(&act.family));
    // One of these would make the run doubtful, and nothing would be seen.
    let observers = observers.iter().filter(|observer| !catalogue.retiring.contains(&observer.name));
    let observers: Vec<_> = observers.map(|observer| observer.name.clone()).collect();
    Some(sequence(std::slice::from_ref(&act.name), &observers))
}

/// Two runs, twice: the first time in a worker whose runs are audited, and which an audit may end before anything shows; then in
/// one whose runs are not. The very first run is a fork.
fn sequence(first: &[String], second: &[String]) -> Sequence {
    let request = |acts: &[String]| Request { acts: acts.to_vec(), ..Request::default() };
    let runs = [&[], first, second, &[], first, second];
    Sequence { before: Vec::new(), requests: runs.map(request).to_vec() }
}

/// Runs `sequence` cold and in a worker.
pub fn calibrate(
    session: &Session,
    (sequence, program): (&Sequence, &Program),
    statistics: &mut Statistics,
) -> io::Result<Tried> {
    statistics.covers(sequence);
    let cold = session.run(sequence, program, Mode::Cold)?;
    statistics.tally.add(Mode::Cold, &cold);
    let warm = run_against(session, (sequence, program), Mode::Reset, &cold)?;
    statistics.tally.add(Mode::Reset, &warm);
    Ok(Tried { retires: warm.retired > 0, differs: compare(&cold, &warm, Mode::Reset).is_some() })
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
