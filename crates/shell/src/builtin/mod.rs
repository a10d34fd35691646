//! The shell's own commands. Most run in the shell and change its state. `cat` and `diff`, which lit's shell runs as
//! programs, are [`native`] stages of a pipeline.

mod cat;
mod cd;
mod diff;
mod echo;
mod export;
mod mkdir;
pub(crate) mod native;
mod rm;
pub(crate) mod ulimit;
mod umask;

use hotstart_model::Dialect;

use crate::ast::{Command, Word};
use crate::halt::{Halt, Halting};
use crate::state::Shell;

/// A call of a builtin.
pub(crate) struct Call<'a> {
    /// The words without `env` and `not`; the builtin's name first.
    pub words: &'a [Word],
    /// The command with the redirections. Only `echo` uses it.
    pub command: &'a Command,
    pub shell: &'a mut Shell,
    pub dialect: Dialect,
    /// Whether `cd` checks that the directory exists, as bash does and lit does not.
    pub must_exist: bool,
}

/// The result of a builtin.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub stdout: String,
    pub stderr: String,
    pub status: i32,
}

/// A builtin that runs in the shell.
pub(crate) type Builtin = fn(Call<'_>) -> Halting<Done>;

/// Returns the builtin of this name.
pub(crate) fn find(name: &str, dialect: Dialect) -> Option<Builtin> {
    Some(match name {
        "cd" => cd::cd,
        "pushd" => cd::pushd,
        "popd" => cd::popd,
        "export" => export::export,
        "echo" | "@echo" => echo::echo,
        "mkdir" => mkdir::mkdir,
        "rm" => rm::rm,
        ":" => |_| Ok(Done::default()),
        "umask" if dialect == Dialect::V23 => umask::umask,
        "ulimit" if dialect == Dialect::V23 => ulimit::ulimit,
        _ => return None,
    })
}

/// Whether the builtin of this name does the same as bash's, for scripts that run natively.
pub(crate) fn is_also_bashs(name: &str) -> bool {
    matches!(name, "cd" | "echo" | "export" | ":")
}

/// Returns the text of an argument where lit's code can only handle a string.
fn text_or<'w>(word: &'w Word, kind: &str, message: &str) -> Halting<&'w str> {
    word.literal().ok_or_else(|| Halt::exception(kind, message))
}
