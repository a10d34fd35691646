//! Reads `hotstart.toml`: settings for every run of a project or a user.
//!
//! The file is parsed to a tree of values with positions, not into types, so that every error can name its position, its key
//! and the allowed values.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::args::{
    AllocatorOptions, ConfigFile, SHELLS, Start, allocator, allocator_tool, check_tool, is_percentage,
};

const NAME: &str = "hotstart.toml";
const KEYS: &str = "'start', 'warm', 'keep_cold', 'allocator', 'verify', 'template_memory_mib', 'explain', 'shell', \
     'filecheck'";

/// The table `[lit]`; `None` means not given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileSettings {
    pub start: Option<Start>,
    pub warm: Option<Vec<String>>,
    pub keep_cold: Option<Vec<String>>,
    pub allocators: Option<AllocatorOptions>,
    /// Share of passing tests to compare, in percent.
    pub verify: Option<f64>,
    /// Most memory of all zygotes and persistent processes together, in MiB.
    pub template_memory: Option<u64>,
    pub explain: Option<bool>,
    /// Whether the internal shell may run scripts for an external shell.
    pub native_shell: Option<bool>,
    pub filechecks: Option<UseOfFileCheck>,
}

/// What may stand for a run of FileCheck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseOfFileCheck {
    /// Nothing.
    Run,
    /// A decision that it certainly passes.
    Decide,
    /// Also a pass of an earlier run.
    Remember,
}

const FILECHECKS: [(&str, UseOfFileCheck); 3] = [
    ("run", UseOfFileCheck::Run),
    ("decide", UseOfFileCheck::Decide),
    ("remember", UseOfFileCheck::Remember),
];

/// An error in a configuration file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileError {
    path: PathBuf,
    /// Line and column, from 1, if the file could be read.
    place: Option<(usize, usize)>,
    what: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.path.display(), self.what),
            None => write!(f, "{}: {}", self.path.display(), self.what),
        }
    }
}

/// Reads the file that `which` selects. Without a file there are no settings.
pub fn read(which: &ConfigFile, cwd: &Path) -> Result<FileSettings, FileError> {
    let path = match which {
        ConfigFile::None => return Ok(FileSettings::default()),
        ConfigFile::File(path) => path.clone(),
        ConfigFile::LookedUp => match look_up(cwd) {
            Some(path) => path,
            None => return Ok(FileSettings::default()),
        },
    };
    let unread = |error| {
        let what = format!(
            "cannot be read: {error}; name another with --hotstart-config, or none with an empty name"
        );
        FileError { path: path.clone(), place: None, what }
    };
    let text = std::fs::read_to_string(&path).map_err(unread)?;
    parse(&text).map_err(|fault| fault.at(&path, &text))
}

/// Finds the nearest file at or above `dir`, but not above the top of a repository.
fn look_up(dir: &Path) -> Option<PathBuf> {
    for dir in dir.ancestors() {
        let path = dir.join(NAME);
        if path.is_file() {
            return Some(path);
        }
        if dir.join(".git").exists() {
            return None;
        }
    }
    None
}

/// The fault of a value, and its range of bytes.
struct Fault {
    span: Option<Range<usize>>,
    what: String,
}

impl Fault {
    fn at(self, path: &Path, text: &str) -> FileError {
        let place = self.span.map(|span| {
            let before = &text[..span.start.min(text.len())];
            let line_begin = before.rfind('\n').map_or(0, |at| at + 1);
            (before.matches('\n').count() + 1, before[line_begin..].chars().count() + 1)
        });
        FileError { path: path.to_owned(), place, what: self.what }
    }
}

fn parse(text: &str) -> Result<FileSettings, Fault> {
    let root = DeTable::parse(text)
        .map_err(|error| Fault { span: error.span(), what: error.message().replace('\n', "; ") })?;
    let mut settings = FileSettings::default();
    for (table, content) in root.get_ref().iter() {
        if table.get_ref() != "lit" {
            return Err(unknown(table, table.get_ref(), "'[lit]'"));
        }
        let Some(keys) = content.get_ref().as_table() else {
            return Err(wrong(content, "lit", "a table"));
        };
        for (key, value) in keys.iter() {
            settings.set(key, value)?;
        }
    }
    Ok(settings)
}

