//! `umask OCT` (lit 23), for processes that are started later and not for the shell's own commands.

use hotstart_python::number::int;
use hotstart_python::repr;

use super::{Call, Done, text_or};
use crate::halt::{Halt, Halting};

pub(super) fn umask(call: Call<'_>) -> Halting<Done> {
    let [_, mask] = call.words else { return Err(Halt::shell("'umask' supports only one argument")) };
    let text = text_or(mask, "TypeError", "int() can't convert non-string with explicit base")?;
    let Some(mask) = int(text, 8) else {
        let shown = repr(text);
        return Err(Halt::shell(format!("Error: 'umask': invalid literal for int() with base 8: {shown}")));
    };
    call.shell.umask = mask;
    Ok(Done::default())
}
