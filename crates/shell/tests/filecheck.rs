//! FileChecks that pass without a process, and those that receive their input later, give the same record as with a
//! process.
//!
//! Needs a FileCheck of LLVM 15 or newer in /usr/lib/llvm-*/bin; without one, the tests say so and check nothing.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotstart_launch::{Choice, Group, Launcher, Policy};
use hotstart_model::{Command, Dialect, Environment, Interpreter, Script, Stage, Step, Transcript};
use hotstart_shell::{FileChecks, Starts, run_script_with};

/// Says why nothing is tested, past the test harness, which keeps the output of tests that pass.
fn skipped(why: &str) {
    std::io::stderr().write_all(format!("not tried: {why}\n").as_bytes()).unwrap();
}

fn installed() -> Option<PathBuf> {
    let dirs = fs::read_dir("/usr/lib").ok()?.filter_map(|dir| Some(dir.ok()?.path()));
    let version = |dir: &PathBuf| dir.file_name()?.to_str()?.strip_prefix("llvm-")?.parse::<u32>().ok();
    let known = dirs.filter(|dir| version(dir).is_some_and(|version| version >= 15));
    let found = known.map(|dir| dir.join("bin/FileCheck")).find(|file| file.is_file());
    if found.is_none() {
        skipped("no FileCheck of LLVM 15 or newer is installed: nothing to compare with");
    }
    found
}

/// A launcher that starts this program warm.
fn warm(name: &str) -> Launcher {
    let choice = Choice::Only(vec![name.to_owned()]);
    let mut launcher = Launcher::new().with_policy(Policy { choice, ..Policy::default() });
    launcher.prepare_warm();
    launcher
}

struct Space {
    dir: tempfile::TempDir,
    env: Arc<Environment>,
    filechecks: FileChecks,
}

impl Space {
    fn new(filecheck: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}:/usr/bin:/bin", filecheck.parent().unwrap().display());
        let env: Environment = [("PATH", path.as_str())].into_iter().collect();
        let filechecks = FileChecks::new(Arc::new(warm("FileCheck")), None);
        assert!(filechecks.test_now(filecheck, &env), "{:?}", filechecks.counts());
        Space::with(dir, env, filechecks)
    }

    fn with(dir: tempfile::TempDir, env: Environment, filechecks: FileChecks) -> Self {
        fs::write(dir.path().join("check"), "CHECK: a\nCHECK-NEXT: b\n").unwrap();
        fs::write(dir.path().join("any"), "CHECK: {{.}}\n").unwrap();
        fs::write(dir.path().join("options"), "b\n").unwrap();
        fs::write(dir.path().join("good"), "a\nb\n").unwrap();
        fs::write(dir.path().join("bad"), "a\nc\n").unwrap();
        Space { dir, env: Arc::new(env), filechecks }
    }

    fn run(&self, text: &str, matches: bool, captures: bool) -> Transcript {
        let script = Script {
            commands: vec![Command { label: "RUN: at line 1".into(), text: text.into() }],
            dialect: Dialect::V23,
            interpreter: Interpreter::Internal,
            pipefail: true,
            cwd: self.dir.path().canonicalize().unwrap(),
            make_dirs: Vec::new(),
            env: self.env.clone(),
            timeout: None,
            tmp_base: self.dir.path().join("t"),
            captures,
            cold: hotstart_model::ColdTools::None,
            lit_package_dir: None,
            lit_python: None,
            wraps: Default::default(),
        };
        let filechecks = matches.then_some(&self.filechecks);
        let (launcher, group) = (&Launcher::new(), &Group::new());
        run_script_with(&script, Starts { launcher, group, filechecks, is_repeatable: true })
    }

    /// How many FileChecks started at once because their check file had no directive.
    fn without_directive(&self) -> u64 {
        self.filechecks.counts().left.get("a prefix without a directive").copied().unwrap_or_default()
    }
}

/// Returns the record without times.
fn timeless(transcript: &Transcript) -> Transcript {
    let mut timeless = Transcript { matched: 0, ..transcript.clone() };
    for step in &mut timeless.steps {
        if let Step::Stage(stage) = step {
            *stage = Stage { wall: Duration::ZERO, cpu: Duration::ZERO, ..stage.clone() };
        }
    }
    timeless
}