impl FileSettings {
    fn set(
        &mut self,
        key: &Spanned<toml::de::DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), Fault> {
        let name = &**key.get_ref();
        match name {
            "start" => self.start = Some(choice(value, "lit.start", &Start::CHOICES)?),
            "warm" => {
                let list = tools(value, "lit.warm")?;
                if list.is_empty() {
                    return Err(wrong(value, "lit.warm", "at least one tool's name, or `start = \"cold\"`"));
                }
                self.warm = Some(list);
            }
            "keep_cold" => self.keep_cold = Some(tools(value, "lit.keep_cold")?),
            "allocator" => self.allocators = Some(allocators(value)?),
            "verify" => {
                let percent = number(value.get_ref()).filter(|&number| is_percentage(number));
                self.verify =
                    Some(percent.ok_or_else(|| wrong(value, "lit.verify", "a number from 0 to 100"))?);
            }
            "template_memory_mib" => {
                let mib = value.get_ref().as_integer();
                let mib = mib.and_then(|mib| u64::from_str_radix(mib.as_str(), mib.radix()).ok());
                let allowed = "a whole number of MiB, 0 or more";
                self.template_memory =
                    Some(mib.ok_or_else(|| wrong(value, "lit.template_memory_mib", allowed))?);
            }
            "explain" => {
                let explain = value.get_ref().as_bool();
                self.explain = Some(explain.ok_or_else(|| wrong(value, "lit.explain", "true or false"))?);
            }
            "filecheck" => self.filechecks = Some(choice(value, "lit.filecheck", &FILECHECKS)?),
            "shell" => self.native_shell = Some(choice(value, "lit.shell", &SHELLS)?),
            _ => return Err(unknown(key, &format!("lit.{name}"), KEYS)),
        }
        Ok(())
    }
}

fn choice<T: Copy>(value: &Spanned<DeValue<'_>>, key: &str, of: &[(&str, T)]) -> Result<T, Fault> {
    let named = value.get_ref().as_str();
    let found = of.iter().find(|(name, _)| Some(*name) == named);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<_> = of.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        wrong(value, key, &format!("one of {}", names.join(", ")))
    })
}

fn tools(value: &Spanned<DeValue<'_>>, key: &str) -> Result<Vec<String>, Fault> {
    let allowed = "a list of tools' names, without directories";
    let list = value.get_ref().as_array().ok_or_else(|| wrong(value, key, allowed))?;
    let tool = |item: &Spanned<DeValue<'_>>| match item.get_ref().as_str() {
        Some(name) if check_tool(name).is_ok() => Ok(name.to_owned()),
        _ => Err(wrong(item, key, allowed)),
    };
    list.iter().map(tool).collect()
}

/// Parses one allocator for all tools, or a table of tools.
fn allocators(value: &Spanned<DeValue<'_>>) -> Result<AllocatorOptions, Fault> {
    let one = |value: &Spanned<DeValue<'_>>, key: &str| {
        let absolute = |path: &str| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let named = value.get_ref().as_str().and_then(|name| allocator(name, absolute).ok());
        named.ok_or_else(|| wrong(value, key, "an allocator's name, \"system\" or a library's absolute path"))
    };
    let Some(table) = value.get_ref().as_table() else {
        return Ok(vec![(None, one(value, "lit.allocator")?)]);
    };
    let entry = |(tool, value): (&Spanned<toml::de::DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let name = &**tool.get_ref();
        check_tool(name)
            .map_err(|_| wrong(value, &format!("lit.allocator.{name}"), "for a tool without directory"))?;
        Ok((allocator_tool(name), one(value, &format!("lit.allocator.{name}"))?))
    };
    table.iter().map(entry).collect()
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64)
        }
        _ => None,
    }
}

fn unknown<T>(at: &Spanned<T>, name: &str, known: &str) -> Fault {
    Fault { span: Some(at.span()), what: format!("unknown key '{name}'; known are {known}") }
}

