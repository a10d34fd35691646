//! Tells whether the runner is in the foreground of its terminal.
//!
//! A tool in another process group than that would be stopped where it reads the terminal or sets its modes (`bash -i`, getpass). Only
//! one group can be in the foreground, so tests cannot have one each: there they stay in the runner's, as under lit.

use std::fs::File;
use std::sync::OnceLock;

/// The controlling terminal, if there is one. A process cannot get another while it leads no session.
static TERMINAL: OnceLock<Option<File>> = OnceLock::new();

/// Returns whether the runner's process group is the foreground group of its controlling terminal.
pub(crate) fn is_in_foreground() -> bool {
    let terminal = TERMINAL.get_or_init(|| File::open("/dev/tty").ok());
    let group = terminal.as_ref().and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    group == Some(rustix::process::getpgrp())
}
