//! Generates random scripts from a seed, with ordinary commands and unusual ones.
//!
//! A script must have only one possible result, so no pipeline reads what another stage of it writes.

use hotstart_model::Dialect;

use crate::patterns::Grammar;

/// splitmix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

const WORDS: &[&str] = &[
    "x",
    "word",
    "'a b'",
    "\"a b\"",
    "\"a\\\"b\"",
    "\"\\$x\"",
    "\"\\\\q\"",
    "\"\\n\"",
    "a\\ b",
    "\\x",
    "x\\*",
    "'*'",
    "\"?\"",
    "''",
    "$HOME",
    "`id`",
    "~",
    "{a,b}",
    "(x)",
    "#c",
    "A=1",
    "é",
    "-n",
    "-e",
    "--",
    "a'b'\"c\"",
    "'it'\"'\"'s'",
    "[ab]",
    "*'x'",
    "'*'*",
    "x\u{a0}y",
    "2",
    "\"2\"",
    "%d",
    "'\\t'",
    "'\\x41\\101'",
    "'\\u00e9'",
    "'\\q'",
    "%{readfile:words}",
    "x%{readfile:empty}y",
    "%{readfile:missing}",
    "%{readfile:dir}",
    "=",
    "a=b=c",
    "/",
    ".",
    "..",
    "!x",
    "'\\'",
    "'\\x4'",
];

const FILES: &[&str] = &[
    "a.txt",
    "b.txt",
    "space.txt",
    "crlf.txt",
    "bin.dat",
    "utf8.txt",
    "empty",
    "missing",
    "dir",
    "link",
    "dangling",
    "dlink",
    "dir/x.c",
    "dlink/y.c",
    "./a.txt",
    "dir/../b.txt",
    "missing/x",
    "a.txt/x",
    "long.txt",
    "out1",
    "out2",
];

const BIG: &str = "big.txt";

const GLOBS: &[&str] = &[
    "*.txt", "?.txt", "*", "dir/*", "*/*.c", "*.none", "[ab].txt", "*.[!t]*", "d*/", ".*", "**/z.c",
    "dir/.*", "*.sh",
];

const PROGRAMS: &[&str] = &[
    "true",
    "false",
    "sh -c 'exit 3'",
    "sh -c 'kill -SEGV $$'",
    "sh -c 'kill -TERM $$'",
    "sh -c 'kill -INT $$; exit 4'",
    "sh -c 'echo out; echo err >&2'",
    "sh -c 'echo err >&2; exit 1'",
    "sh -c 'echo $A.$B.$PYTHONPATH'",
    "sh -c 'echo $#' -- ",
    "printf 'a\\nb\\r\\nc\\n'",
    "printf '\\377x\\n'",
    "printf %s",
    "./run.sh",
    "./noexec",
    "./bad.sh",
    "./plain.sh",
    "./missing",
    "/bin/true",
    "bin/true",
    "no-such-program",
    "/no/such/program",
    "dlink",
    "./dir/sub",
    "\"it's\"",
    "sort",
    "wc -l",
    "tr '\\n' @",
    "sh -c 'read x; echo \"$x\"'",
    "cat",
    "cat -",
    "sh -c 'pwd'",
    "sh -c 'umask'",
    "sh -c 'ulimit -n; ulimit -s'",
    "sh -c 'echo ${LC_CTYPE-none}'",
    "sh -c 'readlink /proc/self/fd/0 | sed s/:.*//; readlink /proc/self/fd/1 | sed s/:.*//'",
    "sh -c 'test -f /dev/stderr && echo file; test -p /dev/stderr && echo pipe; exit 1'",
    "sh -c 'echo \"$0\"'",
    "sh -c 'test -p /dev/stdin && echo pipe; cat'",
];

