//! Finds the libraries of allocators.

use std::path::{Path, PathBuf};

/// An allocator that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// The beginning of its library's file name.
    prefix: &'static str,
    /// The packages that have it.
    package: &'static str,
}

/// All known allocators. `tools/allocators` builds the first two.
pub const KNOWN: [Known; 4] = [
    Known { name: "mimalloc", prefix: "libmimalloc.so", package: "libmimalloc2.0 or libmimalloc3" },
    Known { name: "rpmalloc", prefix: "librpmalloc", package: "librpmalloc1, from 14 on" },
    Known { name: "jemalloc", prefix: "libjemalloc.so", package: "libjemalloc2" },
    Known { name: "tcmalloc", prefix: "libtcmalloc_minimal.so", package: "libtcmalloc-minimal4" },
];

/// Returns the allocator of this name.
pub fn known(name: &str) -> Option<Known> {
    KNOWN.into_iter().find(|known| known.name == name)
}

impl Known {
    /// Returns a message that says how to get the allocator.
    pub fn missing(&self) -> String {
        let Known { name, prefix, package } = self;
        let prefix = prefix.trim_end_matches(".so");
        match *name {
            "mimalloc" | "rpmalloc" => format!(
                "no {prefix}.so is installed (Debian: {package}); `make allocators` builds one from upstream's sources"
            ),
            _ => format!("no {prefix}.so is installed (Debian: {package})"),
        }
    }
}

/// Returns the directories of libraries: those that came with this binary, then the system's.
pub fn directories() -> Vec<PathBuf> {
    let own =
        std::env::current_exe().ok().and_then(|exe| exe.parent().map(|dir| dir.join("../lib/hotstart")));
    let own = own.and_then(|dir| dir.canonicalize().ok());
    let arch = std::env::consts::ARCH;
    let system = [&format!("/usr/lib/{arch}-linux-gnu"), "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    own.into_iter().chain(system.map(PathBuf::from)).collect()
}

/// Returns the library of `known` in the first of `directories` that has one.
pub fn find(known: Known, directories: &[PathBuf]) -> Option<PathBuf> {
    directories.iter().find_map(|dir| find_in(known.prefix, dir))
}

fn find_in(prefix: &str, dir: &Path) -> Option<PathBuf> {
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(prefix) && name.contains(".so")
    };
    std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).filter(fits).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_name_in_the_first_directory_that_has_one() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dirs = [first.path().to_owned(), second.path().to_owned()];
        let mimalloc = known("mimalloc").unwrap();
        assert_eq!(find(mimalloc, &dirs), None);
        std::fs::write(second.path().join("libmimalloc.so.2.0"), "").unwrap();
        std::fs::write(second.path().join("libmimalloc.so.2"), "").unwrap();
        assert_eq!(find(mimalloc, &dirs), Some(second.path().join("libmimalloc.so.2")));
        std::fs::write(first.path().join("libmimalloc.so.3"), "").unwrap();
        assert_eq!(find(mimalloc, &dirs), Some(first.path().join("libmimalloc.so.3")));
        assert_eq!(find(known("rpmalloc").unwrap(), &dirs), None);
    }
}
