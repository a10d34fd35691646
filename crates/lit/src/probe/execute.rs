//! Runs tests whose format is written in Python, in the helper.
//!
//! A test is one request, within which the helper may call back: hotstart runs a script or a program, and its result
//! goes to the place where lit would have run it.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotstart_model::MetricValue;

use super::updaters::Described;
use super::wire::{Failure, Request, Stop, Text};
use super::{Probe, ProbeError, update};

/// A line from the helper while a test runs; one of the fields is set.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Turn {
    call: Option<Call>,
    result: Option<ResultWire>,
    error: Option<Failure>,
    exit: Option<Stop>,
}

/// A test's call to run a script or a program.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Call {
    kind: Text,
    lines: Vec<Text>,
    argv: Vec<Text>,
    prefix: Vec<Text>,
    env: Vec<(Text, Text)>,
    cwd: Text,
    tmp_base: Text,
    timeout: f64,
    pub pipefail: bool,
    pub merges_errors: bool,
    /// Whether the answer shows the commands as they run; otherwise it has only their output.
    pub trace: bool,
    /// Whether the answer lists the commands that failed, for updaters.
    pub wants_failures: bool,
    pub output_limit: i64,
}

/// The kind of a call: a script for the internal or an external shell, or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Internal,
    External,
    Program,
}

impl Call {
    pub fn kind(&self) -> Kind {
        match self.kind.bytes() {
            b"external" => Kind::External,
            b"program" => Kind::Program,
            _ => Kind::Internal,
        }
    }

    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.lines.iter().map(|line| line.clone().into_string())
    }

    pub fn argv(&self) -> impl Iterator<Item = OsString> {
        self.argv.iter().map(|word| word.clone().into_os())
    }

    pub fn prefix(&self) -> impl Iterator<Item = String> {
        self.prefix.iter().map(|word| word.clone().into_string())
    }

    pub fn env(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.env.iter().map(|(key, value)| (key.clone().into_os(), value.clone().into_os()))
    }

    pub fn cwd(&self) -> PathBuf {
        self.cwd.clone().into_path()
    }

    pub fn tmp_base(&self) -> PathBuf {
        self.tmp_base.clone().into_path()
    }

    pub fn timeout(&self) -> Option<Duration> {
        update::seconds(self.timeout)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct ResultWire {
    code: Text,
    output: Text,
    attempts: (u32, u32),
    elapsed: Option<f64>,
    updates: Vec<Text>,
    metrics: Vec<(Text, Text, Text)>,
    micro: Vec<(Text, ResultWire)>,
    missing: Vec<Text>,
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Executed {
    /// Name of the result code.
    pub code: String,
    pub output: String,
    pub attempts: (u32, u32),
    pub elapsed: Option<Duration>,
    pub updates: Vec<String>,
    pub metrics: Vec<(String, MetricValue)>,
    pub micro: Vec<(String, Executed)>,
    pub missing: Vec<String>,
}

/// The answer to a call.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
    pub timed_out: bool,
    /// An exception to raise: type and message.
    pub fault: Option<(String, String)>,
    /// The message of an error after which no further attempt is made.
    pub fatal: Option<String>,
    /// Commands that failed, if requested.
    pub failures: Vec<Described>,
}

impl Answer {
    fn line(self) -> Vec<u8> {
        let request = Request::new()
            .text("out", &self.out)
            .text("err", &self.err)
            .raw("code", self.code.map_or("null".to_owned(), |code| code.to_string()))
            .raw("timed_out", self.timed_out)
            .optional("fatal", self.fatal.as_ref().map(|text| text.as_bytes()))
            .objects("failures", self.failures.into_iter().map(Described::into_request));
        match &self.fault {
            Some((kind, message)) => request.list("fault", [kind.as_bytes(), message.as_bytes()]),
            None => request.raw("fault", "null"),
        }
        .end()
    }
}

/// A test as requests describe it to the helper.
pub(crate) struct Assignment<'a> {
    /// The suite; its config's number is the helper's own.
    pub suite: super::SuiteRef<'a>,
    /// The helper's own number of the config.
    pub config: u32,
    pub components: &'a [OsString],
    pub file: Option<&'a Path>,
    pub results: Option<&'a Path>,
    /// The pickle of a test that is more than its name.
    pub carried: Option<&'a str>,
    pub marks: crate::suite::Marks,
}

