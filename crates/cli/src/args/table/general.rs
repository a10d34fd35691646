//! Options that precede all groups.

use crate::args::flag::{Action, Flag};
use crate::args::values;

pub(super) static FLAGS: [Flag; 5] = [
    Flag {
        names: &["-h", "--help"],
        action: Action::Help,
        env: None,
        help: Some("Print the options that are used most (-h) or all (--help), and exit"),
    },
    Flag {
        names: &["--version"],
        action: Action::Version,
        env: None,
        help: Some("Print the version and exit"),
    },
    Flag::value(
        &["-j", "--threads", "--workers"],
        "N",
        |options, value, _| {
            options.workers = values::positive(value)?;
            Ok(())
        },
        "Run at most N tests at once (default: the number of processors that can be used, or \
         $LIT_MAX_WORKERS)",
    )
    .or_env("LIT_MAX_WORKERS"),
    Flag::value(
        &["--config-prefix"],
        "NAME",
        |options, value, _| {
            options.config_prefix = Some(values::text(value));
            Ok(())
        },
        "Look for config files NAME.cfg and so on, instead of lit.cfg",
    ),
    Flag::value(
        &["-D", "--param"],
        "NAME=VAL",
        |options, value, _| {
            options.user_params.push(values::parameter(value));
            Ok(())
        },
        "Set a parameter that configs can read; may be given more than once",
    ),
];
