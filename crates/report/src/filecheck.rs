//! Turns FileCheck's report of a failure into two columns: expected and found.
//!
//! FileCheck writes its errors and then a dump of its input. Marks below an input line show how a check line fared there
//! (`next:3'0   X~~ error: no match found`: line 3 of the check file). Each mark becomes a row with that check line on
//! its left. The output's text is enough; with access to files, the check lines' own text is added.

/// A row of the two columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row's kind.
    pub kind: Kind,
    /// The check line.
    pub expected: String,
    /// The input, or a mark below it.
    pub found: String,
}

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A line of the input.
    Input,
    /// A check line did not match here, or not as it should.
    Error,
    /// A check line matched here.
    Match,
    /// A remark of FileCheck on this place.
    Note,
}

impl Kind {
    /// Returns the name that pages use.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Input => "input",
            Kind::Error => "error",
            Kind::Match => "match",
            Kind::Note => "note",
        }
    }
}

/// One failure of FileCheck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Check file, without its directory, and line.
    pub place: String,
    /// FileCheck's message.
    pub message: String,
    /// The columns.
    pub rows: Vec<Row>,
}

/// Returns the failures of FileCheck in a test's output. `read` returns the text of a file, if it exists.
pub fn failures(output: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Check> {
    let lines: Vec<&str> = output.lines().map(|line| line.strip_prefix("# | ").unwrap_or(line)).collect();
    let mut found = Vec::new();
    let mut rest = lines.as_slice();
    while let Some(begin) = rest.iter().position(|line| Complaint::of(line, "error").is_some()) {
        rest = &rest[begin..];
        let taken = one(rest, read, &mut found);
        rest = &rest[taken..];
    }
    found
}

/// Widest left column of a text, in characters. Longer check lines are cut off.
const EXPECTED_MAX: usize = 48;

impl Check {
    /// Returns the lines of a text: a heading, and the columns. Input lines far from an error are left out.
    pub fn text(&self) -> Vec<String> {
        const NEAR: usize = 3;
        let is_input = |row: &Row| row.kind == Kind::Input;
        let near = |at: usize| {
            let around = at.saturating_sub(NEAR)..(at + NEAR + 1).min(self.rows.len());
            self.rows[around].iter().any(|row| matches!(row.kind, Kind::Error | Kind::Note))
        };
        let shown: Vec<&Row> = (0..self.rows.len())
            .filter(|&at| near(at) || !is_input(&self.rows[at]))
            .map(|at| &self.rows[at])
            .collect();
        let cut = |text: &str| match text.char_indices().nth(EXPECTED_MAX) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.to_owned(),
        };
        let left: Vec<String> = shown.iter().map(|row| cut(&row.expected)).collect();
        let width = left.iter().map(|text| text.chars().count()).chain(["expected".len()]).max().unwrap_or(0);
        let mut lines = vec![format!("{}: {}", self.place, self.message)];
        if !shown.is_empty() {
            lines.push(format!("  {:width$} | {}", "expected", "found"));
        }
        for (row, left) in shown.iter().zip(left) {
            let sign = if row.kind == Kind::Error { '>' } else { ' ' };
            lines.push(format!("{sign} {left:width$} | {}", row.found).trim_end().to_owned());
        }
        lines
    }
}

/// A line `FILE:LINE:COLUMN: KIND: MESSAGE`.
struct Complaint<'a> {
    file: &'a str,
    line: usize,
    message: &'a str,
}

impl<'a> Complaint<'a> {
    fn of(text: &'a str, kind: &str) -> Option<Self> {
        let (place, message) = text.split_once(&format!(": {kind}: "))?;
        let (place, column) = place.rsplit_once(':')?;
        let (file, line) = place.rsplit_once(':')?;
        column.parse::<usize>().ok()?;
        // FileCheck's own errors begin with the directive; a compiler's do not.
        let is_directive =
            |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        let of_filecheck =
            kind != "error" || message.split_once(": ").is_some_and(|(word, _)| is_directive(word));
        let line = line.parse().ok()?;
        of_filecheck.then_some(Complaint { file, line, message })
    }
}