impl Probe<'_> {
    /// Prepares the helper to run tests. `limit` is the time limit of lit 19, in seconds.
    pub(crate) fn begin(&mut self, tmp_dir: Option<&Path>, limit: Option<u64>) -> Result<(), ProbeError> {
        let request = Request::op("begin")
            .optional("tmp_dir", tmp_dir.map(|dir| dir.as_os_str().as_encoded_bytes()))
            .raw("timeout", limit.map_or("null".to_owned(), |limit| limit.to_string()));
        match self.ask(request, Path::new("lit"))?.error {
            Some(failure) => Err(ProbeError::Unusable(failure.text.into_string())),
            None => Ok(()),
        }
    }

    /// Evaluates a config again. Returns its number, or its error.
    pub(crate) fn evaluate(
        &mut self,
        file: &Path,
        parent: Option<u32>,
    ) -> Result<Result<u32, String>, ProbeError> {
        let request = match parent {
            None => Request::op("suite").path("path", file),
            Some(parent) => Request::op("local").path("path", file).raw("parent", parent),
        };
        let reply = self.ask(request, file)?;
        self.take_diagnostics();
        match (reply.error, reply.id) {
            (Some(failure), _) => Ok(Err(failure.text.into_string())),
            (None, Some(id)) => Ok(Ok(id)),
            (None, None) => Err(ProbeError::Malformed("an evaluated config without a number".into())),
        }
    }

    /// Runs a test. `serve` answers its calls meanwhile.
    pub(crate) fn execute(
        &mut self,
        assignment: &Assignment<'_>,
        serve: &mut dyn FnMut(&Call) -> Answer,
    ) -> Result<Result<Executed, String>, ProbeError> {
        let file = assignment.suite.source_root.join(assignment.components.iter().collect::<PathBuf>());
        let mut line = request("run", assignment).end();
        loop {
            let Some(requests) = &mut self.requests else { return Err(ProbeError::Ended(file)) };
            if requests.write_all(&line).is_err() {
                return Err(ProbeError::Ended(file));
            }
            let turn: Turn = self.read()?.ok_or_else(|| ProbeError::Ended(file.clone()))?;
            match turn {
                Turn { call: Some(call), .. } => line = serve(&call).line(),
                Turn { result: Some(result), .. } => return Ok(Ok(executed(result))),
                Turn { error: Some(failure), .. } => return Ok(Err(failure.text.into_string())),
                Turn { exit: Some(stop), .. } => {
                    return Ok(Err(format!("it called sys.exit({})", stop.status)));
                }
                _ => return Err(ProbeError::Malformed("a test without a result".into())),
            }
        }
    }
}

/// Builds a request about a test.
pub(super) fn request(op: &str, assignment: &Assignment<'_>) -> Request {
    let bytes = |path: Option<&'_ Path>| path.map(|path| path.as_os_str().as_encoded_bytes().to_vec());
    let (file, results) = (bytes(assignment.file), bytes(assignment.results));
    let marks = assignment.marks;
    let marks = [
        ("xfail", marks.xfail),
        ("xfail_not", marks.xfail_not),
        ("unsupported", marks.unsupported),
        ("unsupported_not", marks.unsupported_not),
        ("exclude_xfail", marks.exclude_xfail),
    ];
    let marks: Vec<String> = marks.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    super::about_test(op, assignment.suite, assignment.config, Path::new(""))
        .list("path", assignment.components.iter().map(|part| part.as_encoded_bytes()))
        .optional("file", file.as_deref())
        .optional("results", results.as_deref())
        .optional("carried", assignment.carried.map(str::as_bytes))
        .raw("marks", format!("{{{}}}", marks.join(",")))
}

fn executed(wire: ResultWire) -> Executed {
    let metric = |(name, kind, text): (Text, Text, Text)| {
        let text = text.into_string();
        let value = match kind.bytes() {
            b"int" => text.parse().map(MetricValue::Int).ok(),
            b"real" => text.parse().map(MetricValue::Real).ok(),
            _ => None,
        };
        (name.into_string(), value.unwrap_or(MetricValue::Json(text)))
    };
    Executed {
        code: wire.code.into_string(),
        output: wire.output.into_string(),
        attempts: wire.attempts,
        elapsed: wire.elapsed.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        updates: wire.updates.into_iter().map(Text::into_string).collect(),
        metrics: wire.metrics.into_iter().map(metric).collect(),
        micro: wire.micro.into_iter().map(|(name, micro)| (name.into_string(), executed(micro))).collect(),
        missing: wire.missing.into_iter().map(Text::into_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_calls_are_read() {
        let line = br#"{"result":{"code":"PASS","output":"x","attempts":[2,3],"metrics":[["n","int","3"],
            ["r","real","0.5"],["big","int","99999999999999999999"]],"micro":[["m",{"code":"FAIL"}]]}}"#;
        let turn: Turn = serde_json::from_slice(line).unwrap();
        let result = executed(turn.result.unwrap());
        assert_eq!((result.code.as_str(), result.attempts), ("PASS", (2, 3)));
        let values: Vec<_> = result.metrics.into_iter().map(|(_, value)| value).collect();
        let big = MetricValue::Json("99999999999999999999".into());
        assert_eq!(values, [MetricValue::Int(3), MetricValue::Real(0.5), big]);
        assert_eq!(result.micro[0].1.code, "FAIL");
        let turn: Turn =
            serde_json::from_slice(br#"{"call":{"kind":"program","argv":["a"],"timeout":2}}"#).unwrap();
        let call = turn.call.unwrap();
        assert_eq!((call.kind(), call.timeout()), (Kind::Program, Some(Duration::from_secs(2))));
    }

    #[test]
    fn an_answer_is_one_line() {
        let answer = Answer {
            out: "a\nb".into(),
            code: Some(-9),
            fault: Some(("E".into(), "m".into())),
            ..Answer::default()
        };
        let expected = "{\"out\":\"a\\u000ab\",\"err\":\"\",\"code\":-9,\"timed_out\":false,\"fatal\":null,\
                        \"failures\":[],\"fault\":[\"E\",\"m\"]}\n";
        assert_eq!(String::from_utf8(answer.line()).unwrap(), expected);
    }
}
