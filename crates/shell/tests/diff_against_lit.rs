//! `diff -I` with generated Python patterns against lit's own `diff`.
//!
//! HOTSTART_PROPERTY_SCRIPTS sets the number of patterns (default 2,000), HOTSTART_PROPERTY_SEED the first seed.

// Both files are shared with another test, which uses all of them.
#[allow(dead_code)]
#[path = "against_lit/compare.rs"]
mod compare;
#[path = "../../python/tests/against_python/patterns.rs"]
mod patterns;
#[allow(dead_code)]
#[path = "against_lit/reference.rs"]
mod reference;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hotstart_launch::{Group, Launcher};
use hotstart_model::{ColdTools, Command, Environment, Interpreter, Script, Step};
use patterns::Grammar;
use reference::Reference;

const LETTERS: &[&str] = &["a", "b", "o", "keep", "é", "1", "_", " ", "[", "{", "}", "-", "."];
/// Characters that mean themselves in a pattern.
const PLAIN: &[&str] = &["a", "b", "o", "keep", "é", "1", "_", " ", "}", "-"];

/// splitmix64
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    /// Returns a file's lines. The last one may have no newline.
    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(4) {
            (0..self.below(4)).for_each(|_| text.push_str(LETTERS[self.below(LETTERS.len())]));
            text.push('\n');
        }
        if self.below(4) == 0 {
            text.push('a');
        }
        text
    }
}

/// Returns status and output of our `diff`.
fn ours(pattern: &str, cwd: &Path, reference: &Reference) -> (i32, String) {
    let command = Command { label: "RUN: at line 1".to_owned(), text: format!("diff -u -I '{pattern}' f g") };
    let script = Script {
        commands: vec![command],
        dialect: reference.dialect,
        interpreter: Interpreter::Internal,
        pipefail: true,
        cwd: cwd.to_owned(),
        make_dirs: Vec::new(),
        env: Arc::new(
            [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8")].into_iter().collect::<Environment>(),
        ),
        timeout: None,
        tmp_base: cwd.to_owned(),
        captures: false,
        lit_package_dir: Some(reference.package.clone()),
        lit_python: Some(reference.python.clone().into()),
        cold: ColdTools::None,
        wraps: Default::default(),
    };
    let (launcher, group) = (&Launcher::new(), &Group::new());
    let starts = hotstart_shell::Starts { launcher, group, filechecks: None, is_repeatable: true };
    let transcript = hotstart_shell::run_script_with(&script, starts);
    assert!(transcript.fault.is_none(), "{pattern}: {:?}", transcript.fault);
    let stage = transcript.steps.iter().find_map(|step| match step {
        Step::Stage(stage) => Some((stage.status, stage.stdout.clone())),
        Step::Begin(_) => None,
    });
    stage.expect("one stage")
}

fn compare(reference: &mut Reference, pattern: &str, [f, g]: [&str; 2]) {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("it exists");
    fs::write(root.join("f"), f).expect("writable");
    fs::write(root.join("g"), g).expect("writable");
    let theirs = reference.diff(&["-u", "-I", pattern, "f", "g"], &root);
    assert_eq!(ours(pattern, &root, reference), theirs, "diff -I {pattern:?} of {f:?} and {g:?}");
}

#[test]
fn lines_that_match_generated_patterns_are_ignored() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let (count, seed) = (number("HOTSTART_PROPERTY_SCRIPTS", 2000), number("HOTSTART_PROPERTY_SEED", 1));
    let (mut patterns, mut texts) = (Random(seed), Random(seed + 1));
    let mut below = |limit: usize| patterns.below(limit);
    let mut grammar = Grammar::new(PLAIN, &mut below);
    let mut reference = Reference::start();
    for _ in 0..count {
        compare(&mut reference, &grammar.pattern(), [&texts.text(), &texts.text()]);
    }
    println!("{count} patterns, 0 differences");
}

#[test]
fn brackets_anchors_and_line_ends_mean_what_they_mean_to_python() {
    let mut reference = Reference::start();
    for pattern in ["^keep.*$", "keep [^[]*", "keep.*[[{]", "[[]x}|keep", r"keep.*\n\Z"] {
        compare(&mut reference, pattern, ["keep 1[\nx\n", "x\nkeep 2{\n"]);
    }
}
