//! Deferred snapshots, taken where a tool first looks at its request: they are used only if nothing of the request entered
//! them, and are then right for any request.

mod common;

use std::path::Path;

use common::{Case, Victim, case, compile, resetting_launcher, start};
use hotstart_launch::{Choice, Launcher, OnDoubt, Policy, ToolStatistics};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/looks.c");
const ROUNDS: usize = 66;
/// Least number of runs that begin late, where all can: each of six numbers of arguments is learned in four dry runs, or some more if the
/// first ones differ or a thread is moved. The last of them comes right before a late one.
const MOST: u64 = 30;

fn program(flags: &[&str]) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("looks");
    compile(Path::new(SOURCE), &program, flags);
    Victim { dir, program }
}

fn early(what: &str) -> Victim {
    program(&[&format!("-DEARLY={what}")])
}

/// Builds the program with its first look in a library. They have a directory of their own, since a change to a directory of
/// libraries keeps a start cold.
fn program_and_library() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap().join("tool");
    std::fs::create_dir(&place).unwrap();
    compile(Path::new(SOURCE), &place.join("liblooks.so"), &["-DLIBRARY", "-shared", "-fPIC"]);
    let program = place.join("looks");
    let find = format!("-L{}", place.display());
    // The linker must find the library's own name, so options come before the source.
    let flags = ["-DAPART", &find, "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", "-llooks"];
    compile(Path::new(SOURCE), &program, &flags);
    Victim { dir, program }
}

/// Returns requests that differ in every part of a request.
fn request(round: usize) -> Case {
    let mut case = same_environment(round);
    case.env.push(("HS_ALWAYS", format!("value {round}")));
    if round > 8 && round % 5 == 4 {
        case.env.push(("HS_EARLY", format!("early {round}")));
    }
    case
}

/// Returns requests that differ only in their arguments.
fn same_environment(round: usize) -> Case {
    let file = format!("file-{round}");
    let words = ["-S", "", "--passes=instcombine", &file, "-o"];
    let mut case = case(&words[..round * 7 % 6]);
    case.argv[0] = "looks".to_owned();
    case.env.push(("HS_CONSTANT", "the same".to_owned()));
    case
}

/// Compares each run with a cold one, whatever the tool does with its process.
fn compare(victim: &Victim, warm: &Launcher, request: impl Fn(usize) -> Case) -> ToolStatistics {
    for round in 0..ROUNDS {
        let case = request(round);
        let (expected, _) = start(&Launcher::new(), victim, &case);
        let (ran, exit) = start(warm, victim, &case);
        assert_eq!(ran, expected, "round {round}, {:?}", exit.via);
        assert!(exit.via.is_warm() && !exit.lost, "{exit:?} {:?}", warm.statistics().tools[0].constructors);
    }
    warm.statistics().tools.remove(0)
}

/// The same with a tool whose process can be used again after each run. Returns how many runs began late.
fn run(victim: &Victim, warm: &Launcher, request: impl Fn(usize) -> Case) -> u64 {
    let tool = compare(victim, warm, request);
    assert_eq!(tool.only_forked, None, "{tool:?}");
    // There are three sizes of zygotes, for requests of different length.
    let zygotes = tool.zygotes;
    assert!(zygotes <= 3, "{tool:?}");
    assert_eq!((tool.forks, tool.resets), (zygotes, ROUNDS as u64 - zygotes), "{tool:?}");
    tool.at_point
}

/// Returns a launcher as in normal use: the first runs are audited, the others are not.
fn unaudited() -> Launcher {
    let choice = Choice::Only(vec!["looks".to_owned()]);
    Launcher::new().with_policy(Policy {
        choice,
        audit_one_in: 0,
        learn_at_once: true,
        on_doubt: OnDoubt::Bear,
        ..Policy::default()
    })
}

fn audited() -> Launcher {
    resetting_launcher(&["looks"])
}

fn assert_entered_late(victim: &Victim, request: fn(usize) -> Case, what: &str) {
    for launcher in [unaudited, audited] {
        // What a processor says of its own state may differ by chance, for as long as a process lives.
        let mut tries = (0..3).map(|_| run(victim, &launcher(), request));
        assert!(tries.any(|at_point| at_point >= MOST), "{what}");
    }
}

