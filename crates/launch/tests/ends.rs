//! Libraries do the same at the end of a warm run as of a cold one, in the same order: a fork has libc's lists of their
//! functions, and a reset restores them.

mod common;

use std::path::Path;

use common::{Case, Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::{Launcher, Reason, Via};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/ends.c");

/// Builds a program with libraries, one of which needs another. Each is given with the functions that its constructor
/// registers. Those in `beside` are not linked; the program opens them.
fn ends(linked: &[(&str, &str)], beside: &[(&str, &str)]) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    // Apart from the files of the runs: a directory in which ld.so looks for libraries must not change.
    let place = dir.path().canonicalize().unwrap().join("tool");
    std::fs::create_dir(&place).unwrap();
    let at = |name: &str| place.join(name);
    let (run_path, search) = (format!("-Wl,-rpath,{}", place.display()), format!("-L{}", place.display()));
    let library = |&(name, begin): &(&str, &str), more: &[&str]| {
        let (label, function) = (format!("-DNAME=\"{name}\""), format!("-DJOIN={name}_wants"));
        let begin = format!("-DBEGIN=\"{begin}\"");
        let flags =
            ["-shared", "-fPIC", "-Wl,-z,lazy", "-Wl,--no-as-needed", &label, &function, &begin, &search];
        compile(
            Path::new(SOURCE),
            &at(&format!("lib{name}.so")),
            &[&flags[..], &[run_path.as_str()], more].concat(),
        );
    };
    // `first` needs `second`, so the others are built before it.
    let is_first = |named: &&(&str, &str)| named.0 == "first";
    linked.iter().chain(beside).filter(|named| !is_first(named)).for_each(|named| library(named, &[]));
    linked.iter().filter(is_first).for_each(|named| library(named, &["-lsecond"]));
    let program = at("ends");
    let links: Vec<_> = linked.iter().map(|(name, _)| format!("-l{name}")).collect();
    let links = links.iter().map(String::as_str);
    let flags: Vec<_> = ["-Wl,--no-as-needed", &search, &run_path].into_iter().chain(links).collect();
    compile(Path::new(SOURCE), &program, &flags);
    Victim { dir, program }
}

fn ends_case(words: &str, victim: &Victim) -> Case {
    let third = victim.program.with_file_name("libthird.so");
    let args: Vec<_> =
        words.split_whitespace().map(|w| if w == "THIRD" { third.to_str().unwrap() } else { w }).collect();
    let mut case = case(&args);
    case.argv[0] = "ends".to_owned();
    case
}

const CASES: [&str; 14] = [
    "",
    "first object",
    "second object first atexit first object",
    "first atexit",
    "second atexit",
    "first atexit second atexit first atexit",
    "open THIRD",
    "open THIRD second atexit open THIRD",
    "second forks first atfork",
    "second atfork first forks",
    "first quick quick_exit now",
    "first quick second quits",
    "second quick first quits",
    "",
];

#[test]
fn libraries_end_as_in_a_cold_run() {
    let victim = ends(&[("early", "atexit"), ("first", ""), ("second", "")], &[("third", "unseen")]);
    let (forks, resets) = (warm_launcher(&["ends"]), resetting_launcher(&["ends"]));
    // A run that forks retires its persistent process. After some of these the tool is only forked.
    let forking = resetting_launcher(&["ends"]);
    // Twice: the second run must not find the functions that the first has registered.
    for words in CASES.iter().chain(&CASES) {
        let case = ends_case(words, &victim);
        let (expected, _) = start(&Launcher::new(), &victim, &case);
        let resets = if words.contains("forks") { &forking } else { &resets };
        for launcher in [&forks, resets] {
            let (ran, exit) = start(launcher, &victim, &case);
            assert_eq!(ran, expected, "{words}, {:?}", exit.via);
            assert!(exit.via.is_warm() && !exit.lost, "{words}: {exit:?}");
        }
    }
    let tool = resets.statistics().tools.remove(0);
    assert!(tool.resets > CASES.len() as u64 && tool.only_forked.is_none(), "{tool:?}");
    assert_eq!(start(&forks, &victim, &ends_case("", &victim)).1.via, Via::Fork);
}

/// The functions that the constructors of `first` and `second` register, and the words for `main`.
const EARLY: [(&str, &str, &str); 14] = [
    ("many", "many", "heap now"),
    ("object many atexit", "object", "first object heap now"),
    ("stranger object many", "stranger_status other_stranger", "second atexit heap now"),
    ("object stranger object other_stranger object", "many stranger object", ""),
    ("many", "some", "first many heap now"),
    ("object nobody object", "stranger many", "heap now"),
    ("object stranger nobody other_stranger", "object stranger", "heap now"),
    ("many registers object", "registers", "first registers"),
    ("", "stranger_registers stranger stranger_registers", "first object"),
    ("object exits object", "many stranger", ""),
    ("object status", "exits status stranger_status", ""),
    ("object destructor_forks atfork", "atfork object", "first quick"),
    ("object thread stranger", "object thread", "heap now"),
    ("atfork quick many", "quick object", "first quick quick_exit now"),
];

#[test]
fn what_constructors_register_is_called_as_in_a_cold_run() {
    for (first, second, words) in EARLY {
        let victim = ends(&[("first", first), ("second", second)], &[]);
        let case = ends_case(words, &victim);
        let (expected, _) = start(&Launcher::new(), &victim, &case);
        let (forks, resets) = (warm_launcher(&["ends"]), resetting_launcher(&["ends"]));
        for launcher in [&forks, &resets, &resets, &resets] {
            let (ran, exit) = start(launcher, &victim, &case);
            assert_eq!(ran, expected, "{first}, {second}, {words}: {:?}", exit.via);
            if first.contains("thread") {
                assert_eq!(exit.via, Via::Cold(Reason::Threads));
                continue;
            }
            assert!(exit.via.is_warm() && !exit.lost, "{first}, {second}: {exit:?}");
        }
        let tool = resets.statistics().tools.remove(0);
        assert!(
            first.contains("thread")
                || first.contains("forks")
                || tool.resets >= 2 && tool.only_forked.is_none(),
            "{first}, {second}: {tool:?}"
        );
    }
}
