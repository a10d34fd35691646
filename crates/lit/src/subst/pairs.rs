//! Pairs of adjacent bytes in a line: a quick proof that a text is not in it.

const BITS: usize = 4096;

/// The pairs of a line, hashed.
pub struct Pairs([u64; BITS / 64]);

/// Some of the pairs that a text contains.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signature {
    pairs: [u16; 4],
    len: u8,
}

fn hash(a: u8, b: u8) -> usize {
    (usize::from(a) ^ usize::from(b) << 5) & (BITS - 1)
}

impl Pairs {
    /// Returns the pairs of a line.
    pub fn of(line: &str) -> Self {
        let mut bits = [0u64; BITS / 64];
        for pair in line.as_bytes().windows(2) {
            let bit = hash(pair[0], pair[1]);
            bits[bit / 64] |= 1 << (bit % 64);
        }
        Pairs(bits)
    }

    /// Returns `false` only if the text is not in the line.
    pub fn may_contain(&self, signature: &Signature) -> bool {
        let has = |&bit: &u16| self.0[usize::from(bit) / 64] >> (bit % 64) & 1 == 1;
        signature.pairs[..usize::from(signature.len)].iter().all(has)
    }
}

impl Signature {
    /// Returns the signature of a text. It is empty for less than two bytes, which any line may contain.
    pub fn of(text: &str) -> Self {
        let mut signature = Signature::default();
        let windows = text.len().saturating_sub(1);
        // Spread over the text, as keys share prefixes.
        let wanted = windows.min(4);
        for i in 0..wanted {
            let at = if wanted == 1 { 0 } else { i * (windows - 1) / (wanted - 1) };
            let pair = &text.as_bytes()[at..at + 2];
            signature.pairs[i] = hash(pair[0], pair[1]) as u16;
        }
        signature.len = wanted as u8;
        signature
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_line_is_never_denied() {
        let line = "opt < %s -passes=instcombine -S | FileCheck %s é";
        let pairs = Pairs::of(line);
        for (start, _) in line.char_indices() {
            for (end, _) in line[start..].char_indices() {
                assert!(pairs.may_contain(&Signature::of(&line[start..start + end])));
            }
        }
        assert!(!pairs.may_contain(&Signature::of("%t")));
        assert!(!pairs.may_contain(&Signature::of("llvm-objdump")));
    }
}
