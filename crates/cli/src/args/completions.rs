//! Completion scripts for bash, zsh and fish, generated from the table of options.

use super::commands::Command;
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

    /// Returns a script that completes these commands of hotstart, each with its explanation, and after them their options.
    pub fn completions(self, commands: &[Command]) -> String {
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

/// Returns the options of a command in one line.
fn options(command: &Command) -> String {
    command.options().collect::<Vec<_>>().join(" ")
}

fn bash(commands: &[Command]) -> String {
    let of_lit: Vec<_> = listed().flat_map(|(flag, _)| flag.names).copied().collect();
    let others = commands.iter().filter(|command| !command.help.is_empty());
    let others = others.map(|command| {
        let (name, words) = (command.name, command.words.join(" "));
        format!("        {name}) options='{}' words='{words}' ;;\n", options(command))
    });
    format!(
        "_hotstart() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} options='{}' words=
    COMPREPLY=()
    if [ \"${{COMP_WORDS[0]##*/}}\" = hotstart ]; then
        if [ \"$COMP_CWORD\" -eq 1 ]; then
            COMPREPLY=($(compgen -W '{}' -- \"$word\"))
            return
        fi
        case ${{COMP_WORDS[1]}} in
        lit) ;;
{}        *) return ;;
        esac
    fi
    case $word in
    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;
    *) [ \"$COMP_CWORD\" -ne 2 ] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;
    esac
}}
complete -o default -F _hotstart hotstart hotstart-lit
",
        of_lit.join(" "),
        commands.iter().map(|command| command.name).collect::<Vec<_>>().join(" "),
        others.collect::<String>()
    )
}

fn zsh(commands: &[Command]) -> String {
    let described = commands
        .iter()
        .map(|Command { name, about, .. }| format!("    {}\n", quoted(&format!("{name}:{about}"))));
    let others = commands.iter().filter(|command| !command.help.is_empty());
    let others = others.map(|command| {
        format!(
            "      {}) options=({}) verbs=({}) ;;\n",
            command.name,
            options(command),
            command.words.join(" ")
        )
    });
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
    local -a options verbs
    case $words[2] in
{}    esac
    if [[ $PREFIX == -* ]]; then
      compadd -a options
    else
      (( CURRENT != 3 )) || compadd -a verbs
      _files
    fi
  fi
}}
if [[ $funcstack[1] == _hotstart ]]; then
  _hotstart \"$@\"
else
  compdef _hotstart hotstart hotstart-lit
fi
",
        specs.collect::<String>(),
        described.collect::<String>(),
        others.collect::<String>()
    )
}

fn fish(commands: &[Command]) -> String {
    let mut text = String::new();
    for command in commands {
        let (name, about) = (in_fish(command.name), in_fish(command.about));
        text.push_str(&format!("complete -c hotstart -n __fish_use_subcommand -f -a {name} -d {about}\n"));
        let seen = format!("complete -c hotstart -n '__fish_seen_subcommand_from {}'", command.name);
        for option in command.options() {
            let kind = if option.starts_with("--") { "-l" } else { "-s" };
            text.push_str(&format!("{seen} {kind} {}\n", option.trim_start_matches('-')));
        }
        if !command.words.is_empty() {
            text.push_str(&format!("{seen} -f -a '{}'\n", command.words.join(" ")));
        }
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
            let help = "  -r, --runs N  times\n";
            let lit = Command { name: "lit", about: "run tests in lit's place", help: "", words: &[] };
            let ab = Command { name: "ab", about: "compare", help, words: &["now"] };
            let text = shell.completions(&[lit, ab]);
            assert!(text.contains("runs") && text.contains("now"), "{text}");
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
