//! Python's `difflib.SequenceMatcher` over lines: finds the blocks that two files have in common.
//!
//! It does not find the shortest edit script, and does not use popular lines as anchors in long files. Hunks must equal
//! Python's, so this follows its steps one by one.

use std::collections::HashMap;
use std::hash::Hash;

/// The kind of change to a range of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Equal,
    Replace,
    Delete,
    Insert,
}

/// Lines `a` of the one file become lines `b` of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opcode {
    pub tag: Tag,
    pub a: (usize, usize),
    pub b: (usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    a: usize,
    b: usize,
    size: usize,
}

struct Matcher {
    a: Vec<usize>,
    b: Vec<usize>,
    /// For each kind of line, its places in `b`; empty for popular ones.
    places: Vec<Vec<usize>>,
}

impl Matcher {
    fn new<T: Hash + Eq>(a: &[T], b: &[T]) -> Self {
        let mut ids: HashMap<&T, usize> = HashMap::new();
        let mut id = |line| {
            let next = ids.len();
            *ids.entry(line).or_insert(next)
        };
        let b: Vec<usize> = b.iter().map(&mut id).collect();
        let a: Vec<usize> = a.iter().map(&mut id).collect();
        let mut places = vec![Vec::new(); ids.len()];
        for (place, &line) in b.iter().enumerate() {
            places[line].push(place);
        }
        if b.len() >= 200 {
            let most = b.len() / 100 + 1;
            places.iter_mut().filter(|found| found.len() > most).for_each(Vec::clear);
        }
        Matcher { a, b, places }
    }

    fn longest(&self, a: (usize, usize), b: (usize, usize)) -> Block {
        let mut best = Block { a: a.0, b: b.0, size: 0 };
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for i in a.0..a.1 {
            let mut next = HashMap::new();
            for &j in self.places[self.a[i]].iter().skip_while(|&&j| j < b.0).take_while(|&&j| j < b.1) {
                let size = j.checked_sub(1).and_then(|j| lengths.get(&j)).unwrap_or(&0) + 1;
                next.insert(j, size);
                if size > best.size {
                    best = Block { a: i + 1 - size, b: j + 1 - size, size };
                }
            }
            lengths = next;
        }
        while best.a > a.0 && best.b > b.0 && self.a[best.a - 1] == self.b[best.b - 1] {
            best = Block { a: best.a - 1, b: best.b - 1, size: best.size + 1 };
        }
        while best.a + best.size < a.1
            && best.b + best.size < b.1
            && self.a[best.a + best.size] == self.b[best.b + best.size]
        {
            best.size += 1;
        }
        best
    }

    /// All matching blocks in order, adjacent ones joined, with an empty one at the end.
    fn blocks(&self) -> Vec<Block> {
        let mut found = Vec::new();
        let mut queue = vec![((0, self.a.len()), (0, self.b.len()))];
        while let Some((a, b)) = queue.pop() {
            let block = self.longest(a, b);
            if block.size == 0 {
                continue;
            }
            if a.0 < block.a && b.0 < block.b {
                queue.push(((a.0, block.a), (b.0, block.b)));
            }
            let (a_end, b_end) = (block.a + block.size, block.b + block.size);
            if a_end < a.1 && b_end < b.1 {
                queue.push(((a_end, a.1), (b_end, b.1)));
            }
            found.push(block);
        }
        found.sort_unstable();
        let mut joined: Vec<Block> = Vec::new();
        for block in found {
            match joined.last_mut() {
                Some(last) if last.a + last.size == block.a && last.b + last.size == block.b => {
                    last.size += block.size;
                }
                _ => joined.push(block),
            }
        }
        joined.push(Block { a: self.a.len(), b: self.b.len(), size: 0 });
        joined
    }
}

fn opcodes(blocks: &[Block]) -> Vec<Opcode> {
    let (mut i, mut j) = (0, 0);
    let mut codes = Vec::new();
    for block in blocks {
        let tag = match (i < block.a, j < block.b) {
            (true, true) => Some(Tag::Replace),
            (true, false) => Some(Tag::Delete),
            (false, true) => Some(Tag::Insert),
            (false, false) => None,
        };
        codes.extend(tag.map(|tag| Opcode { tag, a: (i, block.a), b: (j, block.b) }));
        (i, j) = (block.a + block.size, block.b + block.size);
        if block.size > 0 {
            codes.push(Opcode { tag: Tag::Equal, a: (block.a, i), b: (block.b, j) });
        }
    }
    codes
}

/// Returns the changes between `a` and `b`, in groups with up to `context` equal lines around them.
pub(super) fn grouped<T: Hash + Eq>(a: &[T], b: &[T], context: usize) -> Vec<Vec<Opcode>> {
    if a == b {
        return Vec::new();
    }
    let mut codes = opcodes(&Matcher::new(a, b).blocks());
    if let Some(first) = codes.first_mut().filter(|code| code.tag == Tag::Equal) {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(context));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(context));
    }
    if let Some(last) = codes.last_mut().filter(|code| code.tag == Tag::Equal) {
        last.a.1 = last.a.1.min(last.a.0 + context);
        last.b.1 = last.b.1.min(last.b.0 + context);
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for mut code in codes {
        if code.tag == Tag::Equal && code.a.1 - code.a.0 > 2 * context {
            let (a_end, b_end) = (code.a.1.min(code.a.0 + context), code.b.1.min(code.b.0 + context));
            group.push(Opcode { tag: Tag::Equal, a: (code.a.0, a_end), b: (code.b.0, b_end) });
            groups.push(std::mem::take(&mut group));
            code.a.0 = code.a.0.max(code.a.1.saturating_sub(context));
            code.b.0 = code.b.0.max(code.b.1.saturating_sub(context));
        }
        group.push(code);
    }
    if !matches!(group[..], [] | [Opcode { tag: Tag::Equal, .. }]) {
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_context() {
        let a: Vec<u32> = (0..20).collect();
        let mut b = a.clone();
        b[2] = 99;
        b.remove(15);
        let groups = grouped(&a, &b, 3);
        let shape: Vec<Vec<_>> = groups.iter().map(|g| g.iter().map(|c| (c.tag, c.a)).collect()).collect();
        use Tag::{Delete, Equal, Replace};
        assert_eq!(
            shape,
            [
                vec![(Equal, (0, 2)), (Replace, (2, 3)), (Equal, (3, 6))],
                vec![(Equal, (12, 15)), (Delete, (15, 16)), (Equal, (16, 19))],
            ]
        );
        assert!(grouped(&a, &a, 3).is_empty());
    }
}
