//! `--time-tests`: lists the slowest tests, and a histogram of all times.

use std::collections::HashSet;

use hotstart_model::Dialect;

use crate::{Sink, TestRecord};

/// Number of slowest tests to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slowest {
    /// At most this many.
    Count(usize),
    /// All.
    All,
}

/// lit's default.
pub const DEFAULT_SLOWEST: Slowest = Slowest::Count(20);

const BAR_WIDTH: usize = 40;

/// Writes both tables, if any test took time.
pub fn write(to: &mut Sink, records: &[TestRecord<'_>], slowest: Slowest, dialect: Dialect) {
    let mut times: Vec<(&str, f64)> = records
        .iter()
        .map(|record| (record.full_name.as_str(), record.seconds()))
        .filter(|(_, seconds)| *seconds > 0.0)
        .collect();
    if times.is_empty() {
        return;
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    write_slowest(to, &times, slowest, dialect);
    write_ranges(to, &times, dialect);
    to.flush();
}

fn rule() -> String {
    "-".repeat(BAR_WIDTH + 34)
}

fn write_slowest(to: &mut Sink, times: &[(&str, f64)], slowest: Slowest, dialect: Dialect) {
    let count = match slowest {
        Slowest::Count(count) => count.min(times.len()),
        Slowest::All => times.len(),
    };
    match dialect {
        Dialect::V19 => to.line("Slowest Tests:"),
        Dialect::V23 => to.line(&format!("Slowest Tests ({count} of {}):", times.len())),
    }
    to.line(&rule());
    for (name, seconds) in times.iter().rev().take(count) {
        to.line(&format!("{seconds:.2}s: {name}"));
    }
}

fn write_ranges(to: &mut Sink, times: &[(&str, f64)], dialect: Dialect) {
    let longest = times.last().expect("not empty").1;
    let (width, bars) = bar_width(longest);
    let mut rows: Vec<HashSet<&str>> = vec![HashSet::new(); bars];
    for (name, seconds) in times {
        // Truncates on purpose: selects the bar whose range contains the time.
        let row = (bars as f64 * seconds / longest) as usize;
        rows[row.min(bars - 1)].insert(name);
    }
    match dialect {
        Dialect::V19 => to.line("\nTests Times:"),
        Dialect::V23 => to.line(&format!("\nTest Times ({}):", times.len())),
    }
    let Digits { number, fraction, count } = Digits::new(longest, times.len());
    to.line(&rule());
    to.line(&format!(
        "[{}] :: [{}] :: [{}]",
        center("Range", (number + 1) * 2 + 3),
        center("Percentage", BAR_WIDTH),
        center("Count", count * 2 + 1)
    ));
    to.line(&rule());
    for (index, row) in rows.iter().enumerate().rev() {
        let (low, high) = (index as f64 * width, (index + 1) as f64 * width);
        let share = row.len() as f64 / times.len() as f64;
        let stars = "*".repeat((BAR_WIDTH as f64 * share) as usize);
        to.line(&format!(
            "[{low:>number$.fraction$}s,{high:>number$.fraction$}s) :: [{stars:<BAR_WIDTH$}] :: [{:>count$}/{:>count$}]",
            row.len(),
            times.len(),
        ));
    }
    to.line(&rule());
}

/// Returns the first step of 5, 2, 2.5, 1 times a falling power of ten that makes more than ten bars, and their number.
fn bar_width(longest: f64) -> (f64, usize) {
    let mut power = log10(longest).ceil();
    loop {
        for step in [5.0, 2.0, 2.5, 1.0] {
            let width = step * 10f64.powf(power);
            let bars = (longest / width).ceil();
            if bars > 10.0 {
                return (width, bars as usize);
            }
        }
        power -= 1.0;
    }
}

/// Python's `math.log(x, 10)`, which is not quite the logarithm to base 10.
fn log10(value: f64) -> f64 {
    value.ln() / 10f64.ln()
}

/// Widths of columns.
struct Digits {
    number: usize,
    fraction: usize,
    count: usize,
}

impl Digits {
    fn new(longest: f64, tests: usize) -> Self {
        let whole = log10(longest).ceil() as i32;
        let fraction = (3 - whole).max(0);
        let number = if fraction > 0 { whole + fraction + 1 } else { whole };
        let count = log10(tests as f64).ceil();
        Digits { number: number.max(0) as usize, fraction: fraction as usize, count: count as usize }
    }
}

/// Python's `str.center`, which puts the odd blank to the left in odd widths only.
pub(crate) fn center(text: &str, width: usize) -> String {
    let length = text.chars().count();
    let Some(margin) = width.checked_sub(length) else { return text.to_owned() };
    let left = margin / 2 + (margin & width & 1);
    format!("{}{text}{}", " ".repeat(left), " ".repeat(margin - left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centred_as_python_does() {
        assert_eq!(center("Count", 1), "Count");
        assert_eq!(center("abc", 6), " abc  ");
        assert_eq!(center("ab", 5), "  ab ");
        assert_eq!(center("Percentage", 40).len(), 40);
    }

    #[test]
    fn the_first_nice_step_wins() {
        assert_eq!(bar_width(10.0), (0.5, 20));
        assert_eq!(bar_width(1.2), (0.1, 12));
        let (width, bars) = bar_width(0.035);
        assert_eq!((width, bars), (0.002, 18));
    }
}
