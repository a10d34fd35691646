//! `cd`, `pushd`, `popd`: they never look whether the directory exists.

use super::{Call, Done, text_or};
use crate::halt::{Halt, Halting};

pub(super) fn cd(call: Call<'_>) -> Halting<Done> {
    let [_, dir] = call.words else { return Err(Halt::shell("'cd' supports only one argument")) };
    call.shell.change_dir(path(dir)?);
    Ok(Done::default())
}

pub(super) fn pushd(call: Call<'_>) -> Halting<Done> {
    let [_, dir] = call.words else { return Err(Halt::shell("'pushd' supports only one argument")) };
    let here = call.shell.cwd_path();
    call.shell.dirs.push(here);
    call.shell.change_dir(path(dir)?);
    Ok(Done::default())
}

pub(super) fn popd(call: Call<'_>) -> Halting<Done> {
    if call.words.len() != 1 {
        return Err(Halt::shell("'popd' does not support arguments"));
    }
    let Some(dir) = call.shell.dirs.pop() else { return Err(Halt::shell("popd: directory stack empty")) };
    call.shell.return_to(dir);
    Ok(Done::default())
}

fn path(word: &crate::ast::Word) -> Halting<&str> {
    text_or(word, "TypeError", "expected str, bytes or os.PathLike object, not GlobItem")
}
