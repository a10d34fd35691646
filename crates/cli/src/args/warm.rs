//! Options for warm starts. A configuration file can contain the same values, so both parse them here.

use std::path::{Path, PathBuf};

use hotstart_launch::allocator::{KNOWN, Known, known};

/// The way in which tools are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Warm, once a tool has started often enough to gain from it.
    #[default]
    Auto,
    /// All cold.
    Cold,
    /// Warm from the first start, by fork.
    Fork,
    /// Warm from the first start, in a persistent process where a tool can be reset.
    Reset,
}

/// The kind of warm starts with which every command is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Forks.
    Fork,
    /// Runs in persistent processes, each of them audited.
    Reset,
}

impl Start {
    /// The values by name, in the order in which messages list them.
    pub const CHOICES: [(&'static str, Start); 4] =
        [("auto", Start::Auto), ("cold", Start::Cold), ("fork", Start::Fork), ("rewind", Start::Reset)];
}

/// An allocator as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// libc's.
    System,
    /// One whose library is searched for.
    Known(Known),
    /// A shared library, by absolute path.
    File(PathBuf),
}

/// Tools and the allocator of each; `None` means all tools that are not named.
pub type AllocatorOptions = Vec<(Option<String>, Allocator)>;

/// The source of further settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConfigFile {
    /// The nearest `hotstart.toml` at or above the working directory, if there is one.
    #[default]
    LookedUp,
    /// No file.
    None,
    /// This file.
    File(PathBuf),
}

/// The command line's settings; `None` means not given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarmOptions {
    /// The way in which tools are started.
    pub start: Option<Start>,
    /// The only tools to start warm.
    pub warm: Option<Vec<String>>,
    /// Tools never to start warm.
    pub keep_cold: Option<Vec<String>>,
    /// The allocators of tools.
    pub allocators: Option<AllocatorOptions>,
    /// Share of passing tests to run again, warm and cold, and to compare, in percent.
    pub verify: Option<f64>,
    /// Most memory in MiB that all zygotes and persistent processes together may own.
    pub template_memory: Option<u64>,
    /// Whether to report how each tool was started.
    pub explain: bool,
    /// Whether a test fails that failed with warm starts and passed cold.
    pub fail_flaky: bool,
    /// Whether Python scripts are started warm.
    pub python: bool,
    /// Whether those without a hash seed of their own are, too.
    pub python_share_seed: bool,
    /// Whether every command runs both cold and warm, and is compared.
    pub parity: Option<Parity>,
    /// The source of further settings.
    pub config_file: ConfigFile,
}

impl WarmOptions {
    /// Starts tools as an earlier run did: in persistent processes unless forks are chosen, and without comparisons in between.
    pub(super) fn repeat_exactly(&mut self) {
        if self.start != Some(Start::Fork) {
            self.start = Some(Start::Reset);
        }
        self.verify.get_or_insert(0.0);
    }
}

/// Adds the tools of a comma-separated list to those of earlier options.
pub(super) fn add_tools(list: &mut Option<Vec<String>>, text: &str) -> Result<(), String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let list = list.get_or_insert_default();
    for name in names {
        check_tool(name)?;
        list.push(name.to_owned());
    }
    Ok(())
}

/// Checks that a tool is given by its name, without a directory.
pub fn check_tool(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains('/') {
        return Err(format!("requires names of tools without directory, but found '{name}'"));
    }
    Ok(())
}

/// Parses `[TOOL,...=]ALLOCATOR` and adds it to the list.
pub(super) fn add_allocators(
    list: &mut Option<AllocatorOptions>,
    text: &str,
    cwd: &Path,
) -> Result<(), String> {
    let (tools, name) =
        text.split_once('=').filter(|(tools, _)| !tools.contains('/')).unwrap_or(("all", text));
    let allocator = allocator(name, |path| Some(cwd.join(path)))?;
    let names = tools.split(',').map(str::trim);
    list.get_or_insert_default().extend(names.map(|tool| (allocator_tool(tool), allocator.clone())));
    Ok(())
}

/// Returns the tool that an allocator is for; `None` means all tools.
pub fn allocator_tool(name: &str) -> Option<String> {
    (!matches!(name, "" | "all")).then(|| name.to_owned())
}

/// Parses an allocator's name or file. `place` makes the file's path absolute if it can.
pub fn allocator(name: &str, place: impl FnOnce(&str) -> Option<PathBuf>) -> Result<Allocator, String> {
    let file = || name.contains('/').then(|| place(name)).flatten();
    match known(name) {
        _ if name == "system" => Ok(Allocator::System),
        Some(known) => Ok(Allocator::Known(known)),
        None => file().map(Allocator::File).ok_or_else(|| {
            let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
            format!("requires system, {} or the path of a library, but found '{name}'", names.join(", "))
        }),
    }
}

/// Parses a percentage, with or without its sign.
pub(super) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    number
        .filter(|&percent| is_percentage(percent))
        .ok_or_else(|| format!("requires a percentage from 0 to 100, for example 0.5%, but found '{text}'"))
}

/// Returns whether the number is between 0 and 100.
pub fn is_percentage(number: f64) -> bool {
    (0.0..=100.0).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_may_have_decimals_and_a_sign() {
        for (text, percent) in [("0", 0.0), ("0.5%", 0.5), ("100 %", 100.0), (".25", 0.25)] {
            assert_eq!(percentage(text), Ok(percent));
        }
        for text in ["", "%", "-1", "100.1%", "nan", "inf", "half"] {
            assert!(percentage(text).unwrap_err().ends_with(&format!("but found '{text}'")));
        }
    }

    #[test]
    fn allocators_are_for_tools_or_for_all() {
        let mut list = None;
        let mut add = |text: &str| add_allocators(&mut list, text, Path::new("/cwd"));
        add("opt,llc=mimalloc").unwrap();
        add("all=lib/a=b.so").unwrap();
        add("./a=b.so").unwrap();
        add("system").unwrap();
        assert!(
            add("opt=fastmalloc")
                .unwrap_err()
                .ends_with("tcmalloc or the path of a library, but found 'fastmalloc'")
        );
        let mimalloc = Allocator::Known(known("mimalloc").unwrap());
        let expected = [
            (Some("opt".to_owned()), mimalloc.clone()),
            (Some("llc".to_owned()), mimalloc),
            (None, Allocator::File("/cwd/lib/a=b.so".into())),
            (None, Allocator::File("/cwd/./a=b.so".into())),
            (None, Allocator::System),
        ];
        assert_eq!(list.unwrap(), expected);
    }

    #[test]
    fn tools_are_names_and_add_up() {
        let mut list = None;
        add_tools(&mut list, "opt, llc,").unwrap();
        add_tools(&mut list, "FileCheck").unwrap();
        assert_eq!(list.unwrap(), ["opt", "llc", "FileCheck"]);
        assert!(add_tools(&mut None, "bin/opt").unwrap_err().contains("'bin/opt'"));
    }
}
