//! Programs that start others as a part of a test: what they start can be warm, too.

use std::path::Path;

/// A program that starts tools and waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// LLVM's `not`, which starts one tool in each run and turns its status round.
    Not,
    /// A compiler that starts stages and linkers in some of its runs, and reads nothing of them but their status.
    Driver,
}

/// Compilers of LLVM's. They make their children by `posix_spawn`, of which all is known until the exec. (gcc uses vfork.)
const DRIVERS: [&str; 6] = ["clang", "clang++", "clang-cl", "clang-cpp", "flang", "flang-new"];

impl Starter {
    /// Returns what `program` is by its name, with or without a version behind it.
    pub fn of(program: &Path) -> Option<Starter> {
        let name = program.file_name()?.to_str()?;
        if name == "not" {
            return Some(Starter::Not);
        }
        let is_version = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let base = match name.rsplit_once('-') {
            Some((base, version)) if !version.is_empty() && is_version(version) => base,
            _ => name,
        };
        DRIVERS.contains(&base).then_some(Starter::Driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starters_are_known_by_name() {
        let of = |name: &str| Starter::of(&Path::new("/usr/bin").join(name));
        assert_eq!(of("not"), Some(Starter::Not));
        for name in ["clang", "clang++-19", "clang-cl", "clang-19.1", "flang-new"] {
            assert_eq!(of(name), Some(Starter::Driver), "{name}");
        }
        for name in ["not-19", "clang-", "clang-format", "clang-tidy-19", "afl-clang", "opt", "ld.lld"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
