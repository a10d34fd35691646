//! The manual page, generated from the table of options.

use std::fmt::Write;

use super::commands::Command;
use super::flag::Flag;
use super::table::{self, Group};

/// Returns `hotstart.1`, with these commands, and their help texts as they are.
pub fn page(commands: &[Command]) -> String {
    let mut text = format!(
        ".TH HOTSTART 1 \"\" \"hotstart {}\" \"User Commands\"\n.SH NAME\nhotstart \\- run tests of compilers without \
         paying for process start\n.SH SYNOPSIS\n.B hotstart\n.I COMMAND\n.RI [ ARGUMENTS ]\n.br\n.B hotstart lit\n\
         .RI [ OPTIONS ]\n.IR TEST_PATH ...\n.SH COMMANDS\n",
        escaped(env!("CARGO_PKG_VERSION"))
    );
    for Command { name, about, .. } in commands {
        entry(&mut text, &format!("\\fB{}\\fR", escaped(name)), about);
    }
    text.push_str(".SH OPTIONS OF HOTSTART LIT\nOptions can also be given in $LIT_OPTS, and in files, one a line, as @FILE.\n");
    for Group { title, flags } in table::groups() {
        let _ = writeln!(text, ".SS {}", escaped(title.unwrap_or("General")));
        for flag in *flags {
            flag.help.iter().for_each(|help| entry(&mut text, &names(flag), help));
        }
    }
    for Command { name, help, .. } in commands.iter().filter(|command| !command.help.is_empty()) {
        let lines = help.lines().map(|line| escaped(line) + "\n").collect::<String>();
        let _ = writeln!(text, ".SH HOTSTART {}\n.nf\n{}.fi", escaped(&name.to_uppercase()), lines);
    }
    text.push_str(
        ".SH EXIT STATUS OF HOTSTART LIT\n.TP\n0\nNo test failed.\n.TP\n1\nA test failed.\n.TP\n2\nWrong use, a configuration file \
         that cannot be evaluated, or no tests found.\n",
    );
    text
}

fn names(flag: &Flag) -> String {
    let after = escaped(&flag.after_name());
    let names: Vec<_> = flag.names.iter().map(|name| format!("\\fB{}\\fR{after}", escaped(name))).collect();
    names.join(", ")
}

fn entry(text: &mut String, names: &str, help: &str) {
    let _ = writeln!(text, ".TP\n{names}\n{}", escaped(help));
}

/// Escapes text for roff: hyphens stay ASCII, and a dot at the beginning of a line is no request.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_options_and_no_stray_requests() {
        let help = "usage: hotstart ab -- A\n\n.dot\n";
        let page = page(&[Command { name: "ab", about: ".starts with a dot", help, words: &[] }]);
        assert!(
            page.contains(".SH HOTSTART AB\n.nf\nusage: hotstart ab \\-\\- A\n\n\\&.dot\n.fi\n"),
            "{page}"
        );
        for flag in table::all().filter(|flag| flag.help.is_some()) {
            assert!(page.contains(&format!("\n{}\n", names(flag))), "{}", flag.title());
        }
        assert!(page.contains("\n\\&.starts with a dot\n"));
        let known = [".TH", ".SH", ".SS", ".TP", ".B", ".I", ".IR", ".RI", ".br", ".nf", ".fi"];
        let requests = page.lines().filter(|line| line.starts_with(['.', '\'']));
        let stray: Vec<_> =
            requests.filter(|line| !known.contains(&line.split(' ').next().unwrap())).collect();
        assert!(stray.is_empty(), "{stray:?}");
    }
}
