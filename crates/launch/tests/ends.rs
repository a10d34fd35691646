//! What libraries do at a process's end, and in which order, is as in a cold run, whoever is spared looking for something to
//! do (runtime/finalize.c).

mod common;

use std::path::Path;

use common::{Case, Victim, case, compile, rewinding_launcher, start, warm_launcher};
use hotstart_launch::{Launcher, Via};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/tests/ends.c");

/// A program with libraries, one of which needs another; each with what its constructor registers. Those that are named
/// only are beside it, to be opened.
fn ends(linked: &[(&str, &str)], beside: &[(&str, &str)]) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    // Apart from what the runs write: a directory where libraries are looked for must not change.
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
    // first needs second.
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

/// What the constructors of `first` and `second` register, and what main tells them.
const EARLY: [(&str, &str, &str); 13] = [
    ("many", "many", "heap now"),
    ("object many atexit", "object", "first object heap now"),
    ("stranger object many", "stranger_status other_stranger", "second atexit heap now"),
    ("object stranger object other_stranger object", "many stranger object", ""),
    ("many", "some", "first many heap now"),
    ("object nobody object", "stranger many", "heap now"),
    ("object stranger on_exit other_stranger", "object stranger", "heap now"),
    ("many registers object", "registers", "first registers"),
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
        let (copying, rewinding) = (warm_launcher(&["ends"]), rewinding_launcher(&["ends"]));
        for launcher in [&copying, &rewinding, &rewinding, &rewinding] {
            let (ran, exit) = start(launcher, &victim, &case);
            assert_eq!(ran, expected, "{first}, {second}, {words}: {:?}", exit.via);
            assert!(exit.via.is_warm() && !exit.lost, "{first}, {second}: {exit:?}");
        }
        let tool = rewinding.statistics().tools.remove(0);
        assert!(tool.rewinds >= 2 && tool.not_rewound.is_none(), "{first}, {second}: {tool:?}");
    }
}

/// Also in what is no template, where constructors can write: a child of one, that ends before main has begun; a library that
/// ends itself early.
#[test]
fn what_ends_in_a_constructor_ends_as_without_us() {
    for (first, second) in
        [("object many child", "object"), ("stranger child object nobody child", "many on_exit")]
    {
        let victim = ends(&[("first", first), ("second", second)], &[("third", "many object")]);
        let third = victim.program.with_file_name("libthird.so");
        let run = |preloaded: &str| {
            let mut ends = std::process::Command::new(&victim.program);
            ends.args(["open", third.to_str().unwrap(), "first", "object", "heap", "now"]);
            let run = ends.env("LD_PRELOAD", preloaded).output().unwrap();
            assert_eq!((run.status.code(), run.stderr.as_slice()), (Some(5), &b""[..]));
            String::from_utf8(run.stdout).unwrap()
        };
        assert_eq!(run(env!("HOTSTART_RUNTIME")), run(""), "{first}, {second}");
    }
}
