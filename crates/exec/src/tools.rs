//! Rules by a tool's name: whether it works without its terminal, and whether it can be run twice.

use std::ffi::{OsStr, OsString};
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

/// Returns the kind of `program` by its name, without the target before it and the version after it.
pub(crate) fn kind(program: &Path) -> Kind {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let is_version = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let name = match name.rsplit_once('-') {
        Some((front, version)) if is_version(version) => front,
        _ => &*name,
    };
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

/// Returns whether the command can be repeated after it was killed, with the same result: it is a compiler that writes
/// files, and neither reads nor writes a stream.
pub(crate) fn is_repeatable(program: &Path, argv: &[OsString]) -> bool {
    if kind(program) != Kind::Compiler {
        return false;
    }
    let mut writes_file = false;
    let mut args = argv.iter().skip(1).map(OsString::as_os_str).peekable();
    while let Some(arg) = args.next() {
        match arg.as_encoded_bytes() {
            b"-" | b"-M" | b"-MM" => return false,
            b"-o" => match args.next() {
                Some(file) if file != OsStr::new("-") => writes_file = true,
                _ => return false,
            },
            b"-o-" => return false,
            b"-c" => writes_file = true,
            other => writes_file |= other.starts_with(b"-o"),
        }
    }
    writes_file
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

    #[test]
    fn what_reads_or_writes_a_stream_is_not_repeated() {
        let repeatable = |line: &str| {
            let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            is_repeatable(Path::new(&argv[0]), &argv)
        };
        assert!(repeatable("clang -O2 -c a.c -o a.o"));
        assert!(repeatable("clang -c a.c"));
        assert!(repeatable("ld.lld a.o -oa"));
        assert!(!repeatable("clang -E a.c"), "to standard output");
        assert!(!repeatable("clang -E a.c -o -"));
        assert!(!repeatable("clang -x c - -c -o a.o"), "from standard input");
        assert!(!repeatable("clang -MM a.c -o a.o"));
        assert!(!repeatable("ar rc a.a a.o -o x"));
        assert!(!repeatable("clang --version"));
    }
}
