//! Divides jobs into batches that stay the same from run to run, so that their results can be remembered.
//!
//! Jobs are sorted by name and halved until each part is small enough. A test that comes or goes changes the batch that it is in, and moves
//! the boundaries between others by little; boundaries by recorded times would move with each run.

use crate::remote::Sent;

/// Divides jobs into batches of at most this size.
pub(crate) fn batches(mut jobs: Vec<Sent>, most: usize) -> Vec<Vec<Sent>> {
    jobs.sort_by(|one, other| one.place.name.cmp(&other.place.name));
    let mut batches = Vec::new();
    halve(jobs, most.max(1), &mut batches);
    batches
}

fn halve(mut jobs: Vec<Sent>, most: usize, into: &mut Vec<Vec<Sent>>) {
    if jobs.len() <= most {
        if !jobs.is_empty() {
            into.push(jobs);
        }
        return;
    }
    let second = jobs.split_off(jobs.len() / 2);
    halve(jobs, most, into);
    halve(second, most, into);
}
