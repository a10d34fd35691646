//! Whether a command can be run again after its server died in the middle of it.
//!
//! The first run may have read from a stream, or written to one, and neither comes back. So a list decides: one compilation, all of
//! whose options are known, from files to a file of its own, with nothing to read on standard input. The client waits for one message
//! less where that is so. Every other command is lost with its server, and its client says so.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};

use crate::tools;

/// Drivers that share the options below.
const DRIVERS: [&str; 6] = ["clang", "clang++", "gcc", "g++", "cc", "c++"];
/// Options without a value.
const FLAGS: [&str; 38] = [
    "-c",
    "-S",
    "-w",
    "-ansi",
    "-pedantic",
    "-pedantic-errors",
    "-pipe",
    "-pthread",
    "-nostdinc",
    "-nostdinc++",
    "-emit-llvm",
    "-Qunused-arguments",
    "-MD",
    "-MMD",
    "-MP",
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-fcommon",
    "-fexceptions",
    "-frtti",
    "-fwrapv",
    "-ffast-math",
    "-ffreestanding",
    "-ffunction-sections",
    "-fdata-sections",
    "-fomit-frame-pointer",
    "-fshort-enums",
    "-fsigned-char",
    "-funsigned-char",
    "-fstrict-aliasing",
    "-fcolor-diagnostics",
    "-fstack-protector",
    "-fstack-protector-strong",
    "-fstack-protector-all",
    "-fstack-clash-protection",
    "-fvisibility-inlines-hidden",
];
/// Options whose value, behind the same dash, has only letters, digits and the characters of [`is_plain`].
const FAMILIES: [&str; 15] = [
    "-O",
    "-W",
    "-std=",
    "-stdlib=",
    "-march=",
    "-mtune=",
    "-mcpu=",
    "-msse",
    "-mavx",
    "-gdwarf",
    "-fno-",
    "-fvisibility=",
    "-fcf-protection",
    "-fdiagnostics-color",
    "-fmax-errors=",
];
/// The same, exactly.
const EXACT: [&str; 11] =
    ["-g", "-g0", "-g1", "-g2", "-g3", "-ggdb", "-ggdb3", "-gsplit-dwarf", "-m32", "-m64", "-mno-red-zone"];
/// Options whose value is text, or a directory to search. It follows at once or as the next argument.
const WITH_TEXT: [&str; 8] = ["-D", "-U", "-isystem", "-iquote", "-idirafter", "-I", "-MT", "-MQ"];
/// Options with `=` whose value is the same.
const WITH_EQUALS: [&str; 5] =
    ["--sysroot=", "--target=", "-ffile-prefix-map=", "-fmacro-prefix-map=", "-fdebug-prefix-map="];
/// Variables, by how they begin, that give the drivers options or have them write elsewhere.
const VARIABLES: [&str; 6] =
    ["DEPENDENCIES_OUTPUT=", "SUNPRO_DEPENDENCIES=", "CC_", "CCC_", "QA_OVERRIDE_", "COLLECT_"];

/// Files that a command line names.
#[derive(Default)]
struct Files<'a> {
    read: Vec<&'a OsStr>,
    written: Vec<&'a OsStr>,
    outputs: usize,
}

/// Returns whether the command has the same result if it is run again after it was killed at any moment.
pub(crate) fn is_repeatable<'e>(
    program: &Path,
    argv: &[OsString],
    variables: impl IntoIterator<Item = &'e [u8]>,
    directory: &Path,
    input: impl AsFd,
) -> bool {
    let is_known = |variable: &[u8]| !VARIABLES.iter().any(|begin| variable.starts_with(begin.as_bytes()));
    let is_driver = |name: &Path| DRIVERS.contains(&&*tools::base_name(name));
    // Clang is what its argument 0 says.
    is_driver(program)
        && argv.first().is_some_and(|name| is_driver(Path::new(name)))
        && variables.into_iter().all(is_known)
        && has_nothing_to_read(input)
        && files(argv).is_some_and(|files| are_apart(&files, directory))
}

