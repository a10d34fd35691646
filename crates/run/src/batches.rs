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

#[cfg(test)]
mod tests {
    use hotstart_model::{Elsewhere, JobId};

    use super::*;
    use crate::fake;

    fn names(count: u32, without: Option<u32>) -> Vec<Vec<String>> {
        let job = |job: u32| {
            let name = format!("{:04}", (job * 7919) % count);
            let place = Elsewhere { name, directory: "/".into(), apart: Default::default() };
            Sent { job: JobId(job), script: Box::new(fake::script()), place }
        };
        let jobs = (0..count).filter(|number| Some(*number) != without).map(job).collect();
        let name = |sent: Sent| sent.place.name;
        batches(jobs, 100).into_iter().map(|batch| batch.into_iter().map(name).collect()).collect()
    }

    #[test]
    fn batches_hold_each_job_once_and_none_is_too_large() {
        let batches = names(1594, None);
        assert!(batches.iter().all(|batch| (50..=100).contains(&batch.len())));
        let all = batches.concat();
        assert!(all.len() == 1594 && all.is_sorted());
    }

    #[test]
    fn a_test_less_moves_boundaries_by_one() {
        let (before, after) = (names(1594, None), names(1594, Some(1000)));
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            assert!(before.iter().filter(|name| !after.contains(name)).count() <= 1);
        }
    }

    #[test]
    fn nothing_is_no_batch() {
        assert!(batches(Vec::new(), 5).is_empty());
    }
}
