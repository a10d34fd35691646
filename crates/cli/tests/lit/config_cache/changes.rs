//! After each kind of change, the very next run sees the same as an evaluation.

use std::fs::{self, File, FileTimes};
use std::process::Command;

use super::place::Place;
use crate::suite::lit_python;

type Change = (&'static str, fn(&mut Place));

/// Changes that affect a config, made one after the other to the same suite.
const CHANGES: &[Change] = &[
    ("text of a file", |at| at.file("data/file", "two!")),
    ("text of the same size", |at| at.file("data/file", "2wo!")),
    ("text of the same size and time", |at| {
        let path = at.path("data/file");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        at.file("data/file", "3wo!");
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_times(FileTimes::new().set_modified(time))
            .unwrap();
    }),
    ("file replaced by another", |at| {
        at.file("data/new", "4wo!");
        fs::rename(at.path("data/new"), at.path("data/file")).unwrap();
    }),
    ("text changed by another name", |at| {
        fs::hard_link(at.path("data/file"), at.path("other-name")).unwrap();
        at.file("other-name", "5wo!");
    }),
    ("file cut short", |at| at.file("data/file", "")),
    ("file removed", |at| at.remove("data/file")),
    ("file there again", |at| at.file("data/file", "again")),
    ("file that was missing", |at| at.file("data/late", "late")),
    ("file in the place of nothing", |at| at.file("odd", "")),
    ("directory in the place of a file", |at| {
        at.remove("odd");
        fs::create_dir(at.path("odd")).unwrap();
    }),
    ("link in the place of a directory", |at| {
        at.remove("odd");
        at.link("data", "odd");
    }),
    ("link to nothing", |at| at.link("nowhere", "odd")),
    ("nothing in the place of a link", |at| at.remove("odd")),
    ("target of a link", |at| at.link("dir2", "link")),
    ("file behind a link", |at| at.file("dir2/inner", "changed")),
    ("directory in the place of a link", |at| {
        at.remove("link");
        at.file("link/inner", "own");
    }),
    ("entry of a directory", |at| at.file("data/list/b", "")),
    ("entry removed", |at| at.remove("data/list/a")),
    ("entry renamed", |at| fs::rename(at.path("data/list/b"), at.path("data/list/c")).unwrap()),
    ("match of a pattern", |at| at.file("data/glob/b.x", "")),
    ("file deep in a tree", |at| at.file("data/tree/b/d", "")),
    ("directory in a tree", |at| at.file("data/tree/e/f", "")),
    ("permission given", |at| at.mode("data/tool", 0o755)),
    ("permission taken", |at| at.mode("data/tool", 0o644)),
    ("program earlier on a path", |at| {
        at.file("bin1/tool", "#!/bin/sh\n");
        at.mode("bin1/tool", 0o755);
    }),
    ("program gone from a path", |at| at.remove("bin1/tool")),
    ("permission of a program on a path", |at| at.mode("bin2/tool", 0o644)),
    ("program that is asked", |at| at.program("bin1/llvm-answer", "/bin/cat")),
    ("program that is asked, earlier on PATH", |at| at.program("bin0/llvm-found", "/bin/echo")),
    ("program that is asked, gone from PATH", |at| at.remove("bin0/llvm-found")),
    ("module", |at| at.file("modules/helper.py", "VALUE = 'h2'\n")),
    ("module before it on the path", |at| at.file("early/helper.py", "VALUE = 'early'\n")),
    ("module before it gone", |at| at.remove("early/helper.py")),
    ("package in the place of a module", |at| at.file("modules/helper/__init__.py", "VALUE = 'package'\n")),
    ("config that is loaded", |at| at.file("extra.cfg", "config.of_extra = 'e2'\n")),
    ("config that is loaded, gone", |at| at.remove("extra.cfg")),
    ("local config", |at| at.file("tests/lit.local.cfg", "config.substitutions[-1] = ('%local', 'l2')\n")),
    ("local config gone", |at| at.remove("tests/lit.local.cfg")),
    ("local config added", |at| {
        at.file("tests/lit.local.cfg", "config.substitutions[-1] = ('%local', 'l3')\n")
    }),
    ("config", |at| {
        let text = fs::read_to_string(at.path("lit.cfg.py")).unwrap();
        at.file("lit.cfg.py", &text.replace("of config 1", "of config 2"));
    }),
    ("other test", |at| at.args = vec![at.path("more/b.test").display().to_string()]),
    ("first test again", |at| at.args.clear()),
    ("parameter", |at| at.args = vec!["-Dparam=1".into()]),
    ("other value of a parameter", |at| at.args = vec!["-Dparam=2".into()]),
    ("path for tests", |at| at.args = vec!["--path=/tmp".into()]),
    ("variable", |at| at.env = vec![("SEEN".into(), "v1".into())]),
    ("other value of a variable", |at| at.env = vec![("SEEN".into(), "v2".into())]),
    ("variable that was not set", |at| at.env.push(("SEEN_LATE".into(), "v3".into()))),
    ("variables gone", |at| at.env.clear()),
    ("working directory", |at| at.cwd = at.path("data")),
    ("lit", |at| {
        let code = "import lit, os; print(os.path.dirname(os.path.abspath(lit.__file__)))";
        let output = Command::new(lit_python()).args(["-c", code]).output().expect("Python");
        let package = String::from_utf8(output.stdout).unwrap();
        let copy = at.dir().join("package");
        fs::create_dir(&copy).unwrap();
        let copied = Command::new("cp").args(["-r", package.trim()]).arg(&copy).status().expect("cp");
        assert!(copied.success());
        at.args = vec![format!("--lit-package={}", copy.display())];
    }),
    ("module of lit", |at| {
        let path = at.dir().join("package/lit/__init__.py");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{text}\n__version__ = '23.99'\n")).unwrap();
    }),
];

#[test]
fn the_next_run_sees_each_kind_of_change() {
    assert!(CHANGES.len() >= 40);
    let mut at = Place::new();
    at.settle();
    let mut before = Place::seen(&at.run(&[])).to_owned();
    for (what, change) in CHANGES {
        change(&mut at);
        let next = at.run(&[]);
        let evaluated = at.run(&["--no-config-cache"]);
        let (next, evaluated) = (Place::seen(&next), Place::seen(&evaluated));
        assert_eq!(next, evaluated, "after this change: {what}");
        assert_ne!(next, before, "this change is seen: {what}");
        before = next.to_owned();
        at.settle();
        assert_eq!(Place::seen(&at.run(&[])), before, "what is kept after this change: {what}");
    }
}

#[test]
fn another_python_is_asked_itself() {
    let mut at = Place::new();
    at.settle();
    at.env.push(("HOTSTART_LIT_PYTHON".into(), at.other_python()));
    for _ in 0..3 {
        let run = at.run(&[]);
        assert!(
            run.err.contains("configs were evaluated, and not kept: "),
            "a script may choose any: {run:#?}"
        );
    }
}
