//! Decides whether a program can be stopped before `main` at all. It reads the ELF file and does not run the program.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use object::elf;
use object::read::elf::{Dyn, ElfFile64, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ReadCache, ReadRef};

use super::files::Files;
use super::script::Script;
use crate::{Reason, time_of_files};

#[cfg(target_arch = "x86_64")]
const LOADER: (&str, u16) = ("ld-linux-x86-64.so.2", elf::EM_X86_64);
#[cfg(target_arch = "aarch64")]
const LOADER: (&str, u16) = ("ld-linux-aarch64.so.1", elf::EM_AARCH64);

const INSTRUMENTED: [&str; 10] = [
    "__asan_",
    "__tsan_",
    "__msan_",
    "__hwasan_",
    "__ubsan_",
    "__sanitizer_",
    "__llvm_profile_",
    "__gcov_",
    "__dfsan_",
    "__monstartup",
];
/// A variable that the run-time libraries of `--coverage` read, gcc's and clang's. Their symbols are not exported.
const COVERAGE: &[u8] = b"GCOV_PREFIX_STRIP";
/// Bytes of a file that are searched at a time. The 7 MB of cc1 in one piece took 6 ms for fresh memory alone.
const PIECE: usize = 128 * 1024;
const INSTRUMENTING_LIBRARIES: [&str; 6] =
    ["libasan.", "libtsan.", "libubsan.", "liblsan.", "libhwasan.", "libclang_rt."];

/// Facts about an eligible program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Directories in which ld.so looks for its libraries first.
    pub search: Vec<PathBuf>,
    /// Such directories that are relative to the working directory. An empty path is that directory itself.
    pub relative: Vec<PathBuf>,
    /// The script, if it is Python's. All else is about its interpreter.
    pub python: Option<Script>,
}

impl Traits {
    /// Adds the directories in which ld.so looks for the libraries that `path` needs.
    pub(crate) fn add_library(&mut self, path: &Path) -> Result<(), Reason> {
        let file = File::open(path).map_err(|_| Reason::FilesChanging)?;
        let cache = ReadCache::new(&file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).map_err(|_| Reason::NotElf)?;
        examine_dynamic(&elf, path, self)
    }
}

/// Like [`examine`], for a Python script. The traits are the interpreter's.
pub(crate) fn examine_python(script: Script) -> Result<Traits, Reason> {
    let traits = examine(&script.interpreter)?;
    Ok(Traits { python: Some(script), ..traits })
}

/// What programs were found to be. A statically linked tool of LLVM has 50 MB of constants to search, 14 ms each time.
static EXAMINED: LazyLock<Mutex<HashMap<PathBuf, Examined>>> = LazyLock::new(Mutex::default);
/// The program's file as it was then, and what it was found to be.
type Examined = (Files, Result<Traits, Reason>);
/// Programs that are remembered. Some suites make a program in each test.
const EXAMINED_MOST: usize = 256;

/// Reads the ELF file of `program`, unless that is the file that was read before.
pub(crate) fn examine(program: &Path) -> Result<Traits, Reason> {
    let lock = || EXAMINED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lock().get(program).cloned();
    if let Some((_, result)) = known.filter(|(files, _)| files.unchanged()) {
        return result;
    }
    let (begun, mut files) = (time_of_files(), Files::default());
    files.watch(program);
    let result = read(program);
    // A file that changes now may have the same stamps as the one that was read.
    if files.unchanged_since(begun) {
        let mut examined = lock();
        if examined.len() >= EXAMINED_MOST {
            examined.clear();
        }
        examined.insert(program.to_owned(), (files, result.clone()));
    }
    result
}

