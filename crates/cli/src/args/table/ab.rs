//! Options for runs of another lit, interleaved with this one.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::args::flag::Flag;
use crate::args::values;

pub(super) static FLAGS: [Flag; 3] = [
    Flag::value(
        &["--ab"],
        "COMMAND",
        |options, value, _| {
            options.own.ab.with = Some(value.to_owned());
            Ok(())
        },
        "Run COMMAND, another lit with its own arguments, and this one interleaved, with all of the other options and \
         paths; compare all verdicts and the times",
    ),
    Flag::value(
        &["--ab-runs"],
        "N",
        |options, value, _| {
            options.own.ab.runs = Some(values::positive(value)?);
            Ok(())
        },
        "Runs of each of the two that are timed (default: 10; at least 6 are needed to tell a difference)",
    ),
    Flag::value(
        &["--ab-report"],
        "FILE",
        |options, value, invocation| {
            options.own.ab.reports.push(report(value, invocation.cwd.to_path_buf())?);
            Ok(())
        },
        "Write the comparison to FILE as well, which ends in .json, .csv, .md or .html; may be given more than once",
    ),
];

fn report(value: &OsStr, cwd: PathBuf) -> Result<PathBuf, String> {
    let path = values::absolute(value, &cwd);
    let ending = path.extension().and_then(OsStr::to_str);
    if matches!(ending, Some("json" | "csv" | "md" | "html")) {
        Ok(path)
    } else {
        Err(format!(
            "requires a name that ends in .json, .csv, .md or .html, but found '{}'",
            values::text(value)
        ))
    }
}
