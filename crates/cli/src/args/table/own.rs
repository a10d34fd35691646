//! What lit does not have.

use std::ffi::OsStr;

use hotstart_report::time_by::TimeBy;

use crate::args::flag::Flag;
use crate::args::options::SHELLS;
use crate::args::values;

pub(super) static FLAGS: [Flag; 13] = [
    Flag::value(
        &["--lit-python"],
        "PATH",
        |low, value, invocation| {
            low.own.lit_python = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Evaluate config files with this Python; it needs the lit package, unless --lit-package gives one",
    ),
    Flag::value(
        &["--lit-package"],
        "DIR",
        |low, value, invocation| {
            low.own.lit_package = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Evaluate config files with the lit package in DIR (for example llvm/utils/lit), and follow its \
         version's \
         rules",
    ),
    Flag::value(
        &["--build-tree"],
        "DIR",
        |low, value, invocation| {
            low.own.build_tree = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "For paths in source trees, use the site configs that CMake wrote into the build tree DIR, as its llvm-lit \
         does; not needed where hotstart was put in that script's place",
    ),
    Flag::value(
        &["--builtin-parameters"],
        "JSON",
        |low, value, invocation| low.own.builtin.add(value, invocation.cwd),
        "Take parameters from JSON, an object or a file with one, as a wrapper such as llvm-lit hands them to \
         lit; its config_map leads from main configs to site configs; may be given more than once",
    ),
    Flag::switch(
        &["--debug-times"],
        |low| low.own.debug_times = true,
        "Print to standard error how long each step before the first test took",
    ),
    Flag::value(
        &["--shell"],
        "{auto,native}",
        |low, value, _| {
            low.own.native_shell = Some(values::choice(value, &SHELLS)?);
            Ok(())
        },
        "Who runs the RUN lines of a suite that asks for an external shell: that shell (auto, the default), or \
         hotstart itself where the lines mean the same to both (native)",
    ),
    Flag::switch(
        &["--no-filecheck"],
        |low| low.own.no_filecheck = true,
        "Run every FileCheck; without it, hotstart decides by itself where a FileCheck certainly passes",
    ),
    Flag::switch(
        &["--diagnose"],
        |low| low.own.diagnose = true,
        "Below the result line of a failing test, tell first which RUN line and which command failed, with a line \
         to paste into a shell that runs it again",
    ),
    Flag::switch(
        &["--live"],
        |low| low.console.be_live(),
        "Show what runs now: progress, rate, time left, workers, and failures as they come. Without a terminal, a \
         line after every tenth of the tests. Result lines of failures only, as with -s",
    ),
    Flag::switch(
        &["--rerun-failed"],
        |low| low.own.rerun_failed = true,
        "Run only tests that failed last time, like --filter-failed; it is no error if none did",
    ),
    Flag::value(
        &["--time-by"],
        "{dir,tool},...",
        |low, value, _| {
            for name in values::text(value).split(',') {
                let by = [("dir", TimeBy::Directory), ("tool", TimeBy::Tool)];
                low.own.time_by.push(values::choice(OsStr::new(name), &by)?);
            }
            Ok(())
        },
        "After the run, add up the time by directory or by tool, or both; --time-tests lists the slowest tests",
    ),
    Flag::switch(
        &["--skip-reasons"],
        |low| low.reports.skip_reasons = true,
        "In the XML report, tell of each test that was left out why, where lit has one text for all",
    ),
    Flag::switch(&["--list"], |low| low.own.list = true, "List suites and tests as JSON, and exit"),
];
