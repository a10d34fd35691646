//! A tool that reads its stack before it writes there finds it as a cold process may find it.
#![cfg(target_arch = "x86_64")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{Case, Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::{AllocatorChoice, Allocators, Launcher, Reason, Via};
use hotstart_model::Status;

const ROUNDS: usize = 6;
/// The kernel aligns the stack to 16 bytes, of 64.
const LINES: usize = 4;

fn tool(flags: &[&str]) -> Victim {
    built("residue", flags)
}

fn built(name: &str, flags: &[&str]) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/tests").join(name).with_extension("c");
    compile(&source, &program, flags);
    Victim { dir, program }
}

/// Where something is left, in three registers and on the stack, and where that begins within a line of the cache.
fn look(launcher: &Launcher, tool: &Victim, case: &Case, is_warm: bool) -> (String, String) {
    let (ran, exit) = start(launcher, tool, case);
    assert_eq!(
        (ran.status, exit.via.is_warm(), exit.doubtful),
        (Status::Exited(0), is_warm, false),
        "{exit:?}"
    );
    let (line, left) = ran.stdout.trim().split_once(' ').unwrap();
    (line.to_owned(), left.to_owned())
}

/// Returns how far below `main`'s frame something is left in `one`, but not in `other`.
fn surplus(one: &str, other: &str) -> Vec<usize> {
    let words = one[3..].bytes().zip(other[3..].bytes()).enumerate();
    words.filter(|(_, pair)| *pair == (b'1', b'0')).map(|(word, _)| 8 * (word + 1)).collect()
}

/// Returns what cold processes leave: it depends on where the stack begins within a line, which is random, as ld.so aligns some frames.
fn cold_ones(cold: &Launcher, tool: &Victim, case: &Case) -> Vec<String> {
    let mut found = BTreeMap::new();
    while found.len() < LINES {
        let (line, left) = look(cold, tool, case, false);
        let known = found.entry(line).or_insert_with(|| left.clone());
        assert_eq!(*known, left, "cold processes differ");
    }
    found.into_values().collect()
}

/// Runs the tool warm, which `fits` has to accept.
fn check(warm: &[Launcher], tool: &Victim, case: &Case, cold: &[String], fits: impl Fn(&str, &str) -> bool) {
    for launcher in warm {
        for round in 0..ROUNDS {
            let (_, left) = look(launcher, tool, case, true);
            let surpluses = cold.iter().map(|cold| surplus(&left, cold)).collect::<Vec<_>>();
            assert!(cold.iter().any(|cold| fits(&left, cold)), "round {round}: {surpluses:?}");
        }
    }
}

fn launchers() -> [Launcher; 2] {
    let names = ["residue", "unset", "above"];
    [warm_launcher(&names), resetting_launcher(&names)]
}

/// Functions that the runtime interposes leave there what libc's own leave. Some processors save the upper halves of vector registers in
/// one process and not in another, where all are zero (docs/design/verification.md, known escapes). What ld.so then leaves keeps the tool
/// cold.
#[test]
fn a_constructor_that_forgets_to_set_a_variable_finds_what_it_finds_in_a_cold_process() {
    for at in ["file", "thread", "heap", "pointer"] {
        let (tool, case) = (built("unset", &["-O1", "-DWORDS=64", &format!("-DAT={at}")]), case(&[]));
        let cold = cold_ones(&Launcher::new(), &tool, &case);
        assert!(cold.iter().all(|left| left.contains('1')), "nothing is left");
        let warm = launchers();
        if warm
            .iter()
            .all(|launcher| start(launcher, &tool, &case).1.via == Via::Cold(Reason::ConstructorsDiffer))
        {
            eprintln!(
                "skipped: {at}: the constructor finds other words with the runtime, so that its tool is cold"
            );
            continue;
        }
        check(&warm, &tool, &case, &cold, |left, cold| left == cold);
    }
}

