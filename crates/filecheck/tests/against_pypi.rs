//! Compares the dialect of PyPI's `filecheck` with that program, on the battery and on generated check files and inputs.
//!
//! A pass of the matcher must be a pass of the program. The program runs in one long-lived Python. HOTSTART_PYPI_FILECHECK names a
//! Python that has it; the default is that of `.venv`. HOTSTART_FILECHECK_SECONDS and HOTSTART_FILECHECK_SEED change duration and seed.

use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use hotstart_filecheck::{Dialect, battery};

#[path = "adversary/mod.rs"]
mod adversary;

use adversary::Adversary;

/// Inputs for each generated check file.
const MUTANTS: usize = 6;

/// The version whose rules the dialect has.
const VERSION: &str = "1.0.6";

/// A Python that answers cases.
struct Oracle {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    _dir: tempfile::TempDir,
}

impl Oracle {
    /// Starts it. `None`, and a word why, if the program is not installed.
    fn start() -> Option<Oracle> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let default = tests.join("../../../.venv/bin/python");
        let python = std::env::var_os("HOTSTART_PYPI_FILECHECK").map_or(default, PathBuf::from);
        let version = "import importlib.metadata as m; print(m.version('filecheck'))";
        let found = Command::new(&python).args(["-c", version]).stderr(Stdio::null()).output();
        if !found.is_ok_and(|found| String::from_utf8_lossy(&found.stdout).trim() == VERSION) {
            let text =
                format!("not tried: PyPI's filecheck {VERSION} is not installed for {}\n", python.display());
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(python)
            .arg("-B")
            .arg(tests.join("pypi/oracle.py"))
            .current_dir(dir.path())
            .env_remove("FILECHECK_FEATURE_ENABLE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Some(Oracle { child, requests, answers, _dir: dir })
    }

    /// Whether the program passes without output.
    fn passes(&mut self, args: &[String], check: &str, input: &str) -> bool {
        let mut request = Vec::new();
        for field in [&args.join("\x1f"), check, input] {
            write!(request, "{}\n{field}", field.len()).unwrap();
        }
        self.requests.as_mut().unwrap().write_all(&request).unwrap();
        let mut answer = [0];
        self.answers.read_exact(&mut answer).unwrap();
        answer == *b"+"
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.child.wait();
    }
}

fn decides(args: &[String], check: &str, input: &str) -> Result<(), &'static str> {
    let asked = Dialect::Pypi.parse(args, None).map_err(|why| why.0)?;
    asked.decide(check.as_bytes(), input.as_bytes()).map_err(|why| why.0)
}

