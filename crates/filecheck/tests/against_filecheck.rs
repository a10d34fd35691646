//! Compares the matcher with installed FileChecks, on generated check files and inputs, and on the battery.
//!
//! A pass of the matcher must be a pass of FileCheck. The reverse is only counted. HOTSTART_FILECHECKS names FileChecks
//! (paths with colons); the default is those in /usr/lib/llvm-*/bin. Without any, the tests say so and check nothing.
//! HOTSTART_FILECHECK_SECONDS and HOTSTART_FILECHECK_SEED change duration and seed. HOTSTART_FILECHECK_ORACLES names
//! programs built from `oracle/oracle.cpp`. They replace FileChecks for the generated cases, which allows runs of
//! millions.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hotstart_filecheck::{Dialect, Request, battery};

#[path = "oracle/client.rs"]
mod client;

#[path = "adversary/mod.rs"]
mod adversary;

use adversary::Adversary;
use client::Oracle;

fn filechecks() -> Vec<PathBuf> {
    if let Some(list) = std::env::var_os("HOTSTART_FILECHECKS") {
        return std::env::split_paths(&list).collect();
    }
    let Ok(dirs) = fs::read_dir("/usr/lib") else { return Vec::new() };
    let versions = dirs.filter_map(|dir| Some(dir.ok()?.path()));
    let versions = versions.filter(|dir| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.strip_prefix("llvm-")
            .and_then(|version| version.parse().ok())
            .is_some_and(|version: u32| version >= 15)
    });
    versions.map(|dir| dir.join("bin/FileCheck")).filter(|file| file.is_file()).collect()
}

