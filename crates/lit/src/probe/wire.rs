//! The helper's JSON in Rust's types, and requests in JSON.
//!
//! Strings are read as bytes: paths and variables that are not UTF-8 are sent unchanged, which serde allows for byte
//! strings only. Hence no enums here, as serde would have to buffer them as text.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A Python string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(Vec<u8>);

impl Text {
    pub fn into_string(self) -> String {
        String::from_utf8(self.0)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    pub fn into_os(self) -> OsString {
        OsString::from_vec(self.0)
    }

    pub fn into_path(self) -> PathBuf {
        PathBuf::from(self.into_os())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Text, E> {
        Ok(Text(bytes.to_vec()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.as_bytes().to_vec()))
    }
}

/// For a field of which `null` is a value: absent is `None`, `null` is `Some(None)`.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The helper's first line.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Hello {
    pub litprobe: u32,
    pub lit_version: Option<Vec<u32>>,
    pub lit_version_text: Option<Text>,
    pub package_dir: Option<Text>,
    pub missing: Option<Text>,
    pub executable: Option<Text>,
}

/// Any other line; its fields depend on the request.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Reply {
    pub diagnostics: Vec<Message>,
    pub error: Option<Failure>,
    pub exit: Option<Stop>,
    pub id: Option<u32>,
    pub changes: Option<Changes>,
    pub tests: Option<Vec<Vec<Text>>>,
    /// Place among the tests, file, and file of googletest's results.
    pub details: Vec<(usize, Text, Option<Text>)>,
    /// Place among the tests, and the pickle of a test that is more than its name.
    pub carried: Vec<(usize, Text)>,
    pub group: Option<Text>,
    pub state: Option<State>,
    pub late: Vec<(u32, Changes)>,
    pub update: Option<super::updaters::UpdateWire>,
    /// Everything that all answers so far depend on.
    pub trace: Option<super::cache::Told>,
    /// Not an answer yet: the values of a config that now waits for a process.
    pub ahead: Option<Ahead>,
}

/// See [`crate::ahead`].
#[derive(Debug, serde::Deserialize)]
pub(super) struct Ahead {
    pub environment: Vec<(Text, Text)>,
    pub values: Vec<Text>,
    pub source_root: Option<Text>,
    pub exec_root: Option<Text>,
}

/// A message from a config.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Message {
    pub kind: Text,
    pub file: Text,
    pub line: u32,
    pub message: Text,
}

/// A config that could not be evaluated.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Failure {
    pub text: Text,
    pub file: Option<Text>,
    pub line: Option<u32>,
}

/// A config that called `sys.exit` with a value.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Stop {
    pub status: i32,
    pub text: Option<Text>,
}

/// Fields of a config that differ from those of its parent.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Changes {
    pub name: Option<Text>,
    pub suffixes: Option<Vec<Text>>,
    pub excludes: Option<Vec<Text>>,
    #[serde(deserialize_with = "present")]
    pub format: Option<Option<Format>>,
    pub environment: Option<Vec<(Text, Text)>>,
    pub substitutions: Option<Vec<Substitution>>,
    pub available_features: Option<Vec<Text>>,
    pub unsupported: Option<bool>,
    pub pipefail: Option<bool>,
    pub limit_to_features: Option<Vec<Text>>,
    #[serde(deserialize_with = "present")]
    pub parallelism_group: Option<Option<Group>>,
    pub standalone_tests: Option<bool>,
    #[serde(deserialize_with = "present")]
    pub recursive_expansion_limit: Option<Option<u32>>,
    #[serde(deserialize_with = "present")]
    pub test_retry_attempts: Option<Option<i64>>,
    #[serde(deserialize_with = "present")]
    pub test_source_root: Option<Option<Text>>,
    #[serde(deserialize_with = "present")]
    pub test_exec_root: Option<Option<Text>>,
    #[serde(deserialize_with = "present")]
    pub max_individual_test_time: Option<Option<f64>>,
    pub hotstart_cold: Option<SomeOf>,
    pub hotstart_alone: Option<SomeOf>,
}

/// `config.hotstart_cold` and `config.hotstart_alone`: all, or these names.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct SomeOf {
    pub all: bool,
    pub names: Vec<Text>,
}

/// Key, value, and whether the value is a template.
pub(super) type Substitution = (Text, Text, bool);