/// Returns the files of one compilation to a named file; `None` if an argument is not known.
fn files(argv: &[OsString]) -> Option<Files<'_>> {
    let mut files = Files::default();
    let mut compiles = false;
    let mut args = argv.iter().skip(1).map(OsString::as_os_str);
    while let Some(arg) = args.next() {
        if leads_out(arg) {
            return None;
        }
        let bytes = arg.as_bytes();
        compiles |= matches!(bytes, b"-c" | b"-S");
        let mut value = |begin: &str| match &bytes[begin.len()..] {
            b"" => args.next().filter(|value| !leads_out(value)),
            rest => Some(OsStr::from_bytes(rest)),
        };
        if bytes.starts_with(b"-o") {
            files.written.push(value("-o").filter(|file| !file.as_bytes().starts_with(b"-"))?);
            files.outputs += 1;
        } else if bytes.starts_with(b"-MF") {
            files.written.push(value("-MF").filter(|file| !file.as_bytes().starts_with(b"-"))?);
        } else if bytes == b"-include" {
            files.read.push(args.next().filter(|file| !leads_out(file))?);
        } else if bytes == b"-x" {
            args.next().filter(|language| is_plain(language.as_bytes()))?;
        } else if let Some(option) = WITH_TEXT.iter().find(|option| bytes.starts_with(option.as_bytes())) {
            value(option)?;
        } else if !bytes.starts_with(b"-") {
            files.read.push(arg);
        } else if !is_flag(bytes) {
            return None;
        }
    }
    (compiles && files.outputs == 1 && !files.read.is_empty()).then_some(files)
}

fn is_flag(bytes: &[u8]) -> bool {
    let is = |known: &&str| known.as_bytes() == bytes;
    let in_family = |begin: &&str| bytes.strip_prefix(begin.as_bytes()).is_some_and(is_plain);
    FLAGS.iter().chain(&EXACT).any(is)
        || FAMILIES.iter().any(in_family)
        || WITH_EQUALS.iter().any(|begin| bytes.starts_with(begin.as_bytes()))
}

/// Returns whether the text names no file and has no parts: `-Wp,-MD,x` is more than a warning.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"+-_=.".contains(&byte))
}

/// Returns whether an argument is, or mentions, a stream, or stands for other arguments.
fn leads_out(arg: &OsStr) -> bool {
    let bytes = arg.as_bytes();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    bytes.is_empty() || bytes == b"-" || bytes.starts_with(b"@") || has(b"/dev/") || has(b"/proc/")
}

/// Returns whether a descriptor has nothing to read now or ever: the null device, or a pipe that nobody can write to, as
/// make gives most of its jobs.
fn has_nothing_to_read(input: impl AsFd) -> bool {
    let Ok(found) = rustix::fs::fstat(&input) else { return false };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::CharacterDevice => {
            (rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev)) == (1, 3)
        }
        FileType::Fifo => {
            let mut polled = [PollFd::new(&input, PollFlags::IN)];
            rustix::event::poll(&mut polled, Some(&rustix::time::Timespec::default())) == Ok(1)
                && polled[0].revents() == PollFlags::HUP
        }
        _ => false,
    }
}

/// Returns whether all files are regular ones or missing, and what the command writes is nothing that it reads: a second run
/// would read what the first has left.
fn are_apart(files: &Files<'_>, directory: &Path) -> bool {
    let look = |names: &[&OsStr]| {
        names.iter().map(|name| identity(&directory.join(name))).collect::<Option<Vec<_>>>()
    };
    let (Some(read), Some(written)) = (look(&files.read), look(&files.written)) else { return false };
    let is_read = |file: &Option<(u64, u64)>| file.is_some() && read.contains(file);
    !written.iter().any(is_read) && !files.written.iter().any(|name| files.read.contains(name))
}

