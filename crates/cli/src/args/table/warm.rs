//! Options for the start of tools, over which lit has no choice.

use crate::args::flag::Flag;
use crate::args::values;
use crate::args::warm::{self, ConfigFile, Parity, Start};

pub(super) static FLAGS: [Flag; 14] = [
    Flag::value(
        &["--start"],
        "{auto,cold,fork,rewind}",
        |options, value, _| {
            options.own.warm.start = Some(values::choice(value, &Start::CHOICES)?);
            Ok(())
        },
        "How to start tools: auto (warm once a tool was started often enough that it pays; the default), cold, \
         fork (warm from the first start, always a new fork), or rewind (warm from the first start; a fork that \
         has run is reset to its snapshot and runs again)",
    ),
    Flag::switch(
        &["--cold"],
        |options| options.own.warm.start = Some(Start::Cold),
        "Start every tool cold, like --start=cold",
    ),
    Flag::value(
        &["--warm"],
        "TOOL,...",
        |options, value, _| {
            let list = &mut options.own.warm.warm;
            warm::add_tools(list, &values::text(value))?;
            if list.as_ref().is_some_and(Vec::is_empty) {
                return Err("requires at least one tool; --cold starts every tool cold".to_owned());
            }
            Ok(())
        },
        "Start only these tools warm, from their first start; may be given more than once",
    ),
    Flag::value(
        &["--keep-cold"],
        "TOOL,...",
        |options, value, _| warm::add_tools(&mut options.own.warm.keep_cold, &values::text(value)),
        "Never start these tools warm; may be given more than once",
    ),
    Flag::switch(
        &["--python-warm"],
        |options| options.own.warm.python = true,
        "An experiment: start scripts that CPython 3.9 to 3.14 runs warm as well, as forks of a process that stands where the script \
         first looks at its request. Without --python-share-seed, only those whose environment sets PYTHONHASHSEED to a number",
    ),
    Flag::switch(
        &["--python-share-seed"],
        |options| options.own.warm.python_share_seed = true,
        "With --python-warm: scripts without PYTHONHASHSEED, too. Their runs have a random hash seed in common, so a test that \
         compares two runs to find an order that depends on it finds none",
    ),
    Flag::value(
        &["--allocator"],
        "[TOOL,...=]ALLOCATOR",
        |options, value, invocation| {
            warm::add_allocators(&mut options.own.warm.allocators, &values::text(value), invocation.cwd)
        },
        "Give these tools, or all, another allocator than libc's: mimalloc, rpmalloc, jemalloc, tcmalloc or the path \
         of a library (default: system); may be given more than once",
    ),
    Flag::switch(
        &["--fail-flaky"],
        |options| options.own.warm.fail_flaky = true,
        "Count a test as failed that failed when its tools were started warm and passed cold; without it, such a test \
         is FLAKYPASS",
    ),
    Flag::value(
        &["--replay"],
        "TEST",
        |options, value, _| {
            options.own.replay.push(values::text(value));
            Ok(())
        },
        "Run only this test, named as on its result line, whatever other options select; given more than once, tests run \
         one after the other in this order, with tools started warm from the first start",
    ),
    Flag::switch(
        &["--explain"],
        |options| options.own.warm.explain = true,
        "After the run, report for each tool how often it was started cold and warm, why cold, and the time saved",
    ),
    Flag::value(
        &["--verify"],
        "N%",
        |options, value, _| {
            options.own.warm.verify = Some(warm::percentage(&values::text(value))?);
            Ok(())
        },
        "Repeat N percent of the passing warm starts cold and compare (default: 0.5%)",
    ),
    Flag::maybe(
        &["--parity"],
        "WAY",
        |options, value, _| {
            let names = [("", Parity::Fork), ("fork", Parity::Fork), ("rewind", Parity::Reset)];
            options.own.warm.parity = Some(values::choice(value, &names)?);
            Ok(())
        },
        "Run every command both cold and warm and report each difference; with --parity=rewind warm \
         starts are resets, and after each run everything is compared with the snapshot",
    ),
    Flag::value(
        &["--template-memory"],
        "MIB",
        |options, value, _| {
            options.own.warm.template_memory = Some(values::non_negative(value)?);
            Ok(())
        },
        "Keep at most this much memory, in MiB, in tools that stand ready (default: a quarter of what is free)",
    ),
    Flag::value(
        &["--hotstart-config"],
        "FILE",
        |options, value, invocation| {
            options.own.warm.config_file = if value.is_empty() {
                ConfigFile::None
            } else {
                ConfigFile::File(values::absolute(value, invocation.cwd))
            };
            Ok(())
        },
        "Read settings from FILE, or from none if it is empty (default: $HOTSTART_CONFIG, or the nearest \
         hotstart.toml here or above)",
    )
    .or_env("HOTSTART_CONFIG"),
];