fn wrong(value: &Spanned<DeValue<'_>>, key: &str, allowed: &str) -> Fault {
    let found = match value.get_ref() {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        other => format!("{} value", other.type_str()),
    };
    Fault { span: Some(value.span()), what: format!("'{key}' must be {allowed}, but found {found}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Allocator;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().at(Path::new("h.toml"), text).to_string()
    }

    #[test]
    fn all_keys() {
        let text = "[lit]
start = 'fork'
warm = ['opt', 'llc']
keep_cold = []
verify = 2.5
allocator = '/a.so'
\
                    template_memory_mib = 1_024
explain = true
shell = 'native'
filecheck = 'decide'
";
        let expected = FileSettings {
            start: Some(Start::Fork),
            warm: Some(vec!["opt".into(), "llc".into()]),
            keep_cold: Some(Vec::new()),
            allocators: Some(vec![(None, Allocator::File("/a.so".into()))]),
            verify: Some(2.5),
            template_memory: Some(1024),
            explain: Some(true),
            native_shell: Some(true),
            filechecks: Some(UseOfFileCheck::Decide),
        };
        assert_eq!(parse(text).ok(), Some(expected));
        assert_eq!(parse("lit.verify = 3").ok().unwrap().verify, Some(3.0));
        let tools =
            parse("[lit.allocator]\nopt = 'mimalloc'\nall = 'system'").ok().unwrap().allocators.unwrap();
        assert_eq!(tools.len(), 2);
        assert!(
            tools.contains(&(None, Allocator::System))
                && tools.iter().any(|(tool, _)| tool.as_deref() == Some("opt"))
        );
        assert_eq!(parse("").ok(), Some(FileSettings::default()));
    }

    #[test]
    fn errors_name_place_key_and_what_is_allowed() {
        for (text, message) in [
            (
                "[lit]\nstart = 'warm'",
                "h.toml:2:9: 'lit.start' must be one of \"auto\", \"cold\", \"fork\", \"rewind\", but found \"warm\"",
            ),
            ("[lit]\n  strat = 1", "h.toml:2:3: unknown key 'lit.strat'; known are 'start', 'warm', "),
            ("\n[lti]\n", "h.toml:2:2: unknown key 'lti'; known are '[lit]'"),
            ("lit = 1", "h.toml:1:7: 'lit' must be a table, but found 1"),
            (
                "[lit]\nwarm = ['ö', 'bin/opt']",
                "h.toml:2:14: 'lit.warm' must be a list of tools' names, without directories, but found \"bin/opt\"",
            ),
            ("[lit]\nwarm = []", "h.toml:2:8: 'lit.warm' must be at least one tool's name"),
            (
                "[lit]\nverify = 100.5",
                "h.toml:2:10: 'lit.verify' must be a number from 0 to 100, but found 100.5",
            ),
            ("[lit]\nverify = nan", "h.toml:2:10: 'lit.verify' must be"),
            (
                "[lit]\ntemplate_memory_mib = -1",
                "h.toml:2:23: 'lit.template_memory_mib' must be a whole number",
            ),
            (
                "[lit]\nallocator = 'a.so'",
                "h.toml:2:13: 'lit.allocator' must be an allocator's name, \"system\" or a library's absolute path, \
                 but found \"a.so\"",
            ),
            ("[lit]\nexplain = 'yes'", "h.toml:2:11: 'lit.explain' must be true or false, but found \"yes\""),
            (
                "[lit]\nshell = 'bash'",
                "h.toml:2:9: 'lit.shell' must be one of \"auto\", \"native\", but found \"bash\"",
            ),
            ("[lit\nexplain = 1", "h.toml:1:5: "),
        ] {
            let error = error(text);
            assert!(error.starts_with(message), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn the_nearest_file_is_found_below_the_top_of_the_repository() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        std::fs::create_dir_all(at("repo/.git")).unwrap();
        std::fs::create_dir_all(at("repo/a/b")).unwrap();
        std::fs::write(at(NAME), "").unwrap();
        assert_eq!(look_up(&at("repo/a/b")), None);
        std::fs::write(at("repo/hotstart.toml"), "").unwrap();
        assert_eq!(look_up(&at("repo/a/b")), Some(at("repo/hotstart.toml")));
        std::fs::write(at("repo/a/hotstart.toml"), "").unwrap();
        assert_eq!(look_up(&at("repo/a/b")), Some(at("repo/a/hotstart.toml")));
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let error = read(&ConfigFile::File("/no/such/h.toml".into()), Path::new("/")).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/h.toml: cannot be read: "), "{error}");
        assert_eq!(read(&ConfigFile::None, Path::new("/")), Ok(FileSettings::default()));
    }
}
