//! The locale that Python takes instead of the C locale as it starts (PEP 538). Programs that it starts find it in LC_CTYPE.

use std::ffi::OsStr;

/// What Python takes, the first that exists.
const INSTEAD_OF_C: [&str; 3] = ["C.UTF-8", "C.utf8", "UTF-8"];

/// Returns the value that a Python started with these variables gives LC_CTYPE, or `None` if it leaves that alone. `exists`
/// tells whether the C library has a locale of that name.
pub fn ctype_instead_of_c<'a>(
    get: impl Fn(&str) -> Option<&'a OsStr>,
    exists: impl Fn(&OsStr) -> bool,
) -> Option<&'static str> {
    let filled = |name| get(name).filter(|value| !value.is_empty());
    if filled("LC_ALL").is_some() || filled("PYTHONCOERCECLOCALE").is_some_and(|value| value == "0") {
        return None;
    }
    let is_other = |name: &OsStr| name != "C" && name != "POSIX" && exists(name);
    if filled("LC_CTYPE").or_else(|| filled("LANG")).is_some_and(is_other) {
        return None;
    }
    INSTEAD_OF_C.into_iter().find(|name| exists(OsStr::new(name)))
}
