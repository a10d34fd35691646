//! What libraries do at a process's end, and in which order, is as in a cold run, whoever is spared looking for something to
//! do (runtime/finalize.c).

mod common;

use std::path::Path;

use common::{Case, Victim, case, compile, rewinding_launcher, start, warm_launcher};
use hotstart_launch::{Launcher, Via};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/tests/ends.c");

/// A program with libraries, one of which registers something before main, and one of which needs another; a further library
/// beside them, to be opened.
fn ends() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    // Apart from what the runs write: a directory where libraries are looked for must not change.
    let place = dir.path().canonicalize().unwrap().join("tool");
    std::fs::create_dir(&place).unwrap();
    let at = |name: &str| place.join(name);
    let (run_path, search) = (format!("-Wl,-rpath,{}", place.display()), format!("-L{}", place.display()));
    let library = |name: &str, more: &[&str]| {
        let (label, function) = (format!("-DNAME=\"{name}\""), format!("-DJOIN={name}_wants"));
        let flags =
            ["-shared", "-fPIC", "-Wl,-z,lazy", "-Wl,--no-as-needed", &label, &function, &search, &run_path];
        compile(Path::new(SOURCE), &at(&format!("lib{name}.so")), &[&flags, more].concat());
    };
    library("second", &[]);
    library("first", &["-lsecond"]);
    library("early", &["-DEARLY"]);
    library("third", &["-DUNSEEN"]);
    let program = at("ends");
    compile(
        Path::new(SOURCE),
        &program,
        &["-Wl,--no-as-needed", &search, "-learly", "-lfirst", "-lsecond", &run_path],
    );
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
    let victim = ends();
    let (copying, rewinding) = (warm_launcher(&["ends"]), rewinding_launcher(&["ends"]));
    // Twice: what one run has registered is not to be found by the next.
    for words in CASES.iter().chain(&CASES) {
        let case = ends_case(words, &victim);
        let (expected, _) = start(&Launcher::new(), &victim, &case);
        for launcher in [&copying, &rewinding] {
            let (ran, exit) = start(launcher, &victim, &case);
            assert_eq!(ran, expected, "{words}, {:?}", exit.via);
            assert!(exit.via.is_warm() && !exit.lost, "{words}: {exit:?}");
        }
    }
    let tool = rewinding.statistics().tools.remove(0);
    assert!(tool.rewinds > CASES.len() as u64 && tool.not_rewound.is_none(), "{tool:?}");
    assert_eq!(start(&copying, &victim, &ends_case("", &victim)).1.via, Via::Fork);
}
