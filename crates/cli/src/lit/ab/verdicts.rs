//! Compares the verdicts of two lits over all their runs.
//!
//! For each test and side, the set of all its verdicts is kept. A verdict that changes from run to run is reported as such:
//! the last run does not hide it, and neither side gets the blame.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Most differences that are listed one by one.
const TOLD: usize = 20;
/// Represents a missing verdict.
const ABSENT: &str = "absent";

/// The verdicts of one run by the tests' names. Several verdicts of one name are joined in order, with commas.
pub(super) struct Run(BTreeMap<String, String>);

impl Run {
    /// Parses the file that `-o` wrote.
    pub(super) fn parse(json: &[u8]) -> Result<Run, String> {
        let value: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let tests = value["tests"].as_array().ok_or("there is no list `tests`")?;
        let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for test in tests {
            let (Some(name), Some(code)) = (test["name"].as_str(), test["code"].as_str()) else {
                return Err("a test has no `name` or no `code`".to_owned());
            };
            all.entry(name.to_owned()).or_default().push(code);
        }
        let joined = |(name, mut codes): (String, Vec<&str>)| {
            codes.sort_unstable();
            (name, codes.join(", "))
        };
        Ok(Run(all.into_iter().map(joined).collect()))
    }
}

/// The verdicts of both sides, over all runs.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    tests: BTreeMap<String, [BTreeSet<String>; 2]>,
    runs: [usize; 2],
}

impl Verdicts {
    /// Adds a run of side 0 or 1.
    pub(super) fn add(&mut self, side: usize, run: Run) {
        for (name, sets) in &mut self.tests {
            if !run.0.contains_key(name) {
                sets[side].insert(ABSENT.to_owned());
            }
        }
        for (name, verdict) in run.0 {
            let is_new = !self.tests.contains_key(&name);
            let sets = self.tests.entry(name).or_default();
            sets[side].insert(verdict);
            for other in (0..2).filter(|&other| is_new && self.runs[other] > 0) {
                sets[other].insert(ABSENT.to_owned());
            }
        }
        self.runs[side] += 1;
    }

    fn differing(&self) -> impl Iterator<Item = (&String, &[BTreeSet<String>; 2])> {
        let compared = !self.runs.contains(&0);
        self.tests.iter().filter(move |(_, [a, b])| compared && a != b)
    }

    /// Returns whether any test has different verdicts.
    pub(super) fn differ(&self) -> bool {
        self.differing().next().is_some()
    }

    /// Describes the findings, a line for each.
    pub(super) fn in_words(&self) -> Vec<String> {
        if self.runs.contains(&0) {
            return vec!["verdicts: not compared, as one of the two never ended a run".to_owned()];
        }
        let (all, count) = (self.tests.len(), self.differing().count());
        let [a, b] = self.runs;
        let runs = format!("in {a} runs of A and {b} of B");
        let mut lines = match count {
            0 => vec![format!("verdicts: all {all} tests have the same {runs}")],
            _ => vec![format!("verdicts: {count} of {all} tests differ {runs}")],
        };
        let line = |(name, [a, b]): (&String, &[BTreeSet<String>; 2])| {
            format!("  {name}: {} by A, {} by B", either(a), either(b))
        };
        lines.extend(self.differing().take(TOLD).map(line));
        if count > TOLD {
            lines.push(format!("  … and {} more", count - TOLD));
        }
        lines.extend(self.nondeterministic());
        lines
    }

    /// Returns the tests whose verdicts vary in the same way on both sides.
    fn nondeterministic(&self) -> Option<String> {
        let nondeterministic = |sets: &[BTreeSet<String>; 2]| sets[0] == sets[1] && sets[0].len() > 1;
        let names: Vec<&str> = self
            .tests
            .iter()
            .filter(|(_, sets)| nondeterministic(sets))
            .map(|(name, _)| name.as_str())
            .collect();
        let shown = names.iter().take(TOLD).copied().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("{} tests change from run to run by both: {shown}", names.len()))
    }
}

fn either(set: &BTreeSet<String>) -> String {
    if set.is_empty() { ABSENT.to_owned() } else { set.iter().cloned().collect::<Vec<_>>().join(" or ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tests: &[(&str, &str)]) -> Run {
        let tests: Vec<Value> =
            tests.iter().map(|(name, code)| serde_json::json!({"name": name, "code": code})).collect();
        Run::parse(serde_json::json!({ "tests": tests }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn equal_verdicts_are_counted_whatever_their_order() {
        let mut verdicts = Verdicts::default();
        assert!(verdicts.in_words()[0].contains("not compared") && !verdicts.differ());
        verdicts.add(0, run(&[("x", "PASS"), ("y", "FAIL"), ("y", "PASS")]));
        verdicts.add(1, run(&[("y", "PASS"), ("y", "FAIL"), ("x", "PASS")]));
        assert_eq!(verdicts.in_words(), ["verdicts: all 2 tests have the same in 1 runs of A and 1 of B"]);
        assert!(!verdicts.differ());
    }

    #[test]
    fn differences_are_named_also_if_a_test_is_absent() {
        let mut verdicts = Verdicts::default();
        verdicts.add(0, run(&[("x", "PASS"), ("y", "PASS")]));
        verdicts.add(1, run(&[("x", "FAIL"), ("z", "PASS")]));
        assert!(verdicts.differ());
        let lines = [
            "verdicts: 3 of 3 tests differ in 1 runs of A and 1 of B",
            "  x: PASS by A, FAIL by B",
            "  y: PASS by A, absent by B",
            "  z: absent by A, PASS by B",
        ];
        assert_eq!(verdicts.in_words(), lines);
    }

    #[test]
    fn what_changes_by_itself_is_no_difference_between_the_two() {
        let mut verdicts = Verdicts::default();
        for (side, code) in [(0, "PASS"), (1, "PASS"), (1, "FAIL")] {
            verdicts.add(side, run(&[("x", code)]));
        }
        assert_eq!(verdicts.in_words()[1], "  x: PASS by A, FAIL or PASS by B");
        verdicts.add(0, run(&[("x", "FAIL")]));
        assert!(!verdicts.differ());
        assert_eq!(verdicts.in_words()[1], "1 tests change from run to run by both: x");
    }

    #[test]
    fn results_that_are_none_are_refused() {
        assert!(Run::parse(b"").is_err());
        assert!(Run::parse(b"{}").is_err_and(|why| why.contains("`tests`")));
        assert!(Run::parse(b"{\"tests\": [{\"name\": \"x\"}]}").is_err_and(|why| why.contains("no `code`")));
    }
}
