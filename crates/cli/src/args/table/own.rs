//! Options that lit does not have.

use std::ffi::OsStr;

use hotstart_report::time_by::TimeBy;

use crate::args::flag::Flag;
use crate::args::options::{ConfigCacheUse, Remember, SHELLS};
use crate::args::values;

pub(super) static FLAGS: [Flag; 32] = [
    Flag::value(
        &["--lit-python"],
        "PATH",
        |options, value, invocation| {
            options.own.lit_python = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Evaluate config files with this Python; it needs the lit package, unless --lit-package gives one",
    ),
    Flag::value(
        &["--lit-package"],
        "DIR",
        |options, value, invocation| {
            options.own.lit_package = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Evaluate config files with the lit package in DIR (for example llvm/utils/lit), and follow its \
         version's \
         rules",
    ),
    Flag::value(
        &["--build-tree"],
        "DIR",
        |options, value, invocation| {
            options.own.build_tree = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "For paths in source trees, use the site configs that CMake wrote into the build tree DIR, as its llvm-lit \
         does; not needed where hotstart was put in that script's place",
    ),
    Flag::value(
        &["--builtin-parameters"],
        "JSON",
        |options, value, invocation| options.own.builtin.add(value, invocation.cwd),
        "Take parameters from JSON, an object or a file with one, as a wrapper such as llvm-lit hands them to \
         lit; its config_map leads from main configs to site configs; may be given more than once",
    ),
    Flag::switch(
        &["--config-cache"],
        |options| options.own.config_cache = ConfigCacheUse::On,
        "Keep evaluated config files for the next run, which uses them while all that they looked at is the same, so far as \
         that is noticed (docs/design/config-cache.md)",
    ),
    Flag::switch(
        &["--no-config-cache"],
        |options| options.own.config_cache = ConfigCacheUse::Off,
        "Evaluate config files in any case, and keep nothing of it for the next run; so it is without --config-cache",
    ),
    Flag::switch(
        &["--check-config-cache"],
        |options| options.own.config_cache = ConfigCacheUse::Check,
        "Evaluate config files in any case, and compare with what is kept; with --config-cache, one run of 64 does so by itself",
    ),
    Flag::switch(
        &["--debug-times"],
        |options| options.own.debug_times = true,
        "Print to standard error how long each step before the first test took",
    ),
    Flag::value(
        &["--shell"],
        "{auto,native}",
        |options, value, _| {
            options.own.native_shell = Some(values::choice(value, &SHELLS)?);
            Ok(())
        },
        "Who runs the RUN lines of a suite that asks for an external shell: that shell (auto, the default), or \
         hotstart itself where the lines mean the same to both (native)",
    ),
    Flag::switch(
        &["--no-filecheck"],
        |options| options.own.no_filecheck = true,
        "Run every FileCheck; without it, hotstart decides by itself where a FileCheck certainly passes",
    ),
    Flag::switch(
        &["--no-check-cache"],
        |options| options.own.no_check_cache = true,
        "Neither use nor store passes of FileCheck that earlier runs saw with the same check file, input and arguments",
    ),
    Flag::switch(
        &["--cache"],
        |options| options.own.remember = Remember::SameFiles,
        "Remember tests that pass, with all files that they read, looked for or listed, and do not run them again while those \
         are the same. A test that is not known yet runs cold and traced, which is slower",
    ),
    Flag::switch(
        &["--cache-by-content"],
        |options| options.own.remember = Remember::SameContent,
        "As --cache, but files may have other times if their content is the same, as in a fresh checkout; for tests that do not \
         look at times of files",
    ),
    Flag::switch(
        &["--inputs"],
        |options| options.own.inputs = true,
        "Run the tests traced, list the files that they depend on, and exit",
    ),
    Flag::value(
        &["--affected"],
        "FILE",
        |options, value, invocation| {
            options.own.affected.push(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "List the tests that a change to FILE would run with --cache, and exit; may be given more than once",
    ),
    Flag::switch(
        &["--diagnose"],
        |options| options.own.diagnose = true,
        "Below the result line of a failing test, tell first which RUN line and which command failed, with a line \
         to paste into a shell that runs it again",
    ),
    Flag::switch(
        &["--live"],
        |options| options.console.be_live(),
        "Show what runs now: progress, rate, time left, workers, and failures as they come. Without a terminal, a \
         line after every tenth of the tests. Result lines of failures only, as with -s",
    ),
    Flag::switch(
        &["--rerun-failed"],
        |options| options.own.rerun_failed = true,
        "Run only tests that failed last time, like --filter-failed; it is no error if none did",
    ),
    Flag::value(
        &["--time-by"],
        "{dir,tool},...",
        |options, value, _| {
            for name in values::text(value).split(',') {
                let by = [("dir", TimeBy::Directory), ("tool", TimeBy::Tool)];
                options.own.time_by.push(values::choice(OsStr::new(name), &by)?);
            }
            Ok(())
        },
        "After the run, add up the time by directory or by tool, or both; --time-tests lists the slowest tests",
    ),
    Flag::switch(
        &["--skip-reasons"],
        |options| options.reports.skip_reasons = true,
        "In the XML report, tell of each test that was left out why, where lit has one text for all",
    ),
    Flag::value(
        &["--html"],
        "FILE",
        |options, value, _| {
            options.reports.html = Some(value.into());
            Ok(())
        },
        "Write one page for people to FILE: failures with what FileCheck expected and found, times by test, directory and \
         tool, what workers did when, how processes were started, and the run before",
    ),
    Flag::value(
        &["--alone"],
        "REGEX",
        |options, value, invocation| {
            options.own.alone = Some(values::pattern(value, invocation)?);
            Ok(())
        },
        "Run tests whose name matches one by one, after all others; config.hotstart_alone says the same in a config",
    ),
    Flag::value(
        &["--rerun-failed-serially"],
        "REGEX",
        |options, value, invocation| {
            options.own.rerun_serially = Some(values::pattern(value, invocation)?);
            Ok(())
        },
        "Run failed tests whose output matches once more, one by one after all others; those that pass then are FLAKYPASS",
    ),
    Flag::value(
        &["--repeat"],
        "N",
        |options, value, _| {
            let times = values::positive(value)?;
            options.own.repeat = Some(u32::try_from(times).map_err(|_| "too many repetitions".to_owned())?);
            Ok(())
        },
        "Run each test N times, each time with a directory for temporary files of its own; a test fails if one of them does",
    ),
    Flag::switch(
        &["--until-fail"],
        |options| options.own.until_fail = true,
        "Repeat tests until one fails, at most 1000 times or as often as --repeat says",
    ),
    Flag::value(
        &["--wrap"],
        "TOOL=COMMAND",
        |options, value, _| {
            let text = values::text(value);
            if !text.split_once('=').is_some_and(|(tool, words)| !tool.is_empty() && !words.trim().is_empty())
            {
                return Err(format!(
                    "requires a tool and what starts it, as opt='perf record -o %t.%n --', but found '{text}'"
                ));
            }
            options.own.wraps.push(text);
            Ok(())
        },
        "Start this tool by another program, with its command after that of the program; %t is the test's temporary file, %n \
         the number of the start in the test; may be given more than once",
    ),
    Flag::value(
        &["--record"],
        "FILE",
        |options, value, _| {
            options.reports.record = Some(value.into());
            Ok(())
        },
        "Write to FILE which worker ran which test when",
    ),
    Flag::value(
        &["--replay-record"],
        "FILE",
        |options, value, invocation| {
            options.own.replay_record = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Run the tests of a record again, in its order, each by the worker that ran it",
    ),
    Flag::value(
        &["--junit"],
        "FILE",
        |options, value, _| {
            options.reports.junit = Some(value.into());
            Ok(())
        },
        "Write results as JUnit's XML to FILE, as readers with a schema want it (Jenkins, GitLab); --xunit-xml-output writes \
         lit's",
    ),
    Flag::switch(
        &["--github"],
        |options| options.reports.github = true,
        "After the summary, tell GitHub Actions of failures, so that it shows them beside the lines of a pull request",
    ),
    Flag::switch(
        &["--run-line-times"],
        |options| options.reports.line_times = true,
        "In the JSON report (-o), tell what each RUN line took",
    ),
    Flag::switch(&["--list"], |options| options.own.list = true, "List suites and tests as JSON, and exit"),
];
