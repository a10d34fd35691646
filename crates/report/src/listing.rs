//! `--show-suites`, `--show-tests` and `--show-used-features`: lists discovered tests without running them.

pub mod json;

use crate::Sink;

/// A suite as it is listed.
#[derive(Clone, Debug, Default)]
pub struct SuiteListing {
    /// Its name.
    pub name: String,
    /// Number of its tests that were discovered.
    pub tests: usize,
    /// Directory of the tests.
    pub source_root: String,
    /// Directory below which they run.
    pub exec_root: String,
    /// Its config's features, in any order.
    pub features: Vec<String>,
    /// Its config's substitutions, key and value, in any order.
    pub substitutions: Vec<(String, String)>,
}

/// A test as it is listed.
#[derive(Clone, Debug)]
pub struct TestListing<'a> {
    /// Name of its suite.
    pub suite: &'a str,
    /// Place of its suite among the suites.
    pub suite_index: usize,
    /// Components of its path in the suite.
    pub path: &'a [String],
    /// `SUITE :: DIR/FILE`.
    pub full_name: String,
}

/// Writes suites, sorted by name; those of one name keep their order.
pub fn write_suites(to: &mut Sink, mut suites: Vec<SuiteListing>) {
    suites.sort_by(|a, b| a.name.cmp(&b.name));
    to.line("-- Test Suites --");
    for suite in suites {
        write_suite(to, suite);
    }
    to.flush();
}

fn write_suite(to: &mut Sink, mut suite: SuiteListing) {
    suite.features.sort();
    suite.substitutions.sort();
    let substitutions: Vec<_> =
        suite.substitutions.iter().map(|(key, value)| format!("{key} => {value}")).collect();
    // Align the keys.
    let separator = format!("\n{}", " ".repeat(29));
    to.line(&format!("  {} - {} tests", suite.name, suite.tests));
    to.line(&format!("    Source Root: {}", suite.source_root));
    to.line(&format!("    Exec Root  : {}", suite.exec_root));
    to.line(&format!("    Available Features: {}", suite.features.join(" ")));
    to.line(&format!("    Available Substitutions: {}", substitutions.join(&separator)));
}

/// Writes names of tests.
pub fn write_tests(to: &mut Sink, mut tests: Vec<TestListing<'_>>) {
    tests.sort_by(|a, b| (a.suite, a.suite_index, a.path).cmp(&(b.suite, b.suite_index, b.path)));
    to.line("-- Available Tests --");
    for test in tests {
        to.line(&format!("  {}", test.full_name));
    }
    to.flush();
}

/// Writes the features that tests' conditions name.
pub fn write_used_features(to: &mut Sink, mut features: Vec<String>) {
    features.sort();
    features.dedup();
    to.line(&features.join(" "));
    to.flush();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::tests::Captured;

    #[test]
    fn suites_with_their_substitutions_below_each_other() {
        let captured = Captured::default();
        let suite = SuiteListing {
            name: "s".into(),
            tests: 2,
            source_root: "/src".into(),
            exec_root: "/obj".into(),
            features: vec!["z".into(), "a".into()],
            substitutions: vec![("%y".into(), "2".into()), ("%x".into(), "1".into())],
        };
        write_suites(
            &mut captured.sink(),
            vec![suite, SuiteListing { name: "a".into(), ..Default::default() }],
        );
        assert_eq!(
            captured.text(),
            "-- Test Suites --\n  a - 0 tests\n    Source Root: \n    Exec Root  : \n    Available Features: \n\
             \u{20}   Available Substitutions: \n  s - 2 tests\n    Source Root: /src\n    Exec Root  : /obj\n\
             \u{20}   Available Features: a z\n    Available Substitutions: %x => 1\n\
             \u{20}                            %y => 2\n"
        );
    }

    #[test]
    fn tests_by_suite_then_path() {
        let captured = Captured::default();
        let paths = [vec!["b".to_owned()], vec!["a".to_owned(), "z".to_owned()]];
        let test = |suite, suite_index, path: usize| TestListing {
            suite,
            suite_index,
            path: &paths[path],
            full_name: format!("{suite} :: {}", paths[path].join("/")),
        };
        write_tests(
            &mut captured.sink(),
            vec![test("s", 1, 0), test("s", 0, 0), test("s", 1, 1), test("r", 2, 0)],
        );
        assert_eq!(captured.text(), "-- Available Tests --\n  r :: b\n  s :: b\n  s :: a/z\n  s :: b\n");
    }

    #[test]
    fn features_once() {
        let captured = Captured::default();
        write_used_features(&mut captured.sink(), vec!["b".into(), "a".into(), "b".into()]);
        assert_eq!(captured.text(), "a b\n");
    }
}
