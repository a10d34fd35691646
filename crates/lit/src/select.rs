//! Selects the tests to run: filters, shards, and lists of expectations (docs/reference/lit-compat.md, 1.4).

use std::collections::{HashMap, HashSet};

use hotstart_python::re::{Flags, Pattern};

use crate::exception::Exception;
use crate::settings::Settings;
use crate::suite::{Marks, Test};

/// The tests to run, as places in the list of all tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These tests, in this order.
    Tests(Vec<u32>),
    /// No test was found at all.
    NothingFound,
    /// No test passed the filters.
    NothingMatched,
    /// The shard is empty.
    EmptyShard,
}

impl Selection {
    /// Returns the places; empty if there is nothing to run.
    pub fn tests(&self) -> &[u32] {
        match self {
            Selection::Tests(tests) => tests,
            _ => &[],
        }
    }
}

/// Compiles a `--filter`. The error is Python's and follows `invalid regular expression: 'R', `.
pub fn compile_filter(pattern: &str) -> Result<Pattern, Exception> {
    Pattern::with_flags(pattern, Flags { ignore_case: true, ..Flags::default() })
}

/// Selects from the ordered `tests`. Also returns lit's note about a shard.
pub fn select(tests: &[Test], settings: &Settings) -> Result<(Selection, Option<String>), Exception> {
    if tests.is_empty() {
        return Ok((Selection::NothingFound, None));
    }
    if !settings.replay.is_empty() {
        return Ok(named(tests, &settings.replay));
    }
    let mut selected = filtered(tests, settings)?;
    if selected.is_empty() {
        return Ok((Selection::NothingMatched, None));
    }
    let mut note = None;
    if let Some((run, shards)) = settings.shard {
        let (shard, text) = shard_of(&selected, run, shards);
        (selected, note) = (shard, Some(text));
        if selected.is_empty() {
            return Ok((Selection::EmptyShard, note));
        }
    }
    selected.truncate(settings.max_tests.unwrap_or(usize::MAX));
    Ok((Selection::Tests(selected), note))
}

/// Returns the tests of these names, in this order, and a note of names that no test has.
fn named(tests: &[Test], names: &[String]) -> (Selection, Option<String>) {
    let places: HashMap<String, u32> =
        (0..).zip(tests).map(|(place, test)| (test.full_name(), place)).collect();
    let (found, missing): (Vec<&String>, Vec<_>) = names.iter().partition(|name| places.contains_key(*name));
    let missing: Vec<_> = missing.into_iter().map(String::as_str).collect();
    let note = (!missing.is_empty()).then(|| format!("--replay: there is no test {}", missing.join(", ")));
    let found: Vec<_> = found.into_iter().map(|name| places[name]).collect();
    (if found.is_empty() { Selection::NothingMatched } else { Selection::Tests(found) }, note)
}

fn filtered(tests: &[Test], settings: &Settings) -> Result<Vec<u32>, Exception> {
    let compile = |pattern: &Option<String>| pattern.as_deref().map(compile_filter).transpose();
    let (wanted, unwanted) = (compile(&settings.filter)?, compile(&settings.filter_out)?);
    let mut selected = Vec::with_capacity(tests.len());
    for (place, test) in tests.iter().enumerate() {
        if settings.filter_failed && !test.previous_failure() {
            continue;
        }
        if wanted.is_some() || unwanted.is_some() {
            let name = test.full_name();
            let matches = |pattern: &Option<Pattern>| pattern.as_ref().map(|p| p.is_match(&name)).transpose();
            if !matches(&wanted)?.unwrap_or(true) || matches(&unwanted)?.unwrap_or(false) {
                continue;
            }
        }
        selected.push(u32::try_from(place).expect("fewer than 2^32 tests"));
    }
    Ok(selected)
}

/// Returns the shard's tests, and a description that shows the first three of them.
fn shard_of(tests: &[u32], run: usize, shards: usize) -> (Vec<u32>, String) {
    let places: Vec<usize> = (run - 1..tests.len()).step_by(shards).collect();
    let mut preview: Vec<String> = places.iter().take(3).map(|place| (place + 1).to_string()).collect();
    if places.len() > preview.len() {
        preview.push("...".to_owned());
    }
    let note = format!(
        "Selecting shard {run}/{shards} = size {}/{} = tests #({shards}*k)+{run} = [{}]",
        places.len(),
        tests.len(),
        preview.join(", ")
    );
    (places.into_iter().map(|place| tests[place]).collect(), note)
}

/// Marks the tests that the command line lists, by path in the suite or by full name.
pub fn mark(tests: &mut [Test], settings: &Settings) {
    let lists = [&settings.xfail, &settings.xfail_not, &settings.unsupported, &settings.unsupported_not];
    let [xfail, xfail_not, unsupported, unsupported_not] =
        lists.map(|list| list.iter().map(String::as_str).collect::<HashSet<&str>>());
    let listed = lists.iter().any(|list| !list.is_empty());
    if !listed && !settings.exclude_xfail {
        return;
    }
    for test in tests {
        test.marks.exclude_xfail = settings.exclude_xfail;
        if listed {
            let (path, name) = (test.path_text(), test.full_name());
            let named = |list: &HashSet<&str>| list.contains(path.as_str()) || list.contains(name.as_str());
            test.marks = Marks {
                xfail: named(&xfail),
                xfail_not: named(&xfail_not),
                unsupported: named(&unsupported),
                unsupported_not: named(&unsupported_not),
                exclude_xfail: settings.exclude_xfail,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests::test_at;

    fn five() -> Vec<Test> {
        ["a", "b", "c", "d", "e"].map(|name| test_at("S", "dir", name)).into()
    }

    #[test]
    fn filters_search_the_full_name_without_regard_to_case() {
        let settings = Settings {
            filter: Some("s :: DIR/[a-d]".into()),
            filter_out: Some("(?=b)b$".into()),
            ..Settings::default()
        };
        let (selection, _) = select(&five(), &settings).unwrap();
        assert_eq!(selection, Selection::Tests(vec![0, 2, 3]));
        let none = Settings { filter: Some("zz".into()), ..Settings::default() };
        assert_eq!(select(&five(), &none).unwrap().0, Selection::NothingMatched);
    }

    #[test]
    fn a_shard_takes_every_nth() {
        let settings = Settings { shard: Some((1, 3)), ..Settings::default() };
        let (selection, note) = select(&five(), &settings).unwrap();
        assert_eq!(selection, Selection::Tests(vec![0, 3]));
        assert_eq!(note.unwrap(), "Selecting shard 1/3 = size 2/5 = tests #(3*k)+1 = [1, 4]");
        let settings = Settings { shard: Some((6, 6)), ..Settings::default() };
        assert_eq!(select(&five(), &settings).unwrap().0, Selection::EmptyShard);
        let settings = Settings { shard: Some((1, 1)), max_tests: Some(2), ..Settings::default() };
        let (selection, note) = select(&five(), &settings).unwrap();
        assert_eq!(selection.tests(), [0, 1]);
        assert!(note.unwrap().ends_with("= [1, 2, 3, ...]"));
    }

    #[test]
    fn lists_name_tests_by_path_or_by_full_name() {
        let mut tests = five();
        let settings = Settings {
            xfail: vec!["dir/a".into()],
            xfail_not: vec!["S :: dir/b".into()],
            ..Settings::default()
        };
        mark(&mut tests, &settings);
        assert!(tests[0].marks.xfail && !tests[0].marks.xfail_not);
        assert!(tests[1].marks.xfail_not && !tests[2].marks.xfail);
    }
}
