//! Paths to files that the kernel makes up for each process that asks.

use std::path::{Component, Path, PathBuf};

/// Directories whose files the kernel generates.
const MADE_UP: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Returns whether a path, in which no link is left, lies in one of these directories.
pub(super) fn is_made_up(real: &Path) -> bool {
    MADE_UP.iter().any(|dir| real.starts_with(dir))
}

/// Whether a path goes through a directory of the kernel's, which may lead out again: `/usr/../proc/self/cwd`, or a link to that.
pub fn leads_through_made_up(path: &Path) -> bool {
    way(path).is_none()
}

/// Returns all that the kernel looks at to follow a path: directories, links, what they lead to. `None` if it goes through a directory of
/// the kernel's, or in circles.
pub(super) fn way(path: &Path) -> Option<Vec<PathBuf>> {
    const LINKS_MAX: usize = 40;
    let mut links = 0;
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    let mut at = PathBuf::from("/");
    let mut passed = Vec::new();
    while let Some(rest) = left.pop() {
        let mut parts = rest.components();
        let Some(part) = parts.next() else { continue };
        left.push(parts.as_path().to_owned());
        match part {
            Component::RootDir => at = PathBuf::from("/"),
            Component::ParentDir => drop(at.pop()),
            other => at.push(other),
        }
        if is_made_up(&at) {
            return None;
        }
        passed.push(at.clone());
        if let Ok(target) = std::fs::read_link(&at) {
            links += 1;
            if links > LINKS_MAX {
                return None;
            }
            at.pop();
            left.push(target);
        }
    }
    Some(passed)
}
