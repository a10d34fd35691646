//! Options for tests on other machines.

use std::ffi::OsStr;

use hotstart_batch::Endpoint;

use crate::args::flag::Flag;
use crate::args::values;

pub(super) static FLAGS: [Flag; 14] = [
    Flag::value(
        &["--remote"],
        "URL",
        |options, value, _| {
            options.own.remote.service = Some(endpoint(value)?);
            Ok(())
        },
        "Run tests on the workers of a Remote Execution service, grpc://HOST:PORT/INSTANCE, or grpcs:// for TLS. Tests that \
         cannot run there, or do not pass there, run here",
    ),
    Flag::value(
        &["--remote-exec"],
        "URL",
        |options, value, _| {
            options.own.remote.exec = Some(endpoint(value)?);
            Ok(())
        },
        "The service that executes, if it is not the one of --remote",
    ),
    Flag::value(
        &["--remote-cache"],
        "URL",
        |options, value, _| {
            options.own.remote.cache = Some(endpoint(value)?);
            Ok(())
        },
        "The service that stores contents and results, if it is not the one of --remote. Alone with --cache: keep remembered \
         passes there as well, for other machines",
    ),
    Flag::value(
        &["--remote-header"],
        "NAME=VALUE",
        |options, value, _| {
            options.own.remote.headers.push(pair(value)?);
            Ok(())
        },
        "Send this header with each call, such as authorization='Bearer …'; may be given more than once",
    ),
    Flag::value(
        &["--remote-platform"],
        "NAME=VALUE",
        |options, value, _| {
            options.own.remote.platform.push(pair(value)?);
            Ok(())
        },
        "Use only workers with this property, such as OSFamily=linux; may be given more than once",
    ),
    Flag::value(
        &["--remote-authorities"],
        "FILE",
        |options, value, invocation| {
            options.own.remote.authorities = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Trust servers with a certificate that one of those in FILE (PEM) has signed, and not those that the system trusts",
    ),
    Flag::value(
        &["--remote-certificate"],
        "FILE",
        |options, value, invocation| {
            options.own.remote.certificate = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Show the server this certificate (PEM)",
    ),
    Flag::value(
        &["--remote-key"],
        "FILE",
        |options, value, invocation| {
            options.own.remote.key = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "The key of that certificate (PEM)",
    ),
    Flag::value(
        &["--remote-batch"],
        "N",
        |options, value, _| {
            options.own.remote.batch = Some(values::positive(value)?);
            Ok(())
        },
        "Run at most N tests in an action (800). More make better use of warm tools, fewer keep more workers busy",
    ),
    Flag::value(
        &["--remote-slots"],
        "N",
        |options, value, _| {
            options.own.remote.slots = Some(values::positive(value)?);
            Ok(())
        },
        "Have at most N actions on their way at a time (64)",
    ),
    Flag::value(
        &["--remote-jobs"],
        "N",
        |options, value, _| {
            options.own.remote.jobs = Some(values::positive(value)?);
            Ok(())
        },
        "Run N tests of an action at a time (1), where a worker gives an action several processors",
    ),
    Flag::value(
        &["--remote-patience"],
        "SECONDS",
        |options, value, _| {
            options.own.remote.patience = Some(values::positive(value)? as u64);
            Ok(())
        },
        "Retry a service that cannot be reached for SECONDS (default: 60, or 10 if it has not answered yet)",
    ),
    Flag::switch(
        &["--remote-fallback"],
        |options| options.own.remote.no_fallback = false,
        "Run tests here that did not pass elsewhere or could not run there (the default); undoes --remote-only",
    ),
    Flag::switch(
        &["--remote-only"],
        |options| options.own.remote.no_fallback = true,
        "Do not run tests here that were sent and did not pass; their failure there counts",
    ),
];

fn endpoint(value: &OsStr) -> Result<Endpoint, String> {
    Endpoint::parse(&values::text(value))
}

fn pair(value: &OsStr) -> Result<(String, String), String> {
    let text = values::text(value);
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("requires a name and a value, NAME=VALUE, but found '{text}'")),
    }
}
