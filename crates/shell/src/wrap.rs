//! Starts tools through another program that the user has chosen: a profiler, a debugger.

use std::path::Path;

use hotstart_model::{Script, Wrap};

/// Returns the program to start, its words, and whether it replaces `program`. `number` identifies the stage: the
/// pipeline in the script and the stage in it, both counted from 1.
pub(crate) fn wrapped(
    script: &Script,
    program: String,
    args: Vec<String>,
    number: (usize, usize),
) -> (String, Vec<String>, bool) {
    let name = Path::new(&program).file_name().and_then(|name| name.to_str());
    let Some(Wrap { words, .. }) = script.wraps.iter().find(|wrap| Some(wrap.tool.as_str()) == name) else {
        return (program, args, false);
    };
    let tmp = format!("{}.tmp", script.tmp_base.to_string_lossy());
    let number = format!("{}.{}", number.0, number.1);
    let mut all: Vec<String> =
        words.iter().map(|word| word.replace("%t", &tmp).replace("%n", &number)).collect();
    let Some(wrapper) = all.first().cloned() else { return (program, args, false) };
    all.push(program);
    all.extend(args.into_iter().skip(1));
    (wrapper, all, true)
}