/// A test format; the fields of the other kinds are empty.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Format {
    pub kind: Text,
    pub class: Text,
    pub execute_external: bool,
    pub extra_substitutions: Vec<Substitution>,
    pub preamble_commands: Vec<Text>,
    pub test_sub_dirs: Vec<Text>,
    pub test_suffix: Text,
    pub test_prefix: Option<Text>,
    pub run_under: Vec<Text>,
}

/// A parallelism group.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Group {
    pub name: Option<Text>,
}

/// State of `lit_config` after the configs have run.
#[derive(Debug, serde::Deserialize)]
pub(super) struct State {
    pub errors: u32,
    pub warnings: u32,
    pub parallelism_groups: Vec<(Text, Option<u32>)>,
    pub max_individual_test_time: f64,
    pub per_test_coverage: bool,
    pub valgrind_args: Vec<Text>,
    pub params: Vec<(Text, Text)>,
    pub bash: Option<Text>,
    pub result_codes: Vec<(Text, Text, bool)>,
}

/// Writes a request: a JSON object whose strings may be any bytes.
#[derive(Debug)]
pub(super) struct Request(Vec<u8>);

impl Request {
    pub fn new() -> Self {
        Request(vec![b'{'])
    }

    pub fn op(op: &str) -> Self {
        Request::new().text("op", op)
    }

    pub fn text(self, key: &str, value: &str) -> Self {
        self.bytes(key, value.as_bytes())
    }

    pub fn path(self, key: &str, value: &Path) -> Self {
        self.bytes(key, value.as_os_str().as_bytes())
    }

    pub fn optional(self, key: &str, value: Option<&[u8]>) -> Self {
        match value {
            Some(value) => self.bytes(key, value),
            None => self.raw(key, "null"),
        }
    }

    pub fn bytes(mut self, key: &str, value: &[u8]) -> Self {
        self.key(key);
        push_string(&mut self.0, value);
        self
    }

    /// Adds a number, `true`, `false` or `null`.
    pub fn raw(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.key(key);
        self.0.extend_from_slice(value.to_string().as_bytes());
        self
    }

    pub fn list<'a>(mut self, key: &str, values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        self.key(key);
        self.push_list(values);
        self
    }

    pub fn pairs<'a>(self, key: &str, pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        self.lists(key, pairs.into_iter().map(|(first, second)| [first, second]))
    }

    /// Adds an object of values that are JSON already.
    pub fn values<'a>(mut self, key: &str, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let object = values.into_iter().fold(Request::new(), |object, (name, json)| object.raw(name, json));
        self.key(key);
        self.0.extend_from_slice(&object.0);
        self.0.push(b'}');
        self
    }

    /// Adds a list of lists of strings.
    pub fn lists<'a, const N: usize>(
        mut self,
        key: &str,
        lists: impl IntoIterator<Item = [&'a [u8]; N]>,
    ) -> Self {
        self.key(key);
        self.0.push(b'[');
        for (index, list) in lists.into_iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            self.push_list(list);
        }
        self.0.push(b']');
        self
    }

    /// Adds a list of objects.
    pub fn objects(mut self, key: &str, objects: impl IntoIterator<Item = Request>) -> Self {
        self.key(key);
        self.0.push(b'[');
        for (index, object) in objects.into_iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(&object.0);
            self.0.push(b'}');
        }
        self.0.push(b']');
        self
    }

    /// Returns the request's line.
    pub fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }

    fn push_list<'a>(&mut self, values: impl IntoIterator<Item = &'a [u8]>) {
        self.0.push(b'[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            push_string(&mut self.0, value);
        }
        self.0.push(b']');
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        push_string(&mut self.0, key.as_bytes());
        self.0.push(b':');
    }
}

fn push_string(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            0..0x20 => line.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => line.push(byte),
        }
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_survive_both_ways() {
        let line = Request::op("x").bytes("path", b"a\xff\"\n").end();
        assert_eq!(line, b"{\"op\":\"x\",\"path\":\"a\xff\\\"\\u000a\"}\n");
        let text: Text = serde_json::from_slice(b"\"a\xff\\n\"").unwrap();
        assert_eq!(text.bytes(), b"a\xff\n");
    }

    #[test]
    fn null_is_told_from_absent() {
        let changes: Changes = serde_json::from_slice(br#"{"format":null,"test_exec_root":"/x"}"#).unwrap();
        assert!(matches!(changes.format, Some(None)));
        assert!(changes.parallelism_group.is_none());
        assert_eq!(changes.test_exec_root.unwrap().unwrap().bytes(), b"/x");
    }
}
