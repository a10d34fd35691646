//! Stores the verdicts on FileChecks between runs: one small file each, in the user's cache directory.
//!
//! A file is written whole and then renamed, so several runners and a crash do no harm. A file that is unreadable, of
//! another version, or about another FileCheck is ignored.

use std::fmt::Write;
use std::fs;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hotstart_filecheck::battery;

use super::trust::{Tool, Verdict};
use crate::mark::{Aspect, Mark};

/// A file changed within this many seconds may change again within one tick of the clock that stamps it.
pub(super) const RECENT: i64 = 2;

/// Returns where the verdict on this FileCheck is stored.
pub(super) fn file(dir: &Path, tool: &Tool) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    tool.hash(&mut hasher);
    dir.join(format!("{:016x}", hasher.finish()))
}

/// Returns the first lines of the file: everything that the verdict depends on except the files.
fn header(tool: &Tool) -> Option<String> {
    let program = tool.program.to_str().filter(|path| !path.contains('\n'))?;
    // Variables may hold what nobody should find in a file.
    let loader = blake3::hash(format!("{:?}", tool.loader).as_bytes());
    Some(format!("hotstart filecheck 5 {}\n{program}\n{loader}\n", battery::version(tool.dialect)))
}

/// Reads the stored verdict on this FileCheck.
pub(super) fn read(dir: &Path, tool: &Tool) -> Option<Verdict> {
    let text = fs::read_to_string(file(dir, tool)).ok()?;
    let rest = text.strip_prefix(&header(tool)?)?.strip_suffix("end\n")?;
    let mut lines = rest.lines();
    let refusal = match lines.next()? {
        "passed" => None,
        line => Some(line.strip_prefix("refused ")?.to_owned()),
    };
    let (libraries, marks): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with(LIBRARY));
    let marks: Vec<Mark> = marks.into_iter().map(mark).collect::<Option<_>>()?;
    let libraries = libraries.into_iter().map(|line| line[LIBRARY.len()..].to_owned()).collect();
    (!marks.is_empty()).then(|| Verdict { refusal, marks: marks.into(), libraries })
}

fn mark(line: &str) -> Option<Mark> {
    let mut words = line.splitn(9, ' ');
    let name = words.next()?;
    let aspect = ASPECTS.iter().find(|(known, _)| *known == name)?.1;
    let mut numbers = [0; 7];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    Some(Mark { path: words.next()?.into(), aspect, numbers })
}

/// The beginning of a line that names a library.
const LIBRARY: &str = "library ";
const ASPECTS: [(&str, Aspect); 4] = [
    ("target", Aspect::Target),
    ("itself", Aspect::Itself),
    ("place", Aspect::Place),
    ("missing", Aspect::Missing),
];

/// Removes all verdicts that trust a FileCheck.
pub(super) fn clear(dir: &Path) {
    let files = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    for file in files.filter(|file| file.is_file()) {
        let is_refusal = fs::read_to_string(&file)
            .is_ok_and(|text| text.lines().nth(3).is_some_and(|line| line.starts_with("refused ")));
        if !is_refusal {
            let _ = fs::remove_file(file);
        }
    }
}

/// Returns the directory that has an empty file for each time that a FileCheck has lost its trust.
pub(super) fn losses(dir: &Path) -> PathBuf {
    dir.join("losses")
}

/// Notes that a FileCheck is not trusted any more. An empty file needs no room on a full disk.
pub(super) fn note_loss(dir: &Path) {
    let name = format!("{:016x}", RandomState::new().hash_one(SystemTime::now()));
    let _ = fs::create_dir_all(losses(dir)).and_then(|()| fs::File::create(losses(dir).join(name)));
}

/// Whether a file has changed just now. The numbers of a place have no times, and are never recent.
pub(super) fn is_recent(mark: &Mark) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
    mark.numbers[3].max(mark.numbers[5]) + RECENT > now
}

/// Stores a verdict. If that fails, the next run tests the FileCheck again.
pub(super) fn write(dir: &Path, tool: &Tool, verdict: &Verdict) {
    // A refusal holds whatever the files are.
    if verdict.marks.is_empty() || (verdict.refusal.is_none() && verdict.marks.iter().any(is_recent)) {
        return;
    }
    let Some(mut text) = header(tool) else { return };
    let _ = match &verdict.refusal {
        None => writeln!(text, "passed"),
        Some(why) => writeln!(text, "refused {}", why.replace('\n', " ")),
    };
    for library in &*verdict.libraries {
        let _ = writeln!(text, "{LIBRARY}{library}");
    }
    for mark in &*verdict.marks {
        let Some(path) = mark.path.to_str().filter(|path| !path.contains('\n')) else { return };
        let numbers = mark.numbers.map(|number| number.to_string()).join(" ");
        let aspect = ASPECTS.iter().find(|(_, aspect)| *aspect == mark.aspect).map_or("", |(name, _)| name);
        let _ = writeln!(text, "{aspect} {numbers} {path}");
    }
    text.push_str("end\n");
    let target = file(dir, tool);
    let temporary = target.with_extension(format!("{}.new", std::process::id()));
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&temporary, text));
    if written.and_then(|()| fs::rename(&temporary, &target)).is_err() {
        let _ = fs::remove_file(&temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotstart_filecheck::Dialect;
    use hotstart_model::Environment;

    #[test]
    fn answers_are_kept_and_damage_is_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let tool = Tool::new(Path::new("/bin/FileCheck"), Dialect::Llvm, &Environment::new());
        let mark = |aspect| Mark { path: "/a b".into(), aspect, numbers: [1, 2, 3, 4, 5, 6, 7] };
        let marks = [Aspect::Target, Aspect::Itself, Aspect::Place, Aspect::Missing].map(mark);
        for refusal in [None, Some("case 3".to_owned())] {
            let libraries = ["liba b.so".to_owned(), "libc.so.6".to_owned()].into();
            let verdict = Verdict { refusal, marks: marks.to_vec().into(), libraries };
            write(dir.path(), &tool, &verdict);
            assert_eq!(read(dir.path(), &tool), Some(verdict));
        }
        let path = file(dir.path(), &tool);
        let text = fs::read_to_string(&path).unwrap();
        for length in 0..text.len() {
            fs::write(&path, &text[..length]).unwrap();
            assert_eq!(read(dir.path(), &tool), None, "cut after {length}");
        }
        let env = [("LD_LIBRARY_PATH", "/x")].into_iter().collect();
        assert_eq!(read(dir.path(), &Tool::new(tool.program.as_path(), Dialect::Llvm, &env)), None);
        assert_eq!(read(dir.path(), &Tool::new(&tool.program, Dialect::Pypi, &Environment::new())), None);
    }
}