#[test]
fn the_battery_is_as_it_says() {
    let mut oracle = Oracle::start();
    let mut wrong = Vec::new();
    for case in battery::cases(Dialect::Pypi) {
        let decided = decides(&case.args, &case.check, &case.input);
        if decided.is_ok() != (case.passes == Some(true)) {
            wrong.push(format!("{decided:?}: {case:?}"));
        }
        let real = oracle.as_mut().map(|oracle| oracle.passes(&case.args, &case.check, &case.input));
        if real.is_some_and(|real| case.passes.is_some_and(|passes| real != passes)) {
            wrong.push(format!("the program says {real:?}: {case:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn no_generated_pass_is_wrong() {
    let Some(mut oracle) = Oracle::start() else { return };
    let seed = number("HOTSTART_FILECHECK_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("HOTSTART_FILECHECK_SECONDS", 20));
    let (mut cases, mut decided, mut passed) = (0_u64, 0_u64, 0_u64);
    let mut undecided = std::collections::BTreeMap::<&str, u64>::new();
    while Instant::now() < end {
        let mut random = Random(seed.wrapping_add(cases).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (args, check, mut input) = random.case();
        // The program compiles the expressions once for all of these.
        for _ in 0..MUTANTS {
            let real = oracle.passes(&args, &check, &input);
            let ours = decides(&args, &check, &input);
            assert!(real || ours.is_err(), "seed {seed}: a wrong pass\n{args:?}\n{check}\n--\n{input}");
            match ours {
                Ok(()) => decided += 1,
                Err(why) if real => *undecided.entry(why).or_default() += 1,
                Err(_) => {}
            }
            passed += u64::from(real);
            cases += 1;
            input = random.mutant(&input);
        }
    }
    println!("{cases} generated cases, {passed} of them pass, {decided} decided\n{undecided:?}");
}

/// Only passes are compared, so that most of the time goes to new cases.
#[test]
fn no_adversarial_pass_is_wrong() {
    let Some(mut oracle) = Oracle::start() else { return };
    let seed = number("HOTSTART_FILECHECK_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("HOTSTART_FILECHECK_SECONDS", 20));
    let (mut cases, mut decided, mut wrong) = (0_u64, 0_u64, Vec::new());
    while Instant::now() < end && wrong.len() < 20 {
        let case = Adversary::new(seed.wrapping_add(cases), Dialect::Pypi).case();
        for input in &case.inputs {
            cases += 1;
            if decides(&case.args, &case.check, input).is_err() {
                continue;
            }
            decided += 1;
            if !oracle.passes(&case.args, &case.check, input) {
                wrong.push(format!("{:?}\n{}\n--\n{input}", case.args, case.check));
                break;
            }
        }
    }
    println!("{cases} adversarial cases, {decided} decided, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "seed {seed}: wrong passes\n{}", wrong.join("\n====\n"));
}

/// A generator of cases (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn word(&mut self) -> &'static str {
        self.of(&[
            "a", "b", "ab", "ba", "aab", "a1", "12", "7", "%0", "%x", "(x)", "[1]", "{", "}", "]", ".", "_",
            "-", "\\", "a|b", "+", "$", "^", "CHECK", "a.b", "func", "x:", "=", "#", "~", "1",
        ])
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        for index in 0..self.below(5) {
            if index > 0 || self.one_in(5) {
                line += self.of(&[" ", " ", "", "  ", "\t"]);
            }
            line += self.word();
        }
        if self.one_in(9) {
            line += self.of(&[" ", "\t", "  "]);
        }
        line
    }

    fn expression(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..=self.below(2) {
            if self.one_in(2) {
                text += self.of(&[
                    ".*",
                    ".+",
                    "[^ ]*",
                    "\\S+",
                    "[a-z0-9]+",
                    "(a|b)+",
                    "a?",
                    "ab|a",
                    "(ab|a)*b?",
                    "[^%]*",
                ]);
                continue;
            }
            text += self.of(&[
                ".*",
                ".+",
                ".",
                "a*",
                "a+",
                "[ab]+",
                "[^ ]*",
                "[^a]+",
                "[^ab]",
                "\\d+",
                "\\w+",
                "\\S+",
                "\\s*",
                "a|ab",
                "ab|a",
                "(a|ab)",
                "(a|b)+",
                "(ab)*",
                "(a|ab)(b|)",
                "a??",
                "a+?",
                "[a-c]{1,2}",
                "(?:a|b)",
                "(a)",
                "((a)b)",
                "^",
                "$",
                " ",
                "\\(",
                "[(]",
                "\\[",
                "\\]",
                "a?",
                "(a?)",
                "(a*)*",
                "(ab|a)*b",
                "\\1",
                "\\.",
                "{",
                "a{2}",
                "(a|b){2}",
                "(x",
                "x)",
                "[]a]",
                "[^]]",
                "[a-]",
                "\\n",
                "\\b",
                "[0-9a-f]+",
                ".*?",
                "a|",
                "|a",
                "(b+a*)+",
                "(%.*|a) ",
                "\\",
                "}",
                "[[a]",
                "[:alpha:]",
                "[^\\n]+",
                "(?=a)",
                "a,b",
                "(a+|b)+?",
            ]);
        }
        text
    }

    fn block(&mut self) -> String {
        let name = self.of(&["X", "Y", "X", "$Z", "X_1"]);
        match self.below(8) {
            0..=3 => format!("{{{{{}}}}}", self.expression()),
            4 | 5 => format!("[[{name}:{}]]", self.expression()),
            6 => format!("[[{name}]]"),
            _ => self
                .of(&["[[#X]]", "[[#X:]]", "[[# @LINE]]", "[[", "{{", "]]", "}}", "[[X", "{{}}"])
                .to_owned(),
        }
    }

    /// Returns the text of a directive, mostly one that matches in this line.
    fn text(&mut self, line: &str) -> String {
        let words: Vec<&str> =
            if self.one_in(12) { vec![self.word()] } else { line.split_inclusive(' ').collect() };
        let skip = if self.one_in(3) && words.len() > 1 { self.below(words.len()) } else { 0 };
        let mut text = String::new();
        for word in &words[skip..] {
            match self.below(15) {
                0 => text += &self.block(),
                1 => text += &format!("{}{word}", self.block()),
                2 if self.one_in(2) => break,
                3 => {
                    text += "[[X:";
                    text += self.of(&[".*", "[a-z]+", ".+", "\\S+", "(a|b|ab)+", "%[0-9a-z]+"]);
                    text += "]]";
                    text += if word.ends_with(' ') { " " } else { "" };
                }
                4 => {
                    text +=
                        self.of(&["{{.*}}", "{{[a-z]+}}", "{{.+}}", "{{\\S+}}", "{{a|b|ab}}", "{{[^ ]*}}"]);
                    text += if word.ends_with(' ') { " " } else { "" };
                }
                _ => text += word,
            }
        }
        if self.one_in(20) {
            text += &self.block();
        }
        text
    }

    fn case(&mut self) -> (Vec<String>, String, String) {
        let lines: Vec<String> = (0..=self.below(7)).map(|_| self.line()).collect();
        let mut input = lines.join("\n");
        if !self.one_in(5) {
            input += "\n";
        }
        let (mut check, mut at) = (String::new(), 0);
        let last = self.below(4);
        for index in 0..=last {
            if self.one_in(12) {
                check += self.of(&[
                    "RUN: CHECK: a\n",
                    "x\n",
                    "COM: CHECK: zz\n",
                    "notCHECK: zz\n",
                    "B: a\n",
                    "CHECKS: zz\n",
                ]);
            }
            let kind = match self.below(16) {
                0..=4 => "",
                5..=9 if index > 0 || self.one_in(3) => "-NEXT",
                10 => "-SAME",
                11 => "-NOT",
                12 if self.one_in(2) => "-EMPTY",
                13 if self.one_in(2) => "-LABEL",
                14 if self.one_in(2) => "-COUNT-2",
                15 if self.one_in(6) => "-DAG",
                _ => "",
            };
            at = match kind {
                "-SAME" => at,
                "-NEXT" | "-EMPTY" => at + 1,
                _ => at + self.below(2),
            };
            let line = lines.get(at).cloned().unwrap_or_else(|| self.line());
            let text = match kind {
                "-EMPTY" if !self.one_in(8) => String::new(),
                "-NOT" if !self.one_in(4) => format!("{}{}", self.word(), self.word()),
                _ => self.text(&line),
            };
            let literal = if self.one_in(15) { "{LITERAL}" } else { "" };
            let start = self.of(&["", "", "// ", "x CHECK ", "1"]);
            let blank = self.of(&[" ", " ", " ", "", "  "]);
            let prefix = if self.one_in(15) { "B" } else { "CHECK" };
            check += &format!("{start}{prefix}{kind}{literal}:{blank}{text}");
            check += if index < last || self.one_in(2) { "\n" } else { "" };
        }
        (self.args(), check, input)
    }

    /// Returns an input with one change.
    fn mutant(&mut self, input: &str) -> String {
        let mut lines: Vec<String> = input.split('\n').map(str::to_owned).collect();
        let at = self.below(lines.len());
        match self.below(5) {
            0 if lines.len() > 1 => _ = lines.remove(at),
            1 => lines.insert(at, lines[at].clone()),
            2 => lines.insert(at, self.line()),
            3 => lines[at] = format!("{}{}", lines[at], self.word()),
            _ => {
                let other = self.below(lines.len());
                lines.swap(at, other);
            }
        }
        lines.join("\n")
    }

    fn args(&mut self) -> Vec<String> {
        let mut args = Vec::new();
        for (chance, option) in [
            (7, "--strict-whitespace"),
            (7, "--match-full-lines"),
            (15, "--allow-empty"),
            (15, "--check-prefix=B"),
            (15, "--check-prefixes=CHECK,B"),
            (15, "-DX=a"),
            (25, "--comment-prefixes=x,B"),
            (25, "--reject-empty-vars"),
            (25, "--enable-var-scope"),
            (40, "--dump-input=never"),
            (60, "--allow-unused-prefixes"),
            (60, "--ignore-case"),
        ] {
            if self.one_in(chance) {
                args.push(option.to_owned());
            }
        }
        args.insert(self.below(args.len() + 1), "check".to_owned());
        args
    }
}
