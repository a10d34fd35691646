//! An environment in the form in which processes are started. It is built once and used for many starts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use hotstart_model::Environment;

/// `K=V` strings one after the other, each ended by a NUL. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvBlock {
    blob: Arc<[u8]>,
    count: usize,
    has_nul: bool,
}

impl EnvBlock {
    /// Flattens `env`. A variable with a NUL in it cannot be passed to any process, and no start with it succeeds.
    pub fn new(env: &Environment) -> Self {
        let mut blob = Vec::with_capacity(2048);
        let (mut count, mut nul) = (0, false);
        for (key, value) in env.iter() {
            if has_nul(key) || has_nul(value) {
                nul = true;
                continue;
            }
            blob.extend_from_slice(key.as_bytes());
            blob.push(b'=');
            blob.extend_from_slice(value.as_bytes());
            blob.push(0);
            count += 1;
        }
        EnvBlock { blob: blob.into(), count, has_nul: nul }
    }

    /// Takes strings that another process was given, each ended by a NUL. They need not have the form `K=V`. `None` if the
    /// last one has no NUL.
    pub fn from_strings(blob: &[u8]) -> Option<Self> {
        let ended = blob.last().is_none_or(|&last| last == 0);
        let count = blob.iter().filter(|&&b| b == 0).count();
        ended.then(|| EnvBlock { blob: blob.into(), count, has_nul: false })
    }

    /// Returns the strings one after the other, each with its NUL.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Whether a variable has a NUL in it.
    pub(crate) fn has_nul(&self) -> bool {
        self.has_nul
    }

    /// Returns the number of variables.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns each variable as `K=V`, without the NUL.
    pub fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &*self.blob;
        (0..self.count).map(move |_| {
            let end = memchr::memchr(0, rest).unwrap_or(rest.len());
            let (string, behind) = rest.split_at(end);
            rest = behind.get(1..).unwrap_or_default();
            string
        })
    }
}

fn has_nul(text: &OsStr) -> bool {
    text.as_bytes().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_keep_their_order_and_empty_values() {
        let env: Environment = [("B", "2"), ("A", "")].into_iter().collect();
        let block = EnvBlock::new(&env);
        assert_eq!(block.blob(), b"B=2\0A=\0");
        assert_eq!(block.strings().collect::<Vec<_>>(), [&b"B=2"[..], b"A="]);
    }

    #[test]
    fn a_nul_is_noticed() {
        for (pair, expected) in [(("A", "a\0b"), true), (("A\0", "b"), true), (("A", "b"), false)] {
            assert_eq!(EnvBlock::new(&[pair].into_iter().collect()).has_nul(), expected, "{pair:?}");
        }
    }

    #[test]
    fn strings_of_another_process_are_taken_as_they_are() {
        let block = EnvBlock::from_strings(b"A=1\0odd\0A=2\0").unwrap();
        assert_eq!(block.strings().collect::<Vec<_>>(), [&b"A=1"[..], b"odd", b"A=2"]);
        assert_eq!(EnvBlock::from_strings(b"").map(|block| block.count()), Some(0));
        assert_eq!(EnvBlock::from_strings(b"A=1"), None);
    }
}