/// The commands of one script.
pub fn script(seed: u64, dialect: Dialect) -> Vec<String> {
    let mut random = Random(seed);
    let count = 1 + random.below(4);
    let commands: Vec<String> = (0..count).map(|_| command(&mut random, dialect)).collect();
    // With another PATH, stages that read all their input are not found, and lit reads from the pipes of others.
    let is_long = commands.iter().any(|command| command.matches(" | ").count() > 1);
    let find = |command: String| if is_long { command.replace("export PATH=", "export Q=") } else { command };
    // With limits, lit starts a program by Python. Only the last line of its traceback is compared, so no stage may
    // read it.
    let has_limits = commands.iter().any(|command| command.contains("ulimit"));
    let passes_on = |command: &str| has_limits && command.contains(" | ") && command.contains("2>");
    let fail = |command: String| {
        if passes_on(&command) {
            command.replace("./plain.sh", "./run.sh").replace("./bad.sh", "./run.sh")
        } else {
            command
        }
    };
    let commands: Vec<String> = commands.into_iter().map(find).map(fail).collect();
    commands.iter().for_each(|command| refuse_outside(command));
    commands
}

/// Panics before anything runs if a command that removes or makes files has a path outside its directory.
fn refuse_outside(command: &str) {
    for part in command.split(['|', ';', '&', '\n']) {
        let words = || part.split_whitespace().map(|word| word.trim_start_matches(['"', '\'', '\\', '!']));
        let is_outside = |word: &str| {
            let up = word.split('/').next().is_some_and(|first| first == "..");
            word.starts_with(['/', '~']) || up || word.contains("../..")
        };
        let changes_files = words().any(|word| matches!(word, "rm" | "mkdir" | "mv"));
        assert!(!changes_files || !words().any(is_outside), "the generator leaves its directory: {command}");
    }
}

fn command(random: &mut Random, dialect: Dialect) -> String {
    let mut out = pipeline(random, dialect);
    while random.one_in(3) {
        let operator = if random.one_in(40) { "&" } else { random.pick(&["&&", "&&", "||", "||", ";"]) };
        out = format!("{out} {operator} {}", pipeline(random, dialect));
    }
    match random.below(120) {
        // If a last stage ends before it has read all its input, lit reads from the others' pipes.
        0 if out.matches(" | ").count() < 2 => out.push_str(
            random.pick(&[" |", " &", ";", " 'x", " \"x", " \\", " &&", " >", " ; ;", " | |", " > >", " <"]),
        ),
        1 => out = out.replacen(' ', random.pick(&["  ", "\t", "\n"]), 1),
        _ => {}
    }
    out
}

fn pipeline(random: &mut Random, dialect: Dialect) -> String {
    if random.one_in(3) {
        let builtin = builtin(random, dialect);
        let prefix = if random.one_in(6) { prefix(random) } else { String::new() };
        // The target may end up as an operand instead, and `rm` must not remove /dev/null.
        let redirect = if random.one_in(8) { redirects(random, 0, 1) } else { String::new() };
        let redirect = redirect.replace("/dev/null", "o3");
        let rest = if random.one_in(25) { " | cat" } else { "" };
        return format!("{prefix}{builtin}{redirect}{rest}");
    }
    let count = [1, 1, 1, 2, 2, 3, 4][random.below(7)];
    let stages: Vec<String> = (0..count).map(|index| stage(random, index, count)).collect();
    let joined = stages.join(" | ");
    // lit treats equal stages specially.
    if count == 1 && !joined.contains('>') && random.one_in(15) {
        format!("{joined} | {joined}")
    } else {
        joined
    }
}

fn prefix(random: &mut Random) -> String {
    let prefixes = [
        "not ",
        "! ",
        "env A=1 ",
        "env -u B ",
        "env A=2 B=3 ",
        "not --crash ",
        "not not ",
        "! not ",
        "env not ",
        "env ",
        "not env A=1 ",
        "env -i ",
        "env -u PATH ",
        "env PATH=/bin ",
        "env A=*.txt ",
        "env *.txt ",
        "not ! ",
    ];
    let mut out = random.pick(&prefixes).to_owned();
    if random.one_in(6) {
        out.push_str(random.pick(&prefixes));
    }
    out
}

