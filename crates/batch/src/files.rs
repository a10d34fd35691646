//! Files of this machine that an action needs, with all directories and links that lead to them.
//!
//! A file that changes after its digest was taken is noticed when it is uploaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use hotstart_remote::{Content, Tree};

use crate::digests::Digests;
use crate::{FILES, order::Order};

/// Links on the way to a file; more is a loop.
const LINKS: usize = 40;

const CANNOT_BE_SENT: &str = "it names a directory with something that cannot be sent";

/// A set of files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Paths without links, and whether the file is a program.
    files: BTreeMap<PathBuf, bool>,
    links: BTreeMap<PathBuf, PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl Files {
    /// Adds an absolute path with everything on the way. Returns the path without links, with what it names; `None` if nothing is there.
    pub fn add(&mut self, path: &Path) -> Option<(PathBuf, Metadata)> {
        let (mut real, mut left) = (PathBuf::from("/"), LINKS);
        let mut ahead: Vec<PathBuf> = components(path);
        while let Some(next) = ahead.pop() {
            if next == Path::new("..") {
                real.pop();
                continue;
            }
            let at = real.join(next);
            let found = fs::symlink_metadata(&at).ok()?;
            if found.is_symlink() {
                left = left.checked_sub(1)?;
                let target = fs::read_link(&at).ok()?;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                ahead.extend(components(&target));
                self.links.insert(at, target);
                continue;
            }
            if found.is_dir() {
                self.directories.insert(at.clone());
            } else if found.is_file() && ahead.is_empty() {
                self.files.insert(at.clone(), found.permissions().mode() & 0o111 != 0);
            } else {
                return None;
            }
            real = at;
        }
        let found = fs::metadata(&real).ok()?;
        Some((real, found))
    }

    /// Adds a directory with all its files, but nothing below the directories in `apart`. Links to directories are followed. Fails if there
    /// are more than `most` entries, or one that cannot be sent: without it the directory would look otherwise there.
    pub fn add_below(
        &mut self,
        directory: &Path,
        apart: &BTreeSet<&Path>,
        most: usize,
    ) -> Result<(), &'static str> {
        let Some((real, _)) = self.add(directory) else { return Ok(()) };
        let (mut left, mut seen, mut ahead) = (most, BTreeSet::new(), vec![real]);
        while let Some(directory) = ahead.pop() {
            if !seen.insert(directory.clone()) {
                continue;
            }
            for entry in fs::read_dir(&directory).map_err(|_| CANNOT_BE_SENT)? {
                let entry = entry.map_err(|_| CANNOT_BE_SENT)?;
                left = left.checked_sub(1).ok_or("it names a directory with too many files")?;
                let (path, kind) =
                    (directory.join(entry.file_name()), entry.file_type().map_err(|_| CANNOT_BE_SENT)?);
                if path.to_str().is_none() {
                    return Err(CANNOT_BE_SENT);
                }
                if kind.is_dir() && apart.contains(path.as_path()) {
                    continue;
                }
                match (self.add(&path), fs::metadata(&path)) {
                    (Some((real, found)), _) if found.is_dir() => ahead.push(real),
                    // A link that leads nowhere does so there.
                    (Some(_), _) | (None, Err(_)) if kind.is_file() || kind.is_symlink() => {}
                    _ => return Err(CANNOT_BE_SENT),
                }
            }
        }
        Ok(())
    }

    /// Adds another set.
    pub fn extend(&mut self, other: &Files) {
        self.files.extend(other.files.iter().map(|(path, is_program)| (path.clone(), *is_program)));
        self.links.extend(other.links.iter().map(|(path, target)| (path.clone(), target.clone())));
        self.directories.extend(other.directories.iter().cloned());
    }

    /// Returns the paths of the files.
    #[cfg(test)]
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.keys().cloned()
    }

    /// Returns the libraries among the files, by their names.
    pub fn libraries(&self) -> Vec<PathBuf> {
        let is_library =
            |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
        self.files.keys().filter(is_library).cloned().collect()
    }

    /// Has a directory made that need not exist here.
    pub fn make(&mut self, directory: &Path) {
        self.directories.insert(directory.to_owned());
    }

    /// Hands over the files as inputs, and the rest in the order. The error names a file that cannot be sent.
    pub fn into_inputs(self, digests: &Digests, inputs: &mut Tree, order: &mut Order) -> Result<(), String> {
        for (path, is_program) in self.files {
            let told = |why: &dyn std::fmt::Display| format!("cannot send '{}': {why}", path.display());
            let name = path.to_str().ok_or_else(|| told(&"its name is not UTF-8"))?;
            let found = fs::metadata(&path).map_err(|error| told(&error))?;
            let digest = digests.of(&path, &found).map_err(|error| told(&error))?;
            if !inputs.add(&format!("{FILES}{name}"), digest, Content::File(path.clone()), is_program) {
                return Err(told(&"it has become a directory"));
            }
        }
        for (link, target) in self.links {
            order.links.push((text(&link)?, text(&target)?));
        }
        for directory in self.directories {
            order.directories.push(text(&directory)?);
        }
        Ok(())
    }
}

fn text(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| format!("'{}' is not UTF-8", path.display()))
}

/// Returns the components of a path that lead on, the last one first.
fn components(path: &Path) -> Vec<PathBuf> {
    let leads = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().rev().filter(leads).map(|part| PathBuf::from(part.as_os_str())).collect()
}
