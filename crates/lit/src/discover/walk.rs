//! The walk through the paths of the command line, with the state that it carries from directory to directory.
//!
//! Each step is lit's, in lit's order, since configs and test formats are code that can see the order in which they are called.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_model::{Dialect, Events};
use hotstart_python::path::{normpath, realpath};

use super::googletest::Deferred;
use super::select_files::{Listing, is_excluded, is_test};
use super::{Voice, repr, repr_tuple, unreadable};
use crate::config::{Config, Format};
use crate::googletest::list::Starter;
use crate::probe::{FoundTest, Loaded, Probe, ProbeError, SuiteRef};
use crate::settings::Settings;
use crate::suite::Detail;

/// A suite during the walk.
#[derive(Debug)]
pub(super) struct SuiteEntry {
    pub name: String,
    pub source_root: PathBuf,
    pub exec_root: PathBuf,
    pub config: u32,
}

/// A directory that has tests.
#[derive(Debug)]
pub(super) struct DirectoryEntry {
    pub suite: usize,
    pub path: PathBuf,
    pub config: u32,
}

/// The suite that a directory belongs to.
#[derive(Clone, Debug)]
enum Owner {
    /// A suite, and the directory's path in it.
    Suite(usize, PathBuf),
    /// No config in any directory above.
    None,
    /// The suite's config has an error.
    GivenUp,
}

/// A test's name.
#[derive(Debug)]
pub(super) enum Name {
    /// A file of its directory.
    File(Box<OsStr>),
    /// Any other name.
    Made(Arc<Detail>),
}

pub(super) struct Walk<'a, 'g> {
    pub probe: &'a mut Probe<'g>,
    pub tmp_dir: Option<&'a Path>,
    pub voice: Voice<'a>,
    /// Indexed by their numbers.
    pub configs: Vec<Option<Config>>,
    pub suites: Vec<SuiteEntry>,
    pub directories: Vec<DirectoryEntry>,
    pub tests: Vec<(u32, Name)>,
    pub starter: Starter<'a>,
    pub settings: &'a Settings,
    /// googletest executables yet to be listed, in the order of the walk.
    pub googletests: Vec<Deferred>,
    /// Executables seen by the format of a config. As text: to lit, `a/./b` and `a/b` differ.
    pub seen_executables: HashMap<u32, HashSet<OsString>>,
    dialect: Dialect,
    suite_configs: Vec<OsString>,
    local_configs: Vec<OsString>,
    owners: HashMap<PathBuf, Owner>,
    /// Config of a directory of a suite; `None` if it has an error.
    locals: HashMap<(usize, PathBuf), Option<u32>>,
}

impl<'a, 'g> Walk<'a, 'g> {
    pub fn new(
        probe: &'a mut Probe<'g>,
        starter: Starter<'a>,
        settings: &'a Settings,
        dialect: Dialect,
        tmp_dir: Option<&'a Path>,
        events: &'a dyn Events,
    ) -> Self {
        let prefix = settings.config_prefix.as_deref().filter(|prefix| !prefix.is_empty()).unwrap_or("lit");
        let names = |kinds: &[&str]| -> Vec<OsString> {
            kinds.iter().map(|kind| OsString::from(format!("{prefix}.{kind}"))).collect()
        };
        Walk {
            probe,
            tmp_dir,
            voice: Voice::new(settings, dialect, events),
            configs: Vec::new(),
            suites: Vec::new(),
            directories: Vec::new(),
            tests: Vec::new(),
            starter,
            settings,
            googletests: Vec::new(),
            seen_executables: HashMap::new(),
            dialect,
            suite_configs: names(&["site.cfg.py", "site.cfg", "cfg.py", "cfg"]),
            local_configs: names(&["local.cfg.py", "local.cfg"]),
            owners: HashMap::new(),
            locals: HashMap::new(),
        }
    }

    /// Forwards the configs' diagnostics.
    pub fn pass_on(&mut self) {
        let diagnostics = self.probe.take_diagnostics();
        self.voice.pass_on(diagnostics);
    }

    /// Finds the tests of one path of the command line.
    pub fn input(&mut self, input: &Path) -> Result<(), ProbeError> {
        let before = (self.tests.len(), self.voice.given_up);
        let item = normpath(self.settings.cwd.join(input));
        match self.owner_of_input(&item)? {
            Owner::Suite(suite, path) => {
                let (name, path_repr) = (&self.suites[suite].name, || repr_tuple(&path));
                self.voice.debug(|| {
                    let name = hotstart_python::repr(name);
                    format!("resolved input {} to {name}::{}", repr(input), path_repr())
                });
                self.visit(suite, &path)?;
            }
            Owner::None => self.voice.warn(format!("unable to find test suite for {}", repr(input))),
            Owner::GivenUp => {}
        }
        self.ask_googletests();
        // An abandoned part has reported an error already.
        if before == (self.tests.len(), self.voice.given_up) {
            self.voice.warn(format!("input {} contained no tests", repr(input)));
        }
        Ok(())
    }

