//! Scripts run as a test would run them: statuses, faults, deadlines, pipelines that must not hang, both shells.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotstart_launch::{Group, Launcher};
use hotstart_model::{
    Command, Dialect, ExternalShell, Fault, Interpreter, Script, Stage, Status, Step, Transcript,
};
use hotstart_shell::{Starts, run_script, run_script_with};

struct Space {
    dir: tempfile::TempDir,
}

impl Space {
    fn new() -> Self {
        Space { dir: tempfile::tempdir().unwrap() }
    }

    fn script(&self, commands: &[&str]) -> Script {
        let command = |text: &&str| Command { label: "RUN: at line 1".into(), text: (*text).into() };
        Script {
            commands: commands.iter().map(command).collect(),
            dialect: Dialect::V23,
            interpreter: Interpreter::Internal,
            pipefail: true,
            cwd: self.dir.path().canonicalize().unwrap(),
            make_dirs: Vec::new(),
            env: Arc::new([("PATH", "/usr/bin:/bin")].into_iter().collect()),
            timeout: None,
            tmp_base: self.dir.path().join("t"),
            captures: false,
            cold: hotstart_model::ColdTools::None,
            wraps: Default::default(),
            lit_package_dir: Some("/lit".into()),
            lit_python: Some("/bin/echo".into()),
        }
    }

    fn run(&self, commands: &[&str]) -> Transcript {
        let (launcher, group) = (&Launcher::new(), &Group::new());
        let starts = Starts { launcher, group, filechecks: None, is_repeatable: true };
        run_script_with(&self.script(commands), starts)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }
}

fn stages(transcript: &Transcript) -> Vec<&Stage> {
    let stages = transcript.steps.iter().filter_map(|step| match step {
        Step::Begin(_) => None,
        Step::Stage(stage) => Some(stage),
    });
    stages.collect()
}

#[test]
fn statuses() {
    let table: &[(&str, i32)] = &[
        ("true", 0),
        ("false ; true", 0),
        ("true || false && false", 1),
        ("sh -c 'exit 3' | true", 3),
        ("sh -c 'exit 3' | sh -c 'exit 4'", 4),
        ("sh -c 'kill -SEGV $$'", -11),
        ("not sh -c 'kill -SEGV $$'", 1),
        ("! sh -c 'kill -SEGV $$'", 0),
        ("not not sh -c 'exit 7'", 1),
        ("no-such-program", 127),
        ("echo x 2>&1", 127),
        ("/usr/bin/env --default-signal=INT sh -c 'kill -INT $$; exit 5'", -2),
    ];
    for &(text, status) in table {
        let transcript = Space::new().run(&[text]);
        match status {
            // SIGINT is not ignored there, and lit takes such a death for Ctrl-C.
            -2 => assert!(
                matches!(transcript.fault, Some(Fault::Exception { ref kind, .. }) if kind == "KeyboardInterrupt")
            ),
            _ => assert_eq!((transcript.exit_code, transcript.fault), (Some(status), None), "{text}"),
        }
    }
}

#[test]
fn a_diff_that_not_is_to_start_is_lits_program() {
    let space = Space::new();
    let not = space.dir.path().join("not");
    fs::write(&not, "#!/bin/sh\nshift\nexec \"$@\"\n").unwrap();
    fs::set_permissions(&not, fs::Permissions::from_mode(0o755)).unwrap();
    let mut script = space.script(&["not --crash diff -u a b"]);
    let path = format!("{}:/usr/bin:/bin", space.dir.path().display());
    script.env = Arc::new([("PATH", path.as_str())].into_iter().collect());
    let transcript = run_script(&script, &Launcher::new(), &Group::new());
    let [stage] = stages(&transcript)[..] else { panic!("{transcript:?}") };
    assert_eq!(stage.stdout, "/lit/builtin_commands/diff.py -u a b\n", "`echo` is the Python here");
    assert_eq!(stage.args, ["not", "--crash", "diff", "-u", "a", "b"]);
}

#[test]
fn commands_are_told_with_the_files_they_name() {
    let space = Space::new();
    let transcript = space.run(&["echo a > f", " echo '%{readfile:f}' > g", "true || echo %{readfile:h}"]);
    let told = vec![(1, Some("echo 'a\n' > g".to_owned())), (2, None)];
    assert_eq!((transcript.exit_code, &transcript.announced), (Some(127), &told));
    let stage = stages(&transcript).pop().unwrap();
    assert_eq!(stage.args, ["@echo", "true || echo %{readfile:h}"]);
    assert!(
        stage.stderr.starts_with("File specified in readfile substitution does not exist: "),
        "{stage:?}"
    );
}

