//! Counts, for each running process, the clients that it has started and that a server has served.
//!
//! A process that has had children is reset only if each of them was such a client, whose job is the server's own child
//! (runtime/gate/children.c). A client that was refused becomes the command, and so a child that may know its parent.

use std::collections::HashMap;
use std::sync::Mutex;

/// Clients by the number of the process that has started them; `None` where one was refused.
#[derive(Debug, Default)]
pub(crate) struct Served {
    runs: Mutex<HashMap<i32, Option<u32>>>,
}

impl Served {
    /// Begins to count the clients of process `pid`.
    pub(crate) fn begin(&self, pid: i32) {
        self.runs.lock().expect("no panic while locked").insert(pid, Some(0));
    }

    /// Counts a client of `parent`, if its clients are counted.
    pub(crate) fn add(&self, parent: i32) {
        if let Some(Some(count)) = self.runs.lock().expect("no panic while locked").get_mut(&parent) {
            *count += 1;
        }
    }

    /// Records that a client of `parent` was refused; of an unknown one if that is `None`.
    pub(crate) fn refuse(&self, parent: Option<i32>) {
        let mut runs = self.runs.lock().expect("no panic while locked");
        match parent {
            Some(parent) => runs.get_mut(&parent).into_iter().for_each(|count| *count = None),
            None => runs.values_mut().for_each(|count| *count = None),
        }
    }

    /// Ends the run of process `pid`. Returns the number of its clients; `None` if one was refused.
    pub(crate) fn end(&self, pid: i32) -> Option<u32> {
        self.runs.lock().expect("no panic while locked").remove(&pid).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_for_their_own_parent() {
        let served = Served::default();
        served.begin(7);
        served.begin(8);
        served.add(7);
        served.add(7);
        served.add(9);
        served.refuse(Some(8));
        served.add(8);
        assert_eq!([served.end(7), served.end(8), served.end(9)], [Some(2), None, None]);
        assert_eq!(served.end(7), None, "it has ended");
    }

    #[test]
    fn a_refusal_of_an_unknown_client_concerns_all() {
        let served = Served::default();
        served.begin(7);
        served.refuse(None);
        served.add(7);
        assert_eq!(served.end(7), None);
    }
}
