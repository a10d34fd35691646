//! Inputs of a test that were not seen in its own traced run: those of a FileCheck that was decided without it.

use std::path::Path;

use crate::input::{Input, Looks, Stamp, State, host, is_nothing};

/// Adds inputs that a process has seen shortly before. The error names one that was not the same for both.
pub fn add_inputs(inputs: &mut Vec<Input>, more: &[Input]) -> Result<(), String> {
    let mut new = Vec::new();
    for input in more {
        match inputs.binary_search_by(|known| known.path.cmp(&input.path)) {
            Ok(at) => inputs[at].merge(input)?,
            Err(_) => new.push(input.clone()),
        }
    }
    inputs.extend(new);
    inputs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(())
}

impl Input {
    /// Returns whether all that was looked at is still as a process has seen it, by its stamps.
    pub fn is_as_seen(&self) -> bool {
        let path = Path::new(&self.path);
        match (&self.state, Stamp::of(path)) {
            (State::Host(names), _) => *names == host(),
            // These are known to be constant, and have no times of their own.
            _ if path.starts_with("/proc") || path.starts_with("/sys") => true,
            (State::Missing(_), Err(error)) => is_nothing(&error),
            (State::Link(_, seen) | State::File(seen, _), Ok(now)) => now == *seen,
            (State::Directory(seen, names), Ok(now)) => {
                let is_same = self.looks.has(Looks::STAT) || names.is_some();
                if is_same { now == *seen } else { now.rights() == seen.rights() }
            }
            (State::Device(_, rights), Ok(now)) => now.rights() == *rights,
            _ => false,
        }
    }

    /// Adds what another process wanted to know of the same path.
    fn merge(&mut self, other: &Input) -> Result<(), String> {
        let looks = self.looks.and(other.looks);
        // A file of which only the making mattered to one of them.
        let is_made = looks.has(Looks::OVERWRITTEN) && self.looks != other.looks;
        let is_same = match (&mut self.state, &other.state) {
            (State::Missing(_), State::Missing(_)) => true,
            (State::Link(..) | State::Device(..) | State::Host(_), state) => self.state == *state,
            (State::Directory(seen, names), State::Directory(also, more)) => {
                let is_same =
                    if looks.has(Looks::STAT) { seen == also } else { seen.rights() == also.rights() };
                let is_listed = names.is_some() && more.is_some() && names != more;
                if names.is_none() {
                    names.clone_from(more);
                }
                is_same && !is_listed
            }
            (State::File(seen, content), State::File(also, more)) => {
                if content.is_none() {
                    *content = *more;
                }
                // The kernel's files have no times of their own.
                seen == also || self.path.starts_with("/proc/") || self.path.starts_with("/sys/")
            }
            _ => false,
        };
        self.looks = looks;
        if is_same && !is_made { Ok(()) } else { Err(format!("'{}' changed while the test ran", self.path)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn missing(path: &str) -> Input {
        Input { path: path.to_owned(), looks: Looks::EXISTS, state: State::Missing(0) }
    }

    fn content(path: &Path) -> Input {
        let state = State::File(Stamp::of(path).unwrap(), None);
        Input { path: path.to_str().unwrap().to_owned(), looks: Looks::CONTENT, state }
    }

    fn directory(path: &Path) -> Input {
        let state = State::Directory(Stamp::of(path).unwrap(), None);
        Input { path: path.to_str().unwrap().to_owned(), looks: Looks::EXISTS, state }
    }

    #[test]
    fn inputs_are_added_in_their_place_and_joined() {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = (dir.path(), dir.path().join("m"));
        fs::write(&file, "a").unwrap();
        let of_file = content(&file);
        let looked_at = Input { looks: Looks::STAT, ..of_file.clone() };
        let mut inputs = vec![missing("/a"), looked_at];
        inputs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        add_inputs(&mut inputs, &[missing("/b"), directory(path), of_file]).unwrap();
        assert!(inputs.is_sorted_by(|a, b| a.path < b.path));
        assert_eq!(inputs.len(), 4);
        let joined = inputs.iter().find(|input| Path::new(&input.path) == file).unwrap();
        assert_eq!(joined.looks, Looks::STAT.and(Looks::CONTENT));
        assert!(inputs.iter().all(Input::is_as_seen));
    }

    #[test]
    fn what_was_not_the_same_for_both_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let before = missing(file.to_str().unwrap());
        fs::write(&file, "a").unwrap();
        let of_file = content(&file);
        assert!(add_inputs(&mut vec![before.clone()], std::slice::from_ref(&of_file)).is_err());
        assert!(!before.is_as_seen() && of_file.is_as_seen());
        fs::write(&file, "other").unwrap();
        let now = content(&file);
        assert!(!of_file.is_as_seen());
        assert!(add_inputs(&mut vec![of_file], &[now]).is_err());
        let made = Input { looks: Looks::OVERWRITTEN, ..before.clone() };
        assert!(add_inputs(&mut vec![made], &[before]).is_err());
    }

    #[test]
    fn a_directory_that_was_only_passed_may_get_new_files() {
        let dir = tempfile::tempdir().unwrap();
        let passed = directory(dir.path());
        let stat = Input { looks: Looks::STAT, ..passed.clone() };
        fs::write(dir.path().join("new"), "").unwrap();
        assert!(passed.is_as_seen() && !stat.is_as_seen());
        assert!(add_inputs(&mut vec![passed], &[directory(dir.path())]).is_ok());
        assert!(add_inputs(&mut vec![stat], &[directory(dir.path())]).is_err());
    }
}
