//! lit's own substitutions: the paths of a test in their many spellings.
//!
//! Values are computed when a line uses them, as real paths cost system calls.

use std::path::{Path, PathBuf};

use hotstart_model::Dialect;

use super::list::Entry;
use hotstart_python::path::{into_text, realpath};

/// The paths of a test.
#[derive(Debug)]
pub struct TestPaths {
    dialect: Dialect,
    source: String,
    tmp_dir: String,
    tmp_base: String,
}

/// The kind of a default substitution's value.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// Text that is the same for all tests.
    Constant(&'static str),
    /// Name of the test's file.
    SourceName,
    /// Name of the test's file without its extension.
    SourceStem,
    /// Name of the test's file in the exec tree.
    TmpStem,
    /// `%/et`
    EscapedTmp,
    /// A path.
    Path(PathKind, Spelling),
}

/// The kind of a path.
#[derive(Clone, Copy, Debug)]
pub enum PathKind {
    /// `%s`
    Source,
    /// `%S`, `%p`
    SourceDir,
    /// `%t`
    Tmp,
    /// `%T`
    TmpDir,
}

/// The spelling of a path.
#[derive(Clone, Copy, Debug)]
pub enum Spelling {
    /// As it is.
    Plain,
    /// With forward slashes.
    Slashes,
    /// Without symbolic links.
    Real,
    /// Without symbolic links, with forward slashes.
    RealSlashes,
    /// For the right side of a sed expression.
    RegexReplacement,
    /// Without the slash at its beginning.
    NoColon,
}

impl TestPaths {
    /// Creates the paths from the test's file and its path in the exec tree. `slashes` requests forward slashes.
    pub fn new(source: &Path, exec: &Path, repetition: Option<u32>, dialect: Dialect, slashes: bool) -> Self {
        let text = |path: &Path| match slashes {
            true => path.to_string_lossy().replace('\\', "/"),
            false => path.to_string_lossy().into_owned(),
        };
        let tmp_dir = tmp_dir(exec, repetition);
        let tmp_base = tmp_dir.join(exec.file_name().unwrap_or_default());
        TestPaths { dialect, source: text(source), tmp_dir: text(&tmp_dir), tmp_base: text(&tmp_base) }
    }

    /// Returns whether values are templates of Python's `re`.
    pub fn values_are_templates(&self) -> bool {
        self.dialect == Dialect::V19
    }

    /// Returns whether a value may be a template that Python rejects.
    pub fn values_may_be_wrong(&self) -> bool {
        self.values_are_templates() && (self.source.contains('\\') || self.tmp_base.contains('\\'))
    }

    /// Computes a value.
    pub fn value(&self, kind: Default) -> String {
        match kind {
            Default::Constant(text) => text.to_owned(),
            Default::SourceName => base_name(&self.source).to_owned(),
            Default::SourceStem => stem(base_name(&self.source)).to_owned(),
            Default::TmpStem => base_name(&self.tmp_base).to_owned(),
            Default::EscapedTmp => format!("{}.tmp", self.tmp_base).replace('\\', "\\\\\\\\\\\\\\\\"),
            Default::Path(path, spelling) => spell(self.path(path), spelling),
        }
    }

    fn path(&self, path: PathKind) -> String {
        match path {
            PathKind::Source => self.source.clone(),
            PathKind::SourceDir => dir_name(&self.source).to_owned(),
            PathKind::Tmp => format!("{}.tmp", self.tmp_base),
            PathKind::TmpDir => self.tmp_dir.clone(),
        }
    }
}

/// Returns the directory for a test's temporary files; each repetition has its own.
pub fn tmp_dir(exec: &Path, repetition: Option<u32>) -> PathBuf {
    let dir = exec.parent().unwrap_or(Path::new("/")).join("Output");
    match repetition {
        Some(number) => dir.join(format!("repeat-{number}")),
        None => dir,
    }
}

fn spell(path: String, spelling: Spelling) -> String {
    let slashes = |path: String| if path.contains('\\') { path.replace('\\', "/") } else { path };
    match spelling {
        Spelling::Plain => path,
        Spelling::Slashes => slashes(path),
        Spelling::Real => into_text(realpath(path)),
        Spelling::RealSlashes => slashes(into_text(realpath(path))),
        Spelling::RegexReplacement => slashes(path).replace('@', "\\@").replace('&', "\\&"),
        Spelling::NoColon => path.strip_prefix('/').map(str::to_owned).unwrap_or(path),
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `os.path.dirname`.
fn dir_name(path: &str) -> &str {
    let head = &path[..path.rfind('/').map_or(0, |at| at + 1)];
    match head.trim_end_matches('/') {
        "" => head,
        trimmed => trimmed,
    }
}

/// `os.path.splitext(name)[0]`: leading dots do not count.
fn stem(name: &str) -> &str {
    let dots = name.len() - name.trim_start_matches('.').len();
    match name[dots..].rfind('.') {
        Some(at) => &name[..dots + at],
        None => name,
    }
}

/// Returns lit's own substitutions, in its order.
pub fn entries(dialect: Dialect) -> Vec<Entry> {
    let mut list = vec![
        Entry::per_test("%{pathsep}", Default::Constant(":")),
        Entry::per_test("%basename_t", Default::TmpStem),
    ];
    if dialect == Dialect::V23 {
        list.push(Entry::per_test("%{s:basename}", Default::SourceName));
        list.push(Entry::per_test("%{s:stem}", Default::SourceStem));
        list.push(Entry::per_test("%{t:stem}", Default::TmpStem));
    }
    for key in ["%{fs-src-root}", "%{fs-tmp-root}", "%{fs-sep}"] {
        list.push(Entry::per_test(key, Default::Constant("/")));
    }
    list.push(Entry::per_test("%/et", Default::EscapedTmp));
    let paths = [
        ('s', PathKind::Source),
        ('S', PathKind::SourceDir),
        ('p', PathKind::SourceDir),
        ('t', PathKind::Tmp),
        ('T', PathKind::TmpDir),
    ];
    let wanted = if dialect == Dialect::V23 { 4 } else { 5 };
    for &(letter, path) in &paths[..wanted] {
        let spellings = [
            (format!("%{letter}"), Spelling::Plain),
            (format!("%/{letter}"), Spelling::Slashes),
            (format!("%{{{letter}:real}}"), Spelling::Real),
            (format!("%{{/{letter}:real}}"), Spelling::RealSlashes),
            (format!("%{{/{letter}:regex_replacement}}"), Spelling::RegexReplacement),
            (format!("%:{letter}"), Spelling::NoColon),
        ];
        list.extend(spellings.map(|(key, spelling)| Entry::per_test(&key, Default::Path(path, spelling))));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_spelled_as_lit_spells_them() {
        let paths =
            TestPaths::new(Path::new("/s/d/a.b.ll"), Path::new("/x/d/a.b.ll"), None, Dialect::V23, false);
        assert_eq!(paths.value(Default::Path(PathKind::Tmp, Spelling::Plain)), "/x/d/Output/a.b.ll.tmp");
        assert_eq!(paths.value(Default::Path(PathKind::SourceDir, Spelling::NoColon)), "s/d");
        assert_eq!(paths.value(Default::SourceStem), "a.b");
        assert_eq!(spell("/a@b&c".into(), Spelling::RegexReplacement), "/a\\@b\\&c");
        assert_eq!((stem("..x"), stem(".x.y"), stem("x.")), ("..x", ".x", "x"));
        assert_eq!((dir_name("/a"), dir_name("//a//b")), ("/", "//a"));
    }
}
