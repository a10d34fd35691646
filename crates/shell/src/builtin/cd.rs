//! `cd`, `pushd`, `popd`. They do not check whether the directory exists, except for `cd` in place of bash's.

use std::path::Path;

use rustix::fs::Access;

use super::{Call, Done, text_or};
use crate::halt::{Halt, Halting};
use crate::native::place::Held;
use crate::state::Shell;

pub(super) fn cd(call: Call<'_>) -> Halting<Done> {
    let [_, dir] = call.words else { return Err(Halt::shell("'cd' supports only one argument")) };
    let dir = path(dir)?;
    if call.must_exist {
        return existing(call.shell, dir);
    }
    call.shell.change_dir(dir);
    Ok(Done::default())
}

/// bash's `cd` to a plain absolute path. It sets `PWD` and `OLDPWD` for processes.
fn existing(shell: &mut Shell, dir: &str) -> Halting<Done> {
    if !Path::new(dir).is_dir() || rustix::fs::access(dir, Access::EXEC_OK).is_err() {
        return Ok(Done {
            stderr: format!("cd: {dir}: not a directory to go to\n"),
            status: 1,
            ..Done::default()
        });
    }
    let held = Held::of(Path::new(dir)).map_err(|error| Halt::shell(format!("cd: {dir}: {error}\n")))?;
    let here = shell.vars.get("PWD").unwrap_or_default().to_owned();
    shell.vars.set("OLDPWD", here);
    shell.vars.set("PWD", dir);
    shell.held = Some(held);
    shell.change_dir(dir);
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
