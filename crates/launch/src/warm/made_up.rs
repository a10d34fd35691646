//! Paths to files that the kernel makes up for each process that asks.

use std::path::{Component, Path, PathBuf};

/// Directories whose files the kernel generates.
const MADE_UP: [&str; 3] = ["/proc", "/sys", "/dev"];
/// One of them with files of users, who build there as it is in memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// Returns whether a path, in which no link is left, lies in one of these directories.
pub(super) fn is_made_up(real: &Path) -> bool {
    MADE_UP.iter().any(|dir| real.starts_with(dir)) && !real.starts_with(SHARED_MEMORY)
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
        let leads_to_shared =
            at == Path::new("/dev") && parts.next() == Some(Component::Normal("shm".as_ref()));
        if is_made_up(&at) && !leads_to_shared {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_through_no_directory_of_the_kernels_but_shared_memory() {
        for path in
            ["/proc/self/exe", "/usr/../dev/null", "/dev", "/dev/", "/dev/shm/../null", "/dev/./null", "/sys"]
        {
            assert!(leads_through_made_up(Path::new(path)), "{path}");
        }
        assert!(!leads_through_made_up(Path::new("/usr/bin")));
        let dir = std::fs::canonicalize(SHARED_MEMORY);
        if dir.is_ok_and(|dir| dir == Path::new(SHARED_MEMORY)) {
            let way = way(Path::new("/dev/shm/x/y")).unwrap();
            assert_eq!(way, ["/", "/dev", "/dev/shm", "/dev/shm/x", "/dev/shm/x/y"].map(PathBuf::from));
        }
    }
}