#[test]
fn the_record_is_the_same() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    let matched: &[(&str, usize)] = &[
        ("/bin/cat good | FileCheck check", 1),
        ("/bin/cat good | FileCheck check 2>&1", 1),
        ("/bin/cat good | /bin/cat | FileCheck check", 1),
        ("FileCheck check < good", 1),
        ("FileCheck check --input-file=good", 1),
        ("/bin/cat good | env FILECHECK_OPTS=--match-full-lines FileCheck check", 1),
        ("FileCheck check < good && /bin/cat good | FileCheck check", 2),
        // Failures, and undecided cases.
        ("/bin/cat bad | FileCheck check", 0),
        ("/bin/cat bad | FileCheck check 2>&1", 0),
        ("FileCheck check < bad", 0),
        ("FileCheck check --input-file=bad", 0),
        ("FileCheck check --input-file=missing", 0),
        ("/bin/cat good | FileCheck missing", 0),
        ("/bin/cat good | FileCheck check -v", 0),
        // LLVM reads options from such a file, even where it is a value.
        ("FileCheck check --implicit-check-not @options --input-file=good", 0),
        ("/bin/cat good | env FILECHECK_OPTS='--implicit-check-not @options' FileCheck check", 0),
        // To FileCheck the kernel's files are as long as they say: empty.
        ("FileCheck any --input-file=/proc/version", 0),
        ("FileCheck any --input-file=/proc/self/cwd/good", 0),
        ("env A=a\0b FileCheck check < good", 0),
        ("FileCheck check", 0),
        // Cases that the matcher does not accept.
        ("/bin/cat bad | not FileCheck check", 0),
        ("/bin/cat good | FileCheck check | /bin/cat", 0),
        ("/bin/cat good | FileCheck check > out", 0),
        ("sh -c 'cat good; exit 3' | FileCheck check", 1),
    ];
    for &(text, count) in matched {
        for capture in [false, true] {
            let (with, without) = (space.run(text, true, capture), space.run(text, false, capture));
            assert_eq!(timeless(&with), timeless(&without), "{text}");
            assert_eq!(with.matched, count, "{text}: {:?}", space.filechecks.counts());
        }
    }
}

/// The FileCheck of lit reads its check file at its start, and would fail. Here the real one would start when its input is complete.
#[test]
fn a_check_file_that_changes_meanwhile_makes_the_run_outdated() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    let mut outdated = 0;
    for _ in 0..30 {
        fs::write(space.dir.path().join("late"), "CHECK: old\n").unwrap();
        let late = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo CHECK: new > late; echo new";
        let empty = space.without_directive();
        let transcript = space.run(&format!("sh -c '{late}' | FileCheck late"), true, false);
        // One that is outdated ends there.
        assert_eq!(transcript.exit_code, (!transcript.is_outdated).then_some(0));
        // If the script was faster, the matcher has read the new file, as FileCheck may have, or the file while it was empty.
        let was_empty = space.without_directive() > empty;
        assert!(
            transcript.is_outdated || transcript.matched == 1 || was_empty,
            "{:?}",
            space.filechecks.counts()
        );
        outdated += usize::from(transcript.is_outdated);
    }
    assert!(outdated > 0);
}

/// lit's FileCheck opens its check file some 10 ms after its start, and finds what the other stage has written there for a moment.
#[test]
fn a_check_file_that_is_another_one_for_a_moment_makes_a_pass_outdated() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    let other = "echo CHECK: never > moment; echo CHECK: new > moment";
    let wait = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    for text in [
        format!("sh -c '{wait}; {other}; echo new' | FileCheck moment"),
        format!("sh -c 'echo new; exec >&-; {wait}; {other}' | FileCheck moment"),
    ] {
        let mut outdated = 0;
        for _ in 0..10 {
            fs::write(space.dir.path().join("moment"), "CHECK: new\n").unwrap();
            let transcript = space.run(&text, true, false);
            // If the script was faster, this is the file in between or the new one.
            outdated += usize::from(transcript.is_outdated && transcript.matched == 1);
        }
        assert!(outdated > 0, "{text}");
    }
    let transcript = space.run("/bin/cat good | FileCheck check", true, false);
    assert_eq!((transcript.matched, transcript.is_outdated), (1, false));
}

