//! Names of contents: SHA-256 and size.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The name of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    hash: [u8; 32],
    size: u64,
}

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest { hash: Sha256::digest(bytes).into(), size: bytes.len() as u64 }
    }

    /// Returns the digest of a file's content.
    pub fn of_file(path: &Path) -> io::Result<Digest> {
        let (mut file, mut hasher, mut size) = (File::open(path)?, Sha256::new(), 0);
        let mut part = vec![0; 256 << 10];
        loop {
            match file.read(&mut part)? {
                0 => return Ok(Digest { hash: hasher.finalize().into(), size }),
                count => {
                    hasher.update(&part[..count]);
                    size += count as u64;
                }
            }
        }
    }

    /// Reads what [`Digest::hex`] returned. `None` if it is damaged.
    pub fn from_hex(text: &str, size: u64) -> Option<Digest> {
        let mut hash = [0; 32];
        let is_whole = text.len() == 64 && text.is_ascii();
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        is_whole.then_some(Digest { hash, size })
    }

    /// Returns the size of the content in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the hash in lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        self.hash.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_bytes_have_the_same_name() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!((Digest::of(b"").hex().as_str(), Digest::of(b"").size()), (empty, 0));
        assert_eq!(Digest::from_hex(empty, 0), Some(Digest::of(b"")));
        assert_eq!(Digest::from_hex(&empty[1..], 0), None);
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes) = (dir.path().join("f"), vec![7; 300 << 10]);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Digest::of_file(&path).unwrap(), Digest::of(&bytes));
    }
}
