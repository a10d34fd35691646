//! A sequence of requests to one program, with everything that is needed to run it again.

use serde::{Deserialize, Serialize};

/// Runs of one program, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// The acts of the program before `main`. Empty for most programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// The number of arguments that every run gets, with words that mean nothing behind its acts. 0: as many as it has acts. A deferred
    /// snapshot is for one number of arguments.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub arguments: usize,
    /// The runs.
    pub requests: Vec<Request>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// The acts, in order.
    pub acts: Vec<String>,
    /// Variables beyond the common environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// Standard input.
    #[serde(skip_serializing_if = "Input::is_null")]
    pub input: Input,
    /// Files in its directory when it begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, String)>,
    /// File mode mask, if it gets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Resource limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limited>,
    /// Whether it gets the additional descriptors 3 and 7.
    #[serde(skip_serializing_if = "is_false")]
    pub extra: bool,
    /// Whether standard output and error are one file.
    #[serde(skip_serializing_if = "is_false")]
    pub merged: bool,
    /// Whether it runs in a subdirectory of the usual directory.
    #[serde(skip_serializing_if = "is_false")]
    pub below: bool,
    /// Whether it leads its process group, as a command of a build can; a test's never does.
    #[serde(skip_serializing_if = "is_false")]
    pub leads: bool,
}

/// Standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// `/dev/null`.
    #[default]
    Null,
    /// A file with this content.
    File(String),
    /// A pipe with this content, whose write end is closed.
    Pipe(String),
}

/// A resource limit, soft and hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limited {
    /// Open files.
    Files(u64),
    /// Bytes in one file.
    FileSize(u64),
}

impl Input {
    fn is_null(&self) -> bool {
        *self == Input::Null
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Sequence {
    /// Returns the number of its acts.
    pub fn acts(&self) -> usize {
        self.requests.iter().map(|request| request.acts.len()).sum()
    }

    /// Whether it has the act `name`, in `main` or before.
    pub fn has(&self, name: &str) -> bool {
        let mut main = self.requests.iter().flat_map(|request| &request.acts);
        self.before.iter().any(|act| act == name) || main.any(|act| act == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_survives_being_written_down() {
        let plain = Request { acts: vec!["a".into()], ..Request::default() };
        let rich = Request {
            env: vec![("K".into(), "V".into())],
            input: Input::Pipe("text".into()),
            limits: vec![Limited::Files(9)],
            umask: Some(7),
            extra: true,
            ..plain.clone()
        };
        let sequence = Sequence { before: vec!["b".into()], arguments: 9, requests: vec![plain, rich] };
        let text = serde_json::to_string(&sequence).unwrap();
        assert_eq!(serde_json::from_str::<Sequence>(&text).unwrap(), sequence);
        assert!(text.contains(r#""arguments":9,"requests":[{"acts":["a"]},"#), "{text}");
    }
}
