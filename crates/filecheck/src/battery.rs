//! Small cases that compare a FileCheck with the matcher before the matcher may replace it.
//!
//! Each case says whether FileCheck passes. The matcher decides those that pass. Those that fail are near misses: a
//! FileCheck with other rules would pass them. The cases cover differences between versions of LLVM and between
//! dialects, and common mistakes: the order of DAGs, NOTs and labels, lines, blanks, scopes, expressions.
//!
//! Where versions differ, the matcher must leave the case to FileCheck, and either answer is right.
//!
//! A line of the battery's text is a case: `+`, `-` or `?`, options, check file and input. Each dialect has a battery.

use crate::Dialect;

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Arguments; the check file is `check`.
    pub args: Vec<String>,
    /// The check file.
    pub check: String,
    /// The input.
    pub input: String,
    /// Whether FileCheck passes without output; `None` if versions differ.
    pub passes: Option<bool>,
}

/// Returns all cases of a dialect.
pub fn cases(dialect: Dialect) -> Vec<Case> {
    text(dialect).lines().filter(|line| !line.is_empty()).map(case).collect()
}

/// Returns the identity of a dialect's battery, for stored verdicts: the crate's version and a hash of the cases (FNV-1a).
pub fn version(dialect: Dialect) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text(dialect).bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{}-{hash:016x}", env!("CARGO_PKG_VERSION"))
}

fn case(line: &str) -> Case {
    let (mark, rest) = line.split_at(1);
    let mut fields = rest.split('¦').map(str::trim);
    let mut field = || fields.next().unwrap_or_default().to_owned();
    let (options, check, input) = (field(), field(), field());
    let mut args: Vec<String> = options.split_whitespace().map(|word| word.replace('~', " ")).collect();
    args.push("check".to_owned());
    let lines = |text: String| text.replace('⏎', "\n").replace('→', "\t").replace('·', " ");
    Case { args, check: lines(check), input: lines(input), passes: (mark != "?").then_some(mark == "+") }
}

/// `¦` separates, `⏎` is a line end, `→` a tab, `·` a blank that counts, `~` a blank within an option.
fn text(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Llvm => include_str!("battery.txt"),
        Dialect::Pypi => include_str!("pypi/battery.txt"),
    }
}
