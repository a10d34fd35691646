//! `json.dumps`, byte by byte.
//!
//! Written by hand: lit's reports are compared byte by byte, and Python has its own format of floats and of escapes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use crate::number::repr_float;

/// A JSON value to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `None`
    Null,
    /// A `bool`.
    Bool(bool),
    /// An `int`.
    Int(i128),
    /// A `float`.
    Float(f64),
    /// A `str`.
    Text(Cow<'a, str>),
    /// A `list`.
    List(Vec<Json<'a>>),
    /// The members. They are written in the order of the keys.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Returns a string.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Json<'a> {
        Json::Text(text.into())
    }

    /// Returns an object with these members.
    pub fn object<K: Into<Cow<'a, str>>>(members: impl IntoIterator<Item = (K, Json<'a>)>) -> Json<'a> {
        Json::Object(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// Parses the text of a metric. Text that is not JSON becomes a string, so that nothing is lost.
    pub fn from_text(text: &'a str) -> Json<'a> {
        match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) => Json::from_value(value),
            Err(_) => Json::text(text),
        }
    }

    fn from_value(value: serde_json::Value) -> Json<'a> {
        use serde_json::Value;
        match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(value),
            Value::Number(number) => match number.as_i128() {
                Some(value) => Json::Int(value),
                None => Json::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Json::text(text),
            Value::Array(items) => Json::List(items.into_iter().map(Json::from_value).collect()),
            Value::Object(map) => {
                Json::object(map.into_iter().map(|(key, value)| (key, Json::from_value(value))))
            }
        }
    }

    /// Formats like `json.dumps(value, indent=2, sort_keys=True)`, nested `depth` levels deep.
    pub fn indented(&self, depth: usize) -> String {
        let mut text = String::new();
        self.write_indented(&mut text, depth);
        text
    }

    fn write_indented(&self, to: &mut String, depth: usize) {
        match self {
            Json::Null => to.push_str("null"),
            Json::Bool(true) => to.push_str("true"),
            Json::Bool(false) => to.push_str("false"),
            Json::Int(value) => write!(to, "{value}").expect("a string takes all"),
            Json::Float(value) => to.push_str(&json_float(*value)),
            Json::Text(text) => write_string(to, text),
            Json::List(items) if items.is_empty() => to.push_str("[]"),
            Json::List(items) => {
                write_members(to, depth, ('[', ']'), items.iter(), |to, item| {
                    item.write_indented(to, depth + 1);
                });
            }
            Json::Object(members) if members.is_empty() => to.push_str("{}"),
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                write_members(to, depth, ('{', '}'), members.into_iter(), |to, (key, value)| {
                    write_string(to, key);
                    to.push_str(": ");
                    value.write_indented(to, depth + 1);
                });
            }
        }
    }
}

/// Text is buffered up to about this many bytes: one system call for some hundred tests.
const WRITTEN_AT_ONCE: usize = 64 << 10;

/// Writes a JSON object with one long list in it, an item at a time. `before` has the members whose keys sort before
/// `list`, the key of the list. No member may come after it.
pub fn write_document<'a>(
    to: &mut dyn io::Write,
    before: &[(&str, Json<'_>)],
    list: &str,
    items: impl Iterator<Item = Json<'a>>,
) -> io::Result<()> {
    write!(to, "{{")?;
    for (key, value) in before {
        write!(to, "\n  \"{key}\": {},", value.indented(1))?;
    }
    write!(to, "\n  \"{list}\": [")?;
    let mut is_empty = true;
    let mut text = String::new();
    for item in items {
        text.push_str(if is_empty { "\n    " } else { ",\n    " });
        is_empty = false;
        item.write_indented(&mut text, 2);
        if text.len() >= WRITTEN_AT_ONCE {
            to.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    to.write_all(text.as_bytes())?;
    write!(to, "{}]\n}}", if is_empty { "" } else { "\n  " })
}

fn write_members<T>(
    to: &mut String,
    depth: usize,
    (open, close): (char, char),
    members: impl Iterator<Item = T>,
    mut write_one: impl FnMut(&mut String, T),
) {
    to.push(open);
    for (index, member) in members.enumerate() {
        to.push_str(if index == 0 { "\n" } else { ",\n" });
        indent(to, depth + 1);
        write_one(to, member);
    }
    to.push('\n');
    indent(to, depth);
    to.push(close);
}

fn indent(to: &mut String, depth: usize) {
    for _ in 0..depth {
        to.push_str("  ");
    }
}

/// Writes a JSON string in ASCII, with other characters as UTF-16 escapes.
fn write_string(to: &mut String, text: &str) {
    let is_special = |byte: u8| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\');
    to.push('"');
    let mut rest = text;
    // Copies text without escapes in pieces.
    while let Some(at) = rest.bytes().position(is_special) {
        let (plain, special) = rest.split_at(at);
        let mut special = special.chars();
        to.push_str(plain);
        special.next().into_iter().for_each(|c| write_escaped(to, c));
        rest = special.as_str();
    }
    to.push_str(rest);
    to.push('"');
}

fn write_escaped(to: &mut String, c: char) {
    match c {
        '"' => to.push_str("\\\""),
        '\\' => to.push_str("\\\\"),
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        '\u{8}' => to.push_str("\\b"),
        '\u{c}' => to.push_str("\\f"),
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(to, "\\u{unit:04x}").expect("a string takes all");
            }
        }
    }
}

fn json_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    repr_float(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_ascii() {
        let text = Json::Text("a\"\\\n\u{1}\u{7f}é😀\u{8}\u{c}".into()).indented(0);
        assert_eq!(text, r#""a\"\\\n\u0001\u007f\u00e9\ud83d\ude00\b\f""#);
    }

    #[test]
    fn floats_that_are_no_numbers_have_names() {
        assert_eq!(json_float(f64::NAN), "NaN");
        assert_eq!(json_float(f64::NEG_INFINITY), "-Infinity");
    }

    #[test]
    fn keys_are_sorted_and_empty_values_short() {
        let value = Json::from_text(r#"{"b": {}, "a": [true, null, 10000000000000000000000], "B": "x"}"#);
        assert_eq!(
            value.indented(1),
            "{\n    \"B\": \"x\",\n    \"a\": [\n      true,\n      null,\n      1e+22\n    ],\n    \"b\": {}\n  }"
        );
    }

    #[test]
    fn a_document_without_items() {
        let mut to = Vec::new();
        write_document(&mut to, &[("a", Json::Int(1))], "tests", std::iter::empty()).unwrap();
        assert_eq!(String::from_utf8(to).unwrap(), "{\n  \"a\": 1,\n  \"tests\": []\n}");
    }
}
