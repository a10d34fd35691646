//! Runs generated scripts through lit's own shell and through ours, and compares all observable results: status or
//! fault, each stage's words, status and output, and the remaining files.
//!
//! HOTSTART_PROPERTY_SCRIPTS sets the number of scripts (default 500), HOTSTART_PROPERTY_SEED the first seed.
//! `tools/property-runs` runs 20,000, in chunks, where nothing else can be written. HOTSTART_LIT_PYTHON names the
//! Python whose lit is the reference and decides the dialect. The test has its own `main` because children with limits
//! are started through the binary itself.

mod compare;
mod generate;
#[path = "../../../python/tests/against_python/patterns.rs"]
mod patterns;
mod reference;
mod tree;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use hotstart_launch::{Group, Launcher, enter_trampoline};
use hotstart_model::{Command, Environment, Interpreter, Script};
use hotstart_shell::{Starts, run_script_with};
use reference::Reference;

/// Each worker has a Python of its own.
const WORKERS: usize = 2;
/// The test stops after this number of differences.
const ENOUGH: u32 = 20;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(code) = enter_trampoline(&args) {
        return ExitCode::from(code);
    }
    if args.iter().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    // Tests run with SIGINT ignored, as under lit.
    hotstart_launch::signals::take_over();
    let number = |name: &str, default| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let (count, first) = (number("HOTSTART_PROPERTY_SCRIPTS", 500), number("HOTSTART_PROPERTY_SEED", 1));
    let begun = Instant::now();
    let (differences, stuck) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (differences, stuck) = (&differences, &stuck);
            scope.spawn(move || {
                let mut reference = Reference::start();
                for seed in (first..first + count).skip(worker).step_by(WORKERS) {
                    let agreement = agrees(&mut reference, seed);
                    if agreement == Agreement::LitIsStuck {
                        println!("seed {seed}: lit does not end");
                        stuck.fetch_add(1, Ordering::Relaxed);
                    }
                    let different = u32::from(agreement == Agreement::No);
                    if differences.fetch_add(different, Ordering::Relaxed) + different >= ENOUGH {
                        break;
                    }
                }
            });
        }
    });
    let (differences, stuck) = (differences.into_inner(), stuck.into_inner());
    let ends = if stuck == 0 { String::new() } else { format!(", {stuck} without end in lit") };
    println!("{count} scripts, {differences} differences{ends}, {:.1?}", begun.elapsed());
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The result of comparing both sides.
#[derive(Debug, PartialEq)]
enum Agreement {
    Yes,
    No,
    /// Ours has ended, but lit hangs, so there is nothing to compare.
    LitIsStuck,
}

fn agrees(reference: &mut Reference, seed: u64) -> Agreement {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().canonicalize().expect("it exists");
    // The names have equal length, so nothing depends on it.
    let [theirs, ours] = ["A", "B"].map(|name| root.join(name));
    tree::plant(&theirs);
    tree::plant(&ours);
    let commands = generate::script(seed, reference.dialect);
    if std::env::var_os("HOTSTART_PROPERTY_SHOW").is_some() {
        println!("seed {seed}: {commands:#?}");
    }
    let pipefail = seed % 7 != 0;
    let env = tree::environment(&root);
    let expected = reference.run(&commands, &theirs.join("w"), &env, pipefail);
    let script = script(&commands, &ours, env, pipefail, reference);
    // `cat` and `diff` beside other stages are processes in a run that nobody repeats.
    let is_repeatable = seed % 5 != 0;
    let (launcher, group) = (&Launcher::new(), &Group::new());
    let transcript = run_script_with(&script, Starts { launcher, group, filechecks: None, is_repeatable });
    let Some(expected) = expected else { return Agreement::LitIsStuck };
    let got = compare::Seen::of_transcript(&transcript);
    let hide = |text: String, own: &std::path::Path| text.replace(&*own.to_string_lossy(), "<dir>");
    let expected = hide(format!("{expected:#?}\n{}", tree::describe(&theirs)), &theirs);
    let got = hide(format!("{got:#?}\n{}", tree::describe(&ours)), &ours);
    if expected != got {
        println!("seed {seed}: {commands:#?}\n{}", compare::difference(&expected, &got));
    }
    if expected == got { Agreement::Yes } else { Agreement::No }
}

fn script(
    commands: &[String],
    root: &std::path::Path,
    env: Environment,
    pipefail: bool,
    reference: &Reference,
) -> Script {
    let command = |text: &String| Command { label: "RUN: at line 1".to_owned(), text: text.clone() };
    Script {
        commands: commands.iter().map(command).collect(),
        dialect: reference.dialect,
        interpreter: Interpreter::Internal,
        pipefail,
        cwd: root.join("w"),
        make_dirs: Vec::new(),
        env: Arc::new(env),
        timeout: None,
        tmp_base: root.join("w"),
        captures: false,
        lit_package_dir: Some(reference.package.clone()),
        lit_python: Some(reference.python.clone().into()),
        cold: hotstart_model::ColdTools::None,
        wraps: Default::default(),
    }
}