/// libc's frames have the number of arguments and main's address, which are not those that a zygote is started with.
#[test]
fn above_mains_frame_is_what_is_there_in_a_cold_process() {
    let tool = built("above", &["-O1"]);
    let told = |launcher: &Launcher, words: &[&str], is_warm| {
        let (ran, exit) = start(launcher, &tool, &case(words));
        assert_eq!((ran.status, exit.via.is_warm()), (Status::Exited(0), is_warm), "{exit:?}");
        ran.stdout.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let (cold, warm) = (Launcher::new(), launchers());
    for arguments in [&[][..], &["one"], &["one", "two", "three"]] {
        let first = told(&cold, arguments, false);
        assert!(first.contains(&"main".to_owned()), "{first:?}");
        // What ld.so has left there may depend on where the stack begins.
        let mut are_always = vec![true; first.len()];
        for _ in 0..50 {
            let same =
                told(&cold, arguments, false).into_iter().zip(&first).map(|(one, other)| one == *other);
            are_always.iter_mut().zip(same).for_each(|(always, same)| *always &= same);
        }
        for launcher in &warm {
            for round in 0..ROUNDS {
                let found = told(launcher, arguments, true);
                let mut words = found.iter().zip(&first).zip(&are_always);
                assert!(
                    words.all(|((found, cold), is_always)| found == cold || !is_always),
                    "{round}: {found:?}, {first:?}"
                );
            }
        }
    }
}

/// Deeper on the stack, ld.so has left what it leaves only in a zygote.
#[test]
fn a_constructor_that_computes_something_else_than_in_a_cold_process_keeps_a_tool_cold() {
    for at in ["file", "thread", "heap", "pointer"] {
        let tool = built("unset", &["-O1", &format!("-DAT={at}")]);
        for launcher in launchers() {
            let (ran, exit) = start(&launcher, &tool, &case(&[]));
            assert_eq!(ran.status, Status::Exited(0));
            assert_eq!(exit.via, Via::Cold(Reason::ConstructorsDiffer), "{at}");
        }
    }
}

/// What every cold process has there is known to a program that forgets to set a variable.
#[test]
fn numbers_that_cold_processes_leave_on_the_stack_are_the_same() {
    let tool = tool(&["-DNUMBERS"]);
    let numbers = |launcher: &Launcher, round: usize| {
        let words = &["one", "two", "three"][..round % 4];
        let (ran, exit) = start(launcher, &tool, &case(words));
        let found: BTreeSet<String> = ran.stdout.split_whitespace().map(str::to_owned).collect();
        (found, exit.via.is_warm())
    };
    let cold = Launcher::new();
    let common = (1..24).fold(numbers(&cold, 0).0, |common, round| &common & &numbers(&cold, round).0);
    assert!(!common.is_empty());
    for launcher in launchers() {
        for round in 0..4 * ROUNDS {
            let (found, is_warm) = numbers(&launcher, round);
            let missing = &common - &found;
            assert!(is_warm && missing.is_empty(), "round {round}: {missing:?} of {common:?}");
        }
    }
}

#[test]
fn something_is_left_on_the_stack_where_it_is_in_a_cold_process() {
    for flags in [&["-Wl,-z,now"][..], &["-Wl,-z,lazy"]] {
        let (tool, case) = (tool(flags), case(&[]));
        let cold = cold_ones(&Launcher::new(), &tool, &case);
        check(&launchers(), &tool, &case, &cold, |left, cold| left == cold);
    }
}

/// ld.so copies the variable to the stack. The observation is without it, as it leads to no library.
#[test]
fn with_a_library_path_nothing_is_left_where_it_is_zero_in_a_cold_process() {
    let (tool, mut case) = (tool(&[]), case(&["argument"]));
    case.env.push(("LD_LIBRARY_PATH", format!("/no/{}", "x".repeat(500))));
    let cold = cold_ones(&Launcher::new(), &tool, &case);
    check(&launchers(), &tool, &case, &cold, |left, cold| surplus(left, cold).is_empty());
}

#[test]
fn a_chosen_allocator_leaves_what_it_leaves_in_a_cold_process() {
    let (tool, case) = (tool(&[]), case(&[]));
    let library = tool.dir.path().canonicalize().unwrap().join("liballocator.so");
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/allocator.c"));
    compile(source, &library, &["-shared", "-fPIC", "-fno-builtin"]);
    let allocators = || {
        let tools = vec![("residue".to_owned(), Some(library.clone()))];
        Allocators::new(AllocatorChoice { all: None, tools }).unwrap()
    };
    let cold = cold_ones(&Launcher::new().with_allocators(allocators()), &tool, &case);
    let warm = launchers().map(|launcher| launcher.with_allocators(allocators()));
    check(&warm, &tool, &case, &cold, |left, cold| left == cold);
}