#[test]
fn a_filecheck_that_cannot_be_started_does_not_pass() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    let dir = space.dir.path().canonicalize().unwrap();
    let dir = dir.display();
    let gone = format!(
        "mkdir gone && cd gone && rm -rf {dir}/gone && FileCheck {dir}/check --input-file={dir}/good"
    );
    let large = format!("FileCheck check --input-file=good -DX={}", "a".repeat(200_000));
    for text in [gone, large] {
        let _ = fs::remove_dir(space.dir.path().join("gone"));
        let (with, without) = (space.run(&text, true, false), space.run(&text, false, false));
        assert_eq!(timeless(&with), timeless(&without));
        assert!(with.matched == 0 && with.exit_code != Some(0), "{with:?}");
    }
}

/// lit's FileCheck would have been started before. Here it cannot be started any more.
#[test]
fn a_directory_that_goes_before_a_late_start_makes_the_run_outdated() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    let dir = space.dir.path().canonicalize().unwrap();
    let dir = dir.display();
    // The matcher does not decide about a carriage return.
    let late = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let goes = format!("{late}; rm -r {dir}/gone; printf \"b\\\\rb\\\\n\"");
    let text = format!("mkdir gone && cd gone && sh -c '{goes}' | FileCheck {dir}/any");
    let mut outdated = 0;
    for _ in 0..10 {
        let transcript = space.run(&text, true, false);
        outdated += usize::from(transcript.is_outdated && transcript.exit_code.is_none());
        // If the script was faster, FileCheck cannot be started there, nor could it by lit.
        assert!(transcript.is_outdated || transcript.exit_code == Some(127), "{transcript:?}");
    }
    assert!(outdated > 0);
}

#[test]
fn what_is_too_large_is_handed_over_as_it_comes() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    fs::write(space.dir.path().join("check"), "CHECK: last\n").unwrap();
    let text = "sh -c 'yes | head -c 40000000; echo last' | FileCheck check";
    let transcript = space.run(text, true, false);
    assert_eq!((transcript.exit_code, transcript.matched), (Some(0), 0));
    assert!(transcript.is_outdated, "it has started late");
    assert_eq!(space.filechecks.counts().left.get("size"), Some(&1));
}

/// It may have found other files than it would have at the start of its pipeline.
#[test]
fn a_pass_of_a_filecheck_that_starts_late_proves_nothing() {
    let Some(filecheck) = installed() else { return };
    let cache = tempfile::tempdir().unwrap();
    let run = |space: &Space, text: &str| {
        let transcript = space.run(text, true, false);
        (transcript.exit_code, transcript.matched, transcript.is_outdated)
    };
    // The matcher decides nothing about a carriage return within a line.
    let left = "printf 'a\\nb\\rb\\n' | FileCheck check";
    let space = remembering(&filecheck, cache.path(), NEVER);
    assert_eq!(run(&space, left), (Some(0), 0, true));
    assert_eq!(run(&space, left), (Some(0), 0, false), "the same use starts with its pipeline");
    assert_eq!(run(&space, "/bin/cat bad | FileCheck check"), (Some(1), 0, false), "it is confirmed anyway");
    assert_eq!(run(&space, "/bin/cat good | FileCheck check --match-full-lines"), (Some(0), 1, false));
    drop(space);
    // One of a sample: the pass itself was remembered.
    let space = remembering(&filecheck, cache.path(), 1);
    assert_eq!(run(&space, "/bin/cat good | FileCheck check --match-full-lines"), (Some(0), 0, false));
    assert_eq!(space.filechecks.counts().contradictions, Vec::<String>::new());
}

#[test]
fn a_program_that_only_has_the_name_is_never_believed() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    let wrapper = space.dir.path().join("FileCheck");
    fs::write(&wrapper, format!("#!/bin/sh\nexec {} \"$@\"\n", filecheck.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&wrapper, mode).unwrap();
    assert!(!space.filechecks.test_now(&wrapper, &space.env));
    // `true` passes with any arguments.
    let pretender = space.dir.path().join("FileCheck-true");
    fs::copy("/bin/true", &pretender).unwrap();
    assert!(!space.filechecks.test_now(&pretender, &space.env));
    let transcript = space.run(&format!("/bin/cat good | {} check", pretender.display()), true, false);
    assert_eq!((transcript.exit_code, transcript.matched), (Some(0), 0));
}

