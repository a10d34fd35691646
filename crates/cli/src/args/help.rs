//! Usage and help text, formatted as argparse does.

use super::flag::Flag;
use super::table::{self, Group};

/// The column at which explanations begin.
const HELP_COLUMN: usize = 24;

/// The shortest line length at which the text remains readable.
const LEAST_WIDTH: usize = 40;

/// Options that the short help shows, by a name of each.
const COMMON: [&str; 18] = [
    "-j",
    "-v",
    "-a",
    "-q",
    "-s",
    "-o",
    "-D",
    "--filter",
    "--filter-out",
    "--timeout",
    "--show-tests",
    "--diagnose",
    "--rerun-failed",
    "--html",
    "--explain",
    "--cold",
    "--shell",
    "--lit-python",
];

const ABOUT: &str = "Runs tests as LLVM's lit does: same configs, same options, same results.";

/// Returns the `usage: lit …` lines for a terminal of this width.
pub(super) fn usage(columns: usize) -> String {
    const BEGIN: &str = "usage: lit ";
    let listed = table::all().filter(|flag| flag.help.is_some());
    let options = listed.map(|flag| format!("[{}{}]", flag.names[0], flag.after_name()));
    let indent = " ".repeat(BEGIN.len());
    let mut text = String::new();
    let mut line = BEGIN.to_owned();
    for option in options {
        if line.len() > BEGIN.len() && line.len() + option.len() > width(columns) {
            text.push_str(&format!("{}\n", line.trim_end()));
            line.clone_from(&indent);
        }
        line.push_str(&option);
        line.push(' ');
    }
    text.push_str(&format!("{}\n{indent}TEST_PATH [TEST_PATH ...]\n", line.trim_end()));
    text
}

/// Returns the whole help text.
pub(super) fn help(columns: usize) -> String {
    let mut text = usage(columns);
    text.push_str(&format!("\n{ABOUT}\n\npositional arguments:\n"));
    entry(&mut text, "TEST_PATH", "A test, or a directory with tests", columns);
    for Group { title, flags } in table::groups() {
        text.push_str(&format!("\n{}:\n", title.unwrap_or("options")));
        for flag in *flags {
            if let Some(help) = flag.help {
                entry(&mut text, &names(flag), help, columns);
            }
        }
    }
    text.push_str("\nOptions can also be given in $LIT_OPTS, and in files, one a line, as @FILE.\n");
    text
}

/// Returns the options that are used most.
pub(super) fn short(columns: usize) -> String {
    let mut text = format!("usage: lit [OPTIONS] TEST_PATH [TEST_PATH ...]\n\n{ABOUT}\n\n");
    for flag in COMMON.iter().filter_map(|name| table::find(name.as_bytes())).map(|(flag, _)| flag) {
        entry(&mut text, &names(flag), flag.help.unwrap_or_default(), columns);
    }
    text.push_str("\n--help prints all options.\n");
    text
}

fn names(flag: &Flag) -> String {
    let with_value = flag.names.iter().map(|name| format!("{name}{}", flag.after_name()));
    with_value.collect::<Vec<_>>().join(", ")
}

/// Appends an option: its names on the left, help on the right, which begins on a new line if the names are long.
fn entry(text: &mut String, names: &str, help: &str, columns: usize) {
    let begin = format!("  {names}");
    let mut lines = wrap(help, width(columns) - HELP_COLUMN).into_iter();
    if begin.len() + 2 <= HELP_COLUMN {
        let first = lines.next().unwrap_or_default();
        text.push_str(&format!("{begin:<HELP_COLUMN$}{first}\n"));
    } else {
        text.push_str(&format!("{begin}\n"));
    }
    for line in lines {
        text.push_str(&format!("{:HELP_COLUMN$}{line}\n", ""));
    }
}

fn width(columns: usize) -> usize {
    columns.saturating_sub(2).max(LEAST_WIDTH)
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_fits_and_explains_all_options() {
        let text = help(80);
        let long: Vec<_> = text.lines().filter(|line| line.len() > 78).collect();
        assert!(long.is_empty(), "{long:?}");
        for flag in table::all().filter(|flag| flag.help.is_some()) {
            assert!(text.contains(&format!("  {}", names(flag))), "{}", flag.title());
        }
        assert!(!text.contains("--use-unique-output-file-name"));
        assert!(
            text.starts_with("usage: lit [-h] [--version] [-j N] [--config-prefix NAME] [-D NAME=VAL]\n")
        );
    }

    #[test]
    fn short_help_has_the_options_of_its_list() {
        let text = short(80);
        for name in COMMON {
            let (flag, _) = table::find(name.as_bytes()).expect(name);
            assert!(text.contains(&format!("  {}", names(flag))), "{name}");
        }
        assert!(text.lines().count() < help(80).lines().count() / 4);
    }

    #[test]
    fn a_narrow_terminal_is_no_panic() {
        assert!(help(0).lines().count() > help(200).lines().count());
    }
}