fn assert_entered_at_main(victim: &Victim, request: fn(usize) -> Case, what: &str) {
    for launcher in [unaudited(), audited()] {
        assert_eq!(run(victim, &launcher, request), 0, "{what}");
    }
}

#[test]
fn a_tool_is_entered_where_it_first_looks_at_its_arguments() {
    for victim in [program(&[]), program(&["-no-pie"]), program(&["-s"]), program_and_library()] {
        assert_entered_late(&victim, same_environment, "nothing early");
        // Those that have the usual variables are about four of five.
        let at_point = run(&victim, &unaudited(), request);
        assert!(at_point > MOST / 4, "another value each time: {at_point}");
    }
}

/// The results of early looks are still valid where a run begins, and it begins no later.
#[test]
fn what_a_tool_looks_at_early_makes_no_difference() {
    let early_looks = [
        "ARGUMENT",
        "NAMED",
        "ASKS",
        "FILES",
        "CLOCK",
        "SECONDS",
        "TICKS",
        "SMALL_STACK",
        "WORKS",
        "BLOCKS",
        "OTHERS",
        "COPIES",
        "PROCESSOR",
    ];
    for what in early_looks {
        assert_entered_late(&early(what), same_environment, what);
    }
}

/// Looks beside strings, and what is made of addresses otherwise. Dry runs that could serve one request do not agree.
#[test]
fn what_depends_on_where_strings_lie_is_as_it_should_be() {
    for what in [
        "WAKES",
        "BEHIND",
        "LAST",
        "FIRST",
        "ABOVE",
        "BETWEEN",
        "LENGTHS",
        "ALIGNED",
        "HASHED",
        "PACKED",
        "INSIDE",
        "FAR",
        "MAPS_FILE",
        "ENDS_RAW",
        "EXECUTES",
        "PLACE",
        "TRAPS",
        "TRAPS_TWICE",
        "RANDOM",
        "LEAVES",
        "RANGE",
        "EXACT",
        "PAGES",
        "CHUNKS",
        "INEXACT",
        "PAGE_BIT",
        "HIGH_PAGE_BIT",
        "LAST_PAGE_BIT",
        "PARITY",
        "PADDED",
        "ON_STACK",
    ] {
        let victim = early(what);
        for launcher in [unaudited(), audited()] {
            compare(&victim, &launcher, same_environment);
        }
    }
    for what in ["INSIDE", "PLACE", "LEAVES"] {
        for launcher in [unaudited(), audited()] {
            let late = run(&early(what), &launcher, same_environment);
            assert!(late >= MOST, "{what}: {late}");
        }
    }
    for launcher in [unaudited(), audited()] {
        compare(&early("DISTANCE"), &launcher, request);
    }
}

/// Half of the dry runs are made on another processor.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_depends_on_the_processor_keeps_a_tool_at_main() {
    if std::thread::available_parallelism().map_or(1, |count| count.get()) == 1 {
        eprintln!("skipped: there is one processor");
        return;
    }
    assert_entered_at_main(&early("NUMBER_THERE"), same_environment, "the processor's number");
}

/// The seconds of the clock, read past libc, are the same in all runs that learn; later they are others.
#[test]
fn seconds_that_several_runs_have_in_common_are_read_anew() {
    let victim = early("SECONDS");
    for launcher in [unaudited(), audited()] {
        assert_entered_late_by(&victim, &launcher, "before");
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_entered_late_by(&victim, &launcher, "after");
    }
}

fn assert_entered_late_by(victim: &Victim, launcher: &Launcher, what: &str) {
    let before = launcher.statistics().tools.first().map_or(0, |tool| tool.at_point);
    let tool = compare(victim, launcher, same_environment);
    assert!(tool.at_point - before >= MOST, "{what}: {} after {before}", tool.at_point);
}

/// Values made from the number: its double, its parity, and whether there are any arguments.
#[test]
fn what_depends_on_the_number_of_arguments_is_as_it_should_be() {
    for what in ["DERIVED", "ODD"] {
        assert_entered_late(&early(what), same_environment, what);
    }
    // It may even end before it has looked at anything.
    assert_entered_late(&early("USAGE"), same_environment, "USAGE");
}

