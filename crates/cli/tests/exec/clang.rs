//! Peculiarities of clang: compiling within the driver's process or not, crashing, and the files it leaves then.

use std::process::Command;

use crate::bench::{Bench, clang, told};

/// The output and files of a run of clang, without addresses and random parts of names.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    told: String,
    files: Vec<(String, Vec<u8>)>,
}

/// Runs clang in an empty directory with `sources`, cold or warm.
fn run(bench: &Bench, how: &str, args: &[&str], change: impl Fn(&mut Command)) -> Outcome {
    let place = bench.path("place");
    std::fs::create_dir(&place).unwrap();
    for (name, text) in SOURCES {
        std::fs::write(place.join(name), text).unwrap();
    }
    let mut client = bench.client();
    client.env("HOTSTART_EXEC", how).env("TMPDIR", &place).current_dir(&place).arg(clang()).args(args);
    change(&mut client);
    let told = steady(&told(&client.output().expect("clang runs")));
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let content = std::fs::read(place.join(&name)).unwrap();
            let is_text = name.ends_with(".sh");
            let content = if is_text { steady(&String::from_utf8_lossy(&content)).into() } else { content };
            (steady(&name), content)
        })
        .collect();
    files.sort();
    std::fs::remove_dir_all(&place).unwrap();
    Outcome { told, files }
}

const SOURCES: [(&str, &str); 4] = [
    ("a.c", "int a(int x) { return x / 2; }\n"),
    ("b.c", "int a(int); int main(void) { return a(4) - 2; }\n"),
    ("warns.c", "int f(void) { int unused; }\n"),
    ("crashes.c", "int a;\n#pragma clang __debug crash\n"),
];

/// Removes addresses, and the six random characters that clang puts into names.
fn steady(text: &str) -> String {
    let is_hex = |part: &str| part.len() >= 6 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let split = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    split
        .map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let number = word.strip_prefix("0x").unwrap_or(word);
            if is_hex(number) { format!("#{}", &part[word.len()..]) } else { part.to_owned() }
        })
        .collect()
}

#[test]
fn warm_and_cold_clang_tell_and_leave_the_same() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let cases: [&[&str]; 5] = [
        &["-O0", "-c", "a.c", "-o", "a.o"],
        &["-O2", "-g", "-Wall", "-c", "warns.c", "-MD", "-o", "w.o"],
        // With two inputs, clang starts itself for each.
        &["-c", "a.c", "b.c"],
        &["a.c", "b.c", "-o", "program"],
        &["-c", "missing.c"],
    ];
    for args in cases {
        let nothing = |_: &mut Command| ();
        let cold = run(&bench, "cold", args, nothing);
        let before = bench.warm_starts();
        assert_eq!(cold, run(&bench, "warm", args, nothing), "{args:?}");
        assert!(bench.warm_starts() > before, "{args:?}: {}", bench.status());
    }
    for spawn in ["0", "1"] {
        // Symbolizing a stack's addresses takes seconds.
        let set = |command: &mut Command| {
            command.env("CLANG_SPAWN_CC1", spawn).env("LLVM_DISABLE_SYMBOLIZATION", "1");
        };
        let args = ["-c", "crashes.c", "-o", "c.o"];
        let cold = run(&bench, "cold", &args, set);
        assert!(cold.files.iter().any(|(name, _)| name.ends_with(".sh")), "{cold:?}");
        assert_eq!(cold, run(&bench, "warm", &args, set), "CLANG_SPAWN_CC1={spawn}");
    }
}

#[test]
fn clang_links_with_a_warm_linker() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let linker = format!("--ld-path={}", clang().with_file_name("ld.lld").display());
    if !clang().with_file_name("ld.lld").exists() {
        // The distribution has it in a separate package; bench/build needs it, this test does not.
        return;
    }
    let args = ["a.c", "b.c", "-o", "program", &linker];
    let cold = run(&bench, "cold", &args, |_| ());
    let before = bench.warm_starts();
    assert_eq!(cold, run(&bench, "warm", &args, |_| ()));
    // The driver, a compiler for each of two inputs, and the linker.
    assert_eq!(bench.warm_starts() - before, 4, "{}", bench.status());
}

/// Each compilation uses /proc/self/fd and others. None of that may cost the persistent process.
#[test]
fn clang_is_reset_after_a_compilation() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    for _ in 0..4 {
        run(&bench, "warm", &["-c", "a.c"], |_| ());
    }
    let status = bench.status_json();
    let tools = status["tools"].as_array().unwrap();
    let clang = tools.iter().find(|tool| tool["program"].as_str().unwrap().contains("clang")).unwrap();
    assert!(clang["reset"].as_u64().unwrap() >= 2 && clang["forked_only"].is_null(), "{clang}");
}
