//! googletest executables: finds their tests, splits them into shards, runs these, and separates the results.
//!
//! A job is a shard, as in lit, so live output names shards. After the run each shard is replaced by the tests that
//! its executable reports in a JSON file (docs/reference/lit-compat.md, 2.8).

pub mod individual;
pub(crate) mod list;
pub(crate) mod shard;

use std::fs;
use std::path::Path;

use hotstart_python::repr;
use serde_json::Value;

use crate::exception::Exception;

/// Tests in a shard, if that makes enough shards to keep all cores busy.
const SHARD_SIZE: u64 = 512;

/// Returns the number of shards of an executable.
pub(crate) fn shards(tests: u64, cores: u64) -> u64 {
    let mut size = SHARD_SIZE;
    while tests.div_ceil(size) < cores && size > 1 {
        size /= 2;
    }
    tests.div_ceil(size)
}

/// Reads the results that an executable wrote.
fn read_results(path: &Path) -> Result<Value, Exception> {
    let bytes = fs::read(path).map_err(|error| Exception::new("OSError", error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        let message =
            format!("'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: invalid start byte");
        Exception::new("UnicodeDecodeError", message)
    })?;
    serde_json::from_str(&text).map_err(|error| {
        Exception::new("json.decoder.JSONDecodeError", error.to_string())
            .at(format!("while reading {}", path.display()))
    })
}

fn member<'v>(value: &'v Value, key: &str) -> Result<&'v Value, Exception> {
    value.get(key).ok_or_else(|| Exception::new("KeyError", repr(key)))
}

fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, Exception> {
    let not_text = || Exception::new("TypeError", format!("{} of a test is not a string", repr(key)));
    member(value, key)?.as_str().ok_or_else(not_text)
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>, Exception> {
    let not_list = || Exception::new("TypeError", format!("{} is not a list", repr(key)));
    member(value, key)?.as_array().ok_or_else(not_list)
}

/// Returns the messages of a test that failed; `None` if it did not fail.
fn failures(test: &Value) -> Result<Option<Vec<&str>>, Exception> {
    if test.get("failures").is_none() {
        return Ok(None);
    }
    list(test, "failures")?.iter().map(|failure| text(failure, "failure")).collect::<Result<_, _>>().map(Some)
}

/// Returns lit's header of a test.
fn header(command: &str, test: &str) -> String {
    format!("Script:\n--\n{command} --gtest_filter={test}\n--\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_shrink_until_all_cores_have_one() {
        assert_eq!(shards(0, 8), 0);
        assert_eq!(shards(1, 8), 1);
        assert_eq!(shards(7, 2), 2);
        assert_eq!(shards(2000, 2), 4);
        assert_eq!(shards(100, 64), 100);
    }

    #[test]
    fn what_is_missing_is_a_key_error() {
        let value: Value = serde_json::from_str(r#"{"failures": [{}]}"#).unwrap();
        assert_eq!(failures(&value).unwrap_err().to_string(), "KeyError: 'failure'");
        assert_eq!(failures(&Value::Null), Ok(None));
    }
}
