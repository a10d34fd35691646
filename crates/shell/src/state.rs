//! The state that a script changes as it runs: directory, environment, mask and limits. The runner's own never changes.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use hotstart_launch::{EnvBlock, Limit, Resource, has_locale};
use hotstart_model::Environment;
use hotstart_python::locale::ctype_instead_of_c;
use hotstart_python::path::{join, realpath};

use crate::halt::{Halt, Halting};
use crate::native::place::Held;

/// The environment of commands. The form that processes take is made when first needed.
#[derive(Clone, Debug)]
pub(crate) struct Vars {
    vars: Arc<Environment>,
    block: Option<EnvBlock>,
}

impl Vars {
    pub fn new(vars: Arc<Environment>) -> Self {
        Vars { vars, block: None }
    }

    pub fn get(&self, key: &str) -> Option<&OsStr> {
        self.vars.get(key)
    }

    /// Sets a variable. This costs nothing if it has the value already.
    pub fn set(&mut self, key: &str, value: impl AsRef<OsStr>) {
        if self.vars.get(key) != Some(value.as_ref()) {
            self.block = None;
            Arc::make_mut(&mut self.vars).set(key, value.as_ref());
        }
    }

    /// Returns all variables.
    pub fn all(&self) -> Arc<Environment> {
        Arc::clone(&self.vars)
    }

    pub fn unset(&mut self, key: &str) {
        if self.vars.get(key).is_some() {
            self.block = None;
            Arc::make_mut(&mut self.vars).unset(key);
        }
    }

    pub fn clear(&mut self) {
        *self = Vars::new(Arc::default());
    }

    /// Returns `K=V` lines, sorted.
    pub fn sorted_lines(&self) -> String {
        let mut vars: Vec<_> = self.vars.iter().collect();
        vars.sort();
        let line = |(k, v): (&OsStr, &OsStr)| format!("{}={}", k.to_string_lossy(), v.to_string_lossy());
        vars.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the environment in the form that a process takes.
    pub fn block(&mut self) -> EnvBlock {
        self.block.get_or_insert_with(|| EnvBlock::new(&self.vars)).clone()
    }

    /// The same for a process that a Python starts, which gives up the C locale first.
    pub fn block_behind_python(&mut self) -> EnvBlock {
        match ctype_instead_of_c(|name| self.get(name), has_locale) {
            Some(locale) => {
                let mut vars = Environment::clone(&self.vars);
                vars.set("LC_CTYPE", locale);
                EnvBlock::new(&vars)
            }
            None => self.block(),
        }
    }
}

/// A limit that `ulimit` has set: the resource, lit's name for it, and its value (-1 is unlimited).
pub(crate) type SetLimit = (Resource, &'static str, i128);

/// The state of a script's shell.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    pub vars: Vars,
    /// An absolute path. The directory may not exist.
    cwd: Arc<Path>,
    pub dirs: Vec<Arc<Path>>,
    /// As given to `umask`; -1 is the runner's own.
    pub umask: i128,
    pub limits: Vec<SetLimit>,
    /// The directory itself, for scripts that run natively.
    pub held: Option<Held>,
}

impl Shell {
    pub fn new(vars: Arc<Environment>, cwd: &Path) -> Self {
        Shell {
            vars: Vars::new(vars),
            cwd: cwd.into(),
            dirs: Vec::new(),
            umask: -1,
            limits: Vec::new(),
            held: None,
        }
    }

    /// Returns the copy that an `env` prefix makes for one command. Limits are lost, as in lit.
    pub fn for_one_command(&self) -> Self {
        Shell { limits: Vec::new(), dirs: Vec::new(), ..self.clone() }
    }

    pub fn cwd(&self) -> &str {
        self.cwd.to_str().unwrap_or_default()
    }

    pub fn cwd_path(&self) -> Arc<Path> {
        self.cwd.clone()
    }

    /// Changes the directory without a check that it exists. If it does not, the next process fails.
    pub fn change_dir(&mut self, dir: &str) {
        let new = if dir.starts_with('/') { dir.into() } else { realpath(join(self.cwd(), dir)) };
        self.cwd = new.into();
    }

    pub fn return_to(&mut self, dir: Arc<Path>) {
        self.cwd = dir;
    }

    /// Returns the mask for processes, if one was set.
    pub fn process_umask(&self) -> Halting<Option<u32>> {
        if self.umask == -1 {
            return Ok(None);
        }
        let mask = i32::try_from(self.umask)
            .map_err(|_| Halt::exception("OverflowError", "Python int too large to convert to C int"))?;
        Ok(Some(mask as u32 & 0o777))
    }

    /// Returns the limits for processes. Sets the variables through which lit passes them on; those stay set.
    pub fn process_limits(&mut self) -> Vec<Limit> {
        let mut limits = Vec::with_capacity(self.limits.len());
        for &(resource, name, value) in &self.limits {
            self.vars.set(&format!("LIT_INTERNAL_ULIMIT_{name}"), value.to_string());
            let value = u64::try_from(value).ok();
            limits.push(Limit { resource, soft: value, hard: value });
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_not_checked() {
        let mut shell = Shell::new(Arc::default(), Path::new("/"));
        shell.change_dir("nowhere/../x");
        assert_eq!(shell.cwd(), "/x");
        shell.change_dir("/a/../b");
        assert_eq!(shell.cwd(), "/a/../b");
    }

    #[test]
    fn the_block_follows_changes() {
        let mut vars = Vars::new(Arc::new([("B", "1"), ("A", "2")].into_iter().collect()));
        assert_eq!(vars.block().blob(), b"B=1\0A=2\0");
        vars.set("B", "3");
        vars.unset("A");
        assert_eq!(vars.block().blob(), b"B=3\0");
        assert_eq!(vars.sorted_lines(), "B=3");
    }

    #[test]
    fn behind_python_there_is_no_c_locale() {
        let mut vars = Vars::new(Arc::new([("A", "1"), ("LANG", "C")].into_iter().collect()));
        assert_eq!(vars.block_behind_python().blob(), b"A=1\0LANG=C\0LC_CTYPE=C.UTF-8\0");
        assert_eq!(vars.block().blob(), b"A=1\0LANG=C\0", "its own variables stay");
        vars.set("LC_ALL", "C");
        assert_eq!(vars.block_behind_python().blob(), vars.block().blob());
    }

    #[test]
    fn masks_beyond_an_int_are_python_errors() {
        let mut shell = Shell::new(Arc::default(), Path::new("/"));
        assert_eq!(shell.process_umask().unwrap(), None);
        shell.umask = 0o22;
        assert_eq!(shell.process_umask().unwrap(), Some(0o22));
        shell.umask = 1 << 40;
        assert!(shell.process_umask().is_err());
    }
}
