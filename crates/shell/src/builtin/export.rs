//! `export K=V`. Without `=` it does nothing.

use hotstart_model::Dialect;

use super::{Call, Done};
use crate::halt::{Halt, Halting};
use crate::prefix::update_env;

pub(super) fn export(call: Call<'_>) -> Halting<Done> {
    if call.words.len() != 2 {
        return Err(match call.dialect {
            // lit 19 omits an argument of its own exception.
            Dialect::V19 => Halt::exception(
                "TypeError",
                "InternalShellError.__init__() missing 1 required positional argument: 'message'",
            ),
            Dialect::V23 => Halt::shell("'export' supports only one argument"),
        });
    }
    update_env(&mut call.shell.vars, call.words, call.dialect)?;
    Ok(Done::default())
}
