//! Writes every run as one line of comma-separated values (RFC 4180), for other statistics.

use crate::compare::Report;
use crate::measure::Metric;

/// Returns a header line and a line for each run, in the order in which they ran.
pub fn render(report: &Report) -> String {
    let keys: Vec<&str> = Metric::ALL.iter().map(|metric| metric.key()).collect();
    let mut text = format!("place,round,letter,command,{}\n", keys.join(","));
    let mut lines = Vec::new();
    for candidate in &report.candidates {
        for (round, (run, &place)) in candidate.runs.iter().zip(&candidate.places).enumerate() {
            let values: Vec<String> = Metric::ALL.iter().map(|metric| metric.of(run).to_string()).collect();
            let (letter, name) = (&candidate.letter, field(&candidate.name));
            lines
                .push((place, format!("{},{},{letter},{name},{}\n", place + 1, round + 1, values.join(","))));
        }
    }
    lines.sort_by_key(|(place, _)| *place);
    lines.iter().for_each(|(_, line)| text.push_str(line));
    text
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_quoted_where_needed() {
        assert_eq!(field("a b"), "a b");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
