//! `glob.glob` without recursion. Hidden files match only patterns that begin with a dot, sets in brackets are
//! supported, and unreadable directories count as empty.

use std::fs;
use std::path::Path;

use crate::path::{join, split};

fn has_magic(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns the files that match the absolute pattern, in no order.
pub fn glob(pattern: &str) -> Vec<String> {
    find(pattern, false)
}

fn find(path: &str, only_dirs: bool) -> Vec<String> {
    let (dir, base) = split(path);
    if !has_magic(path) {
        let exists = if base.is_empty() { Path::new(dir).is_dir() } else { lexists(path) };
        return if exists { vec![path.to_owned()] } else { Vec::new() };
    }
    let dirs = if dir != path && has_magic(dir) { find(dir, true) } else { vec![dir.to_owned()] };
    let mut found = Vec::new();
    for dir in dirs {
        if has_magic(base) {
            found.extend(matching(&dir, base, only_dirs).into_iter().map(|name| join(&dir, &name)));
        } else if base.is_empty() {
            found.extend(Path::new(&dir).is_dir().then(|| join(&dir, "")));
        } else {
            let path = join(&dir, base);
            found.extend(lexists(&path).then_some(path));
        }
    }
    found
}

fn lexists(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn matching(dir: &str, pattern: &str, only_dirs: bool) -> Vec<String> {
    let Ok(entries) = fs::read_dir(if dir.is_empty() { "." } else { dir }) else { return Vec::new() };
    let pattern = compile(pattern);
    let hidden = pattern.first() == Some(&Part::Char('.'));
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if (hidden || !name.starts_with('.'))
            && matches(&pattern, &name.chars().collect::<Vec<_>>())
            && (!only_dirs || entry.path().is_dir())
        {
            names.push(name);
        }
    }
    names
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// `*`
    Any,
    /// `?`
    One,
    Char(char),
    /// `[a-c]`; an empty set matches nothing, its negation everything.
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

fn compile(pattern: &str) -> Vec<Part> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        at += 1;
        match c {
            '*' if parts.last() == Some(&Part::Any) => {}
            '*' => parts.push(Part::Any),
            '?' => parts.push(Part::One),
            '[' => match set(&chars[at..]) {
                Some((part, length)) => {
                    parts.push(part);
                    at += length;
                }
                None => parts.push(Part::Char('[')),
            },
            c => parts.push(Part::Char(c)),
        }
    }
    parts
}

/// Returns a set and its length, including the closing bracket. `None` if there is none.
fn set(rest: &[char]) -> Option<(Part, usize)> {
    let negated = rest.first() == Some(&'!');
    let body = usize::from(negated);
    // A bracket right after the opening one is a member.
    let first = body + usize::from(rest.get(body) == Some(&']'));
    let end = first + rest.get(first..)?.iter().position(|&c| c == ']')?;
    let (mut ranges, mut at) = (Vec::new(), body);
    while at < end {
        if at + 2 < end && rest[at + 1] == '-' {
            if rest[at] <= rest[at + 2] {
                ranges.push((rest[at], rest[at + 2]));
            }
            at += 3;
        } else {
            ranges.push((rest[at], rest[at]));
            at += 1;
        }
    }
    Some((Part::Set { negated, ranges }, end + 1))
}

fn matches(parts: &[Part], name: &[char]) -> bool {
    // Linear, with one place to backtrack to: only the last star needs another try.
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        let fits = match parts.get(p) {
            Some(Part::Any) => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(Part::One) => true,
            Some(Part::Char(c)) => *c == name[n],
            Some(Part::Set { negated, ranges }) => {
                ranges.iter().any(|&(low, high)| (low..=high).contains(&name[n])) != *negated
            }
            None => false,
        };
        match (fits, retry) {
            (true, _) => (p, n) = (p + 1, n + 1),
            (false, Some((part, start))) => {
                retry = Some((part, start + 1));
                (p, n) = (part, start + 1);
            }
            (false, None) => return false,
        }
    }
    parts[p..].iter().all(|part| *part == Part::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        matches(&compile(pattern), &name.chars().collect::<Vec<_>>())
    }

    #[test]
    fn patterns() {
        for (pattern, name) in
            [("*.c", "a.c"), ("a*b*c", "aXbbYc"), ("?", "é"), ("[a-c]x", "bx"), ("[]]", "]")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.c", "a.cc"), ("[!a]", "a"), ("[c-a]", "b"), ("a[", "a"), ("?", "")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        assert!(fits("a[", "a[") && fits("**", "x") && fits("[!]-]", "a") && fits("[a-]", "-"));
    }

    #[test]
    fn hidden_files_are_found_by_a_dot_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        for name in ["b.c", "a.c", ".h.c", "d/x.c"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        for (pattern, names) in [
            ("*.c", &["a.c", "b.c"][..]),
            (".*", &[".h.c"]),
            ("*/x.c", &["d/x.c"]),
            ("*/", &["d/"]),
            ("nothing*", &[]),
        ] {
            let mut found = glob(&format!("{root}/{pattern}"));
            found.sort_unstable();
            assert_eq!(found, names.iter().map(|name| format!("{root}/{name}")).collect::<Vec<_>>());
        }
    }
}
