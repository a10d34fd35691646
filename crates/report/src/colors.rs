//! Decides whether to write colours: on a terminal, unless the environment says otherwise.
//!
//! `NO_COLOR` (https://no-color.org) overrides `FORCE_COLOR`. Either counts only if it is not empty, and
//! `FORCE_COLOR=0` also disables colours.

use std::ffi::{OsStr, OsString};

/// Returns whether to write colours. `is_terminal` says whether the output is a terminal that has them.
pub fn wanted(env: impl Fn(&str) -> Option<OsString>, is_terminal: bool) -> bool {
    let set = |name| env(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    match set("FORCE_COLOR") {
        Some(value) => value != OsStr::new("0"),
        None => is_terminal,
    }
}

/// Begins text in bold.
pub(crate) const BOLD: &str = "\x1b[1m";
/// Ends every colour and bold.
pub(crate) const NORMAL: &str = "\x1b(B\x1b[m";
/// Red letters.
pub(crate) const RED: &str = "\x1b[31m";
/// Green letters.
pub(crate) const GREEN: &str = "\x1b[32m";
/// Cyan letters.
pub(crate) const CYAN: &str = "\x1b[36m";

/// Returns the sequence, or nothing if colours are not wanted.
pub(crate) fn only_if(wanted: bool, sequence: &'static str) -> &'static str {
    if wanted { sequence } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_overrides_the_terminal() {
        let of = |vars: &[(&str, &str)], is_terminal| {
            let vars = vars.to_vec();
            let env = move |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
            wanted(env, is_terminal)
        };
        assert_eq!((of(&[], true), of(&[], false)), (true, false));
        assert!(!of(&[("NO_COLOR", "1")], true) && of(&[("NO_COLOR", "")], true));
        assert!(of(&[("FORCE_COLOR", "1")], false) && !of(&[("FORCE_COLOR", "0")], true));
        assert!(!of(&[("FORCE_COLOR", "")], false) && !of(&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")], true));
    }
}
