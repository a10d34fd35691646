//! The tools of a test that must never start warm, by request of its file or its directory's config.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::Path;

/// Tools to start cold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColdTools {
    /// None: the run's own settings decide.
    #[default]
    None,
    /// Every tool.
    All,
    /// Tools of these names, which are the last components of their paths.
    Named(Vec<String>),
}

impl ColdTools {
    /// Reads names from a list with blanks or commas. A list without a name means all.
    pub fn listed(text: &str) -> Self {
        let is_name = |word: &&str| word.contains(char::is_alphanumeric);
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
        // The end of a comment (`*/`, `-->`) is no name.
        let names: Vec<_> = words.filter(is_name).map(str::to_owned).collect();
        if names.is_empty() { ColdTools::All } else { ColdTools::Named(names) }
    }

    /// Returns the tools in either set.
    pub fn with(self, other: &ColdTools) -> Self {
        match (self, other) {
            (ColdTools::All, _) | (_, ColdTools::All) => ColdTools::All,
            (tools, ColdTools::None) => tools,
            (ColdTools::None, named) => named.clone(),
            (ColdTools::Named(mut names), ColdTools::Named(more)) => {
                names.extend(more.iter().cloned());
                ColdTools::Named(names)
            }
        }
    }

    /// Whether this program is among them.
    pub fn covers(&self, program: &Path) -> bool {
        let name = program.file_name().unwrap_or_default();
        match self {
            ColdTools::None => false,
            ColdTools::All => true,
            ColdTools::Named(names) => names.iter().any(|n| OsStr::new(n) == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> ColdTools {
        ColdTools::Named(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn lists_are_words_or_commas() {
        assert_eq!(ColdTools::listed(" opt, clang++-19 */"), named(&["opt", "clang++-19"]));
        assert_eq!(ColdTools::listed(" -->"), ColdTools::All);
    }

    #[test]
    fn a_tool_is_known_by_the_last_component_of_its_path() {
        let tools = named(&["opt"]);
        assert!(tools.covers(Path::new("/usr/bin/opt")) && !tools.covers(Path::new("/opt/llc")));
        assert!(ColdTools::All.covers(Path::new("x")) && !ColdTools::None.covers(Path::new("x")));
    }

    #[test]
    fn opt_outs_add_up() {
        assert_eq!(named(&["a"]).with(&named(&["b"])), named(&["a", "b"]));
        assert_eq!(named(&["a"]).with(&ColdTools::All), ColdTools::All);
        assert_eq!(ColdTools::None.with(&named(&["b"])), named(&["b"]));
        assert_eq!(ColdTools::All.with(&ColdTools::None), ColdTools::All);
    }
}
