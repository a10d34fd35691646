//! Runs scripts that are accepted natively both ways, and compares success, output and files.

mod generate;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use hotstart_launch::{Group, Launcher};
use hotstart_model::{
    ColdTools, Command, Dialect, Environment, ExternalShell, Interpreter, RunBy, Script, Step, Transcript,
};
use hotstart_shell::run_script;

/// A directory in which a script runs, with a few files and programs in it.
struct Space {
    dir: tempfile::TempDir,
}

/// The observable result of a run, without the messages of shells.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    success: bool,
    stdout: String,
    files: BTreeMap<PathBuf, String>,
}

/// Prints its arguments, its input, and its surroundings if asked; fails or dies if told to. It always reads all of its
/// input, so that no writer dies of SIGPIPE at random.
const SHOW: &str = r#"#!/bin/sh
[ "$1" = -read ] || cat > /dev/null
for arg in "$@"; do printf '[%s]' "$arg"; done
case $1 in
  -read) printf '<'; cat; printf '>' ;;
  -env) printf '%s %s %s %s %s' "$PWD" "$OLDPWD" "$SHLVL" "$A" "$B" ;;
  -err) echo "to stderr" >&2 ;;
  -exit) exit "$2" ;;
  -die) kill -SEGV $$ ;;
esac
echo
"#;

/// A program that does as LLVM's `not`, built once. Linked into each space: a copy could still be open for writing in a child of another
/// test when it is started.
fn not() -> PathBuf {
    static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/native/not.c");
        let mut cc = std::process::Command::new("cc");
        assert!(cc.arg(source).arg("-o").arg(dir.path().join("not")).status().unwrap().success());
        dir
    });
    BUILT.path().join("not")
}

