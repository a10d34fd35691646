//! LD_LIBRARY_PATH: the directories in which ld.so looks for each library before it looks elsewhere.
//!
//! Builds and tests set it to directories of their own. Few of them have a library that the tool needs. ld.so looks for
//! each name in such a directory, finds nothing, and goes on: the tool starts as without the directory. Such a directory is
//! *idle*. An observation under one value holds under another if both are the same without their idle directories. A
//! zygote has its value, since ld.so may look there again in `main`. Before each start it is tested whether a directory, or a
//! name in it, has come or gone (`Files`).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::files::{Files, VARIANTS};
use super::identity::Aspect;
use super::made_up::leads_through_made_up;
use crate::{EnvBlock, Reason, Spec};

/// The variable.
pub(crate) const NAME: &[u8] = b"LD_LIBRARY_PATH";
const ASSIGNED: &[u8] = b"LD_LIBRARY_PATH=";

/// The directories of one value, in the order of search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Search {
    absolute: Vec<PathBuf>,
    /// An empty path is the working directory.
    relative: Vec<PathBuf>,
    /// Whether the variable is set once.
    is_single: bool,
}

impl Search {
    pub(crate) fn of(env: &EnvBlock) -> Search {
        let values: Vec<_> = env.strings().filter_map(|string| string.strip_prefix(ASSIGNED)).collect();
        let mut search = Search { is_single: values.len() == 1, ..Search::default() };
        // ld.so takes an empty value for none.
        for part in values.iter().filter(|value| !value.is_empty()).flat_map(|value| parts(value)) {
            let dir = PathBuf::from(OsStr::from_bytes(part));
            let dirs = if dir.is_absolute() { &mut search.absolute } else { &mut search.relative };
            dirs.push(dir);
        }
        search
    }

    /// Returns the directories that are relative to the working directory.
    pub(crate) fn relative(&self) -> &[PathBuf] {
        &self.relative
    }

    /// Returns the other directories.
    pub(crate) fn absolute(&self) -> &[PathBuf] {
        &self.absolute
    }

    /// Returns whether ld.so looks nowhere because of the variable.
    pub(crate) fn is_empty(&self) -> bool {
        self.absolute.is_empty() && self.relative.is_empty()
    }

    /// Records every path at which ld.so would look for `libraries`.
    pub(crate) fn watch(&self, libraries: &BTreeSet<OsString>, files: &mut Files) {
        // Paths with ld.so's variables are in the observation: such a directory is never taken for idle.
        for dir in self.absolute.iter().filter(|dir| !has_variable(dir)) {
            files.watch_for(dir, Aspect::Place);
            // In a directory that is not there nothing else is looked for.
            if dir.is_dir() {
                names(libraries).for_each(|name| files.watch(&dir.join(name)));
            }
        }
    }

    /// Returns `spec` with a value that has no idle directories, or with none, if `libraries` are those that its program
    /// looks for. Relative directories must be idle wherever the program is started ([`Files::shadowed_in`]).
    pub(crate) fn reduce<'fd>(&self, spec: &Spec<'fd>, libraries: &BTreeSet<OsString>) -> Spec<'fd> {
        // What is in a directory of the kernel's depends on who looks: `/proc/self/cwd`.
        self.with(spec, |dir| has_variable(dir) || leads_through_made_up(dir) || !is_idle(dir, libraries))
    }

    /// Returns `spec` without the variable.
    pub(crate) fn drop_from<'fd>(&self, spec: &Spec<'fd>) -> Spec<'fd> {
        self.with(spec, |_| false)
    }

    /// Returns `spec` with those absolute directories that are to be kept.
    fn with<'fd>(&self, spec: &Spec<'fd>, keep: impl Fn(&Path) -> bool) -> Spec<'fd> {
        if !self.is_single {
            return spec.clone();
        }
        let kept: Vec<&[u8]> =
            self.absolute.iter().filter(|dir| keep(dir)).map(|dir| dir.as_os_str().as_bytes()).collect();
        let value = kept.join(&b':');
        let mut blob = Vec::with_capacity(spec.env.blob().len());
        for string in spec.env.strings() {
            match string.starts_with(ASSIGNED) {
                true if value.is_empty() => continue,
                true => [ASSIGNED, &value].iter().for_each(|part| blob.extend_from_slice(part)),
                false => blob.extend_from_slice(string),
            }
            blob.push(0);
        }
        let env = EnvBlock::from_strings(&blob).unwrap_or_else(|| spec.env.clone());
        Spec { env, ..spec.clone() }
    }
}

fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b':' || byte == b';')
}