    fn owner_of_input(&mut self, item: &Path) -> Result<Owner, ProbeError> {
        // The rest is a file, or components that exist in the source tree only.
        let Some(directory) = item.ancestors().find(|path| path.is_dir()) else { return Ok(Owner::None) };
        let rest = item.strip_prefix(directory).expect("an ancestor");
        Ok(match self.owner(directory)? {
            Owner::Suite(suite, path) => Owner::Suite(suite, path.join(rest).iter().collect()),
            other => other,
        })
    }

    /// Returns the suite of an existing directory: the one whose config is in it or nearest above it.
    fn owner(&mut self, directory: &Path) -> Result<Owner, ProbeError> {
        let real = realpath(directory);
        if let Some(owner) = self.owners.get(&real) {
            return Ok(owner.clone());
        }
        let owner =
            match (first_existing(directory, &self.suite_configs), directory.parent(), directory.file_name())
            {
                (Some(config), ..) => self.load_suite(directory, config)?,
                (None, Some(parent), Some(name)) => match self.owner(parent)? {
                    Owner::Suite(suite, path) => Owner::Suite(suite, path.join(name)),
                    other => other,
                },
                _ => Owner::None,
            };
        self.owners.insert(real, owner.clone());
        Ok(owner)
    }

    fn load_suite(&mut self, directory: &Path, mut path: PathBuf) -> Result<Owner, ProbeError> {
        if !self.settings.config_map.is_empty() {
            path = realpath(path);
            if let Some((_, target)) = self.settings.config_map.iter().rev().find(|(from, _)| *from == path) {
                path = target.clone();
            }
        }
        self.voice.debug(|| format!("loading suite config {}", repr(&path)));
        let loaded = self.probe.load_suite(&path, self.tmp_dir)?;
        let Some(id) = self.keep(loaded) else { return Ok(Owner::GivenUp) };
        let config = self.config(id);
        let root = |named: &Option<PathBuf>| {
            let named = named.as_deref().filter(|root| !root.as_os_str().is_empty());
            realpath(self.settings.cwd.join(named.unwrap_or(directory)))
        };
        let entry = SuiteEntry {
            name: config.name.clone(),
            source_root: root(&config.test_source_root),
            exec_root: root(&config.test_exec_root),
            config: id,
        };
        self.suites.push(entry);
        Ok(Owner::Suite(self.suites.len() - 1, PathBuf::new()))
    }

    /// Stores an evaluated config under its number, or reports its error.
    fn keep(&mut self, loaded: Loaded) -> Option<u32> {
        self.pass_on();
        match loaded {
            Loaded::Config(config) => {
                let id = config.id;
                let places = self.configs.len().max(id as usize + 1);
                self.configs.resize_with(places, || None);
                self.configs[id as usize] = Some(*config);
                Some(id)
            }
            Loaded::Failed(diagnostic) => {
                self.voice.give_up(diagnostic);
                None
            }
        }
    }

    fn config(&self, id: u32) -> &Config {
        self.configs[id as usize].as_ref().expect("an evaluated config")
    }

    /// Returns the config of a directory of a suite, which is evaluated at the first request.
    fn local_config(&mut self, suite: usize, path: &Path) -> Result<Option<u32>, ProbeError> {
        if let Some(known) = self.locals.get(&(suite, path.to_path_buf())) {
            return Ok(*known);
        }
        let parent = match path.parent() {
            None => Some(self.suites[suite].config),
            Some(above) => self.local_config(suite, above)?,
        };
        let source = self.suites[suite].source_root.join(path);
        let config = match (parent, first_existing(&source, &self.local_configs)) {
            (Some(parent), Some(file)) => {
                self.voice.debug(|| format!("loading local config {}", repr(&file)));
                let parent = self.configs[parent as usize].as_ref().expect("an evaluated config");
                let (above, format) = (parent.id, parent.format.clone());
                let loaded = self.probe.load_local(&file, parent, self.tmp_dir)?;
                let id = self.keep(loaded);
                self.inherit_executables(above, format, id);
                id
            }
            (parent, _) => parent,
        };
        self.locals.insert((suite, path.to_path_buf()), config);
        Ok(config)
    }

    /// Finds the tests at a path of a suite, which is a test or a directory.
    fn visit(&mut self, suite: usize, path: &Path) -> Result<(), ProbeError> {
        let source = self.suites[suite].source_root.join(path);
        if source.is_dir() {
            return self.visit_directory(suite, path, &source);
        }
        if !source.exists() {
            return Ok(());
        }
        self.visit_named(suite, path)
    }

