//! Python's `context_diff` and `unified_diff`: file names without times, and no note of a missing last newline.

use std::hash::Hash;

use super::matcher::{Opcode, Tag, grouped};

/// Writes the differences; `name` and `line` append to the output in its encoding.
pub(super) struct Layout<'n> {
    pub names: [&'n str; 2],
    pub unified: bool,
    pub context: usize,
}

impl Layout<'_> {
    /// Returns the differences between `a` and `b`. Empty if there are none.
    pub fn render<T: Hash + Eq + AsRef<[u8]>>(&self, a: &[T], b: &[T]) -> Vec<u8> {
        let groups = grouped(a, b, self.context);
        let mut out = Vec::new();
        if groups.is_empty() {
            return out;
        }
        let signs = if self.unified { ["--- ", "+++ "] } else { ["*** ", "--- "] };
        for (sign, name) in signs.into_iter().zip(self.names) {
            push(&mut out, &[sign.as_bytes(), name.as_bytes(), b"\n"]);
        }
        for group in &groups {
            if self.unified { unified(group, a, b, &mut out) } else { context(group, a, b, &mut out) }
        }
        out
    }
}

fn push(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Returns the lines of both files that a group spans.
fn span(group: &[Opcode]) -> [(usize, usize); 2] {
    let (first, last) = (group[0], group[group.len() - 1]);
    [(first.a.0, last.a.1), (first.b.0, last.b.1)]
}

fn unified<T: AsRef<[u8]>>(group: &[Opcode], a: &[T], b: &[T], out: &mut Vec<u8>) {
    let range = |(start, end): (usize, usize)| match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    };
    let [in_a, in_b] = span(group).map(range);
    push(out, &[format!("@@ -{in_a} +{in_b} @@\n").as_bytes()]);
    for code in group {
        let old: &[u8] = if code.tag == Tag::Equal { b" " } else { b"-" };
        a[code.a.0..code.a.1].iter().for_each(|line| push(out, &[old, line.as_ref()]));
        if code.tag != Tag::Equal {
            b[code.b.0..code.b.1].iter().for_each(|line| push(out, &[b"+", line.as_ref()]));
        }
    }
}

fn context<T: AsRef<[u8]>>(group: &[Opcode], a: &[T], b: &[T], out: &mut Vec<u8>) {
    let range = |(start, end): (usize, usize)| match end - start {
        0 => format!("{start}"),
        1 => format!("{end}"),
        _ => format!("{},{end}", start + 1),
    };
    let [in_a, in_b] = span(group).map(range);
    let prefix = |tag| match tag {
        Tag::Equal => b"  ",
        Tag::Replace => b"! ",
        Tag::Delete => b"- ",
        Tag::Insert => b"+ ",
    };
    push(out, &[format!("***************\n*** {in_a} ****\n").as_bytes()]);
    if group.iter().any(|code| matches!(code.tag, Tag::Replace | Tag::Delete)) {
        for code in group.iter().filter(|code| code.tag != Tag::Insert) {
            a[code.a.0..code.a.1].iter().for_each(|line| push(out, &[prefix(code.tag), line.as_ref()]));
        }
    }
    push(out, &[format!("--- {in_b} ----\n").as_bytes()]);
    if group.iter().any(|code| matches!(code.tag, Tag::Replace | Tag::Insert)) {
        for code in group.iter().filter(|code| code.tag != Tag::Delete) {
            b[code.b.0..code.b.1].iter().for_each(|line| push(out, &[prefix(code.tag), line.as_ref()]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(unified: bool) -> String {
        let layout = Layout { names: ["a", "b"], unified, context: 3 };
        String::from_utf8(layout.render(&["1\n", "2\n", "3"], &["1\n", "x\n", "3", "4\n"])).unwrap()
    }

    #[test]
    fn both_formats() {
        assert_eq!(render(true), "--- a\n+++ b\n@@ -1,3 +1,4 @@\n 1\n-2\n+x\n 3+4\n");
        assert_eq!(
            render(false),
            "*** a\n--- b\n***************\n*** 1,3 ****\n  1\n! 2\n  3--- 1,4 ----\n  1\n! x\n  3+ 4\n"
        );
    }
}
