//! Compares every property of every character.
//!
//! Python and this crate use different versions of Unicode. Characters that Python does not know are skipped, and so
//! are those that a later version of Unicode allows in names.

use hotstart_python::number::int;
use hotstart_python::re::Pattern;
use hotstart_python::text::{
    is_alpha, is_digit, is_identifier, is_printable, is_space, is_word, split_lines,
};
use serde_json::{Value, json};

use crate::driver::Driver;

const QUESTIONS: [&str; 10] = [
    "isspace",
    "isalpha",
    "isdecimal",
    "isprintable",
    "isidentifier",
    "isidentifier behind a letter",
    r"\w",
    r"\s",
    r"\d",
    "splitlines",
];

const NEW_IN_NAMES: [char; 4] = ['\u{200c}', '\u{200d}', '\u{30fb}', '\u{ff65}'];

/// Returns the answers in the order of the driver's bits.
fn answers(c: char, space: &Pattern) -> [bool; 10] {
    let text = c.to_string();
    [
        is_space(c),
        is_alpha(c),
        is_digit(c),
        is_printable(c),
        is_identifier(&text),
        is_identifier(&format!("a{c}")),
        is_word(c),
        space.is_match(&text).expect("an answer"),
        is_digit(c),
        split_lines(&format!("a{c}b")).len() == 2,
    ]
}

#[test]
fn characters_are_of_the_kinds_that_python_says() {
    const STEP: u32 = 0x1000;
    let space = Pattern::without_shortcut(r"\s").expect("a valid pattern");
    let mut driver = Driver::start();
    let mut known = 0;
    for start in (0..0x11_0000).step_by(STEP as usize) {
        let theirs = driver.ask("kinds", &[json!([start, start + STEP])]);
        let theirs = theirs[0]["value"].as_array().expect("a list");
        for (code, bits) in (start..start + STEP).zip(theirs) {
            let bits = bits.as_u64().expect("a number");
            let Some(c) = char::from_u32(code).filter(|_| bits >> QUESTIONS.len() == 0) else { continue };
            known += 1;
            for (place, ours) in answers(c, &space).into_iter().enumerate() {
                if QUESTIONS[place].starts_with("isidentifier") && NEW_IN_NAMES.contains(&c) {
                    continue;
                }
                assert_eq!(ours, bits >> place & 1 == 1, "{} of U+{code:04X}", QUESTIONS[place]);
            }
        }
    }
    assert!(known > 200_000, "{known} characters compared");
}

#[test]
fn digits_of_all_scripts_have_their_values() {
    let digits = Driver::start().ask("digits", &[json!([])]);
    let digits = digits[0]["value"].as_array().expect("a list");
    assert!(digits.len() > 500);
    for pair in digits {
        let number = |value: &Value| value.as_u64().expect("a number") as u32;
        let c = char::from_u32(number(&pair[0])).expect("a character");
        assert_eq!(int(&c.to_string(), 10), Some(number(&pair[1]).into()), "{c:?}");
    }
}