fn read(program: &Path) -> Result<Traits, Reason> {
    let unreadable = |_| Reason::Unreadable;
    let real = program.canonicalize().map_err(unreadable)?;
    let file = File::open(&real).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Reason::Unreadable);
    }
    if meta.permissions().mode() & 0o6000 != 0 || has_capabilities(&file) {
        return Err(Reason::Privileged);
    }
    if meta.size() < 64 {
        return Err(Reason::NotElf);
    }
    let cache = ReadCache::new(&file);
    let magic = (&cache).read_bytes_at(0, 4).map_err(|()| Reason::Unreadable)?;
    match magic {
        [b'#', b'!', ..] => return Err(Reason::Script),
        b"\x7fELF" => {}
        _ => return Err(Reason::NotElf),
    }
    let elf = ElfFile64::<Endianness, _>::parse(&cache).map_err(|_| Reason::ForeignMachine)?;
    examine_elf(&elf, &file, &real)
}

fn has_capabilities(file: &File) -> bool {
    rustix::fs::fgetxattr(file, "security.capability", &mut [0u8; 64]).is_ok()
}

fn examine_elf<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, Endianness, R>,
    file: &File,
    real: &Path,
) -> Result<Traits, Reason> {
    let endian = elf.endian();
    if elf.elf_header().e_machine.get(endian) != LOADER.1 {
        return Err(Reason::ForeignMachine);
    }
    let interpreter = elf
        .elf_program_headers()
        .iter()
        .find_map(|header| header.interpreter(endian, elf.data()).ok().flatten())
        .ok_or(Reason::Static)?;
    let interpreter = String::from_utf8_lossy(interpreter);
    if Path::new(&*interpreter).file_name() != Some(LOADER.0.as_ref()) {
        return Err(Reason::ForeignLoader);
    }
    examine_sections(elf, file)?;
    examine_symbols(elf)?;
    let mut traits = Traits::default();
    examine_dynamic(elf, real, &mut traits)?;
    Ok(traits)
}

