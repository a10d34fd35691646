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

/// Two runs of `act`. The first run of all is a fork, those after it are in one worker.
pub fn twice(act: &str) -> Sequence {
    let request = || Request { acts: vec![act.to_owned()], ..Request::default() };
    Sequence { before: Vec::new(), requests: vec![Request::default(), request(), request()] }
}

/// A run of `act`, and one of all that may show what it has left behind.
pub fn observed(act: &str, catalogue: &Catalogue) -> Option<Sequence> {
    let act = catalogue.find(act).filter(|act| act.role == Role::Disturbs)?;
    let observers = catalogue.of(Role::Observes, Some(&act.family));
    let observers: Vec<_> = observers.iter().map(|observer| observer.name.clone()).collect();
    let request = |acts| Request { acts, ..Request::default() };
    let requests = vec![Request::default(), request(vec![act.name.clone()]), request(observers)];
    Some(Sequence { before: Vec::new(), requests })
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
        assert_eq!(twice("d").acts(), 2);
    }
}
