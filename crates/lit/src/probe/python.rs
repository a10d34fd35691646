//! Finds a Python that has lit, if the user names none: lists the places to try, in order.
//!
//! This module starts nothing. A Python has lit if the helper starts in it, so the first one that does costs nothing extra.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use hotstart_python::which;

use crate::build_tree;
use crate::settings::Settings;

/// A Python and the `lit` package to use with it, if that is not the Python's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub python: PathBuf,
    /// The directory that contains the package.
    pub lit_package: Option<PathBuf>,
}

/// A place that may have a Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The place in words, for an error.
    pub name: String,
    /// The Python there, if there is one.
    pub found: Option<Interpreter>,
}

/// A view of the system, which tests replace.
pub struct Surroundings<'a> {
    /// This program's file.
    pub own_binary: Option<PathBuf>,
    /// Values of environment variables.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Surroundings<'_> {
    /// Returns the surroundings of this process.
    pub fn of_process() -> Self {
        Surroundings {
            own_binary: std::env::current_exe().ok(),
            variable: &|name| std::env::var_os(name).filter(|value| !value.is_empty()),
        }
    }

    /// Returns all places, each Python once. Searches PATH only if no earlier place suffices.
    pub fn places<'s>(&'s self, settings: &'s Settings) -> impl Iterator<Item = Place> + 's {
        let mut seen = HashSet::new();
        let early = [self.beside_binary(), self.environment("VIRTUAL_ENV"), self.environment("CONDA_PREFIX")];
        let along_path = move || self.on_path(settings).into_iter();
        let versions = move || self.versions_on_path(settings).into_iter();
        early
            .into_iter()
            .chain(std::iter::once_with(move || self.build_tree(settings)))
            .chain(std::iter::once_with(along_path).flatten())
            .chain(std::iter::once_with(versions).flatten())
            .chain(std::iter::once_with(move || self.packaged(settings)))
            .filter(move |place| place.found.as_ref().is_none_or(|found| seen.insert(identity(found))))
    }

    fn beside_binary(&self) -> Place {
        let dir = self.own_binary.as_deref().and_then(Path::parent);
        let place = dir.map_or_else(|| "this program".to_owned(), |dir| format!("'{}'", dir.display()));
        Place { name: format!("beside hotstart, in {place}"), found: dir.and_then(python_in) }
    }

    fn environment(&self, variable: &str) -> Place {
        let root = (self.variable)(variable).map(PathBuf::from);
        let name = match &root {
            Some(root) => format!("the environment of {variable}, '{}'", root.display()),
            None => format!("the environment of {variable}, which is not set"),
        };
        Place { name, found: root.and_then(|root| python_in(&root.join("bin"))) }
    }

    /// Returns the lit of the LLVM whose tests are run, with the Python that its build found.
    fn build_tree(&self, settings: &Settings) -> Place {
        let name = "the lit of a build tree that the tests belong to".to_owned();
        if settings.lit_package.is_some() {
            return Place { name, found: None };
        }
        let paths = settings.paths.iter().map(|path| settings.cwd.join(path));
        let found = paths.chain([settings.cwd.clone()]).find_map(|path| build_tree::lit_of(&path));
        let Some(lit) = found else { return Place { name, found: None } };
        let named = format!("the lit of a build tree, '{}'", lit.package.display());
        let python = lit.python.filter(|python| which::is_executable(python));
        let python = python.or_else(|| self.on_path(settings).into_iter().next()?.found.map(|on| on.python));
        let found = python.map(|python| Interpreter { python, lit_package: Some(lit.package) });
        Place { name: named, found }
    }

    /// Returns the directories of PATH.
    fn search(&self, settings: &Settings) -> Vec<PathBuf> {
        let path = (self.variable)("PATH").unwrap_or_else(|| which::DEFAULT_PATH.into());
        std::env::split_paths(&path).map(|dir| settings.cwd.join(dir)).collect()
    }

    fn on_path(&self, settings: &Settings) -> Vec<Place> {
        let found = self.search(settings).into_iter().map(|dir| dir.join("python3"));
        or_none("python3 on PATH", found.filter(|python| which::is_executable(python)))
    }

    /// Finds `python3.N`, the newest first.
    fn versions_on_path(&self, settings: &Settings) -> Vec<Place> {
        let minor = |name: &str| name.strip_prefix("python3.")?.parse::<u32>().ok();
        let files =
            self.search(settings).into_iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
        let mut found: Vec<(u32, PathBuf)> =
            files.filter_map(|entry| Some((minor(entry.file_name().to_str()?)?, entry.path()))).collect();
        found.sort_by_key(|(minor, _)| std::cmp::Reverse(*minor));
        let found = found.into_iter().map(|(_, python)| python);
        or_none("python3.N on PATH", found.filter(|python| which::is_executable(python)))
    }

    /// Returns the newest lit of the LLVMs that the distribution has packaged, if this program comes from a package, too.
    fn packaged(&self, settings: &Settings) -> Place {
        let prefix = self.own_binary.as_deref().and_then(|program| program.parent()?.parent());
        let libraries = prefix.map(|prefix| prefix.join("lib")).unwrap_or_default();
        let name = format!("the lit of an LLVM in '{}'", libraries.display());
        let version = |name: &str| name.strip_prefix("llvm-")?.parse::<u32>().ok();
        let packaged = |entry: fs::DirEntry| {
            let version = version(entry.file_name().to_str()?)?;
            let packages = PACKAGED.map(|place| entry.path().join(place));
            let package = packages.into_iter().find(|package| package.join("lit/LitConfig.py").is_file())?;
            Some((version, package))
        };
        let entries = fs::read_dir(libraries).into_iter().flatten().flatten();
        let newest = entries.filter_map(packaged).max().filter(|_| settings.lit_package.is_none());
        let python = self.on_path(settings).into_iter().find_map(|place| place.found);
        let found = newest
            .zip(python)
            .map(|((_, package), on)| Interpreter { lit_package: Some(package), python: on.python });
        Place { name, found }
    }
}