/// Returns the reason for which no zygote can have this value: where a relative directory with ld.so's variables is, is not known.
pub(crate) fn refuses(value: &[u8]) -> Option<Reason> {
    let is_odd = |part: &[u8]| !part.starts_with(b"/") && part.contains(&b'$');
    parts(value).any(is_odd).then_some(Reason::RelativePath)
}

fn has_variable(dir: &Path) -> bool {
    dir.as_os_str().as_bytes().contains(&b'$')
}

/// Returns everything that ld.so looks for in a directory.
fn names(libraries: &BTreeSet<OsString>) -> impl Iterator<Item = &OsStr> {
    libraries.iter().map(OsString::as_os_str).chain(VARIANTS.map(OsStr::new))
}

/// Returns whether ld.so finds nothing in `dir`.
fn is_idle(dir: &Path, libraries: &BTreeSet<OsString>) -> bool {
    let is_absent = |path: &Path| {
        let found = std::fs::symlink_metadata(path);
        found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
    };
    names(libraries).all(|name| is_absent(&dir.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(value: &str) -> EnvBlock {
        EnvBlock::from_strings(format!("A=1\0LD_LIBRARY_PATH={value}\0B=2\0").as_bytes()).unwrap()
    }

    fn reduced(value: &str, libraries: &BTreeSet<OsString>) -> String {
        let null = std::fs::File::open("/dev/null").unwrap();
        let spec = Spec::plain(Path::new("/bin/tool"), "tool".into(), env(value), &null);
        let reduced = Search::of(&spec.env).reduce(&spec, libraries);
        String::from_utf8(reduced.env.blob().to_vec()).unwrap()
    }

    #[test]
    fn directories_without_a_library_of_the_tool_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for file in ["has/libx.so", "other/liby.so", "variants/tls/z", "link/z"] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink("absent", at("link/libx.so")).unwrap();
        let [has, other, variants, link, absent] =
            ["has", "other", "variants", "link", "absent"].map(|name| at(name).display().to_string());
        std::os::unix::fs::symlink("/proc/self/cwd", at("away")).unwrap();
        let away = at("away").display().to_string();
        let libraries: BTreeSet<OsString> = ["libx.so".into()].into();
        for (value, expected) in [
            (format!("{other}:{absent}"), String::new()),
            (String::new(), String::new()),
            (format!("{other};{has}:{absent}"), format!("LD_LIBRARY_PATH={has}\0")),
            (format!("{variants}:{other}:{link}"), format!("LD_LIBRARY_PATH={variants}:{link}\0")),
            (format!(":{has}:lib:"), format!("LD_LIBRARY_PATH={has}\0")),
            (format!("{absent}/$LIB"), format!("LD_LIBRARY_PATH={absent}/$LIB\0")),
            (format!("{away}/x:{absent}"), format!("LD_LIBRARY_PATH={away}/x\0")),
        ] {
            assert_eq!(reduced(&value, &libraries), format!("A=1\0{expected}B=2\0"), "{value}");
        }
    }

    #[test]
    fn every_part_of_a_value_is_a_directory() {
        let search = Search::of(&env("/a:;b/c"));
        assert_eq!((search.absolute, search.relative), (vec!["/a".into()], vec!["".into(), "b/c".into()]));
        assert!(Search::of(&env("")).is_empty() && Search::default().is_empty());
        let twice = EnvBlock::from_strings(b"LD_LIBRARY_PATH=/a\0LD_LIBRARY_PATH=b\0").unwrap();
        let search = Search::of(&twice);
        assert!(!search.is_single && search.absolute.len() == 1 && search.relative.len() == 1);
        assert_eq!(refuses(b"/a/$LIB::b"), None);
        assert_eq!(refuses(b"/a:$ORIGIN/b"), Some(Reason::RelativePath));
    }

    #[test]
    fn a_library_or_directory_that_comes_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (there, absent) = (dir.path().join("there"), dir.path().join("absent"));
        std::fs::create_dir(&there).unwrap();
        let search = Search::of(&env(&format!("{}:{}", there.display(), absent.display())));
        let mut files = Files::default();
        search.watch(&["libx.so".into()].into(), &mut files);
        std::fs::write(there.join("liby.so"), "").unwrap();
        assert!(files.unchanged());
        for name in ["libx.so", "tls"] {
            std::fs::write(there.join(name), "").unwrap();
            assert!(!files.unchanged(), "{name}");
            std::fs::remove_file(there.join(name)).unwrap();
        }
        std::fs::remove_dir_all(&there).unwrap();
        assert!(!files.unchanged());
        std::fs::create_dir(&there).unwrap();
        assert!(files.unchanged(), "another directory, which is as empty");
        std::fs::create_dir(&absent).unwrap();
        assert!(!files.unchanged());
    }
}