#[test]
fn a_failing_command_is_the_last() {
    let space = Space::new();
    let transcript = space.run(&["echo a > f", "", "not echo b", "echo c > f"]);
    assert_eq!(transcript.exit_code, Some(1));
    let begun: Vec<_> = transcript.steps.iter().filter(|step| matches!(step, Step::Begin(_))).collect();
    assert_eq!(begun, [&Step::Begin(0), &Step::Begin(1), &Step::Begin(2)]);
    assert_eq!(space.read("f"), "a\n");
}

#[test]
fn nothing_runs_if_anything_cannot_be_parsed() {
    let space = Space::new();
    let transcript = space.run(&["echo a > f", "true |"]);
    assert!(matches!(transcript.fault, Some(Fault::Parse { command: 1, .. })));
    assert!(!space.dir.path().join("f").exists());
}

#[test]
fn exceptions_are_faults() {
    let space = Space::new();
    let fault = |text| match space.run(&[text]).fault {
        Some(Fault::Exception { kind, message }) => format!("{kind}: {message}"),
        other => panic!("{text}: {other:?}"),
    };
    let missing = space.dir.path().canonicalize().unwrap().join("x");
    assert_eq!(
        fault("true < x"),
        format!("FileNotFoundError: [Errno 2] No such file or directory: '{}'", missing.display())
    );
    assert_eq!(fault("true & true"), "AttributeError: 'Seq' object has no attribute 'args'");
    assert_eq!(fault("echo *"), "TypeError: string argument expected, got 'GlobItem'");
}

#[test]
fn no_pipeline_hangs_or_dies_of_sigpipe() {
    let space = Space::new();
    let big = "seq 1 100000";
    for text in [
        format!("{big} | head -n 1"),
        format!("{big} | true | /bin/cat"),
        format!("{big} > big ; /bin/cat big | true"),
        "/bin/cat big | /bin/cat | sort -n | head -n 1".to_owned(),
        "/bin/cat big | tr 1 2 > out".to_owned(),
        "sh -c 'cat big >&2' | true".to_owned(),
        "sh -c 'cat big >&2' | sh -c 'cat big >&2'".to_owned(),
        "sh -c 'cat big >&2' | sh -c 'cat big >&2' | true".to_owned(),
    ] {
        let transcript = space.run(&[&text]);
        assert_eq!(transcript.exit_code, Some(0), "{text}: {:?}", transcript.fault);
    }
    let transcript = space.run(&["/bin/cat big | head -c 4"]);
    let sizes: Vec<_> = stages(&transcript).iter().map(|stage| stage.stdout.len()).collect();
    assert_eq!(sizes[1], 4);
    assert!(sizes[0] > 500_000, "the rest is drained: {sizes:?}");
}

#[test]
fn what_goes_where() {
    let space = Space::new();
    let script = "sh -c 'printf \"o\\r\\n\"; printf \"e\\r\\n\" >&2' | sh -c 'cat; printf \"e\\r\\n\" >&2'";
    let transcript = space.run(&[script]);
    let seen: Vec<_> = stages(&transcript).iter().map(|s| (s.stdout.as_str(), s.stderr.as_str())).collect();
    // Errors of an earlier stage come from a file, and keep their line ends.
    assert_eq!(seen, [("", "e\r\n"), ("o\n", "e\n")]);
    let transcript = space.run(&["sh -c 'echo out; echo err >&2; exit 1' 2>&1 > f | /bin/cat"]);
    assert_eq!(stages(&transcript)[1].stdout, "err\n");
    assert_eq!(stages(&transcript)[0].redirected[0].data, b"out\n");
    assert_eq!(stages(&transcript)[0].process, Some(Status::Exited(1)));
}

#[test]
fn each_process_has_an_empty_input_of_its_own() {
    let get = "python3 -c 'import fcntl, os; print(fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK)'";
    let set = "python3 -c 'import os; os.set_blocking(0, False)'";
    let transcript = Space::new().run(&[get, set, get]);
    let printed: Vec<_> = stages(&transcript).iter().map(|stage| stage.stdout.clone()).collect();
    assert_eq!(printed[0], printed[2], "a flag of the pipe is seen by the next process");
}

#[test]
fn cat_and_diff_set_pythonpath_for_later_commands() {
    let transcript =
        Space::new().run(&["env A=1 cat", "sh -c 'echo x$PYTHONPATH'", "cat", "sh -c 'echo x$PYTHONPATH'"]);
    let seen: Vec<_> = stages(&transcript).iter().map(|stage| stage.stdout.as_str()).collect();
    assert_eq!(seen, ["", "x\n", "", "x/lit\n"]);
}