/// Nobody knows yet that it is a FileCheck: what comes before it in the pipeline may wait for it.
#[test]
fn a_program_under_test_starts_before_its_input_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let filechecks = FileChecks::new(Arc::new(Launcher::new()), None).expecting(1000, false);
    // The battery never ends: nobody runs it.
    filechecks.begin_testing();
    let env: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let space = Space::with(dir, env, filechecks);
    let program = space.dir.path().join("FileCheck-maker");
    fs::write(&program, "#!/bin/sh\ntouch made\ngrep -q late\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = format!("sh -c 'until [ -e made ]; do :; done; echo late' | {} check", program.display());
    let transcript = space.run(&text, true, false);
    assert_eq!((transcript.exit_code, transcript.matched), (Some(0), 0), "{transcript:?}");
    assert_eq!(space.filechecks.counts().left.get("not put to the test yet"), Some(&1));
}

#[test]
fn a_difference_switches_it_off() {
    let Some(filecheck) = installed() else { return };
    let space = Space::new(&filecheck);
    space.filechecks.quarantine("suite :: test");
    assert_eq!(space.run("/bin/cat good | FileCheck check", true, false).matched, 0);
    assert!(space.filechecks.counts().refused[0].1.contains("suite :: test"));
}

/// Its marks would name the wrapper only, so another FileCheck behind it would not be noticed.
#[test]
fn a_program_that_executes_a_filecheck_is_always_run() {
    let Some(filecheck) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    let source = format!(
        "#include <unistd.h>\nint main(int c, char **v) {{ (void)c; v[0] = \"{0}\"; return execv(v[0], v); }}\n",
        filecheck.display()
    );
    fs::write(at("wrapper.c"), source).unwrap();
    let built =
        std::process::Command::new("cc").args([at("wrapper.c")]).arg("-o").arg(at("FileCheck")).status();
    assert!(built.expect("cc runs").success());
    let env: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let filechecks = FileChecks::new(Arc::new(warm("FileCheck")), None);
    assert!(!filechecks.test_now(&at("FileCheck"), &env));
}

/// A new run with the passes that earlier runs have stored in `cache`.
fn remembering(filecheck: &Path, cache: &Path, sample: u64) -> Space {
    let dir = tempfile::tempdir().unwrap();
    let path = format!("{}:/usr/bin:/bin", filecheck.parent().unwrap().display());
    let env: Environment = [("PATH", path.as_str())].into_iter().collect();
    let filechecks =
        FileChecks::new(Arc::new(warm("FileCheck")), Some(cache.to_owned())).remembering(cache, sample);
    assert!(filechecks.test_now(filecheck, &env), "{:?}", filechecks.counts());
    Space::with(dir, env, filechecks)
}

const NEVER: u64 = u64::MAX;

#[test]
fn a_pass_is_remembered_for_the_same_bytes_only() {
    let Some(filecheck) = installed() else { return };
    let cache = tempfile::tempdir().unwrap();
    let space = remembering(&filecheck, cache.path(), NEVER);
    assert_eq!(space.run("/bin/cat good | FileCheck check", true, false).exit_code, Some(0));
    assert_eq!(space.run("/bin/cat bad | FileCheck check", true, false).exit_code, Some(1));
    assert_eq!(space.filechecks.counts().remembered, 0);
    space.filechecks.save();
    let remembered = |space: &Space, text: &str, code: i32| {
        let before = space.filechecks.counts().remembered;
        let transcript = space.run(text, true, false);
        assert_eq!(transcript.exit_code, Some(code), "{text}");
        space.filechecks.counts().remembered - before
    };
    let space = remembering(&filecheck, cache.path(), NEVER);
    assert_eq!(remembered(&space, "/bin/cat good | FileCheck check", 0), 1);
    assert_eq!(remembered(&space, "FileCheck check < good", 0), 1);
    for other in ["/bin/cat bad | FileCheck check", "/bin/echo c | FileCheck check"] {
        assert_eq!(remembered(&space, other, 1), 0, "{other}");
    }
    assert_eq!(remembered(&space, "/bin/cat good | FileCheck check --match-full-lines", 0), 0);
    assert_eq!(remembered(&space, "/bin/cat good | env FILECHECK_OPTS=--ignore-case FileCheck check", 0), 0);
    fs::write(space.dir.path().join("check"), "CHECK: a\nCHECK-NEXT: c\n").unwrap();
    assert_eq!(remembered(&space, "/bin/cat good | FileCheck check", 1), 0);
    fs::write(space.dir.path().join("check"), "CHECK: a\nCHECK-NEXT: b\n").unwrap();
    assert_eq!(remembered(&space, "/bin/cat good | FileCheck check", 0), 1);
}