/// Returns device and inode of a regular file, `Some(None)` if there is nothing by this name, and `None` if there is anything else, or
/// a link through `/proc` leads there: it means another file in another process.
fn identity(path: &Path) -> Option<Option<(u64, u64)>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Ok(file) => {
            let found = rustix::fs::fstat(&file).ok()?;
            let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
            is_file.then_some(Some((found.st_dev, found.st_ino)))
        }
        Err(rustix::io::Errno::NOENT) => {
            // A link that leads nowhere here may lead to a descriptor of the job's.
            let is_there = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            let folder = std::fs::canonicalize(path.parent()?).ok()?;
            (!is_there && !folder.starts_with("/proc") && !folder.starts_with("/dev")).then_some(None)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory with the files that the lines name.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.c", "a.s", "b.h", "old.o"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let at = |name: &str| folder.path().join(name);
        symlink("/dev/stdout", at("out")).unwrap();
        symlink("/dev/fd/777", at("high")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        symlink("a.c", at("same.c")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status();
        assert!(made.unwrap().success());
        folder
    }

    fn null() -> File {
        File::open("/dev/null").unwrap()
    }

    fn repeats(folder: &Path, line: &str, input: impl AsFd) -> bool {
        let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        is_repeatable(Path::new(&argv[0]), &argv, [&b"PATH=/bin"[..]], folder, input)
    }

    #[test]
    fn a_compilation_from_files_to_a_file_is_repeated() {
        let folder = folder();
        for line in [
            "clang -O2 -c a.c -o a.o",
            "clang -c a.c -o old.o",
            "x86_64-linux-gnu-gcc-12 -DA=1 -D B -I. -I inc -isystem x -std=gnu11 -g -Wall -fPIC -o a.o -c a.c",
            "gcc -Wno-error=x -MD -MT a.o -MF a.d -o a.o -c a.c",
            "/usr/bin/c++ -fno-rtti -fvisibility=hidden -march=native -include b.h -x c++ -S -oa.s2 a.c",
        ] {
            assert!(repeats(folder.path(), line, null()), "{line}");
        }
    }

    #[test]
    fn what_may_read_or_write_a_stream_is_not_repeated() {
        let folder = folder();
        for line in [
            "clang -E a.c",
            "clang -E -P a.c -o /dev/stdout",
            "clang -c a.c -o -",
            "clang -c a.c -o",
            "clang -c a.c -o /dev/stdout",
            "clang -c a.c -o /proc/self/fd/1",
            "clang -c a.c -o out",
            "clang -c a.c -o high",
            "clang -c a.c -o dangling",
            "clang -c a.c -o fifo",
            "clang -c fifo -o a.o",
            "clang -c -x c - -o a.o",
            "clang -c -x c /dev/stdin -o a.o",
            "clang -c a.c -include /dev/fd/63 -o a.o",
            "clang -c a.c -include fifo -o a.o",
            "clang -c a.c -MD -MF - -o a.o",
            "clang -c a.c -MD -MF/dev/stdout -o a.o",
            "clang -c a.c -Wp,-MD,/dev/stdout -o a.o",
            "clang -c a.c -Wp,-MD,out -o a.o",
            "clang -c a.c -Wa,-a -o a.o",
            "clang -c @args -o a.o",
            "clang -c a.c -D @args -o a.o",
            "clang -c a.c -unknown -o a.o",
            "clang -c a.c -fproc-stat-report -o a.o",
            "clang -c a.c -Xclang -ast-dump -o a.o",
            "clang -c a.c -v -o a.o",
            "clang -c a.c",
            "clang -c -o a.o",
            "clang -c a.c -o a.o -o b.o",
            "clang a.c -o a",
            "clang -MM a.c -o a.o",
            "clang --version",
        ] {
            assert!(!repeats(folder.path(), line, null()), "{line}");
        }
    }

    #[test]
    fn what_has_other_options_is_not_repeated() {
        let folder = folder();
        for line in [
            "as -o a.o",
            "as a.s -o a.o",
            "ld -r old.o -T /dev/stdin -o a.o",
            "ld.lld old.o -o a",
            "ar -c a.c -o a.o",
            "clang-cl -c a.c -o a.o",
            "rustc -c a.c -o a.o",
            "afl-clang -c a.c -o a.o",
            "clang-cpp -c a.c -o a.o",
        ] {
            assert!(!repeats(folder.path(), line, null()), "{line}");
        }
    }

    #[test]
    fn what_reads_the_file_that_it_writes_is_not_repeated() {
        let folder = folder();
        for line in ["cc -c a.c -o a.c", "cc -c a.c -o same.c", "cc -c a.c -o ./a.c", "cc -x c -c new -o new"]
        {
            assert!(!repeats(folder.path(), line, null()), "{line}");
        }
    }

    #[test]
    fn there_must_be_nothing_to_read() {
        let folder = folder();
        let repeats = |input: &dyn Fn() -> std::os::fd::OwnedFd| {
            super::tests::repeats(folder.path(), "cc -c a.c -o a.o", input())
        };
        assert!(!repeats(&|| File::open(folder.path().join("a.c")).unwrap().into()), "a file");
        assert!(!repeats(&|| File::open("/dev/zero").unwrap().into()));
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert!(!repeats(&|| read.try_clone().unwrap()), "somebody may write");
        rustix::io::write(&write, b"int a;").unwrap();
        drop(write);
        assert!(!repeats(&|| read.try_clone().unwrap()), "somebody has written");
        rustix::io::read(&read, &mut [0; 16]).unwrap();
        assert!(repeats(&|| read.try_clone().unwrap()), "as make's jobs have it");
    }

    #[test]
    fn a_variable_may_have_the_driver_do_more() {
        let folder = folder();
        let argv = ["cc", "-c", "a.c", "-o", "a.o"].map(OsString::from);
        for (variable, expected) in
            [("CC=cc", true), ("DEPENDENCIES_OUTPUT=/dev/stdout", false), ("CCC_OVERRIDE_OPTIONS=+-E", false)]
        {
            let variables = [variable.as_bytes()];
            let found = is_repeatable(Path::new("/bin/cc"), &argv, variables, folder.path(), null());
            assert_eq!(found, expected, "{variable}");
        }
    }
}