/// lit's Python reads files some 20 ms after its start: what other stages do to them meanwhile counts.
#[test]
fn cat_and_diff_beside_other_stages_are_processes() {
    let space = Space::new();
    fs::write(space.dir.path().join("f"), "one\n").unwrap();
    fs::create_dir(space.dir.path().join("d")).unwrap();
    for (text, is_process) in [
        ("cat f | /bin/cat", true),
        ("cat f absent | /bin/cat", true),
        ("echo one | diff f - > out", true),
        ("echo | cat < f | /bin/cat", true),
        ("diff -r d d | /bin/cat", true),
        ("diff -r d d", false),
        ("cat f > out", false),
        ("cat < f", false),
        // Its arguments are wrong.
        ("cat -q f", false),
    ] {
        // What stands in Python's place prints its arguments.
        let transcript = space.run(&[text]);
        let printed = stages(&transcript).last().unwrap().stdout.clone();
        let printed = printed + &fs::read_to_string(space.dir.path().join("out")).unwrap_or_default();
        assert_eq!(printed.contains("/lit/builtin_commands/"), is_process, "{text}: {printed}");
        assert_eq!(transcript.natives, usize::from(!is_process), "{text}");
        let _ = fs::remove_file(space.dir.path().join("out"));
    }
    // Nobody repeats this one.
    let cold = |script: &Script| run_script(script, &Launcher::new(), &Group::new());
    let transcript = cold(&space.script(&["cat f"]));
    assert_eq!(stages(&transcript).last().unwrap().stdout, "/lit/builtin_commands/cat.py f\n");
    // A machine without lit's Python.
    for (text, is_run) in [("cat f", true), ("cat f | /bin/cat", false), ("not --crash cat f", false)] {
        let transcript = cold(&Script { lit_python: None, ..space.script(&[text]) });
        let fault = Fault::Internal("cat: no Python is known".to_owned());
        assert_eq!(transcript.fault, (!is_run).then_some(fault), "{text}");
    }
}

fn run_until_killed(script: &Script) -> Transcript {
    let group = Group::new();
    let marker = script.cwd.join("begun");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run_script(script, &Launcher::new(), &group));
        // The script creates the marker when its processes run.
        while !marker.exists() {
            std::thread::yield_now();
        }
        group.kill();
        running.join().unwrap()
    })
}

#[test]
fn a_deadline_ends_everything() {
    let space = Space::new();
    // The second process leaves the group and keeps the pipe open. We must not wait for it.
    let texts = ["sh -c 'setsid sleep 60 & echo > begun; sleep 60' | cat ; echo more", "echo never"];
    for external in [false, true] {
        let mut script = space.script(&texts);
        script.timeout = Some(Duration::ZERO);
        if external {
            script.interpreter = external_shell(script.cwd.as_path());
        }
        let _ = fs::remove_file(script.cwd.join("begun"));
        let transcript = run_until_killed(&script);
        assert!(transcript.timed_out && transcript.fault.is_none(), "{transcript:?}");
        assert_ne!(transcript.exit_code, Some(0));
        script.timeout = None;
        let _ = fs::remove_file(script.cwd.join("begun"));
        assert_eq!(run_until_killed(&script).fault, Some(Fault::Interrupted));
    }
}

fn external_shell(dir: &Path) -> Interpreter {
    let script_path = dir.join("t.script");
    let (shell, prefix) = ("/bin/bash".into(), Vec::new());
    Interpreter::External(ExternalShell { shell, script_path, prefix, may_be_native: false })
}

#[test]
fn the_external_shell_gets_lits_script() {
    let space = Space::new();
    let mut script = space.script(&["echo 'a b' | (cat; exit 3)", ""]);
    script.interpreter = external_shell(&script.cwd);
    let transcript = run_script(&script, &Launcher::new(), &Group::new());
    assert_eq!((transcript.exit_code, transcript.stdout.as_str()), (Some(3), "a b\n"));
    assert!(
        transcript.stderr.starts_with("echo 'a b' | (cat; exit 3) # RUN: at line 1\n+ "),
        "{}",
        transcript.stderr
    );
    script.dialect = Dialect::V19;
    script.commands[0].text = "printf '\\377'".into();
    let transcript = run_script(&script, &Launcher::new(), &Group::new());
    assert_eq!(transcript.stdout, "b'\\xff'");
    assert!(transcript.stderr.contains("RUN: at line 1 has no command after substitutions\n"));
}
