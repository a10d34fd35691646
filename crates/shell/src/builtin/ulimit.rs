//! `ulimit -v|-n|-s|-f N|unlimited` (lit 23), for processes that are started later.

use hotstart_launch::Resource;
use hotstart_python::number::int;
use hotstart_python::repr;

use super::{Call, Done, text_or};
use crate::halt::{Halt, Halting};

/// Python's number for no limit.
pub(crate) const UNLIMITED: i128 = -1;

pub(super) fn ulimit(call: Call<'_>) -> Halting<Done> {
    let [_, option, value] = call.words else { return Err(Halt::shell("'ulimit' requires two arguments")) };
    let needs_text = "int() argument must be a string, a bytes-like object or a real number, not 'GlobItem'";
    let text = text_or(value, "TypeError", needs_text)?;
    let value = match text {
        "unlimited" => UNLIMITED,
        text => int(text, 10).ok_or_else(|| {
            let shown = repr(text);
            Halt::shell(format!("Error: 'ulimit': invalid literal for int() with base 10: {shown}"))
        })?,
    };
    let (resource, name, unit) = match option.literal() {
        Some("-v") => (Resource::AddressSpace, "RLIMIT_AS", 1024),
        Some("-n") => (Resource::OpenFiles, "RLIMIT_NOFILE", 1),
        Some("-s") => (Resource::Stack, "RLIMIT_STACK", 1024),
        Some("-f") => (Resource::FileSize, "RLIMIT_FSIZE", 1),
        _ => {
            let shown = option.text();
            return Err(Halt::shell(format!("'ulimit' does not support option: {shown}")));
        }
    };
    let value = if value == UNLIMITED { value } else { value.saturating_mul(unit) };
    let limits = &mut call.shell.limits;
    match limits.iter_mut().find(|(known, ..)| *known == resource) {
        Some(known) => known.2 = value,
        None => limits.push((resource, name, value)),
    }
    Ok(Done::default())
}
