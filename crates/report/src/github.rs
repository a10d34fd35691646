//! `--github`: failures as workflow commands, which GitHub Actions shows beside the lines of a pull request.
//!
//! GitHub shows ten errors of a step, so the last one counts the rest. It reads commands from standard output, one on a line.
//! `%` and line ends are escaped, in properties also `:` and `,`.

use std::path::{Path, PathBuf};

use hotstart_model::VerdictTable;

use crate::filecheck;
use crate::{Sink, TestRecord};

/// Errors that GitHub shows of one step.
const SHOWN: usize = 10;

/// Writes a command for each failure. `file` returns the file of the test at a place; `root` is the checkout.
pub fn write(
    to: &mut Sink,
    records: &[TestRecord<'_>],
    table: &VerdictTable,
    file: &dyn Fn(usize) -> PathBuf,
    root: &Path,
) {
    let is_failure = |record: &TestRecord<'_>| table.kind(record.outcome.verdict).is_failure;
    let failed: Vec<usize> = (0..records.len()).filter(|&place| is_failure(&records[place])).collect();
    let all = failed.len() <= SHOWN;
    for &place in &failed[..if all { failed.len() } else { SHOWN - 1 }] {
        let record = &records[place];
        let name = &table.kind(record.outcome.verdict).name;
        to.line(&command(record, name, &file(place), root));
    }
    if !all {
        let left = failed.len() - (SHOWN - 1);
        to.line(&format!("::error title=More failures::{left} more tests failed; the log names them"));
    }
    to.flush();
}

fn command(record: &TestRecord<'_>, code: &str, file: &Path, root: &Path) -> String {
    let outcome = record.outcome;
    let check = filecheck::failures(&outcome.output, &|_| None).into_iter().next();
    let told = outcome.diagnosis.lines().next().and_then(|line| line.strip_prefix("hotstart: "));
    let blame = told.filter(|_| outcome.blame.is_empty()).unwrap_or(&outcome.blame);
    let of_check = check.as_ref().and_then(|check| {
        let (name, line) = check.place.rsplit_once(':')?;
        (Some(name) == file.file_name()?.to_str()).then(|| line.parse().ok())?
    });
    let line = of_check.or_else(|| line_of(blame));
    let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy();
    let mut message: Vec<&str> = [blame].into_iter().filter(|text| !text.is_empty()).collect();
    message.extend(check.as_ref().map(|check| check.message.as_str()));
    if message.is_empty() {
        message.push("there is no command to blame");
    }
    let line = line.map_or_else(String::new, |line| format!(",line={line}"));
    let title = property(&format!("{code}: {}", record.full_name));
    format!("::error file={}{line},title={title}::{}", property(&path), data(&message.join("\n")))
}

/// Returns the first line that `RUN: at line 3` or `RUN: from line 3 to 5` names.
fn line_of(blame: &str) -> Option<u32> {
    let (_, rest) = blame.split_once("line ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SuiteName;
    use crate::sink::tests::Captured;
    use hotstart_model::{Outcome, Verdict};

    fn written(outcomes: &[Outcome]) -> String {
        let path = ["d".to_owned(), "x.ll".to_owned()];
        let record = |outcome| TestRecord {
            full_name: "s :: d/x.ll".to_owned(),
            summary_name: None,
            suite: SuiteName { index: 0, name: "s" },
            path: &path,
            previous: 0.0,
            outcome,
        };
        let records: Vec<_> = outcomes.iter().map(record).collect();
        let captured = Captured::default();
        let file = |_| PathBuf::from("/src/te,st/x.ll");
        write(&mut captured.sink(), &records, &VerdictTable::default(), &file, Path::new("/src"));
        captured.text()
    }

    fn failed(blame: &str, output: &str) -> Outcome {
        Outcome { blame: blame.into(), ..Outcome::decided(Verdict::FAIL, output) }
    }

    #[test]
    fn a_failure_is_told_where_its_check_line_is() {
        let output = "/src/x.ll:7:3: error: CHECK: not 100% there\n; CHECK: x\n--\n";
        let text = written(&[
            failed("RUN: at line 2, stage 1", output),
            Outcome::decided(Verdict::PASS, ""),
            failed("RUN: from line 4 to 5", "/src/other.ll:7:3: error: CHECK: x\n"),
        ]);
        assert_eq!(
            text,
            "::error file=te%2Cst/x.ll,line=7,title=FAIL%3A s %3A%3A d/x.ll::RUN: at line 2, stage 1%0ACHECK: not \
             100%25 there\n\
             ::error file=te%2Cst/x.ll,line=4,title=FAIL%3A s %3A%3A d/x.ll::RUN: from line 4 to 5%0ACHECK: x\n"
        );
    }

    #[test]
    fn no_more_are_told_than_are_shown() {
        let text = written(&vec![failed("", ""); 13]);
        assert_eq!(text.lines().count(), SHOWN);
        assert!(text.ends_with("::4 more tests failed; the log names them\n"), "{text}");
        assert_eq!(written(&vec![failed("", ""); 10]).matches("title=FAIL").count(), 10);
    }
}