/// Returns the names by which ld.so looks for this library, and for those that it needs. The cache of ld.so may lead to a file of
/// another name. A file of another format has none.
pub(crate) fn names(path: &Path) -> Vec<OsString> {
    let read = || {
        // Opening a pipe would wait.
        std::fs::metadata(path).ok().filter(|meta| meta.is_file())?;
        let file = File::open(path).ok()?;
        let cache = ReadCache::new(&file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let endian = elf.endian();
        let mut dynamic = elf.elf_program_headers().iter();
        let dynamic = dynamic.find_map(|header| header.dynamic(endian, elf.data()).ok().flatten())?;
        let strings = dynamic_strings(&elf)?;
        let is_name = |tag| matches!(tag, elf::DT_NEEDED | elf::DT_SONAME);
        let named = dynamic.iter().filter(|entry| is_name(entry.d_tag(endian) as u32));
        let name = |entry: &_| strings.get(u32::try_from(Dyn::d_val(entry, endian)).ok()?).ok();
        Some(named.filter_map(name).map(|name| OsString::from_vec(name.to_vec())).collect())
    };
    read().unwrap_or_default()
}

/// Returns whether ld.so looks in the same places, whatever the working directory is, for what this program or library needs. A file of
/// another format needs nothing; of one that cannot be read nothing is known.
pub fn has_fixed_search(path: &Path) -> bool {
    let read = || -> std::io::Result<bool> {
        let file = File::open(path)?;
        let mut magic = [0; 4];
        if file.metadata()?.len() < 64 || file.read_exact_at(&mut magic, 0).is_err() || magic != *b"\x7fELF" {
            return Ok(true);
        }
        let cache = ReadCache::new(&file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).map_err(std::io::Error::other)?;
        Ok(searches_by_absolute_paths(&elf).unwrap_or(false))
    };
    read().unwrap_or(false)
}

/// Returns `None` if the file is not in order.
fn searches_by_absolute_paths<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Option<bool> {
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let Some(dynamic) = headers.find_map(|header| header.dynamic(endian, elf.data()).ok().flatten()) else {
        return Some(true);
    };
    for entry in dynamic {
        let are_names = match entry.d_tag(endian) as u32 {
            elf::DT_NEEDED | elf::DT_AUXILIARY | elf::DT_FILTER | elf::DT_AUDIT | elf::DT_DEPAUDIT => true,
            elf::DT_RPATH | elf::DT_RUNPATH => false,
            _ => continue,
        };
        let text = dynamic_strings(elf)?.get(u32::try_from(entry.d_val(endian)).ok()?).ok()?;
        // A name with a slash is a path. An empty path is the working directory.
        let is_fixed = |part: &[u8]| is_absolute(part) || (are_names && !part.contains(&b'/'));
        if !text.split(|&byte| byte == b':').all(is_fixed) {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns whether a path begins at the root or at the directory of the file that has it.
fn is_absolute(path: &[u8]) -> bool {
    let origin = [&b"$ORIGIN"[..], b"${ORIGIN}"].into_iter().find_map(|origin| path.strip_prefix(origin));
    path.starts_with(b"/") || origin.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Reads the needed libraries, and the directories where ld.so looks for them.
fn examine_dynamic<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, Endianness, R>,
    real: &Path,
    traits: &mut Traits,
) -> Result<(), Reason> {
    let endian = elf.endian();
    let dynamic = elf
        .elf_program_headers()
        .iter()
        .find_map(|header| header.dynamic(endian, elf.data()).ok().flatten())
        .ok_or(Reason::Static)?;
    let strings = dynamic_strings(elf).ok_or(Reason::NotElf)?;
    for entry in dynamic {
        let tag = entry.d_tag(endian) as u32;
        if !matches!(tag, elf::DT_NEEDED | elf::DT_RUNPATH | elf::DT_RPATH) {
            continue;
        }
        let offset = u32::try_from(entry.d_val(endian)).map_err(|_| Reason::NotElf)?;
        let text = strings.get(offset).map_err(|()| Reason::NotElf)?;
        if tag == elf::DT_NEEDED {
            let text = String::from_utf8_lossy(text);
            if INSTRUMENTING_LIBRARIES.iter().any(|l| text.starts_with(l)) {
                return Err(Reason::Instrumented);
            }
        } else {
            add_search(traits, text, real)?;
        }
    }
    Ok(())
}

fn dynamic_strings<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, Endianness, R>,
) -> Option<object::read::StringTable<'a, R>> {
    let (endian, sections) = (elf.endian(), elf.elf_section_table());
    // Not by way of the symbols, which would all be read.
    let symbols = sections.iter().find(|section| section.sh_type(endian) == elf::SHT_DYNSYM)?;
    sections.strings(endian, elf.data(), symbols.link(endian)).ok()
}

fn add_search(traits: &mut Traits, text: &[u8], real: &Path) -> Result<(), Reason> {
    let origin = real.parent().unwrap_or(Path::new("/"));
    for dir in text.split(|&b| b == b':') {
        let dir = String::from_utf8(dir.to_vec()).map_err(|_| Reason::RelativePath)?;
        let expanded = dir.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", &origin.to_string_lossy());
        if expanded.contains('$') {
            return Err(Reason::RelativePath);
        }
        let dir = PathBuf::from(OsString::from_vec(expanded.into_bytes()));
        let dirs = if dir.is_absolute() { &mut traits.search } else { &mut traits.relative };
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    Ok(())
}

fn examine_sections<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, Endianness, R>,
    file: &File,
) -> Result<(), Reason> {
    for section in elf.sections() {
        let name = section.name().unwrap_or_default();
        if name.starts_with("__llvm_prf") || name.starts_with("__llvm_cov") || name.starts_with("__sancov") {
            return Err(Reason::Instrumented);
        }
        if name == ".go.buildinfo" || name == ".note.go.buildid" {
            return Err(Reason::Go);
        }
        let Some(range) = section.file_range().filter(|_| name == ".rodata") else { continue };
        if contains(file, range, COVERAGE).map_err(|_| Reason::Unreadable)? {
            return Err(Reason::Instrumented);
        }
    }
    Ok(())
}

/// Returns whether `wanted` lies in the part of a file that begins at `at` and has `size` bytes.
fn contains(file: &File, (mut at, size): (u64, u64), wanted: &[u8]) -> std::io::Result<bool> {
    let end = at.saturating_add(size);
    let mut piece = vec![0; PIECE];
    loop {
        let room = PIECE.min(usize::try_from(end - at).unwrap_or(PIECE));
        file.read_exact_at(&mut piece[..room], at)?;
        if memchr::memmem::find(&piece[..room], wanted).is_some() {
            return Ok(true);
        }
        if at + room as u64 == end {
            return Ok(false);
        }
        // It may lie across the end of this piece.
        at += (room - (wanted.len() - 1)) as u64;
    }
}

fn examine_symbols<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Result<(), Reason> {
    let endian = elf.endian();
    let unlike = |_| Reason::NotElf;
    let table = elf.elf_section_table().symbols(endian, elf.data(), elf::SHT_DYNSYM).map_err(unlike)?;
    // In one piece: reading each name separately took two system calls, for a thousand names.
    let names = match table.is_empty() {
        true => &[],
        false => elf.section_by_index(table.string_section()).and_then(|s| s.data()).map_err(unlike)?,
    };
    let mut starts_in_libc = false;
    for symbol in table.iter() {
        let name = names.get(symbol.st_name.get(endian) as usize..).unwrap_or_default();
        let is_named = |wanted: &str| {
            name.strip_prefix(wanted.as_bytes())
                .is_some_and(|rest| rest.first().is_none_or(|byte| *byte == 0))
        };
        starts_in_libc |= symbol.st_shndx.get(endian) == elf::SHN_UNDEF && is_named("__libc_start_main");
        if INSTRUMENTED.iter().any(|prefix| name.starts_with(prefix.as_bytes())) {
            return Err(Reason::Instrumented);
        }
    }
    if starts_in_libc { Ok(()) } else { Err(Reason::OwnStart) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(dir: &Path, name: &str, flags: &[&str]) -> PathBuf {
        let source = dir.join("t.c");
        std::fs::write(&source, "int main(void) { return 0; }").unwrap();
        let out = dir.join(name);
        let built =
            std::process::Command::new("cc").args(flags).arg("-o").args([&out, &source]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        out
    }

    #[test]
    fn a_library_is_looked_for_by_its_own_name_and_needs_others() {
        let dir = tempfile::tempdir().unwrap();
        let flags = ["-shared", "-fPIC", "-Wl,-soname,libx.so.1", "-Wl,--no-as-needed"];
        let found = names(&build(dir.path(), "libx.so.1.2", &flags));
        assert!(["libc.so.6", "libx.so.1"].iter().all(|name| found.iter().any(|f| f == name)), "{found:?}");
        assert!(names(&dir.path().join("t.c")).is_empty() && names(&dir.path().join("absent")).is_empty());
    }

    #[test]
    fn a_text_is_found_wherever_it_lies_in_its_part_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let length = 2 * PIECE + 1000;
        let found = |place: usize, range| {
            let mut bytes = vec![b'G'; length];
            bytes[place..place + COVERAGE.len()].copy_from_slice(COVERAGE);
            std::fs::write(&path, bytes).unwrap();
            contains(&File::open(&path).unwrap(), range, COVERAGE).unwrap()
        };
        let (all, last) = ((0, length as u64), length - COVERAGE.len());
        for place in [0, 1, PIECE - COVERAGE.len(), PIECE - 5, PIECE, 2 * PIECE - 20, 2 * PIECE, last] {
            assert!(found(place, all), "{place}");
        }
        assert!(!found(last, (0, length as u64 - 1)) && !found(0, (1, length as u64 - 1)));
        assert!(!found(0, (100, 0)) && !found(0, (100, 5)));
        let beyond = contains(&File::open(&path).unwrap(), (0, length as u64 + 1), b"absent");
        assert!(beyond.is_err(), "the file is shorter");
    }

    #[test]
    fn a_program_is_read_again_only_once_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = build(dir.path(), "program", &[]);
        let is_remembered = || EXAMINED.lock().unwrap().contains_key(&path);
        assert_eq!(examine(&path), Ok(Traits::default()));
        assert!(!is_remembered(), "it has just been written");
        std::fs::write(dir.path().join("other"), "#!/bin/sh\n").unwrap();
        // As if the moment of the change had passed; the time of change itself cannot be set.
        let mut files = Files::default();
        files.watch(&path);
        EXAMINED.lock().unwrap().insert(path.clone(), (files, Err(Reason::Go)));
        assert_eq!(examine(&path), Err(Reason::Go), "what is remembered counts");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(examine(&path), Err(Reason::Privileged));
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        assert_eq!(examine(&path), Err(Reason::NotElf), "it is short");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(examine(&path), Err(Reason::Unreadable));
        assert_eq!(examine(Path::new("/bin/sh")), read(Path::new("/bin/sh")));
        assert!(EXAMINED.lock().unwrap().contains_key(Path::new("/bin/sh")));
    }

    #[test]
    fn each_unfit_program_has_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(examine(&build(dir.path(), "plain", &[])), Ok(Traits::default()));
        let origin = build(dir.path(), "origin", &["-Wl,-rpath,$ORIGIN/lib"]);
        let lib = dir.path().canonicalize().unwrap().join("lib");
        assert_eq!(examine(&origin), Ok(Traits { search: vec![lib], ..Traits::default() }));
        let relative = Traits { relative: vec!["lib".into(), "".into()], ..Traits::default() };
        assert_eq!(examine(&build(dir.path(), "relative", &["-Wl,-rpath,lib:"])), Ok(relative));
        let token = build(dir.path(), "token", &["-Wl,-rpath,/x/$LIB"]);
        assert_eq!(examine(&token), Err(Reason::RelativePath));
        assert_eq!(examine(&build(dir.path(), "static", &["-static"])), Err(Reason::Static));
        assert_eq!(examine(&build(dir.path(), "asan", &["-fsanitize=address"])), Err(Reason::Instrumented));
        let foreign = build(dir.path(), "foreign", &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
        assert_eq!(examine(&foreign), Err(Reason::ForeignLoader));
        std::fs::write(at("script"), format!("#!/bin/sh\n{}", " ".repeat(80))).unwrap();
        assert_eq!(examine(&at("script")), Err(Reason::Script));
        std::fs::write(at("text"), " ".repeat(80)).unwrap();
        assert_eq!(examine(&at("text")), Err(Reason::NotElf));
        assert_eq!(examine(&at("absent")), Err(Reason::Unreadable));
        let setuid = build(dir.path(), "setuid", &[]);
        std::fs::set_permissions(&setuid, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(examine(&setuid), Err(Reason::Privileged));
    }

    #[test]
    fn libraries_by_relative_paths_are_no_fixed_search() {
        let dir = tempfile::tempdir().unwrap();
        let is_fixed = |name: &str, options: &[&str]| has_fixed_search(&build(dir.path(), name, options));
        assert!(is_fixed("plain", &[]));
        assert!(is_fixed("static", &["-static"]));
        assert!(is_fixed("absolute", &["-Wl,-rpath,/opt/lib:$ORIGIN/../lib:${ORIGIN}"]));
        for (name, path) in [("up", "../lib"), ("here", "/opt:"), ("kind", "$LIB/x"), ("named", "$ORIGINAL")]
        {
            assert!(!is_fixed(name, &[&format!("-Wl,-rpath,{path}")]), "{path}");
        }
        let library = dir.path().join("./needed.so");
        let source = dir.path().join("needed.c");
        std::fs::write(&source, "int needed;").unwrap();
        let made =
            std::process::Command::new("cc").args(["-shared", "-o"]).args([&library, &source]).status();
        assert!(made.unwrap().success());
        assert!(has_fixed_search(&library) && has_fixed_search(&source));
        // Without a name of its own, it is needed by the path that the linker was given.
        let made = std::process::Command::new("cc")
            .args(["-Wl,--no-as-needed", "-o", "needs", "-x", "c", "needed.c", "-x", "none", "./needed.so"])
            .args(["-nostartfiles", "-Wl,-e,0"])
            .current_dir(dir.path())
            .status();
        assert!(made.unwrap().success() && !has_fixed_search(&dir.path().join("needs")));
        assert!(!has_fixed_search(&dir.path().join("absent")));
    }
}