    /// Adds a test that an input names directly.
    fn visit_named(&mut self, suite: usize, path: &Path) -> Result<(), ProbeError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let Some(id) = self.local_config(suite, parent)? else { return Ok(()) };
        let config = self.config(id);
        let taken = match &config.format {
            _ if config.standalone_tests => true,
            None => true,
            Some(Format::ShTest { .. } | Format::Executable) => is_test(config, self.dialect, name),
            // The executable's tests are not listed, so this test fails.
            Some(Format::GoogleTest { .. }) => true,
            Some(Format::Python(_)) => return self.ask_format(suite, path, id, false),
        };
        if taken {
            let directory = self.directory(suite, parent, id);
            self.tests.push((directory, Name::File(name.into())));
        }
        Ok(())
    }

    fn visit_directory(&mut self, suite: usize, path: &Path, source: &Path) -> Result<(), ProbeError> {
        let Some(id) = self.local_config(suite, path)? else { return Ok(()) };
        let config = self.config(id);
        if config.standalone_tests {
            if !(config.suffixes.is_empty() && config.excludes.is_empty()) {
                let message = "standalone_tests set in LIT config but suffixes or excludes are also set";
                self.voice.warn(message.to_owned());
            }
            return Ok(());
        }
        let listing = match Listing::read(source) {
            Ok(listing) => listing,
            Err(error) => {
                self.voice.give_up(unreadable(source.to_path_buf(), &error));
                return Ok(());
            }
        };
        self.take_tests(suite, path, source, id, listing.files)?;
        for name in listing.directories {
            let special = ["Output", ".svn", ".git"].iter().any(|special| *name == **special);
            if !special && !is_excluded(self.config(id), &name) {
                self.enter(suite, &path.join(&*name), source.join(&*name))?;
            }
        }
        Ok(())
    }

    /// Adds those files of a directory that its format takes as tests.
    fn take_tests(
        &mut self,
        suite: usize,
        path: &Path,
        source: &Path,
        id: u32,
        files: Vec<Box<OsStr>>,
    ) -> Result<(), ProbeError> {
        let config = self.configs[id as usize].as_ref().expect("an evaluated config");
        match &config.format {
            None => {}
            Some(Format::ShTest { .. } | Format::Executable) => {
                let before = self.tests.len();
                let number = u32::try_from(self.directories.len()).expect("fewer than 2^32 directories");
                let tests = files.into_iter().filter(|name| is_test(config, self.dialect, name));
                self.tests.extend(tests.map(|name| (number, Name::File(name))));
                if self.tests.len() > before {
                    self.directories.push(DirectoryEntry { suite, path: path.to_path_buf(), config: id });
                }
            }
            Some(Format::GoogleTest { .. }) => self.take_executables(suite, path, source, id),
            Some(Format::Python(_)) => self.ask_format(suite, path, id, true)?,
        }
        Ok(())
    }

    /// Enters a directory, which may be a suite of its own.
    fn enter(&mut self, suite: usize, path: &Path, source: PathBuf) -> Result<(), ProbeError> {
        let exec = self.suites[suite].exec_root.join(path);
        let nested =
            [exec, source].into_iter().find(|dir| first_existing(dir, &self.suite_configs).is_some());
        let Some(nested) = nested else { return self.visit(suite, path) };
        match self.owner(&nested)? {
            // The exec root may lie within the source tree.
            Owner::Suite(other, _) if other == suite => Ok(()),
            Owner::Suite(other, path) => {
                let before = (self.tests.len(), self.voice.given_up);
                let since = self.googletests.len();
                self.visit(other, &path)?;
                if before == (self.tests.len(), self.voice.given_up) {
                    self.nested_without_tests(other, since);
                }
                Ok(())
            }
            Owner::None => self.visit(suite, path),
            Owner::GivenUp => Ok(()),
        }
    }

    /// Lets a format written in Python find tests.
    fn ask_format(&mut self, suite: usize, path: &Path, id: u32, directory: bool) -> Result<(), ProbeError> {
        let entry = &self.suites[suite];
        let reference = SuiteRef {
            name: &entry.name,
            source_root: &entry.source_root,
            exec_root: &entry.exec_root,
            config: entry.config,
        };
        let answer = self.probe.find_tests(reference, id, path, directory)?;
        self.pass_on();
        let found = match answer {
            Ok(found) => found,
            Err(diagnostic) => {
                self.voice.give_up(diagnostic);
                return Ok(());
            }
        };
        for FoundTest { components, file, results, carried } in found {
            let Some((name, above)) = components.split_last() else { continue };
            let directory = self.directory(suite, &above.iter().collect::<PathBuf>(), id);
            let is_plain = |part: &OsString| {
                let part = part.as_encoded_bytes();
                !matches!(part, b"" | b"." | b"..") && !part.contains(&b'/')
            };
            let name = if file.is_none() && carried.is_none() && components.iter().all(is_plain) {
                Name::File(name.as_os_str().into())
            } else {
                let components = components.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                Name::Made(Arc::new(Detail { components, file, results, carried }))
            };
            self.tests.push((directory, name));
        }
        Ok(())
    }

    /// Returns the number of a directory: the last one's if it is the same.
    pub fn directory(&mut self, suite: usize, path: &Path, config: u32) -> u32 {
        let same = |last: &DirectoryEntry| last.suite == suite && last.path == path && last.config == config;
        if !self.directories.last().is_some_and(same) {
            self.directories.push(DirectoryEntry { suite, path: path.to_path_buf(), config });
        }
        u32::try_from(self.directories.len() - 1).expect("fewer than 2^32 directories")
    }
}

/// Returns the first of these files that exists.
fn first_existing(directory: &Path, names: &[OsString]) -> Option<PathBuf> {
    names.iter().map(|name| directory.join(name)).find(|path| path.exists())
}
