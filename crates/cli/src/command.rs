//! hotstart's commands, and the names by which the binary is called as one of them.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::args::commands::Command;
use crate::args::completions::Shell;
use crate::args::man;
use crate::exit_code::{refused, said};
use crate::{ab, cache, doctor, exec, exit_code, filecheck, lit, misspelt, version};

/// The commands. The table of options has those of `lit`, so it has no text here.
const COMMANDS: [Command; 9] = [
    Command {
        name: "lit",
        about: "run tests in lit's place; `hotstart lit --help` lists the options",
        help: "",
        words: &[],
    },
    Command {
        name: "ab",
        about: "compare what commands cost, run interleaved; `hotstart ab --help` says more",
        help: ab::HELP,
        words: &[],
    },
    Command {
        name: "doctor",
        about: "measure what starting processes costs here; `hotstart doctor --help` says more",
        help: doctor::HELP,
        words: &[],
    },
    Command {
        name: "filecheck",
        about: "FileCheck, run only where it may not pass; `hotstart filecheck --help` says more",
        help: filecheck::HELP,
        words: &[],
    },
    Command {
        name: "exec",
        about: "run a command warm, through a server of the user's; `hotstart exec --help` says more",
        help: exec::EXEC_HELP,
        words: &[],
    },
    Command {
        name: "server",
        about: "look at that server, end it; `hotstart server --help` says more",
        help: exec::SERVER_HELP,
        words: &["status", "warm", "stop", "run"],
    },
    Command {
        name: "cache",
        about: "what is stored between runs: `hotstart cache stats|clear|verify`",
        help: cache::HELP,
        words: &["stats", "clear", "verify"],
    },
    Command {
        name: "completions",
        about: "print completions for a shell: `hotstart completions bash|zsh|fish`",
        help: COMPLETIONS_HELP,
        words: &["bash", "zsh", "fish"],
    },
    Command {
        name: "man",
        about: "write the manual page into a directory: `hotstart man DIR`",
        help: MAN_HELP,
        words: &[],
    },
];

const COMPLETIONS_HELP: &str = "usage: hotstart completions bash|zsh|fish\n";
const MAN_HELP: &str = "usage: hotstart man DIR\n";

fn usage() -> String {
    let line = |command: &Command| format!("  hotstart {:<12} {}\n", command.name, command.about);
    format!(
        "usage: hotstart COMMAND [ARGUMENTS]\n\n{}\
         \x20 hotstart --version [--verbose]\n\
         \x20                       print the version; also the system, and which kinds of start work on it\n\
         \x20 hotstart --help       print this\n\n\
         By the name of `lit`, `llvm-lit` or `hotstart-lit` (a link to hotstart), it is `hotstart lit`.\n",
        COMMANDS.iter().map(line).collect::<String>()
    )
}

/// Runs the command that the arguments name; the first argument is the program's name.
pub fn run(args: &[OsString]) -> ExitCode {
    let name = args.first().map(|name| Path::new(name).file_stem().unwrap_or_default().to_string_lossy());
    let name = name.unwrap_or_default();
    let rest = args.get(1..).unwrap_or_default();
    if matches!(&*name, "lit" | "llvm-lit" | "hotstart-lit") {
        return lit::run(&name, args.first().map(OsString::as_os_str), rest);
    }
    let first = rest.first().map(|word| word.to_string_lossy());
    match first.as_deref() {
        Some("lit") => lit::run("lit", None, &rest[1..]),
        Some("ab") => ab::run(&rest[1..]),
        Some("doctor") => doctor::run(&rest[1..]),
        Some("filecheck") => filecheck::run(&rest[1..]),
        Some("cache") => cache::run(&rest[1..]),
        Some("completions") => completions(&rest[1..]),
        Some("man") => man(&rest[1..]),
        Some("--version" | "-V") => match rest.get(1).map(|word| word.to_string_lossy()).as_deref() {
            Some("--verbose" | "-v") => said(&version::verbose(), exit_code::SUCCESS),
            _ => said(&version::short(), exit_code::SUCCESS),
        },
        Some("--help" | "-h" | "help") => said(&usage(), exit_code::SUCCESS),
        Some(other) => {
            let meant = misspelt::nearest(other, COMMANDS.iter().map(|command| command.name));
            let meant = meant.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
            refused(&format!("{}\nhotstart: there is no command '{other}'{meant}\n", usage()))
        }
        None => refused(&usage()),
    }
}

fn completions(args: &[OsString]) -> ExitCode {
    let shell = match args {
        [name] => Shell::named(&name.to_string_lossy()),
        _ => None,
    };
    match shell {
        Some(shell) => said(&shell.completions(&COMMANDS), exit_code::SUCCESS),
        None => refused(COMPLETIONS_HELP),
    }
}

fn man(args: &[OsString]) -> ExitCode {
    let [dir] = args else { return refused(MAN_HELP) };
    let file = Path::new(dir).join("hotstart.1");
    match std::fs::write(&file, man::page(&COMMANDS)) {
        Ok(()) => exit_code::exit(exit_code::SUCCESS),
        Err(error) => refused(&format!(
            "hotstart: cannot write '{}': {error}; name a directory that exists\n",
            file.display()
        )),
    }
}