/// Places of lit below a packaged LLVM: since LLVM 21, and before.
const PACKAGED: [&str; 2] = ["utils/lit", "build/utils/lit"];

/// Returns a place for each Python, or one place without any.
fn or_none(name: &str, pythons: impl Iterator<Item = PathBuf>) -> Vec<Place> {
    let of = |python| Place { name: name.to_owned(), found: Some(own(python)) };
    let places: Vec<_> = pythons.map(of).collect();
    match places.is_empty() {
        true => vec![Place { name: name.to_owned(), found: None }],
        false => places,
    }
}

fn python_in(dir: &Path) -> Option<Interpreter> {
    let pythons = ["python3", "python"].map(|name| dir.join(name));
    pythons.into_iter().find(|python| which::is_executable(python)).map(own)
}

fn own(python: PathBuf) -> Interpreter {
    Interpreter { python, lit_package: None }
}

/// Returns a value that is equal for two names of one Python. A link in another directory may be another environment.
fn identity(found: &Interpreter) -> (PathBuf, PathBuf, Option<PathBuf>) {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let dir = found.python.parent().map(real).unwrap_or_default();
    (dir, real(&found.python), found.lit_package.clone())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct System(tempfile::TempDir);

    impl System {
        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn places(&self, variables: &[(&str, OsString)], settings: &Settings) -> Vec<Place> {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
            };
            let own_binary = Some(self.path("wheel/bin/hotstart"));
            Surroundings { own_binary, variable: &variable }.places(settings).collect()
        }
    }

    #[test]
    fn places_come_in_order_and_each_python_once() {
        let system = System(tempfile::tempdir().unwrap());
        let names =
            ["wheel/bin/python3", "active/bin/python", "conda/bin/python3", "a/python3", "b/python3.9"];
        for name in names.into_iter().chain(["b/python3.12", "b/python3.12-config", "b/python3.x"]) {
            system.file(name, "");
        }
        fs::write(system.path("b/python3"), "not executable").unwrap();
        symlink("python3.12", system.path("b/python3.13")).unwrap();
        symlink("a", system.path("c")).unwrap();
        let package = system.file("llvm/utils/lit/lit/LitConfig.py", "");
        for place in ["9/build", "19/build", "19.1/build", "21"] {
            system.file(&format!("wheel/lib/llvm-{place}/utils/lit/lit/LitConfig.py"), "");
        }
        system.file("wheel/lib/llvm-22/bin/opt", "");
        let root = format!("config.llvm_src_root = '{}'\n", system.path("llvm").display());
        system.file("build/test/lit.site.cfg.py", &root);
        let path = ["a", "b", "c", "wheel/bin"].map(|dir| system.path(dir));
        let variables = [
            ("VIRTUAL_ENV", system.path("active").into()),
            ("CONDA_PREFIX", system.path("conda").into()),
            ("PATH", std::env::join_paths(path).unwrap()),
        ];
        let settings =
            Settings { paths: vec!["test/x.ll".into()], cwd: system.path("build"), ..Settings::default() };
        let found = system.places(&variables, &settings).into_iter().filter_map(|place| place.found);
        let of_tree = package.parent().unwrap().parent().unwrap().to_path_buf();
        let expected = [
            (names[0], None),
            (names[1], None),
            (names[2], None),
            (names[3], Some(of_tree)),
            (names[3], None),
            ("b/python3.13", None),
            ("b/python3.9", None),
            (names[3], Some(system.path("wheel/lib/llvm-21/utils/lit"))),
        ]
        .map(|(name, lit_package)| Interpreter { python: system.path(name), lit_package });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn places_without_a_python_are_told() {
        let system = System(tempfile::tempdir().unwrap());
        let variables =
            [("PATH", system.path("nothing").into()), ("CONDA_PREFIX", OsString::from("/nonexistent"))];
        let settings = Settings { cwd: system.path(""), ..Settings::default() };
        let places = system.places(&variables, &settings);
        assert!(places.iter().all(|place| place.found.is_none()), "{places:?}");
        let names: Vec<_> = places.into_iter().map(|place| place.name).collect();
        let wheel = system.path("wheel/bin");
        assert_eq!(
            names,
            [
                format!("beside hotstart, in '{}'", wheel.display()).as_str(),
                "the environment of VIRTUAL_ENV, which is not set",
                "the environment of CONDA_PREFIX, '/nonexistent'",
                "the lit of a build tree that the tests belong to",
                "python3 on PATH",
                "python3.N on PATH",
                format!("the lit of an LLVM in '{}'", system.path("wheel/lib").display()).as_str(),
            ]
        );
    }

    #[test]
    fn a_package_that_is_named_is_not_replaced_by_that_of_a_build_tree() {
        let system = System(tempfile::tempdir().unwrap());
        system.file("llvm/utils/lit/lit/LitConfig.py", "");
        system.file("lit.site.cfg.py", "config.llvm_src_root = 'llvm'\n");
        system.file("bin/python3", "");
        let variables = [("PATH", OsString::from(system.path("bin")))];
        let settings = Settings { cwd: system.path(""), ..Settings::default() };
        let packages = |settings: &Settings| {
            let found = system.places(&variables, settings).into_iter().filter_map(|place| place.found);
            found.filter_map(|found| found.lit_package).count()
        };
        assert_eq!(packages(&settings), 1);
        assert_eq!(packages(&Settings { lit_package: Some("/other".into()), ..settings }), 0);
    }
}
