//! Unit tests of substitutions. `tests/suite_against_lit.rs` compares them with lit.

use std::path::Path;

use hotstart_model::Dialect;

use super::*;
use crate::config::Substitution;

fn substituted(dialect: Dialect, pairs: &[(&str, &str)], limit: Option<u32>, line: &str) -> String {
    let substitution = |&(key, value): &(&str, &str)| Substitution {
        key: key.to_owned(),
        value: value.to_owned(),
        captures: false,
    };
    let given: Vec<_> = pairs.iter().map(substitution).collect();
    let entries = Pool::new(dialect).entries(given.iter());
    let paths = TestPaths::new(Path::new("/s/a.ll"), Path::new("/x/a.ll"), None, dialect, false);
    let features = Features::new(&[] as &[String]);
    let list = List::new(&entries);
    let substituter = Substituter { list, features: &features, paths: &paths, recursion_limit: limit };
    substituter.apply(line).unwrap_or_else(|error| error.to_string())
}

#[test]
fn entries_see_what_earlier_ones_inserted() {
    let pairs = [("%a", "%b c"), ("%b", "x"), (r"\bc\b", "/bin/c")];
    assert_eq!(
        substituted(Dialect::V23, &pairs, None, " %a %%a %s %t2 "),
        "x /bin/c %a /s/a.ll /x/Output/a.ll.tmp2"
    );
}

#[test]
fn percents_that_come_up_are_protected_too() {
    assert_eq!(substituted(Dialect::V23, &[("%a", "%"), ("%s", "no")], None, "%a%s"), "%s");
}

#[test]
fn values_are_templates_only_in_old_lit() {
    assert_eq!(substituted(Dialect::V23, &[("%a(b)", r"\1\q")], None, "%ab"), r"\1\q");
    assert_eq!(substituted(Dialect::V19, &[("%a(b)", r"\1")], None, "%ab"), "b");
    assert_eq!(
        substituted(Dialect::V19, &[("%a", r"\q")], None, "x"),
        r"re.error: bad escape \q at position 0"
    );
    assert_eq!(substituted(Dialect::V19, &[], None, "%T"), "/x/Output");
    assert_eq!(substituted(Dialect::V23, &[], None, "%T"), "%T");
}

#[test]
fn recursion_ends_or_is_an_error() {
    let pairs = [("%a", "%b"), ("%b", "%c"), ("%d", "%a")];
    assert_eq!(substituted(Dialect::V23, &pairs, Some(3), "%d"), "%c");
    let endless = substituted(Dialect::V23, &[("%a", "%a.")], Some(2), "%a");
    let expected =
        "ValueError: Recursive substitution of '%a' did not complete in the provided recursion limit (2)";
    assert_eq!(endless, expected);
}

#[test]
fn a_bad_key_is_named() {
    let entry =
        Entry::new(&Substitution { key: "%(".into(), value: String::new(), captures: false }, Dialect::V23);
    let error = entry.pattern().unwrap_err();
    assert_eq!(error.to_string(), "re.error: missing ), unterminated subpattern at position 1");
    assert!(crate::exception::test_output(&error).contains("key of the substitution '%('"));
}
