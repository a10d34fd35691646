//! Snapshots later than `main`, where a tool parses its options: used only where nothing of the request went into them, and
//! then right for any request.

mod common;

use std::path::Path;

use common::{Case, Victim, case, compile, rewinding_launcher, start};
use hotstart_launch::{Choice, Launcher, Policy, ToolStatistics};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/tests/parses.c");
const ROUNDS: usize = 24;
const MANY: usize = 60;

fn program(flags: &[&str]) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("parses");
    compile(Path::new(SOURCE), &program, flags);
    Victim { dir, program }
}

/// With the function in a library, as in a distribution's LLVM; in a directory of their own, since a change to one in which
/// libraries are looked for keeps a start cold.
fn program_and_library() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap().join("tool");
    std::fs::create_dir(&place).unwrap();
    compile(Path::new(SOURCE), &place.join("libparses.so"), &["-DLIBRARY", "-shared", "-fPIC"]);
    let program = place.join("parses");
    let find = format!("-L{}", place.display());
    // The library's own name must be found when the program is linked: options come before the source.
    let flags = ["-DAPART", &find, "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", "-lparses"];
    compile(Path::new(SOURCE), &program, &flags);
    Victim { dir, program }
}

/// Requests that differ in everything that a request has.
fn request(round: usize) -> Case {
    request_with(round, round * 7 % 6)
}

fn request_with(round: usize, words: usize) -> Case {
    let mut case = case(&["-S", "", "--passes=instcombine", "x", "-o"][..words]);
    case.argv[0] = "parses".to_owned();
    case.env.push(("HS_ALWAYS", format!("value {round}")));
    if round > 8 && round % 5 == 4 {
        case.env.push(("HS_EARLY", format!("early {round}")));
    }
    case
}

fn run(victim: &Victim, warm: &Launcher) -> ToolStatistics {
    run_each(victim, warm, ROUNDS, request)
}

fn run_each(
    victim: &Victim,
    warm: &Launcher,
    rounds: usize,
    request: impl Fn(usize) -> Case,
) -> ToolStatistics {
    for round in 0..rounds {
        let case = request(round);
        let (expected, _) = start(&Launcher::new(), victim, &case);
        let (ran, exit) = start(warm, victim, &case);
        assert_eq!(ran, expected, "round {round}, {:?}", exit.via);
        assert!(exit.via.is_warm() && !exit.lost, "{exit:?}");
    }
    let tool = warm.statistics().tools.remove(0);
    assert_eq!(tool.not_rewound, None, "{tool:?}");
    assert_eq!((tool.forks, tool.rewinds), (1, rounds as u64 - 1), "{tool:?}");
    tool
}

/// As it is used: the first runs are audited, the others not.
fn unaudited() -> Launcher {
    let choice = Choice::Only(vec!["parses".to_owned()]);
    Launcher::new().with_policy(Policy { choice, audit_one_in: 0, ..Policy::default() })
}

#[test]
fn a_tool_that_keeps_nothing_is_entered_where_it_parses_its_options() {
    for victim in [program(&[]), program(&["-no-pie"]), program_and_library()] {
        let at_point = run(&victim, &unaudited()).at_point;
        // Learning takes a few runs, and a few for each number of arguments.
        assert!(at_point > ROUNDS as u64 / 3 && at_point < ROUNDS as u64 - 4, "{at_point}");
    }
}

/// All of the first runs have as many arguments as the one that the snapshot is of.
fn others_come_late(round: usize) -> Case {
    let words = if round < 8 { 2 } else { round % 5 };
    Case { env: Vec::new(), ..request_with(round, words) }
}

#[test]
fn the_number_of_arguments_is_learned_from_a_later_run_too() {
    for victim in [program(&[]), program_and_library()] {
        let at_point = run_each(&victim, &unaudited(), MANY, others_come_late).at_point;
        // Five runs to learn the snapshot, and four for each of four other numbers.
        assert_eq!(at_point, MANY as u64 - 5 - 16);
    }
}

/// What depends on the number of arguments: twice it, whether it is odd, whether there are any.
#[test]
fn only_numbers_of_arguments_that_make_no_difference_are_entered_there() {
    type Fits = fn(usize) -> bool;
    let fitting: [(&str, Fits); 3] =
        [("DERIVED", |argc| argc == 3), ("ODD", |argc| argc % 2 == 1), ("USAGE", |argc| argc > 1)];
    for (early, fits) in fitting {
        for launcher in [unaudited(), rewinding_launcher(&["parses"])] {
            let tool = run_each(&program(&[&format!("-DEARLY={early}")]), &launcher, MANY, others_come_late);
            let most = (0..MANY).filter(|round| fits(others_come_late(*round).argv.len())).count() as u64;
            assert!(tool.at_point > 0 && tool.at_point <= most - 5, "{early}: {most}, {tool:?}");
        }
    }
}

/// Also where it is learned from a mixture, and what makes the difference comes last.
#[test]
fn a_number_of_arguments_that_was_never_seen_is_not_entered_there() {
    let words = [2, 3, 2, 2, 3, 2, 3, 2, 0, 0, 1, 0, 2, 3, 0];
    for launcher in [unaudited(), rewinding_launcher(&["parses"])] {
        for early in ["USAGE", "ODD"] {
            let request =
                |round: usize| Case { env: Vec::new(), ..request_with(round, words[round % words.len()]) };
            run_each(&program(&[&format!("-DEARLY={early}")]), &launcher, MANY, request);
        }
    }
}

#[test]
fn audited_runs_begin_by_turns_there_and_at_main_and_agree() {
    let tool = run(&program(&[]), &rewinding_launcher(&["parses"]));
    assert_eq!(tool.audits, tool.rewinds);
    assert!(tool.at_point > 4 && tool.at_point < tool.rewinds / 2, "{tool:?}");
}

#[test]
fn what_was_unset_when_it_was_asked_for_must_be_unset() {
    let at_point = run(&program(&["-DEARLY=UNSET"]), &unaudited()).at_point;
    assert!(at_point > ROUNDS as u64 / 3, "{at_point}");
}

#[test]
fn whatever_else_a_tool_looks_at_before_keeps_it_at_main() {
    for early in ["SET", "ARGUMENT", "FILES", "DERIVED", "OTHERS", "WALKS", "MAPS", "SMALL_STACK"] {
        for launcher in [unaudited(), rewinding_launcher(&["parses"])] {
            let tool = run(&program(&[&format!("-DEARLY={early}")]), &launcher);
            assert_eq!(tool.at_point, 0, "{early}: {tool:?}");
        }
    }
}