/// Parses one failure, whose first line is its error. Returns the number of lines consumed.
fn one(lines: &[&str], read: &dyn Fn(&str) -> Option<String>, found: &mut Vec<Check>) -> usize {
    let Some(first) = Complaint::of(lines[0], "error") else { return 1 };
    let name = first.file.rsplit('/').next().unwrap_or(first.file);
    let mut check = Check {
        place: format!("{name}:{}", first.line),
        message: first.message.to_owned(),
        rows: Vec::new(),
    };
    let mut told = vec![(first.line, lines.get(1).copied().unwrap_or_default())];
    let mut said = vec![row(Kind::Error, told[0].1.trim(), "")];
    for (index, line) in lines.iter().enumerate().skip(1) {
        let next = || lines.get(index + 1).copied().unwrap_or_default();
        if *line == "<<<<<<" {
            let end = lines[index..].iter().position(|line| *line == ">>>>>>");
            let end = end.map_or(lines.len(), |end| index + end);
            let text = read(first.file);
            check.rows = dump(&lines[index + 1..end], &told, text.as_deref());
            found.push(check);
            return end;
        }
        if let Some(other) = Complaint::of(line, "error") {
            check.message = format!("{} · line {}: {}", check.message, other.line, other.message);
            told.push((other.line, next()));
            said.push(row(Kind::Error, next().trim(), ""));
        } else if let Some(note) = Complaint::of(line, "note") {
            said.push(row(Kind::Note, note.message, &format!("{:>5}  {}", note.line, next())));
        } else if is_end(line) {
            check.rows = said;
            found.push(check);
            return index;
        }
    }
    check.rows = said;
    found.push(check);
    lines.len()
}

/// Returns whether this line is a mark of lit's that ends a command's output.
fn is_end(line: &str) -> bool {
    line.starts_with("# `---") || line == "--"
}

fn row(kind: Kind, expected: &str, found: &str) -> Row {
    Row { kind, expected: expected.to_owned(), found: found.to_owned() }
}

/// Parses the dump of the input. `told` has the check lines that errors quote, `text` is the whole check file.
fn dump(lines: &[&str], told: &[(usize, &str)], text: Option<&str>) -> Vec<Row> {
    let Some(column) = lines.iter().find_map(|line| input_line(line)).map(|(column, _)| column) else {
        return Vec::new();
    };
    let quoted = |number: usize| {
        let of_file = text.and_then(|text| text.lines().nth(number.checked_sub(1)?));
        let line = of_file.or_else(|| told.iter().find(|(line, _)| *line == number).map(|(_, text)| *text));
        line.map_or_else(|| format!("line {number}"), |line| format!("{number}: {}", line.trim()))
    };
    let mut rows = Vec::new();
    let mut shown = Vec::new();
    for line in lines {
        match (input_line(line), mark(line, column)) {
            (Some((_, number)), _) => {
                let text = line.get(column..).unwrap_or_default().trim_end();
                rows.push(row(Kind::Input, "", &format!("{number:>5}  {text}")));
            }
            (None, Some((number, text))) => {
                let Some(kind) = kind_of(text) else { continue };
                let expected = if shown.contains(&number) { String::new() } else { quoted(number) };
                shown.push(number);
                rows.push(row(kind, &expected, &format!("       {text}")));
            }
            (None, None) if line.trim() == "." => rows.push(row(Kind::Input, "", "    .")),
            (None, None) => {}
        }
    }
    rows
}

/// Returns the column at which the text of an input line begins, and the line's number.
fn input_line(line: &str) -> Option<(usize, usize)> {
    let (number, _) = line.split_once(": ").or_else(|| line.split_once(':'))?;
    let count = number.trim_start().parse().ok()?;
    Some((number.len() + 2, count))
}

/// Returns the number of the check line that a mark belongs to, and the mark.
fn mark(line: &str, column: usize) -> Option<(usize, &str)> {
    let label = line.get(..column.min(line.len()))?.trim_end();
    let (word, number) = label.split_once(':')?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let number = number.split('\'').next()?.parse().ok()?;
    is_word.then(|| (number, line.get(column..).unwrap_or_default().trim_end()))
}

