//! Texts, numbers and command lines.

use hotstart_python::getopt::gnu_getopt;
use hotstart_python::json::Json;
use hotstart_python::number::{fixed, float, int, repr_float};
use hotstart_python::text::{split, split_lines, strip, strip_end, strip_start};
use hotstart_python::{repr, repr_bytes, shlex};
use serde_json::{Value, json};

use crate::driver::{Driver, Random, count};

const TEXT: &[&str] = &[
    "a",
    "bc",
    "'",
    "\"",
    "\\",
    "\n",
    "\r",
    "\r\n",
    "\t",
    " ",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1f",
    "\x7f",
    "\u{85}",
    "\u{a0}",
    "\u{ad}",
    "é",
    "\u{378}",
    "\u{200b}",
    "\u{2028}",
    "\u{3000}",
    "\u{e000}",
    "\u{feff}",
    "😀",
    "\u{e0001}",
    "%",
    "=",
    "$",
];

fn text(case: &Value) -> &str {
    case[0].as_str().expect("a string")
}

fn value(value: impl Into<Value>) -> Option<Value> {
    Some(json!({"value": value.into()}))
}

#[test]
fn strings_are_written_and_cut_as_by_python() {
    let (mut driver, mut random) = (Driver::start(), Random::new(11));
    let mut draw = || json!([random.join(TEXT, 8)]);
    driver.compare("repr", count(3_000), &mut draw, |case| value(repr(text(case))));
    driver.compare("quote", count(3_000), &mut draw, |case| value(shlex::quote(text(case)).into_owned()));
    driver.compare("text", count(3_000), &mut draw, |case| {
        let text = text(case);
        value(json!([
            strip(text),
            strip_start(text),
            strip_end(text),
            split(text).collect::<Vec<_>>(),
            split_lines(text)
        ]))
    });
}

#[test]
fn bytes_are_written_as_by_python() {
    let (mut driver, mut random) = (Driver::start(), Random::new(12));
    let draw = || {
        let bytes = (0..random.below(8)).map(|_| char::from(random.below(256) as u8));
        json!([bytes.collect::<String>()])
    };
    driver.compare("repr_bytes", count(2_000), draw, |case| {
        let bytes: Vec<u8> = text(case).chars().map(|c| c as u8).collect();
        value(repr_bytes(&bytes))
    });
}

#[test]
fn words_are_split_as_by_python() {
    const PARTS: &[&str] =
        &["a", "b c", "'", "\"", "\\", " ", "\t", "\n", "\r", "#", "é", "\u{a0}", "$x", "\\\\", "\\\"", ""];
    let (mut driver, mut random) = (Driver::start(), Random::new(13));
    let draw = || json!([random.join(PARTS, 8)]);
    driver.compare("split", count(4_000), draw, |case| match shlex::split(text(case).as_ref()) {
        Ok(words) => {
            value(words.into_iter().map(|word| word.into_string().expect("text")).collect::<Vec<_>>())
        }
        Err(error) => Some(json!({"error": format!("ValueError: {error}")})),
    });
}

#[test]
fn integers_are_read_as_by_python() {
    const PARTS: &[&str] = &[
        "1", "07", "8", "_", "-", "+", " ", "0o", "0O", "0x", ".", "\u{663}", "９", "²", "\u{a0}", "\x1c",
        "\n", "a", "99999",
    ];
    let (mut driver, mut random) = (Driver::start(), Random::new(14));
    let draw = || {
        let text = random.join(PARTS, 5);
        let text = if random.below(50) == 0 { "1".repeat(4290 + random.below(20)) + &text } else { text };
        json!([text, if random.below(3) == 0 { 8 } else { 10 }])
    };
    driver.compare("int", count(5_000), draw, |case| {
        let base = case[1].as_u64().expect("a number") as u32;
        match int(text(case), base) {
            Some(number) if number.unsigned_abs() < 1 << 100 => value(number.to_string()),
            Some(_) => value("big"),
            // Python's message depends on the reason.
            None => None,
        }
    });
}