#[test]
fn an_environment_is_that_of_the_request() {
    for what in ["VALUES", "SET", "UNSET", "CONSTANT", "WALKS", "ARRAY", "BEHIND", "LAST", "FIRST"] {
        for launcher in [unaudited(), audited()] {
            run(&early(what), &launcher, request);
        }
    }
    for what in ["VALUES", "SET", "UNSET", "CONSTANT", "WALKS"] {
        assert_entered_late(&early(what), same_environment, what);
    }
}

/// As with lit, which tells each test its name, and a test that sets a variable for two of its commands.
#[test]
fn a_tool_is_entered_late_again_after_requests_with_another_variable() {
    let with_others = |round: usize| {
        let mut case = same_environment(round);
        // A name of the same length has the same zygote.
        let name = if round > 20 && round % 10 < 2 { "HS_OTHERS" } else { "HS_ALWAYS" };
        case.env.push((name, format!("value {round:02}")));
        case
    };
    let victim = program(&[]);
    let mut tries = (0..3).map(|_| run(&victim, &unaudited(), with_others));
    assert!(tries.any(|at_point| at_point > MOST));
}

/// Such a tool is given the kernel's arrays, in which its main may not have changed anything by then.
#[test]
fn a_tool_that_keeps_the_list_of_arguments_is_entered_late_if_it_has_not_written_there() {
    for what in ["LIST", "LIST_COPIES", "LIST_NUMBER", "LIST_LATER"] {
        assert_entered_late(&early(what), same_environment, what);
    }
    for what in ["LIST_GROWS", "LIST_BEHIND", "END_BEHIND"] {
        assert_entered_at_main(&early(what), same_environment, what);
    }
    // Without arguments, or with one, these write nothing.
    for what in ["LIST_WRITES", "LIST_SWAPS", "END_WRITES"] {
        for launcher in [unaudited(), audited()] {
            assert!(run(&early(what), &launcher, same_environment) < ROUNDS as u64 / 3, "{what}");
        }
    }
    for launcher in [unaudited(), audited()] {
        run(&early("ARRAY"), &launcher, same_environment);
        run(&early("LIST_COPIES"), &launcher, request);
    }
}

/// The same looks by tools with the kernel's arrays.
#[test]
fn a_tool_that_keeps_the_list_or_a_part_of_its_address_is_as_others() {
    for keeps in ["WHOLE_LIST", "PARTS_OF_LIST"] {
        let keeping = |what: &str| program(&[&format!("-DEARLY={what}"), &format!("-DKEEPS={keeps}")]);
        for what in ["NOTHING", "ARGUMENT", "CLOCK", "OTHERS", "DERIVED", "VALUES", "WALKS"] {
            let at_point = run(&keeping(what), &unaudited(), same_environment);
            assert!(at_point >= MOST, "{keeps} {what}: {at_point}");
        }
        for what in ["VALUES", "UNSET", "WALKS", "ARRAY", "LAST", "BEHIND"] {
            run(&keeping(what), &unaudited(), request);
        }
        for what in [
            "BETWEEN", "LENGTHS", "HASHED", "PACKED", "PLACE", "PAGES", "CHUNKS", "RANDOM", "LEAVES",
            "EXECUTES",
        ] {
            compare(&keeping(what), &unaudited(), same_environment);
        }
        for what in ["OWN_LINE", "WRITES_POINTER", "OVERWRITES", "WRITES_AROUND", "END_WRITES", "END_BEHIND"]
        {
            compare(&keeping(what), &unaudited(), same_environment);
        }
    }
}

/// Words that no snapshot has, as each process has its own, and what lies beside these.
#[test]
fn what_is_written_beside_what_each_process_has_of_its_own_is_kept() {
    for what in ["BESIDE_RANDOM", "BIT_OF_RANDOM", "KERNELS_AREA", "KERNELS_NUMBER"] {
        for launcher in [unaudited(), audited()] {
            let tool = compare(&early(what), &launcher, same_environment);
            // Where the kernel has no such area, the tool writes nothing. A look for random bytes may itself be where runs begin.
            assert!(tool.at_point == 0 || what != "KERNELS_NUMBER", "{what}: {}", tool.at_point);
        }
    }
    let number = early("KERNELS_NUMBER");
    let (cold, _) = start(&Launcher::new(), &number, &same_environment(1));
    assert!(cold.stdout.contains("number 7002 1\n"), "libc keeps the number elsewhere: {}", cold.stdout);
}

