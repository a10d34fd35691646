//! Numbers: `int` and `float` of a text, and `repr` and `%f` of a `float`.

use crate::text::{is_digit, is_space};

/// Python refuses to convert more decimal digits than this.
const MAX_DIGITS: usize = 4300;

/// `int(text, base)` for bases 8 and 10. `None` if Python raises ValueError. Saturates beyond `i128`.
pub fn int(text: &str, base: u32) -> Option<i128> {
    let text = strip(text);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = digits.strip_prefix("0o").or(digits.strip_prefix("0O")).filter(|_| base == 8);
    let digits = prefixed.map_or(digits, |rest| rest.strip_prefix('_').unwrap_or(rest));
    let mut value: i128 = 0;
    let mut count = 0;
    let mut after_digit = false;
    for c in digits.chars() {
        if c == '_' && after_digit {
            after_digit = false;
            continue;
        }
        let digit = digit_value(c).filter(|&digit| digit < base)?;
        value = value.saturating_mul(i128::from(base)).saturating_add(i128::from(digit));
        after_digit = true;
        count += 1;
    }
    let is_number = after_digit && (base != 10 || count <= MAX_DIGITS);
    is_number.then_some(if negative { -value } else { value })
}

/// `float(text)`. `None` if Python raises ValueError.
pub fn float(text: &str) -> Option<f64> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = strip(text).chars().peekable();
    let mut after_digit = false;
    while let Some(c) = chars.next() {
        match digit_value(c) {
            Some(digit) => plain.extend(char::from_digit(digit, 10)),
            // An underscore may stand only between two digits.
            None if c == '_' && after_digit && chars.peek().is_some_and(|&next| is_digit(next)) => {}
            None => plain.push(c),
        }
        after_digit = is_digit(c);
    }
    plain.parse().ok()
}

/// Removes the white space that may stand around a number, which is less than `str.strip` removes.
fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| if c.is_ascii() { matches!(c, ' ' | '\t'..='\r') } else { is_space(c) })
}

/// Returns the value of a decimal digit of any script.
///
/// Unicode puts the ten digits of a script side by side in order, so the distance to the last non-digit gives the
/// value.
fn digit_value(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    if !is_digit(c) {
        return None;
    }
    let code = u32::from(c);
    let before = (1..=code).find(|&back| !char::from_u32(code - back).is_some_and(is_digit))?;
    Some((before - 1) % 10)
}

/// `repr` of a `float`: the shortest digits that read back, with an exponent from 1e16 and below 1e-4.
pub fn repr_float(value: f64) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return if value < 0.0 { format!("-{name}") } else { name.to_owned() };
    }
    // Most times need no exponent.
    if !(1e-3..1e15).contains(&value.abs()) {
        let scientific = format!("{value:e}");
        let (digits, exponent) = scientific.split_once('e').expect("always has an exponent");
        let exponent: i32 = exponent.parse().expect("a number");
        if !(-4..16).contains(&exponent) {
            let sign = if exponent < 0 { '-' } else { '+' };
            return format!("{digits}e{sign}{:02}", exponent.abs());
        }
    }
    let plain = format!("{value}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// `%.Nf`.
pub fn fixed(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { repr_float(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_python_reads_them() {
        assert_eq!(int(" -1_000 ", 10), Some(-1000));
        assert_eq!(int("+\u{663}", 10), Some(3));
        assert_eq!((int(" 0o22 ", 8), int("0O_7", 8)), (Some(18), Some(7)));
        assert_eq!(int(&"9".repeat(50), 10), Some(i128::MAX));
        assert_eq!(int(&"9".repeat(MAX_DIGITS + 1), 10), None);
        for text in ["", "1__0", "_1", "1_", "0o1", "-", "+-1", "1.0", "0x4", "²"] {
            assert_eq!(int(text, 10), None, "{text}");
        }
        assert_eq!(int("8", 8), None);
    }

    #[test]
    fn floats_are_read_as_python_reads_them() {
        assert_eq!(float(" 1_0.5e1 "), Some(105.0));
        assert_eq!(float("-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(float("\u{661}.5"), Some(1.5));
        for text in ["", "x", "1__0", "1_.0", "_1", "1e", "."] {
            assert_eq!(float(text), None, "{text}");
        }
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.2345e100, "1.2345e+100"),
            (0.123_456_789_012_345_67, "0.12345678901234566"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(repr_float(value), text);
        }
        assert_eq!((fixed(0.25, 4), fixed(f64::NAN, 4)), ("0.2500".to_owned(), "nan".to_owned()));
    }
}
