//! XML for CI servers. Expects tests sorted by suite.
//!
//! Most servers read lit's form. A second form (`--junit`) satisfies readers with a schema (Jenkins' xUnit plugin: `errors`, no
//! control characters), and has the failed command as the message of a failure.

use std::io::{self, Write};

use hotstart_model::{Dialect, RunEnd, Verdict};

use super::{Run, is_skip};
use crate::TestRecord;

/// The form of the XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// lit's, to the byte.
    Lit,
    /// The form for readers with a schema.
    Schema,
}

pub(super) fn write(
    to: &mut dyn Write,
    records: &[TestRecord<'_>],
    run: &Run<'_>,
    form: Form,
) -> io::Result<()> {
    writeln!(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(to, "<testsuites time=\"{:.2}\">", run.elapsed.as_secs_f64())?;
    for suite in records.chunk_by(|a, b| a.suite.index == b.suite.index) {
        write_suite(to, suite, run, form)?;
    }
    writeln!(to, "</testsuites>")
}

fn write_suite(to: &mut dyn Write, records: &[TestRecord<'_>], run: &Run<'_>, form: Form) -> io::Result<()> {
    let name = records[0].suite.name.replace('.', "-");
    let is_failure = |record: &&TestRecord<'_>| run.table.kind(record.outcome.verdict).is_failure;
    let failures = records.iter().filter(is_failure).count();
    let skipped = records.iter().filter(|record| is_skip(record.outcome.verdict)).count();
    let seconds: f64 = records.iter().map(TestRecord::seconds).sum();
    let time = match (run.dialect, form) {
        (_, Form::Schema) => format!(" errors=\"0\" time=\"{seconds:.3}\""),
        (Dialect::V19, Form::Lit) => String::new(),
        (Dialect::V23, Form::Lit) => format!(" time=\"{seconds:.2}\""),
    };
    let quoted = form.attribute(&name);
    let tests = records.len();
    writeln!(
        to,
        "<testsuite name={quoted} tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\"{time}>"
    )?;
    for record in records {
        write_test(to, record, &name, run, form)?;
    }
    writeln!(to, "</testsuite>")
}

fn write_test(
    to: &mut dyn Write,
    record: &TestRecord<'_>,
    suite: &str,
    run: &Run<'_>,
    form: Form,
) -> io::Result<()> {
    let (file, directory) = record.path.split_last().expect("a test has a name");
    let directory = directory.join("/").replace('.', "_");
    let class = format!("{suite}.{}", if directory.is_empty() { suite } else { &directory });
    let (class, name) = (form.attribute(&class), form.attribute(file));
    let seconds = record.seconds();
    match form {
        Form::Lit => write!(to, "<testcase classname={class} name={name} time=\"{seconds:.2}\"")?,
        Form::Schema => write!(to, "<testcase classname={class} name={name} time=\"{seconds:.3}\"")?,
    }

    let outcome = record.outcome;
    if run.table.kind(outcome.verdict).is_failure {
        let output = form.character_data(&outcome.output);
        let about = match form {
            Form::Lit => String::new(),
            Form::Schema => about(record, run),
        };
        writeln!(to, ">\n  <failure{about}><![CDATA[{output}]]></failure>\n</testcase>")
    } else if is_skip(outcome.verdict) {
        let reason = form.attribute(&skip_reason(record, run));
        writeln!(to, ">\n  <skipped message={reason}/>\n</testcase>")
    } else {
        writeln!(to, "/>")
    }
}

fn skip_reason(record: &TestRecord<'_>, run: &Run<'_>) -> String {
    let outcome = record.outcome;
    match outcome.verdict {
        Verdict::SKIPPED if run.skip_reasons => not_run(run.end).to_owned(),
        Verdict::UNSUPPORTED if run.skip_reasons && !outcome.output.is_empty() => {
            outcome.output.trim_end().to_owned()
        }
        Verdict::EXCLUDED => "Test not selected (--filter, --max-tests)".to_owned(),
        Verdict::SKIPPED => "User interrupt".to_owned(),
        _ if outcome.missing_features.is_empty() => "Unsupported configuration".to_owned(),
        _ => format!("Missing required feature(s): {}", outcome.missing_features.join(", ")),
    }
}

/// Returns the reason why a selected test did not run.
fn not_run(end: RunEnd) -> &'static str {
    match end {
        RunEnd::MaxFailures => "Not run: as many tests had failed as --max-failures allows",
        RunEnd::MaxTime => "Not run: the time given by --max-time was over",
        RunEnd::Interrupted | RunEnd::Completed => "User interrupt",
    }
}

/// Returns the attributes of a failure: its code, and the command that failed.
fn about(record: &TestRecord<'_>, run: &Run<'_>) -> String {
    let kind = run.table.kind(record.outcome.verdict);
    let blame = record.outcome.blame.as_str();
    let message = if blame.is_empty() { &kind.label } else { blame };
    let attribute = |text: &str| Form::Schema.attribute(text);
    format!(" type={} message={}", attribute(&kind.name), attribute(message))
}

impl Form {
    fn attribute(self, text: &str) -> String {
        match self {
            Form::Lit => attribute(text),
            Form::Schema => attribute(&allowed(text)),
        }
    }

    fn character_data(self, text: &str) -> String {
        match self {
            Form::Lit => character_data(text),
            Form::Schema => character_data(&allowed(text)),
        }
    }
}

/// Removes the characters that XML 1.0 forbids.
fn allowed(text: &str) -> String {
    let is_allowed =
        |c: &char| (*c >= ' ' || matches!(c, '\t' | '\n' | '\r')) && !matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().filter(is_allowed).collect()
}

/// Escapes text for a CDATA section: splits end marks over two sections, and drops control characters.
fn character_data(text: &str) -> String {
    let allowed = |c: &char| *c >= ' ' || matches!(c, '\t' | '\n' | '\r');
    text.replace("]]>", "]]]]><![CDATA[>").chars().filter(allowed).collect()
}

/// Returns a quoted attribute value, in the quotes that need fewer escapes.
fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 2);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            '\t' => escaped.push_str("&#9;"),
            _ => escaped.push(c),
        }
    }
    if !escaped.contains('"') {
        format!("\"{escaped}\"")
    } else if !escaped.contains('\'') {
        format!("'{escaped}'")
    } else {
        format!("\"{}\"", escaped.replace('"', "&quot;"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_chosen() {
        assert_eq!(attribute("a<b>&\n"), "\"a&lt;b&gt;&amp;&#10;\"");
        assert_eq!(attribute("say \"x\""), "'say \"x\"'");
        assert_eq!(attribute("'\""), "\"'&quot;\"");
    }

    #[test]
    fn character_data_is_valid() {
        assert_eq!(character_data("a]]>b\u{1b}[0m\t\n"), "a]]]]><![CDATA[>b[0m\t\n");
    }
}
