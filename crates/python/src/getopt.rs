//! `getopt.gnu_getopt`: options and operands may be mixed.

/// An option as Python names it (`-p`, `--strip-trailing-cr`), and its value, which may be empty.
pub type Opt = (String, String);

/// Separates options from operands. The error is Python's message.
pub fn gnu_getopt(args: &[String], short: &str, long: &[&str]) -> Result<(Vec<Opt>, Vec<String>), String> {
    let (mut options, mut operands) = (Vec::new(), Vec::new());
    let mut rest = args;
    while let Some((arg, tail)) = rest.split_first() {
        rest = tail;
        if arg == "--" {
            operands.extend_from_slice(rest);
            break;
        } else if let Some(name) = arg.strip_prefix("--") {
            options.push(long_option(name, long)?);
        } else if arg.starts_with('-') && arg != "-" {
            rest = short_options(&arg[1..], short, rest, &mut options)?;
        } else {
            operands.push(arg.clone());
        }
    }
    Ok((options, operands))
}

/// Supports only long options without a value.
fn long_option(text: &str, long: &[&str]) -> Result<Opt, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let matching: Vec<_> = long.iter().filter(|l| l.starts_with(name)).collect();
    let full = match matching[..] {
        [] => return Err(format!("option --{name} not recognized")),
        [only] => only,
        _ if long.contains(&name) => name,
        _ => return Err(format!("option --{name} not a unique prefix")),
    };
    match value {
        Some(_) => Err(format!("option --{full} must not have an argument")),
        None => Ok((format!("--{full}"), String::new())),
    }
}

fn short_options<'a>(
    cluster: &str,
    short: &str,
    mut rest: &'a [String],
    options: &mut Vec<Opt>,
) -> Result<&'a [String], String> {
    let mut letters = cluster.chars();
    while let Some(letter) = letters.next() {
        let place = short.find(letter).filter(|_| letter != ':');
        let Some(place) = place else { return Err(format!("option -{letter} not recognized")) };
        let mut value = String::new();
        if short[place + letter.len_utf8()..].starts_with(':') {
            value = letters.as_str().to_owned();
            letters = "".chars();
            if value.is_empty() {
                let Some((next, tail)) = rest.split_first() else {
                    return Err(format!("option -{letter} requires argument"));
                };
                value = next.clone();
                rest = tail;
            }
        }
        options.push((format!("-{letter}"), value));
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str]) -> Result<(Vec<Opt>, Vec<String>), String> {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        gnu_getopt(&args, "wbuI:U:r", &["strip-trailing-cr"])
    }

    #[test]
    fn options_and_operands_mix() {
        let (options, operands) = run(&["a", "-uU", "3", "-", "--strip", "--", "-w"]).unwrap();
        let shown: Vec<_> = options.iter().map(|(o, v)| format!("{o}={v}")).collect();
        assert_eq!(shown, ["-u=", "-U=3", "--strip-trailing-cr="]);
        assert_eq!(operands, ["a", "-", "-w"]);
    }

    #[test]
    fn messages() {
        assert_eq!(run(&["-x"]).unwrap_err(), "option -x not recognized");
        assert_eq!(run(&["-U"]).unwrap_err(), "option -U requires argument");
        assert_eq!(run(&["--zzz=1"]).unwrap_err(), "option --zzz not recognized");
        assert_eq!(run(&["--strip=1"]).unwrap_err(), "option --strip-trailing-cr must not have an argument");
    }
}
