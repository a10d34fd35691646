//! The orders in which tests start and in which they are listed (docs/reference/lit-compat.md, 1.5 and 1.6).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::settings::Order;
use crate::suite::Test;
use crate::times::Times;

/// Sorts tests into the order in which they will start. Equal ones keep their order.
pub fn arrange(tests: &mut [Test], order: Order) {
    match order {
        Order::Lexical => tests.sort_by_cached_key(Test::full_name),
        Order::Random => shuffle(tests),
        Order::Smart => {
            tests.sort_by_cached_key(Test::full_name);
            let key = |test: &Test| (!test.previous_failure(), -test.previous.abs());
            tests.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
        }
    }
}

/// Sorts tests as `--show-tests` lists them: by suite, then by the components of their paths.
pub fn arrange_for_listing(tests: &mut [Test]) {
    tests.sort_by_cached_key(|test| (test.suite().name.clone(), test.suite().index, test.path_in_suite()));
}

/// Sets the result of each test's last run. The keys of `times` are indices of suites.
pub fn recall(tests: &mut [Test], times: &HashMap<usize, Times>) {
    for test in tests {
        if let Some(times) = times.get(&test.suite().index).filter(|times| !times.is_empty()) {
            test.previous = times.get(&test.path_text()).unwrap_or(0.0);
        }
    }
}

/// Fisher and Yates's shuffle, with numbers from the standard library's randomly seeded hash.
fn shuffle<T>(items: &mut [T]) {
    let random = RandomState::new();
    for last in (1..items.len()).rev() {
        let other = random.hash_one(last) as usize % (last + 1);
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests::test_at;

    fn names(tests: &[Test]) -> Vec<String> {
        tests.iter().map(|test| test.name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn smart_order_starts_failures_then_slow_tests_then_by_name() {
        let mut tests: Vec<Test> = ["e", "d", "c", "b", "a"].map(|name| test_at("S", "", name)).into();
        tests[2].previous = 2.0;
        tests[3].previous = -0.5;
        tests[0].previous = 9.0;
        arrange(&mut tests, Order::Smart);
        assert_eq!(names(&tests), ["b", "e", "c", "a", "d"]);
    }

    #[test]
    fn a_listing_goes_by_components_and_an_order_by_the_whole_name() {
        let mut tests = vec![test_at("S", "a-b", "x"), test_at("S", "a", "x")];
        arrange(&mut tests, Order::Lexical);
        assert_eq!(tests[0].full_name(), "S :: a-b/x");
        arrange_for_listing(&mut tests);
        assert_eq!(tests[0].full_name(), "S :: a/x");
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut items: Vec<u32> = (0..100).collect();
        shuffle(&mut items);
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
