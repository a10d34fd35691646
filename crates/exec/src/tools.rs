//! Rules by a tool's name: whether it works without its terminal.

use std::borrow::Cow;
use std::path::Path;

/// Compilers and linkers: they read files and write new ones.
const COMPILERS: [&str; 23] = [
    "clang",
    "clang++",
    "clang-cl",
    "clang-cpp",
    "gcc",
    "g++",
    "cc",
    "c++",
    "cpp",
    "cc1",
    "cc1plus",
    "collect2",
    "gfortran",
    "flang",
    "flang-new",
    "as",
    "ld",
    "lld",
    "lld-link",
    "mold",
    "rustc",
    "llc",
    "opt",
];
/// Tools that accompany compilers.
const COMPANIONS: [&str; 15] = [
    "clang-format",
    "clang-tidy",
    "clang-scan-deps",
    "ar",
    "ranlib",
    "nm",
    "strip",
    "objcopy",
    "objdump",
    "readelf",
    "size",
    "strings",
    "mc",
    "tblgen",
    "dsymutil",
];

/// Kinds of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Compiler,
    Companion,
    Other,
}

/// Returns the name of `program` without the version behind it.
fn unversioned(program: &Path) -> Cow<'_, str> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let is_version = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match name.rsplit_once('-') {
        Some((front, version)) if is_version(version) => front.to_owned().into(),
        _ => name,
    }
}

/// Returns the name of `program` without the target before it and the version behind it: of a driver such as
/// `x86_64-linux-gnu-gcc-12`. One part is no target: `afl-clang` is another program.
pub(crate) fn base_name(program: &Path) -> String {
    let name = unversioned(program);
    match name.rsplit_once('-') {
        Some((target, last)) if target.contains('-') => last.to_owned(),
        _ => name.into_owned(),
    }
}

/// Returns the kind of `program` by its name, without the target before it and the version after it.
pub(crate) fn kind(program: &Path) -> Kind {
    let name = &*unversioned(program);
    let last = name.rsplit_once('-').map_or(name, |(_, last)| last);
    let of = |name: &str| {
        if COMPILERS.contains(&name) || name.starts_with("ld.") || name == "ld64.lld" {
            Kind::Compiler
        } else if COMPANIONS.contains(&name) {
            Kind::Companion
        } else {
            Kind::Other
        }
    };
    match of(name) {
        Kind::Other => of(last),
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind() {
        for name in
            ["clang", "clang-19", "x86_64-linux-gnu-g++-12", "ld.lld", "ld.lld-19", "wasm-ld", "clang-cl"]
        {
            assert_eq!(kind(&Path::new("/usr/bin").join(name)), Kind::Compiler, "{name}");
        }
        for name in
            ["ar", "llvm-ar-19", "llvm-mc", "aarch64-linux-gnu-strip", "clang-tidy-19", "clang-format"]
        {
            assert_eq!(kind(Path::new(name)), Kind::Companion, "{name}");
        }
        for name in
            ["clang-repl", "sudo", "ssh", "run-clang-tidy", "git-clang-format", "19", "less", "ccache"]
        {
            assert_eq!(kind(Path::new(name)), Kind::Other, "{name}");
        }
    }

    /// The runtime has its own list of the tools that a warm tool starts warm.
    #[test]
    fn the_runtime_knows_the_same_names() {
        let source = include_str!("../../launch/runtime/extra/nested.c");
        for name in COMPILERS.iter().chain(&COMPANIONS) {
            assert!(source.contains(&format!("\"{name}\",")), "runtime/extra/nested.c lacks {name}");
        }
    }
}