/// Returns the kind of a mark; `None` if it only continues the previous one.
fn kind_of(mark: &str) -> Option<Kind> {
    let sign = mark.trim_start().chars().next()?;
    match sign {
        'X' | '!' => Some(Kind::Error),
        '?' => Some(Kind::Note),
        '^' => Some(Kind::Match),
        _ if mark.contains("error:") => Some(Kind::Error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMPED: &str = "\
# executed command: FileCheck b.txt
# .---command stderr------------
# | /s/b.txt:3:11: error: B-NEXT: expected string not found in input
# | # B-NEXT: mul
# |           ^
# | <stdin>:2:12: note: scanning from here
# | define @foo() {
# |            ^
# | Input was:
# | <<<<<<
# |           1: ; ModuleID 
# |           2: define @foo() { 
# | check:2      ^~~~~~
# | next:3'0                X~~~~ error: no match found
# |           .
# |           5:  %b = sub 
# | next:3'0     ~~~~~~~~~~
# | next:3'1               ?          possible intended match
# | >>>>>>
# `-----------------------------
";

    fn rows(checks: &[Check]) -> Vec<(Kind, &str, &str)> {
        checks[0].rows.iter().map(|row| (row.kind, row.expected.as_str(), row.found.as_str())).collect()
    }

    #[test]
    fn marks_stand_beside_their_check_lines() {
        let read = |path: &str| (path == "/s/b.txt").then(|| "RUN\n# B: define\n# B-NEXT: mul\n".to_owned());
        let checks = failures(DUMPED, &read);
        assert_eq!(checks.len(), 1);
        let Check { place, message, .. } = &checks[0];
        assert_eq!(
            (place.as_str(), message.as_str()),
            ("b.txt:3", "B-NEXT: expected string not found in input")
        );
        assert_eq!(
            rows(&checks),
            [
                (Kind::Input, "", "    1  ; ModuleID"),
                (Kind::Input, "", "    2  define @foo() {"),
                (Kind::Match, "2: # B: define", "       ^~~~~~"),
                (Kind::Error, "3: # B-NEXT: mul", "                  X~~~~ error: no match found"),
                (Kind::Input, "", "    ."),
                (Kind::Input, "", "    5   %b = sub"),
                (Kind::Note, "", "                 ?          possible intended match"),
            ]
        );
    }

    #[test]
    fn a_text_has_both_columns() {
        let text = failures(DUMPED, &|_| None)[0].text().join("\n");
        let expected = "\
b.txt:3: B-NEXT: expected string not found in input
  expected         | found
                   |     1  ; ModuleID
                   |     2  define @foo() {
  line 2           |        ^~~~~~
> 3: # B-NEXT: mul |                   X~~~~ error: no match found
                   |     .
                   |     5   %b = sub
                   |                  ?          possible intended match";
        assert_eq!(text, expected);
    }

    #[test]
    fn without_the_check_file_the_error_quotes_the_line() {
        let checks = failures(DUMPED, &|_| None);
        assert_eq!(checks[0].rows[2].expected, "line 2");
        assert_eq!(checks[0].rows[3].expected, "3: # B-NEXT: mul");
    }

    #[test]
    fn without_a_dump_the_notes_tell() {
        let output = "/s/e.txt:2:6: error: C: expected string not found in input\n; C: x\n     ^\n\
                      <stdin>:7:1: note: scanning from here\ntext\n^\n\n--\nmore\n";
        let expected = [(Kind::Error, "; C: x", ""), (Kind::Note, "scanning from here", "    7  text")];
        assert_eq!(rows(&failures(output, &|_| None)), expected);
    }

    #[test]
    fn errors_of_other_tools_are_none() {
        let output = "x.c:1:2: error: use of undeclared identifier: it is not there\nopt: error: no\n";
        assert_eq!(failures(output, &|_| None), []);
    }
}
