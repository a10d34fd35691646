//! Generates scripts from pieces that shells interpret differently, mixed with ordinary ones.

/// A small generator: the same seed gives the same script.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

/// The commands of a script.
pub fn script(seed: u64) -> Vec<String> {
    let mut dice = Dice((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (0..1 + dice.roll(3)).map(|_| command(&mut dice)).collect()
}

fn command(dice: &mut Dice) -> String {
    let mut text = pipeline(dice);
    for _ in 0..dice.roll(3) {
        let operator = dice.pick(&[" && ", " && ", " || ", " ; ", ";", "&&", "||"]);
        text = format!("{text}{operator}{}", pipeline(dice));
    }
    text
}

fn pipeline(dice: &mut Dice) -> String {
    match dice.roll(12) {
        0 => return format!("echo {}{}", dice.pick(&["", "", "", "-n ", "-n ", "-e "]), words(dice)),
        1 => {
            return format!("cd {}", dice.pick(&["%R/work/sub", "%R/out", "%R/out", "%R/none", "sub"]));
        }
        2 => return format!("export {}", dice.pick(&["A='1 2'", "B=3", "C=x=y", "B=~"])),
        3 => return format!("test {}", dice.pick(&["-f in", "! -e in", "1 -lt 2", "-n x", "a != b"])),
        _ => {}
    }
    let mut text = stage(dice, true);
    for _ in 0..[0, 0, 0, 1, 1, 2][dice.roll(6)] {
        text = format!("{text}{}{}", dice.pick(&[" | ", "|", " | "]), stage(dice, false));
    }
    text
}

fn stage(dice: &mut Dice, is_first: bool) -> String {
    let prefix = dice.pick(&["", "", "", "", "", "", "not ", "env A=1 ", "env -u A ", "not env B='x y' "]);
    let programs: &[&str] = match is_first {
        true => &[
            "show",
            "show",
            "show -read",
            "show -err",
            "show -exit 2",
            "show -env",
            "show -die",
            "cat in",
            "cat",
            "true",
            "false",
            "sort",
            "echo",
            "%R/bin/show",
            "'show'",
            "sh\\ow",
            "touch",
            "rm -f",
        ],
        // Programs that read all of their input.
        false => {
            &["show", "show -read", "show -err", "show -exit 2", "%R/bin/show -read", "not show -exit 3"]
        }
    };
    let program = dice.pick(programs);
    let redirect = dice.pick(&[
        "",
        "",
        "",
        "",
        "",
        " > %R/out/f",
        " >%R/out/g",
        ">> %R/out/f",
        " 2>&1",
        " > %R/out/f 2>&1",
        " 2>%R/out/e",
        " &> %R/out/h",
        " 2>&1 > %R/out/f",
        " < in",
        " 2> /dev/null",
    ]);
    let rare = match dice.roll(30) {
        0 => dice.pick(&[" < in", " 2>&1 > %R/out/f", " 1> %R/out/f", " >&2"]),
        _ => redirect,
    };
    format!("{prefix}{program} {}{rare}", words(dice))
}

fn words(dice: &mut Dice) -> String {
    let words: Vec<_> = (0..dice.roll(4)).map(|_| word(dice)).collect();
    words.join(dice.pick(&[" ", " ", "  ", "\t"]))
}

fn word(dice: &mut Dice) -> String {
    (0..1 + dice.roll(3))
        .map(|_| match dice.roll(40) {
            0 => dice.pick(&["$A", "{}", "[a]", "#", "\\n", "*", "~", "\"`\"", "=~", "\"$A\"", "(", "&"]),
            _ => dice.pick(&[
                "a",
                "b",
                "c",
                "-x",
                "1",
                "2",
                "=",
                "%",
                "@",
                "+",
                ",",
                ":",
                "^",
                "x#",
                "x~",
                "x\\ ",
                "x\\\\",
                "x\\'",
                "'a b'",
                "'$x'",
                "'\\'",
                "'*'",
                "\"c  d\"",
                "\"\\\"\"",
                "\"\\\\\"",
                "\"\\n\"",
                "\"'\"",
                "''",
                "\"\"",
                " %R/work/*.c ",
                " %R/work/?.c ",
                "!",
                "é",
                "'#'",
                "\"~\"",
                "'&|;<>'",
                "\"(){}[]*?\"",
            ]),
        })
        .collect()
}