/// The rule of normal use: a number of arguments is learned after some runs, as that may not pay.
#[test]
fn a_number_of_arguments_that_comes_often_is_learned() {
    let choice = Choice::Only(vec!["looks".to_owned()]);
    let usual = Policy { choice, audit_one_in: 0, on_doubt: OnDoubt::Bear, ..Policy::default() };
    let at_point = run(&program(&[]), &Launcher::new().with_policy(usual), |_| same_environment(1));
    assert!(at_point >= 10, "{at_point}");
}

/// The first number of arguments is learned with the variable, the second one without it.
#[test]
fn what_was_unset_is_not_that_of_requests_where_it_is_set() {
    let changes = |round: usize| {
        let words: &[&str] = if round < 6 { &["a"] } else { &["a", "b"] };
        let mut case = case(words);
        case.argv[0] = "looks".to_owned();
        if !(6..22).contains(&round) {
            case.env.push(("HS_EARLY", "set".to_owned()));
        }
        case
    };
    for launcher in [unaudited(), audited()] {
        run(&early("UNSET"), &launcher, changes);
    }
}

/// The common environment replaces one that was learned for a rare environment.
#[test]
fn another_environment_is_learned_when_the_first_comes_no_more() {
    let changes = |round: usize| if round < 6 { request(0) } else { same_environment(round % 2) };
    assert!(run(&early("VALUES"), &unaudited(), changes) > 0);
}

#[test]
fn the_first_argument_must_be_the_same() {
    let names = ["looks", "./looks", "another"];
    let renamed = |round: usize| {
        let mut case = same_environment(0);
        case.argv[0] = names[if round < 20 { 0 } else { round % 3 }].to_owned();
        case
    };
    let at_point = compare(&early("NAME"), &unaudited(), renamed).at_point;
    // Each name has a process of its own, whose first runs begin at main.
    assert!(at_point > 10 && at_point <= ROUNDS as u64 - 2 * names.len() as u64, "{at_point}");
}

/// Actions that a snapshot cannot restore, that the request does not determine, or that change the request itself.
#[test]
fn whatever_else_a_tool_does_before_keeps_it_at_main() {
    for what in ["MAPS", "SETS", "FAULTS"] {
        assert_entered_at_main(&early(what), same_environment, what);
    }
    // Without arguments it writes to none.
    for launcher in [unaudited(), audited()] {
        assert!(run(&early("WRITES_POINTER"), &launcher, same_environment) < ROUNDS as u64 / 6);
    }
}

/// The next run has its own strings, whatever a run has written among them.
#[test]
fn a_tool_that_overwrites_its_arguments_leaves_them_to_no_other_run() {
    for what in ["OVERWRITES", "WRITES_NAME"] {
        for launcher in [unaudited(), audited()] {
            run(&early(what), &launcher, same_environment);
        }
    }
    // The pages of which the access was set are not used again, nor those that are zero between the arrays and the strings.
    for what in ["PROTECTS", "WRITES_AROUND"] {
        for launcher in [unaudited(), audited()] {
            let tool = compare(&early(what), &launcher, same_environment);
            assert_eq!(tool.resets, 0, "{what}: {tool:?}");
        }
    }
}

/// The command line of a process is that of its request. A process that has read it is not used again.
#[test]
fn a_tool_that_reads_its_own_command_line_reads_the_right_one() {
    for launcher in [unaudited(), audited()] {
        compare(&early("OWN_LINE"), &launcher, request);
    }
}

#[test]
fn requests_that_do_not_fit_their_places_begin_at_main() {
    let large = |round: usize| {
        let mut case = same_environment(1);
        match round % 4 {
            1 => case.argv.push("long".repeat(1000)),
            2 => case.argv.extend((0..600).map(|i| i.to_string())),
            _ => {}
        }
        if round % 8 == 7 {
            case.env.push(("HS_LARGE", "value".repeat(16_000)));
        }
        case
    };
    // By chance a number of arguments is refused, once in some hundred processes.
    let mut tries = (0..3).map(|_| run(&program(&[]), &unaudited(), large));
    let is_most = |at_point: u64| {
        assert!(at_point < ROUNDS as u64 * 3 / 4, "{at_point}");
        at_point > 10
    };
    assert!(tries.any(is_most));
}
