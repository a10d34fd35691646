//! Which files a script needs, and why it stays here, on real files.

use std::fs;
use std::os::unix::fs::symlink;

use hotstart_model::{ColdTools, Command as Line, Dialect};
use hotstart_remote::Tree;

use super::*;
use crate::digests::Digests;
use crate::order::Order;

/// A suite with a test directory, one below it that has tests of its own, and outputs.
struct Suite {
    dir: tempfile::TempDir,
    needs: Needs,
}

impl Suite {
    fn new() -> Suite {
        let suite = Suite { dir: tempfile::tempdir().unwrap(), needs: Needs::default() };
        for file in ["src/a.ll", "src/Inputs/b.ll", "src/sub/c.ll", "lib/deep/d.ll", "out/Output/old.tmp"] {
            let path = suite.path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        suite
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn script(&self, command: &str) -> Script {
        let root = self.path("");
        let text = command.replace("%r", root.to_str().unwrap().trim_end_matches('/'));
        Script {
            commands: vec![Line { label: String::new(), text }],
            dialect: Dialect::V23,
            interpreter: Interpreter::Internal,
            pipefail: true,
            cwd: self.path("out"),
            make_dirs: vec![self.path("out/Output")],
            env: Arc::new([("PATH", "/usr/bin:/bin")].into_iter().collect()),
            timeout: None,
            tmp_base: self.path("out/Output/a.ll"),
            captures: false,
            lit_package_dir: None,
            lit_python: None,
            cold: ColdTools::None,
            wraps: Default::default(),
        }
    }

    /// Returns what is sent for a command: the paths of files below the suite, and the links and directories.
    fn sent(&self, command: &str) -> Result<(BTreeSet<String>, Order), String> {
        let place = Elsewhere {
            name: "a".to_owned(),
            directory: self.path("src"),
            apart: [self.path("src"), self.path("src/sub")].into(),
        };
        let (mut files, mut order) = (Files::default(), Order::default());
        self.needs.of(&self.script(command), &place)?.add_to(&mut files, &mut HashSet::new());
        let below =
            |path: PathBuf| path.strip_prefix(self.path("")).ok().map(|path| path.display().to_string());
        let names = files.paths().filter_map(below).collect();
        files.into_inputs(&Digests::default(), &mut Tree::default(), &mut order)?;
        Ok((names, order))
    }

    fn names(&self, command: &str) -> Vec<String> {
        self.sent(command).unwrap().0.into_iter().collect()
    }
}

#[test]
fn the_directory_of_the_test_is_sent_without_those_of_other_tests() {
    assert_eq!(Suite::new().names("true"), ["src/Inputs/b.ll", "src/a.ll"]);
}

#[test]
fn what_a_command_names_is_sent_but_no_outputs() {
    let suite = Suite::new();
    fs::write(suite.path("out/Output/a.ll.tmp"), "").unwrap();
    let names = suite.names("true %r/src/sub/c.ll -I%r/lib --x=%r/out/Output/a.ll.tmp %r/missing");
    assert_eq!(names, ["lib/deep/d.ll", "src/Inputs/b.ll", "src/a.ll", "src/sub/c.ll"]);
}

#[test]
fn a_directory_that_is_named_is_whole() {
    assert!(Suite::new().names("cat %r/src").contains(&"src/sub/c.ll".to_owned()));
}

#[test]
fn directories_of_outputs_are_made() {
    let (names, order) = Suite::new().sent("mkdir -p %r/out/Output && cd %r/out/Output").unwrap();
    assert!(!names.contains("out/Output/old.tmp"));
    assert!(order.directories.iter().any(|directory| directory.ends_with("out/Output")), "{order:?}");
}

#[test]
fn links_are_sent_with_what_they_lead_to() {
    let suite = Suite::new();
    symlink("../lib/deep", suite.path("src/link")).unwrap();
    let (names, order) = suite.sent("true %r/src/link/d.ll").unwrap();
    assert!(names.contains("lib/deep/d.ll"));
    assert!(order.links.iter().any(|(link, target)| link.ends_with("src/link") && target == "../lib/deep"));
}

#[test]
fn a_program_has_its_loader_and_libraries() {
    let suite = Suite::new();
    let files = suite.needs.program(Path::new("/bin/sh"), &Environment::new()).unwrap();
    let names: Vec<String> = files.libraries().iter().map(|path| path.display().to_string()).collect();
    assert!(
        names.iter().any(|name| name.contains("/ld-")) && names.iter().any(|name| name.contains("libc.so"))
    );
}

#[test]
fn scripts_that_stay_here() {
    let suite = Suite::new();
    fs::write(suite.path("tool.py"), "#!/usr/bin/env python3\n").unwrap();
    fs::set_permissions(suite.path("tool.py"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(suite.path("tool.sh"), "#!/bin/sh\ngrep -q x missing && exit 1\ntrue\n").unwrap();
    fs::set_permissions(suite.path("tool.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    for command in [
        "not true",
        "true || false",
        "%r/tool.py",
        "true | xargs cat",
        "bash x",
        "missing-tool",
        "ls %r/src",
        "tar cf x %r/src",
        "true & true",
        "diff <(cat a) <(cat b)",
        "true | count 0",
        "env TZ=Asia/Tokyo true",
        // Outputs of other tests decide what these find.
        "cat %r/out/Output",
        "diff -r . %r/lib",
        "cat Output/*.tmp",
        "cd %r/out/Output && cat *",
        "%r/tool.sh",
        "sed -f %r/x %r/src/a.ll",
        "cat ~/x",
    ] {
        assert!(suite.sent(command).is_err(), "{command}");
    }
    let place = Elsewhere { name: String::new(), directory: suite.path("src"), apart: Arc::default() };
    let lax = Script { pipefail: false, ..suite.script("true") };
    assert!(suite.needs.of(&lax, &place).is_err());
}

#[test]
fn names_that_are_not_plain_are_sent_as_well() {
    let suite = Suite::new();
    for name in ["other/a b", "other/c=1,d", "other/deep/e", "out/left"] {
        let path = suite.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    for (command, name) in [
        ("sed 'r%r/lib/deep/d.ll' x", "lib/deep/d.ll"),
        ("sed 'r %r/other/a b' x", "other/a b"),
        ("cat \"%r/other/a b\"", "other/a b"),
        ("cat --x=%r/other/c=1,d", "other/c=1,d"),
        ("cd %r/other/deep && cat ../c=1,d", "other/c=1,d"),
        ("cat left", "out/left"),
        ("cat ./left", "out/left"),
    ] {
        assert!(suite.names(command).contains(&name.to_owned()), "{command}: {:?}", suite.names(command));
    }
}

#[test]
fn a_pattern_needs_all_that_it_could_meet() {
    let suite = Suite::new();
    assert!(suite.names("echo %r/lib/deep/*.ll").contains(&"lib/deep/d.ll".to_owned()));
    assert!(suite.sent("echo %r/li?/deep").is_err(), "that directory has other tests");
}

#[test]
fn links_to_directories_are_followed_once() {
    let suite = Suite::new();
    fs::create_dir(suite.path("named")).unwrap();
    symlink("../lib", suite.path("named/link")).unwrap();
    symlink("../../named", suite.path("lib/deep/back")).unwrap();
    symlink("nowhere", suite.path("named/dangling")).unwrap();
    let (names, order) = suite.sent("true -I%r/named").unwrap();
    assert!(names.contains("lib/deep/d.ll"), "{names:?}");
    assert!(order.links.iter().any(|(link, _)| link.ends_with("named/dangling")), "{order:?}");
}

#[test]
fn empty_directories_are_made() {
    let suite = Suite::new();
    fs::create_dir_all(suite.path("lib/empty/below")).unwrap();
    let (_, order) = suite.sent("true %r/lib").unwrap();
    assert!(order.directories.iter().any(|directory| directory.ends_with("lib/empty/below")), "{order:?}");
}

#[test]
fn a_directory_with_something_else_than_files_stays_here() {
    use std::os::unix::ffi::OsStrExt;
    let at = |suite: &Suite, name: &[u8]| suite.path("lib").join(std::ffi::OsStr::from_bytes(name));
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let suite = Suite::new();
    pipe(&at(&suite, b"pipe"));
    assert!(suite.sent("true %r/lib").is_err());
    let suite = Suite::new();
    symlink("/dev/null", at(&suite, b"device")).unwrap();
    assert!(suite.sent("true %r/lib").is_err());
    let suite = Suite::new();
    fs::write(at(&suite, b"not-\xff"), "").unwrap();
    assert!(suite.sent("true %r/lib").is_err());
    let suite = Suite::new();
    pipe(&suite.path("src/pipe"));
    assert!(suite.sent("true").is_err(), "beside the test");
}

#[test]
fn what_variables_name_is_sent() {
    let suite = Suite::new();
    let place =
        Elsewhere { name: String::new(), directory: suite.path("src"), apart: [suite.path("src")].into() };
    let with = |name: &str, value: String| {
        let mut script = suite.script("true");
        script.env = Arc::new([("PATH", "/bin"), (name, value.as_str())].into_iter().collect());
        let mut files = Files::default();
        suite.needs.of(&script, &place).map(|needed| needed.add_to(&mut files, &mut HashSet::new()))?;
        Ok::<_, String>(files.paths().any(|path| path == suite.path("lib/deep/d.ll")))
    };
    let lib = suite.path("lib").display().to_string();
    assert_eq!(with("DATA", format!("x:{lib}:/missing")), Ok(true));
    assert_eq!(with("DATA", String::new()), Ok(false));
    assert_eq!(with("HOME", lib), Ok(false));
    assert!(with("LC_ALL", "de_DE.UTF-8".to_owned()).is_err());
    assert!(with("TZ", "Europe/Berlin".to_owned()).is_err());
}

#[test]
fn a_suite_with_outputs_among_its_tests_names_no_directory_of_other_tests() {
    let suite = Suite::new();
    let of = |command: &str| {
        let script = Script { cwd: suite.path("src/sub"), ..suite.script(command) };
        let place = Elsewhere {
            name: String::new(),
            directory: suite.path("src/sub"),
            apart: [suite.path("src"), suite.path("src/sub")].into(),
        };
        suite.needs.of(&script, &place).is_ok()
    };
    assert!(of("cd %r/src/sub"));
    assert!(!of("true -I%r/src"));
}