#[test]
fn integers_are_refused_as_by_python() {
    let texts = ["", "-", "1__0", "_1", "1_", "0o", "8", "0o8", "0x1", "1.0", "+-1", "٣a", "²"];
    let cases: Vec<Value> = texts.iter().flat_map(|text| [json!([text, 8]), json!([text, 10])]).collect();
    for (case, theirs) in cases.iter().zip(Driver::start().ask("int", &cases)) {
        let base = case[1].as_u64().expect("a number") as u32;
        assert_eq!(int(text(case), base).is_none(), theirs["error"].is_string(), "{case}");
    }
}

#[test]
fn floats_are_read_and_written_as_by_python() {
    const PARTS: &[&str] = &[
        "1", "0", "25", "_", "-", "+", " ", ".", "e", "E5", "e-30", "inf", "\x1c", "NaN", "infinity",
        "\u{663}", "\u{a0}", "x",
    ];
    let (mut driver, mut random) = (Driver::start(), Random::new(15));
    let cases: Vec<Value> = (0..count(4_000)).map(|_| json!([random.join(PARTS, 6)])).collect();
    for (case, theirs) in cases.iter().zip(driver.ask("float", &cases)) {
        assert_eq!(
            float(text(case)).map(repr_float),
            theirs["value"].as_str().map(str::to_owned),
            "float of {case}"
        );
    }
    let draw = || {
        let bits = (random.below(1 << 31) as u64) << 33 | (random.below(1 << 31) as u64) << 2;
        let scaled = random.below(1 << 20) as f64 * 10f64.powi(random.below(40) as i32 - 20);
        let number = if random.below(2) == 0 { f64::from_bits(bits) } else { scaled };
        json!([format!("{number:e}")])
    };
    driver.compare("floats", count(4_000), draw, |case| {
        let number: f64 = text(case).parse().expect("a number");
        value(json!([repr_float(number), fixed(number, 4)]))
    });
}

fn draw_json(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => json!(random.below(1 << 31) as i64 - (1 << 30)),
        3 => json!(u64::MAX - random.below(9) as u64),
        4 => json!(random.below(1 << 20) as f64 * 10f64.powi(random.below(40) as i32 - 20)),
        5 => json!(random.join(TEXT, 5)),
        6 => (0..random.below(4)).map(|_| draw_json(random, depth - 1)).collect(),
        _ => {
            let members = (0..random.below(4)).map(|_| (random.join(TEXT, 2), draw_json(random, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

#[test]
fn json_is_written_as_by_python() {
    let (mut driver, mut random) = (Driver::start(), Random::new(16));
    let draw = || json!([draw_json(&mut random, 3).to_string()]);
    driver.compare("json", count(2_000), draw, |case| value(Json::from_text(text(case)).indented(0)));
}

#[test]
fn options_are_told_apart_as_by_python() {
    const WORDS: &[&str] = &[
        "-w",
        "-wb",
        "-U",
        "-U3",
        "-uI",
        "-",
        "--",
        "--strip",
        "--strip-trailing-cr",
        "--strip-all=1",
        "--x",
        "-x",
        "a",
        "",
        "-é",
    ];
    let (mut driver, mut random) = (Driver::start(), Random::new(17));
    let draw = || {
        let words: Vec<&str> = (0..random.below(5)).map(|_| random.pick(WORDS)).collect();
        json!([words])
    };
    driver.compare("getopt", count(3_000), draw, |case| {
        let words: Vec<String> = serde_json::from_value(case[0].clone()).expect("strings");
        match gnu_getopt(&words, "wbuI:U:r", &["strip-trailing-cr", "strip-all"]) {
            Ok(parsed) => value(json!(parsed)),
            Err(error) => Some(json!({"error": format!("getopt.GetoptError: {error}")})),
        }
    });
}
