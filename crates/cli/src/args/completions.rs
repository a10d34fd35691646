//! Completion scripts for bash, zsh and fish, generated from the table of options.

use super::flag::{Action, Flag};
use super::table;

/// A shell with completion scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// bash.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
}

impl Shell {
    /// Returns the shell of this name.
    pub fn named(name: &str) -> Option<Shell> {
        Some(match name {
            "bash" => Shell::Bash,
            "zsh" => Shell::Zsh,
            "fish" => Shell::Fish,
            _ => return None,
        })
    }

    /// Returns a script that completes these commands of hotstart, each with its explanation, and lit's options after `lit`.
    pub fn completions(self, commands: &[(&str, &str)]) -> String {
        match self {
            Shell::Bash => bash(commands),
            Shell::Zsh => zsh(commands),
            Shell::Fish => fish(commands),
        }
    }
}

fn listed() -> impl Iterator<Item = (&'static Flag, &'static str)> {
    table::all().filter_map(|flag| Some((flag, flag.help?)))
}

fn bash(commands: &[(&str, &str)]) -> String {
    let options: Vec<_> = listed().flat_map(|(flag, _)| flag.names).copied().collect();
    let commands: Vec<_> = commands.iter().map(|(name, _)| *name).collect();
    format!(
        "_hotstart() {{
    local word=${{COMP_WORDS[COMP_CWORD]}}
    COMPREPLY=()
    if [ \"${{COMP_WORDS[0]##*/}}\" = hotstart ]; then
        if [ \"$COMP_CWORD\" -eq 1 ]; then
            COMPREPLY=($(compgen -W '{}' -- \"$word\"))
            return
        fi
        [ \"${{COMP_WORDS[1]}}\" = lit ] || return
    fi
    case $word in
    -*) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;
    esac
}}
complete -o default -F _hotstart hotstart hotstart-lit
",
        commands.join(" "),
        options.join(" ")
    )
}

fn zsh(commands: &[(&str, &str)]) -> String {
    let described =
        commands.iter().map(|(name, help)| format!("    {}\n", quoted(&format!("{name}:{help}"))));
    let spec = |flag: &Flag, name: &str, help: &str| {
        let help: String = help
            .chars()
            .flat_map(|letter| match letter {
                '[' | ']' | '\\' => vec!['\\', letter],
                other => vec![other],
            })
            .collect();
        let (attached, value) = match flag.action {
            Action::Value(metavar, _) if name.starts_with("--") => ("=", format!(":{metavar}:_files")),
            Action::Value(metavar, _) => ("+", format!(":{metavar}:_files")),
            Action::Maybe(metavar, _) => ("=-", format!("::{metavar}:")),
            _ => ("", String::new()),
        };
        format!("    {} \\\n", quoted(&format!("*{name}{attached}[{help}]{value}")))
    };
    let specs = listed().flat_map(|(flag, help)| flag.names.iter().map(move |name| spec(flag, name, help)));
    format!(
        "#compdef hotstart hotstart-lit
_hotstart_lit() {{
  _arguments \\
{}    '*:test:_files'
}}
_hotstart() {{
  local -a commands
  commands=(
{}  )
  if [[ $service == hotstart-lit ]]; then
    _hotstart_lit
  elif (( CURRENT == 2 )); then
    _describe command commands
  elif [[ $words[2] == lit ]]; then
    shift words
    (( CURRENT-- ))
    _hotstart_lit
  else
    _files
  fi
}}
if [[ $funcstack[1] == _hotstart ]]; then
  _hotstart \"$@\"
else
  compdef _hotstart hotstart hotstart-lit
fi
",
        specs.collect::<String>(),
        described.collect::<String>()
    )
}

fn fish(commands: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, help) in commands {
        text.push_str(&format!(
            "complete -c hotstart -n __fish_use_subcommand -a {} -d {}\n",
            in_fish(name),
            in_fish(help)
        ));
    }
    for (flag, help) in listed() {
        let names: String = flag
            .names
            .iter()
            .map(|name| match name.strip_prefix("--") {
                Some(long) => format!(" -l {long}"),
                None if name.len() == 2 => format!(" -s {}", &name[1..]),
                None => format!(" -o {}", &name[1..]),
            })
            .collect();
        let value = if matches!(flag.action, Action::Value(..)) { " -r" } else { "" };
        text.push_str(&format!(
            "complete -c hotstart -n '__fish_seen_subcommand_from lit'{names}{value} -d {}\n",
            in_fish(help)
        ));
    }
    text + "complete -c hotstart-lit -w 'hotstart lit'\n"
}

/// Quotes the text as one word of bash or zsh.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn in_fish(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_knows_each_option_and_command() {
        for shell in ["bash", "zsh", "fish"].map(|name| Shell::named(name).unwrap()) {
            let text = shell.completions(&[("lit", "run tests in lit's place")]);
            assert!(text.contains("lit"), "{text}");
            for name in listed().flat_map(|(flag, _)| flag.names) {
                let short = name.trim_start_matches('-');
                let wanted = if shell == Shell::Fish { format!(" {short} ") } else { (*name).to_owned() };
                assert!(text.contains(&wanted), "{shell:?}: {name}");
            }
        }
        assert_eq!(Shell::named("sh"), None);
    }

    #[test]
    fn quotes_in_explanations_do_not_end_them() {
        assert_eq!(quoted("lit's"), r"'lit'\''s'");
        assert_eq!(in_fish(r"lit's \"), r"'lit\'s \\'");
    }
}