impl Space {
    /// The directory always has the same name, so that it causes no difference.
    fn new() -> Self {
        let space = Space { dir: tempfile::tempdir().unwrap() };
        space.reset();
        space
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// Restores the initial files.
    fn reset(&self) {
        for entry in fs::read_dir(self.root()).unwrap().flatten() {
            let path = entry.path();
            let is_dir = entry.file_type().unwrap().is_dir();
            if is_dir { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        for dir in ["first", "bin", "work/sub", "out"] {
            fs::create_dir_all(self.root().join(dir)).unwrap();
        }
        let show = self.root().join("bin/show");
        fs::write(&show, SHOW).unwrap();
        fs::set_permissions(&show, fs::Permissions::from_mode(0o755)).unwrap();
        fs::hard_link(not(), self.root().join("bin/not")).unwrap();
        for name in ["a.c", "b.c", "B.c", ".hidden.c", "in"] {
            fs::write(self.root().join("work").join(name), format!("text of {name}\n")).unwrap();
        }
    }

    fn script(&self, commands: &[String], may_be_native: bool, dialect: Dialect) -> Script {
        let root = self.root();
        let command = |(index, text): (usize, &String)| Command {
            label: format!("RUN: at line {}", index + 1),
            text: text.replace("%R", &root.display().to_string()),
        };
        let path = format!("{0}/first:{0}/bin:/usr/bin:/bin", root.display());
        let env = [("PATH", path.as_str()), ("A", "a  b")].into_iter().collect::<Environment>();
        Script {
            commands: commands.iter().enumerate().map(command).collect(),
            dialect,
            interpreter: Interpreter::External(ExternalShell {
                shell: "/bin/bash".into(),
                // A refused script must not run here: the comparison would mean nothing.
                script_path: if may_be_native { "/nowhere/t.script".into() } else { root.join("t.script") },
                prefix: Vec::new(),
                may_be_native,
            }),
            pipefail: true,
            cwd: root.join("work"),
            make_dirs: Vec::new(),
            env: Arc::new(env),
            timeout: None,
            tmp_base: root.join("t"),
            captures: false,
            lit_package_dir: None,
            lit_python: None,
            cold: ColdTools::None,
            wraps: Default::default(),
        }
    }

    fn run(&self, commands: &[String], may_be_native: bool, dialect: Dialect) -> (RunBy, Seen) {
        self.reset();
        let script = self.script(commands, may_be_native, dialect);
        let transcript = run_script(&script, &Launcher::new(), &Group::new());
        let _ = fs::remove_file(self.root().join("t.script"));
        let seen = Seen {
            success: transcript.exit_code == Some(0) && transcript.fault.is_none(),
            stdout: stdout(&transcript),
            files: files(&self.root()),
        };
        (transcript.run_by, seen)
    }

    /// Runs both ways. Returns which shell ran the script if the native one was allowed, and both results.
    fn both(&self, commands: &[String], dialect: Dialect) -> (RunBy, Seen, Seen) {
        let (run_by, native) = self.run(commands, true, dialect);
        let (asked, bash) = self.run(commands, false, dialect);
        assert_eq!(asked, RunBy::AsAsked);
        (run_by, native, bash)
    }
}

/// Returns the output that was not redirected: all of bash's, and that of each last stage of the internal shell.
fn stdout(transcript: &Transcript) -> String {
    let mut out = transcript.stdout.clone();
    for step in &transcript.steps {
        match step {
            Step::Stage(stage) if stage.position.0 + 1 == stage.position.1 => out.push_str(&stage.stdout),
            _ => {}
        }
    }
    out
}

fn files(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            // A link may lead to a pipe of this very process.
            let text = match kind.is_symlink() {
                true => fs::read_link(&path).unwrap().display().to_string(),
                false if kind.is_fifo() => "a pipe".to_owned(),
                false => fs::read_to_string(&path).unwrap_or_default(),
            };
            match kind.is_dir() {
                true => dirs.push(path),
                false => drop(found.insert(path, text)),
            }
        }
    }
    found
}

fn commands(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

/// Each writer has more to say than a pipe holds, so it dies unless somebody reads on.
#[test]
fn a_writer_whose_reader_has_ended_dies() {
    let space = Space::new();
    for text in [
        "seq 1 300000 | head -1",
        "seq 1 300000 | head -1 | cat",
        "seq 1 300000 2>&1 | head -1",
        "seq 1 300000 | tail -1",
    ] {
        let commands = commands(text);
        for dialect in [Dialect::V19, Dialect::V23] {
            let (run_by, native, bash) = space.both(&commands, dialect);
            assert_eq!(bash.success, text.contains("tail"), "{text}");
            assert_eq!((run_by, native), (RunBy::Native, bash), "{text}");
        }
    }
}

#[test]
fn what_is_within_means_the_same_to_both() {
    let space = Space::new();
    for text in [
        "show a 'b  c' \"d\\\"e\\\\f\\g\" h\\ i '' j'k'\"l\" '$x `y` *' \"'\" a#b x~ ! = {no",
        "show -read < in | show -read | show -read > %R/out/f",
        "show -err > %R/out/f 2>&1",
        "show -err 2> %R/out/e | show -read",
        "show -err 2>&1 | show -read",
        "show -err &> %R/out/f && show -err >& %R/out/g",
        "echo a >> %R/out/f\necho b >> %R/out/f",
        "echo -n a\\b '  c' \"d\\n\" > %R/out/f",
        "echo 'a\\tb' | cat",
        "show %R/work/*.c %R/work/?.c %R/work/none*",
        "show -exit 3",
        "show -exit 3 || echo b",
        "show -exit 3 ; echo c",
        "show -exit 3 && echo d",
        "show -exit 3 || show -exit 2 ; echo e && echo f || echo g",
        "show -exit 3 | show -read",
        "! show -exit 3",
        "! show",
        "not show -exit 3",
        "not show -die",
        "not --crash show -die",
        "not no-such-program",
        "! no-such-program",
        "not env B=1 show -exit 1",
        "env A=1 B=2 show -env && show -env",
        "env -u A show -env",
        "env A=1 not show -exit 3 | show -read",
        "show -env",
        "cd %R/work/sub\nshow -env\ncd %R/out\nshow -env > f",
        "cd %R/nowhere\necho a",
        "cd %R/nowhere || echo a",
        "cd %R/work/in",
        "export A='x  y'\nexport B=1\nshow -env",
        "mkdir -p d/e && touch d/f && rm -rf d && test ! -e d",
        "mkdir sub",
        "rm sub",
        "rm -f none",
        "cat in none",
        "cat a.c b.c | diff - a.c",
        "true && false || true",
        "test -f in && test in -nt none\n: anything 'at all'\ntest 1 -eq 2",
        "show < none",
        "show > %R/none/f || echo a",
        "no-such-program || echo a",
        "./none",
        "%R/bin/show x",
        "",
        "true\n\nfalse\necho no",
        "show -die | show -read",
        "show 1>%R/out/f",
    ] {
        let commands = commands(text);
        for dialect in [Dialect::V19, Dialect::V23] {
            let (run_by, native, bash) = space.both(&commands, dialect);
            let may_differ = !bash.success && native.success != bash.success;
            assert!(!may_differ && (!native.success || native == bash), "{text}\n{native:#?}\n{bash:#?}");
            let is_refused = ["{no", "1>", "./none"].iter().any(|part| text.contains(part));
            assert_eq!(matches!(run_by, RunBy::Refused(_)), is_refused, "{text}: {run_by:?}");
            assert!(!native.success || !matches!(run_by, RunBy::Doubted(_)), "{text}: {run_by:?}");
            // bash runs a failed script again. After a doubt it may succeed.
            if matches!(run_by, RunBy::Native) && bash.success {
                assert!(native.success, "{text}: {native:#?}");
            }
        }
    }
}

/// What scripts do before a doubt is of no effect on bash's run, but it ends the native one.
#[test]
fn a_doubt_in_the_middle_ends_a_script_without_success() {
    let space = Space::new();
    for text in [
        "ln -s %R/work %R/l && cd %R/l && ln -sfn %R/out %R/l && touch x || true",
        "cd %R/work/sub\nmv %R/work/sub %R/sub\nmkdir %R/work/sub\n! test -e %R/sub/f",
        "ln -s /dev/fd/255 out ; ! test -e out",
        "ln -s /proc/self/fd/1 out ; echo a > out ; true",
        "ln -s /proc/self/exe out ; %R/work/out -c false ; true",
        "ln -s /proc/self out ; cd %R/work/out ; true",
        "touch \u{e9} ; show %R/work/? ; true",
        "touch \u{e9} ; show %R/work/*.c ; true",
        // Errors of the shell itself.
        "show < none || echo a",
        "no-such-program || echo a",
        "! no-such-program",
        // bash looks a name up once. Its own programs and builtins are the system's.
        "cp %R/bin/show %R/bin/ls && ls && rm %R/bin/ls && ls",
        "cp %R/bin/show %R/bin/ls ; ls ; cp %R/bin/show %R/first/ls ; ls",
        "cp %R/bin/show %R/bin/true ; true",
        "cp %R/bin/show %R/bin/test ; test -e %R/none",
        "cp %R/bin/show %R/bin/echo ; echo a | cat",
        "cp %R/bin/show %R/bin/env ; env A=1 show",
        "cp %R/bin/show %R/first/not ; not show -exit 1",
        "touch %R/first/show ; show",
    ] {
        for dialect in [Dialect::V19, Dialect::V23] {
            let (run_by, native) = space.run(&commands(text), true, dialect);
            assert!(matches!(run_by, RunBy::Doubted(_)) && !native.success, "{text}: {run_by:?}");
        }
    }
}

/// All commands share the streams of the shell, and none waits for what an earlier one has left.
#[test]
fn streams_outlive_their_commands() {
    let space = Space::new();
    let set = "fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK)";
    let get = "sys.exit(not fcntl.fcntl(1, fcntl.F_GETFL) & os.O_NONBLOCK)";
    let nonblocking = format!(
        "python3 -c 'import os, fcntl; {set}'\npython3 -c 'import os, sys, fcntl; {get}' && show -err | cat"
    );
    for text in [
        "mkfifo p\nsh -c 'echo a > p &'\ncat p",
        "mkfifo p q\nsh -c '(read a < p; echo b > made; echo > q) &'\n! test -e made\nsh -c 'echo > p; read a < q'\ntest -e made",
        "sh -c 'while :; do echo a; done & echo $! > pid'\nsh -c 'kill $(cat pid)' > %R/out/f",
        "sh -c 'yes while & echo $! > pid'\nsh -c 'kill $(cat pid)' > %R/out/f",
        "sh -c 'sleep 0.2; echo late' | cat\nsh -c '(sleep 0.2; echo later) &'",
        "cp in /dev/stdin\nshow -read | cat > %R/out/f",
        &nonblocking,
    ] {
        let script = commands(text);
        let (run_by, mut native, mut bash) = space.both(&script, Dialect::V23);
        assert!(native.success, "{text}: {native:#?}");
        if text.contains("while") {
            (native.stdout, bash.stdout) = Default::default();
            native.files.retain(|path, _| !path.ends_with("pid"));
            bash.files.retain(|path, _| !path.ends_with("pid"));
        }
        assert_eq!((run_by, native), (RunBy::Native, bash), "{text}");
    }
}

#[test]
fn a_directory_that_stays_is_no_doubt() {
    let space = Space::new();
    for text in [
        "ln -s %R/work %R/l && cd %R/l && show -env && echo a > b && cat b && cd %R/out && show -env > c",
        "cd %R/work/sub && touch a && rm a && cd %R && rm -rf work/sub",
        "ln -s %R/out out && echo a > out/f && test -e out/../out/f && test -h out && show %R/work/out/*",
        "ln -s /dev/null null && show -err > null 2>&1 && test -e null && show < null",
        "ln -s none dangling && ! test -e dangling && echo a > dangling && test -s none",
    ] {
        for dialect in [Dialect::V19, Dialect::V23] {
            let (run_by, native, bash) = space.both(&commands(text), dialect);
            assert!(native.success, "{text}: {native:#?}");
            assert_eq!((run_by, native), (RunBy::Native, bash), "{text}");
        }
    }
}

#[test]
fn variables_of_bash_that_are_accepted_are_handed_on() {
    let space = Space::new();
    for name in [
        "HOME",
        "HOSTNAME",
        "LANG",
        "LC_ALL",
        "LC_COLLATE",
        "LC_CTYPE",
        "LC_MESSAGES",
        "LC_MONETARY",
        "LC_NUMERIC",
        "LC_TIME",
        "MAIL",
        "SHELL",
        "SHLVL",
        "TERM",
        "TMPDIR",
        "a_b",
    ] {
        let value = match name {
            "SHLVL" => "3",
            "LANG" | "LC_ALL" | "LC_CTYPE" => "C.UTF-8",
            _ => "/tmp",
        };
        let run = |may_be_native| {
            space.reset();
            let mut script =
                space.script(&commands(&format!("printenv {name}")), may_be_native, Dialect::V23);
            Arc::make_mut(&mut script.env).set(name, value);
            let transcript = run_script(&script, &Launcher::new(), &Group::new());
            (transcript.run_by.clone(), transcript.exit_code, stdout(&transcript))
        };
        let (native, bash) = (run(true), run(false));
        assert_eq!(native, (RunBy::Native, bash.1, bash.2), "{name}");
        assert_eq!(bash.1, Some(0), "{name}");
    }
}

#[test]
fn generated_scripts_that_succeed_natively_succeed_in_bash_with_the_same_effects() {
    let space = Space::new();
    let rounds = std::env::var("HOTSTART_NATIVE_SCRIPTS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let (mut within, mut passed) = (0, 0);
    for seed in 0..rounds {
        let commands = generate::script(seed);
        let dialect = if seed % 2 == 0 { Dialect::V19 } else { Dialect::V23 };
        let (run_by, native) = space.run(&commands, true, dialect);
        if run_by != RunBy::Native {
            continue;
        }
        within += 1;
        if !native.success {
            continue;
        }
        passed += 1;
        let (_, bash) = space.run(&commands, false, dialect);
        assert_eq!(native, bash, "seed {seed}: {commands:#?}");
    }
    assert!(within * 6 > rounds && passed * 12 > rounds, "{within} of {rounds} within, {passed} passed");
}
