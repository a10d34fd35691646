//! The directory for tests' temporary files. It is removed after the run, with all leftovers.
//!
//! Its name is chosen before configs are evaluated, and the directory is created only when tests are about to run.

use std::fs::DirBuilder;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Set by users who manage temporary files themselves.
const PRESERVES: &str = "LIT_PRESERVES_TMP";

const LETTERS: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz0123456789_";

/// Chooses the path of the run's directory; `None` if tests use the system's.
pub(crate) fn choose() -> Option<PathBuf> {
    if std::env::var_os(PRESERVES).is_some() {
        return None;
    }
    let random = RandomState::new();
    let letter = |place: u64| char::from(LETTERS[(random.hash_one(place) % 37) as usize]);
    let name: String = (0..8).map(letter).collect();
    Some(hotstart_python::tempfile::directory().join(format!("lit-tmp-{name}")))
}

/// The directory. Dropping this removes it with its contents.
#[derive(Debug)]
pub(crate) struct TmpDir(Option<PathBuf>);

impl TmpDir {
    pub fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        Ok(TmpDir(Some(path.to_path_buf())))
    }

    /// Removes the directory now. The error is lit's warning.
    pub fn remove(mut self) -> Result<(), String> {
        let Some(path) = self.0.take() else { return Ok(()) };
        std::fs::remove_dir_all(&path).map_err(|error| {
            format!("Failed to delete temp directory '{}': {error}; remove it by hand", path.display())
        })
    }
}

impl Drop for TmpDir {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // An error can no longer be reported.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_private_and_removed_with_its_content() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("lit-tmp-x");
        let dir = TmpDir::create(&path).unwrap();
        std::fs::write(path.join("left"), "x").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o700);
        dir.remove().unwrap();
        assert!(!path.exists());
    }
}
