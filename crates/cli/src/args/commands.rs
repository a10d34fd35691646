//! hotstart's commands as the manual page and the completions need them. A command's options are read from its help text, which
//! defines them; those of `lit` come from the table of options.

/// A command of hotstart.
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Its help text; empty for `lit`.
    pub help: &'static str,
    /// The words that may follow its name.
    pub words: &'static [&'static str],
}

impl Command {
    /// Returns its options, in the order of its help. A line about options begins with two spaces and an option; its
    /// explanation follows after two spaces.
    pub fn options(&self) -> impl Iterator<Item = &'static str> + use<> {
        let lines =
            self.help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| line.starts_with('-'));
        let names = lines.map(|line| line.split_once("  ").map_or(line, |(names, _)| names));
        names.flat_map(|names| names.split([' ', ','])).filter(|word| is_option(word))
    }
}

fn is_option(word: &str) -> bool {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-').filter(|name| name.len() == 1));
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_that_the_help_explains() {
        let help = "usage: x [--in-usage]\n\nText -q.\n  -r, --runs N    times, not --other\n  --a N, --b N\n\
                    \x20                 more --text\n  status          -x\n  --jobs N --processes N estimate\n  -- word\n";
        let command = Command { name: "x", about: "", help, words: &[] };
        let found: Vec<_> = command.options().collect();
        assert_eq!(found, ["-r", "--runs", "--a", "--b", "--jobs", "--processes"]);
    }
}