fn stage(random: &mut Random, index: usize, count: usize) -> String {
    if index > 1 {
        return reader(random, index);
    }
    let mut out = if random.one_in(4) { prefix(random) } else { String::new() };
    let crash = out.contains("--crash");
    match random.below(8) {
        0 | 1 => out.push_str(&cat(random)),
        2 => out.push_str(&diff(random)),
        3 => out.push_str("echo out"),
        _ => out.push_str(random.pick(if crash { &PROGRAMS[..12] } else { PROGRAMS })),
    }
    // More than a pipe holds may come only last: a `cat` without a reader would block.
    while ![BIG, " *.txt", " *"].iter().any(|last| out.ends_with(last)) && random.one_in(5) {
        let argument = argument(random);
        out.push(' ');
        // Files outside the script's directory may change at any time.
        let all = argument == "*" && out.contains("cat ") || argument == "/" && out.contains("diff ");
        out.push_str(if all { "?.txt" } else { &argument });
    }
    if random.one_in(3) {
        let redirects = redirects(random, index, count);
        // lit's traceback has more lines than ours, and a stage that reads it could count them.
        let passes_on = out.contains("diff ") && index + 1 < count;
        out.push_str(if passes_on && redirects.contains("2>&") { "" } else { &redirects });
    }
    out
}

/// Returns a stage that reads all its input. It is the only kind after the second: otherwise lit would read from the
/// pipes between earlier stages while these still run, and the bytes could go to either reader.
fn reader(random: &mut Random, index: usize) -> String {
    let programs = [
        "sort",
        "wc -l",
        "tr '\\n' @",
        "sh -c 'cat; exit 3'",
        "sh -c 'cat >&2; kill -SEGV $$'",
        "sh -c cat",
        "diff - dir/x.c",
        "sh -c 'cat; echo err >&2'",
        "diff -u - a.txt",
    ];
    let prefix = random.pick(&["", "", "", "not ", "! ", "env A=1 "]);
    let own = format!(" 2> o{}", 7 + index);
    format!("{prefix}{}{}", random.pick(&programs), random.pick(&["", "", "", " 2>&1", &own]))
}

fn argument(random: &mut Random) -> String {
    match random.below(4) {
        0 => random.pick(GLOBS).to_owned(),
        1 => random.pick(FILES).to_owned(),
        _ => random.pick(WORDS).to_owned(),
    }
}

/// Returns an argument inside the script's own directory, for commands that remove their arguments. `cd` never leaves
/// that directory either, so the machine is safe from the generator.
fn inside(random: &mut Random) -> String {
    let word = argument(random);
    let is_inside = |word: &str| !word.starts_with(['/', '.', '~', '\\']) && !word.contains("..");
    if is_inside(&word) { word } else { "dir".to_owned() }
}

fn cat(random: &mut Random) -> String {
    let mut out = random
        .pick(&["cat", "cat", "cat", "cat -v", "cat --show-nonprinting", "cat --show", "cat -b"])
        .to_owned();
    for _ in 0..random.below(3) {
        out.push(' ');
        if random.one_in(8) {
            out.push_str(BIG);
            break;
        }
        out.push_str(random.pick(FILES));
    }
    out
}

fn diff(random: &mut Random) -> String {
    let flags = [
        "",
        "",
        " -u",
        " -w",
        " -b",
        " -U1",
        " -U 0",
        " -U x",
        " -I",
        " -I",
        " -r",
        " --strip-trailing-cr",
        " -x",
        " -U-1",
        " -ub",
    ];
    let mut out = "diff".to_owned();
    for _ in 0..2 {
        match random.pick(&flags) {
            " -I" => out.push_str(&format!(" -I '{}'", pattern(random))),
            flag => out.push_str(flag),
        }
    }
    let operands = [2, 2, 2, 2, 2, 2, 1, 3][random.below(8)];
    for _ in 0..operands {
        out.push(' ');
        out.push_str(if random.one_in(6) { "-" } else { random.pick(FILES) });
    }
    out
}