/// Whether FileCheck passes without output.
fn passes(tool: &Path, args: &[String], dir: &Path, check: &str, input: &str) -> bool {
    fs::write(dir.join("check"), check).unwrap();
    let mut child = Command::new(tool)
        .args(args)
        .current_dir(dir)
        .env_remove("FILECHECK_OPTS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it reads its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    output.status.code() == Some(0) && output.stdout.is_empty() && output.stderr.is_empty()
}

/// Says why nothing is tested, past the test harness, which keeps the output of tests that pass.
fn skipped(why: &str) {
    std::io::stderr().write_all(format!("not tried: {why}\n").as_bytes()).unwrap();
}

#[test]
fn the_battery_is_as_it_says() {
    let tools = filechecks();
    if tools.is_empty() {
        skipped("no FileCheck of LLVM 15 or newer is installed: nothing to compare with");
    }
    let (dir, mut wrong) = (tempfile::tempdir().unwrap(), Vec::new());
    for case in battery::cases(Dialect::Llvm) {
        let request = Request::parse(&case.args, None);
        let decided =
            request.and_then(|request| request.decide(case.check.as_bytes(), case.input.as_bytes()));
        if decided.is_ok() != (case.passes == Some(true)) {
            wrong.push(format!("{decided:?}: {case:?}"));
        }
        for tool in &tools {
            let real = passes(tool, &case.args, dir.path(), &case.check, &case.input);
            if case.passes.is_some_and(|passes| real != passes) {
                wrong.push(format!(
                    "{} {}: {case:?}",
                    if real { "passes with" } else { "fails with" },
                    tool.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reference that decides whether FileCheck passes.
enum Real {
    Program(PathBuf),
    Oracle(Oracle),
}

impl Real {
    fn all() -> Vec<Real> {
        match std::env::var_os("HOTSTART_FILECHECK_ORACLES") {
            Some(list) => std::env::split_paths(&list).map(|path| Real::Oracle(Oracle::new(path))).collect(),
            None => filechecks().into_iter().map(Real::Program).collect(),
        }
    }

    fn name(&self) -> &Path {
        match self {
            Real::Program(path) => path,
            Real::Oracle(oracle) => &oracle.path,
        }
    }

    fn passes(&mut self, args: &[String], dir: &Path, check: &str, input: &str) -> bool {
        match self {
            Real::Program(tool) => passes(tool, args, dir, check, input),
            Real::Oracle(oracle) => oracle.passes(args, check.as_bytes(), input.as_bytes()),
        }
    }
}

/// Returns the installed FileChecks, how long to compare with them, and where generating begins; `None` if there is none of them.
fn what_to_compare() -> Option<(Vec<Real>, Duration, u64)> {
    let tools = Real::all();
    if tools.is_empty() {
        skipped("no FileCheck of LLVM 15 or newer is installed: nothing to compare with");
        return None;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let time = Duration::from_secs(number("HOTSTART_FILECHECK_SECONDS").unwrap_or(20));
    Some((tools, time, number("HOTSTART_FILECHECK_SEED").unwrap_or(1)))
}

#[test]
fn no_generated_pass_is_wrong() {
    let Some((mut tools, time, seed)) = what_to_compare() else { return };
    let (begun, dir) = (Instant::now(), tempfile::tempdir().unwrap());
    let (mut cases, mut decided, mut missed) = (0u64, 0u64, 0u64);
    while begun.elapsed() < time {
        let mut random = Random::new(seed + cases);
        let (args, check, input) = generate(&mut random);
        cases += 1;
        let Ok(request) = Request::parse(&args, None) else { continue };
        let is_pass = request.decide(check.as_bytes(), input.as_bytes()).is_ok();
        decided += u64::from(is_pass);
        // An undecided case only shows how many passes the matcher misses. A few of them are enough.
        if !is_pass && cases % 128 != 0 {
            continue;
        }
        for tool in &mut tools {
            let real = tool.passes(&args, dir.path(), &check, &input);
            missed += u64::from(real && !is_pass);
            let seed = seed + cases - 1;
            assert!(
                real || !is_pass,
                "wrong pass with {} (seed {seed}): {args:?}\n--- check\n{check}\n--- input\n{input}",
                tool.name().display()
            );
        }
    }
    println!("{cases} cases, {decided} decided as passes, {missed} of one in 128 of the others pass");
    assert!(decided > 0, "the generator makes no passes");
}

/// Only passes are compared, so that most of the time goes to new cases.
#[test]
fn no_adversarial_pass_is_wrong() {
    let Some((mut tools, time, seed)) = what_to_compare() else { return };
    let (begun, dir) = (Instant::now(), tempfile::tempdir().unwrap());
    let (mut cases, mut decided, mut wrong) = (0u64, 0u64, Vec::new());
    while begun.elapsed() < time && wrong.len() < 20 {
        let case = Adversary::new(seed + cases, Dialect::Llvm).case();
        let request = Request::parse(&case.args, None);
        for input in &case.inputs {
            cases += 1;
            let Ok(request) = &request else { continue };
            if request.decide(case.check.as_bytes(), input.as_bytes()).is_err() {
                continue;
            }
            decided += 1;
            let fails = |tool: &mut Real| !tool.passes(&case.args, dir.path(), &case.check, input);
            if let Some(tool) = tools.iter_mut().position(fails) {
                let name = tools[tool].name().display();
                wrong.push(format!("{name}: {:?}\n{}\n--\n{input}", case.args, case.check));
                break;
            }
        }
    }
    println!("{cases} adversarial cases, {decided} decided, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "seed {seed}: wrong passes\n{}", wrong.join("\n====\n"));
}

/// Random numbers that can be reproduced (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..4).for_each(|_| _ = random.below(2));
        random
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

/// Words with few letters, so that matches overlap and repeat.
const WORDS: [&str; 18] = [
    "a", "b", "ab", "ba", "aab", "abb", "%1", "%2", "12", "7", "0x1f", "x", "A", "aB", "é", "a.b", "[a]",
    "(b|a)*",
];
const SPACES: [&str; 6] = [" ", " ", " ", "  ", "\t", ""];

fn generate(random: &mut Random) -> (Vec<String>, String, String) {
    let mut args = vec!["check".to_owned()];
    for (odds, option) in [
        (8, "--match-full-lines"),
        (8, "--strict-whitespace"),
        (10, "--ignore-case"),
        (6, "--enable-var-scope"),
        (8, "--implicit-check-not=bb"),
        (12, "--implicit-check-not={{b+a}}"),
        (10, "--allow-deprecated-dag-overlap"),
        (6, "-DV=ab"),
        (6, "-D#N=12"),
        (12, "--allow-empty"),
        (6, "--check-prefixes=CHECK,CHECK-A"),
        (8, "--allow-unused-prefixes"),
        (12, "--comment-prefixes=NO"),
        (12, "--check-prefix=A"),
    ] {
        if random.one_in(odds) {
            args.push(option.to_owned());
        }
    }
    let lines: Vec<String> = (0..1 + random.below(7)).map(|_| line(random)).collect();
    let mut input = lines.join(random.of(&["\n", "\n", "\n", "\r\n"]));
    if !random.one_in(5) {
        input.push('\n');
    }
    let mut check = String::new();
    let mut at = 0;
    for _ in 0..1 + random.below(6) {
        directive(random, &lines, &mut at, &mut check);
        if random.one_in(12) {
            let junk = [
                "COM: CHECK: zz",
                "RUN: CHECK: zz",
                "xCHECK: zz",
                "CHECK-FOO: zz",
                "NO: CHECK: a",
                "CHECK",
                "; CHECK-A",
            ];
            check.push_str(random.of(&junk));
            check.push_str(random.of(&["\n", "\n", "\r\n", " CHECK: a\n"]));
        }
    }
    if random.one_in(6) {
        check.pop();
    }
    (args, check, input)
}

fn line(random: &mut Random) -> String {
    let mut line = String::new();
    for _ in 0..random.below(6) {
        line.push_str(random.of(&WORDS));
        line.push_str(random.of(&SPACES));
    }
    line
}

/// Adds a directive that is fairly likely to match at or after line `at`.
fn directive(random: &mut Random, lines: &[String], at: &mut usize, check: &mut String) {
    let kinds = [
        "",
        "",
        "-NEXT",
        "-NEXT",
        "-SAME",
        "-NOT",
        "-DAG",
        "-DAG",
        "-LABEL",
        "-EMPTY",
        "-COUNT-2",
        "{LITERAL}",
        "-NEXT{LITERAL}",
        "-DAG{LITERAL}",
    ];
    let kind = random.of(&kinds);
    let space = random.of(&[" ", "  ", "", "\t"]);
    let source = lines.get(*at).or(lines.last()).map_or("", String::as_str);
    let pattern = match kind {
        "-EMPTY" => String::new(),
        "-NOT" => {
            let other = line(random);
            pattern(random, &other)
        }
        _ => pattern(random, source),
    };
    if kind != "-NOT" && !random.one_in(4) {
        *at += 1;
    }
    let (before, prefix) =
        (random.of(&["", "; ", "// "]), random.of(&["CHECK", "CHECK", "CHECK", "CHECK", "CHECK-A", "A"]));
    let _ = write!(
        check,
        "{before}{prefix}{kind}:{space}{pattern}{}",
        random.of(&["\n", "\n", "\n", " \n", "\r\n"])
    );
}

/// Returns a pattern made from a line: pieces of it verbatim, or as expressions and blocks.
fn pattern(random: &mut Random, line: &str) -> String {
    let mut pieces: Vec<String> = line.split_inclusive([' ', '\t']).map(str::to_owned).collect();
    if pieces.is_empty() {
        pieces.push("a".to_owned());
    }
    let start = random.below(pieces.len());
    let count = 1 + random.below(pieces.len() - start);
    let mut pattern = String::new();
    for piece in &pieces[start..start + count] {
        match random.below(9) {
            0..3 => pattern.push_str(piece),
            3 => {
                let _ = write!(pattern, "{{{{{}}}}}{}", expression(random, 2), random.of(&["", " "]));
            }
            4 => {
                let name = random.of(&["V", "W", "$G"]);
                let _ = write!(pattern, "[[{name}:{}]]{}", expression(random, 2), random.of(&["", " "]));
            }
            5 => {
                let name = random.of(&["V", "W", "$G"]);
                let _ = write!(pattern, "[[{name}]]{}", random.of(&["", " "]));
            }
            6 => {
                let block = random.of(&[
                    "#N:",
                    "#",
                    "#N",
                    "#N+1",
                    "#M:",
                    "#M-1",
                    "#%x,H:",
                    "#%x,H",
                    "@LINE",
                    "@LINE-1",
                    "#@LINE+add(1,N)",
                    "#%X,max(N,M)",
                    "#N:12",
                    "#%.2u,P:",
                ]);
                let _ = write!(pattern, "[[{block}]]{}", random.of(&["", " "]));
            }
            _ => {
                // A word of one or two letters, which occurs in many places.
                pattern.push_str(random.of(&WORDS));
                pattern.push_str(random.of(&["", " "]));
            }
        }
    }
    pattern
}

fn expression(random: &mut Random, depth: usize) -> String {
    let mut text = String::new();
    for index in 0..1 + random.below(3) {
        if index > 0 && random.one_in(5) {
            text.push('|');
        }
        if depth > 0 && random.one_in(4) {
            let _ = write!(text, "({})", expression(random, depth - 1));
        } else {
            text.push_str(random.of(&[
                "a",
                "b",
                "ab",
                ".",
                "[ab]",
                "[^a]",
                "[[:space:]]",
                "[a-z0-9]",
                "[%]",
                "\\.",
                "[0-9]",
                "[[:alpha:]_]",
                "^",
                "$",
            ]));
        }
        text.push_str(random.of(&["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{1,}"]));
    }
    text
}
