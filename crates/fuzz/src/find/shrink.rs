//! Shrinks a failing sequence: fewer runs, then fewer acts, then plainer surroundings (delta debugging).

use crate::generate::{Request, Sequence};

/// Returns the smallest sequence found for which `fails` still holds. Tries at most `attempts` others.
pub fn shrink(sequence: Sequence, attempts: usize, mut fails: impl FnMut(&Sequence) -> bool) -> Sequence {
    let mut left = attempts;
    let mut fails = |candidate: &Sequence| {
        let allowed = left > 0;
        left = left.saturating_sub(1);
        allowed && fails(candidate)
    };
    let mut best = sequence;
    loop {
        let before = best.clone();
        best = fewer(best, |s| s.requests.clone(), |s, requests| s.requests = requests, &mut fails);
        for at in 0..best.requests.len() {
            let get = |s: &Sequence| s.requests[at].acts.clone();
            best = fewer(best, get, |s, acts| s.requests[at].acts = acts, &mut fails);
            best = plainer(best, at, &mut fails);
        }
        best = fewer(best, |s| s.before.clone(), |s, before| s.before = before, &mut fails);
        if best == before {
            return best;
        }
    }
}

/// Removes parts of one list of the sequence: halves, quarters, finally single items.
fn fewer<T: Clone>(
    mut best: Sequence,
    get: impl Fn(&Sequence) -> Vec<T>,
    set: impl Fn(&mut Sequence, Vec<T>),
    fails: &mut impl FnMut(&Sequence) -> bool,
) -> Sequence {
    let mut size = get(&best).len();
    while size > 0 {
        let mut from = 0;
        while from < get(&best).len() {
            let mut items = get(&best);
            items.drain(from..(from + size).min(items.len()));
            let mut candidate = best.clone();
            set(&mut candidate, items);
            if fails(&candidate) {
                best = candidate;
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    best
}

/// Replaces each of a run's surroundings with the plain one.
fn plainer(mut best: Sequence, at: usize, fails: &mut impl FnMut(&Sequence) -> bool) -> Sequence {
    let plain: [fn(&mut Request); 9] = [
        |request| request.env.clear(),
        |request| request.input = Default::default(),
        |request| request.files.clear(),
        |request| request.umask = None,
        |request| request.limits.clear(),
        |request| request.extra = false,
        |request| request.merged = false,
        |request| request.below = false,
        |request| request.leads = false,
    ];
    for change in plain {
        let mut candidate = best.clone();
        change(&mut candidate.requests[at]);
        if candidate != best && fails(&candidate) {
            best = candidate;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(acts: &[&str]) -> Request {
        let acts = acts.iter().map(|act| (*act).to_owned()).collect();
        Request { acts, extra: true, umask: Some(3), ..Request::default() }
    }

    #[test]
    fn what_matters_is_all_that_is_left() {
        let requests =
            vec![request(&["a", "b", "c"]), request(&["d"]), request(&["e", "f"]), request(&["g"])];
        let sequence = Sequence { before: vec!["x".into(), "y".into()], arguments: 0, requests };
        // It fails if b runs before f, in a run with a mask, in a program with y.
        let fails = |s: &Sequence| {
            let at = |name: &str| s.requests.iter().position(|r| r.acts.iter().any(|act| act == name));
            let (Some(b), Some(f)) = (at("b"), at("f")) else { return false };
            b < f && s.requests[f].umask.is_some() && s.has("y")
        };
        let small = shrink(sequence, 1000, fails);
        let first = Request { umask: None, extra: false, ..request(&["b"]) };
        let second = Request { extra: false, ..request(&["f"]) };
        assert_eq!(small, Sequence { before: vec!["y".into()], arguments: 0, requests: vec![first, second] });
    }

    #[test]
    fn it_gives_up_after_so_many_attempts() {
        let sequence = Sequence { before: Vec::new(), arguments: 0, requests: vec![request(&["a", "b"]); 8] };
        let mut tried = 0;
        shrink(sequence, 5, |_| {
            tried += 1;
            false
        });
        assert_eq!(tried, 5);
    }
}