/// Returns a Python pattern that may match a line of some file.
fn pattern(random: &mut Random) -> String {
    let mut below = |limit: usize| random.below(limit);
    Grammar::new(&["one", "o", "t", "e", "w", "r", "2", "x", " "], &mut below).pattern()
}

/// Returns redirections to files that only this stage uses. Standard output stays as it is if another stage follows:
/// lit would read that stage's errors without waiting for a stage whose output goes elsewhere.
fn redirects(random: &mut Random, index: usize, count: usize) -> String {
    let mut out = String::new();
    loop {
        // In that directory, the pattern of another stage may match it.
        let own = format!("{}{index}", random.pick(&["o", "o", "p", if count == 1 { "dir/o" } else { "p" }]));
        let target = match random.below(30) {
            0 => "missing/x",
            1 => "/dev/null",
            // Another stage may write or read these.
            2 if count == 1 => "dir",
            3 if count == 1 => "*.none",
            4 if count == 1 => "'o 1'",
            5 if count == 1 => "o*",
            _ => own.as_str(),
        };
        let (op, target) = match if index + 1 < count { 6 + random.below(5) } else { random.below(16) } {
            0..4 => (">", target),
            4 | 5 => (">>", target),
            6 => ("2>", target),
            7 => ("2>>", target),
            8 | 9 => ("2>&1", ""),
            10 => ("2>&", random.pick(&["0", "2", "1", "12", "01", "9", "*"])),
            11 => ("&>", target),
            12 => (">&", target),
            13 | 14 => ("<", random.pick(FILES)),
            _ => (random.pick(&["1>", "<&", "0<", "<>", "1>&2 x", "3>", "02>", "\"2\">"]), target),
        };
        out.push_str(&format!(" {op} {target}"));
        if !random.one_in(3) {
            return out;
        }
    }
}

fn builtin(random: &mut Random, dialect: Dialect) -> String {
    let shared = [
        "echo",
        "echo -n",
        "echo -e",
        "@echo",
        "mkdir",
        "mkdir -p",
        "mkdir -x",
        "rm",
        "rm -f",
        "rm -r",
        "rm -rf",
        "rm -x",
        "rm --recursive",
        "rm ----recursive",
        "cd",
        "pushd",
        "popd",
        "export",
        ":",
    ];
    let newer = [
        "umask 077",
        "umask 0o22",
        "umask 9",
        "umask",
        "umask *",
        "ulimit -n 50",
        "ulimit -s 2048",
        "ulimit -v unlimited",
        "ulimit -v -1",
        "ulimit -f -2",
        "ulimit -f 9223372036854775808",
        "ulimit -s 9007199254740992",
        "ulimit -n x",
        "ulimit -x 1",
        "ulimit -n",
        "umask -1",
        "umask 99999999999777",
    ];
    if random.one_in(6) {
        // A dialect that does not know these looks for programs of their names, which do not exist.
        let _ = dialect;
        return random.pick(&newer).to_owned();
    }
    let name = random.pick(&shared);
    let mut out = name.to_owned();
    let operands: &[&str] = match name {
        "popd" => &["", "", "", " x"],
        "export" => &[" A=5", " B=", " PATH=", " A=1 B=2", " A", "", " -i", " A=*", " *"],
        "cd" | "pushd" => &[" dir", " dlink", " missing", " dir/sub", " .", " a b", " d*", "", " dlink/.."],
        _ => &[],
    };
    if !operands.is_empty() {
        out.push_str(random.pick(operands));
        return out;
    }
    for _ in 0..[1, 1, 2, 3, 0][random.below(5)] {
        out.push(' ');
        let new = ["n1", "n1/n2", "dir/n3", "n1/../n4", "'n 5'", "dangling/x", "link/x"];
        out.push_str(&if random.one_in(3) { random.pick(&new).to_owned() } else { inside(random) });
    }
    out
}
