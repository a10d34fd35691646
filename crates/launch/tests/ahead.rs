//! Zygotes from the prefork serve the starts that they were made for, and no others.

mod common;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Victim, await_age, case, compile, start};
use hotstart_launch::{Ahead, Choice, EnvBlock, Launcher, Policy, Reason, Via};
use hotstart_model::{Environment, Status};

const SAYS: &str = "#include <stdio.h>\nint main(void) { puts(WORD); return 0; }\n";

fn says(dir: &Path, name: &str, word: &str) -> PathBuf {
    let (source, program) = (dir.join("says.c"), dir.join(name));
    std::fs::write(&source, SAYS).unwrap();
    compile(&source, &program, &[&format!("-DWORD=\"{word}\"")]);
    program
}

/// Announces starts of these programs, each by its name, with the environment of [`case`].
fn expect(ahead: &Arc<Ahead>, programs: &[&Path]) {
    let env: Environment = case(&[]).env.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let tools = programs.iter().map(|program| (program.to_path_buf(), "victim".into())).collect();
    ahead.make(tools, EnvBlock::new(&env));
}

fn launcher_ahead(policy: Policy) -> (Launcher, Arc<Ahead>) {
    let mut launcher = Launcher::new();
    let ahead = launcher.ahead(policy).expect("the system has what it takes");
    (launcher, ahead)
}

/// Returns a launcher with its final settings. Zygotes of these programs were begun before.
fn launcher_expecting(programs: &[&Path]) -> (Launcher, Arc<Ahead>) {
    let (launcher, ahead) = launcher_ahead(after_one());
    expect(&ahead, programs);
    (launcher.with_policy(after_one()), ahead)
}

/// Returns such a launcher that has served `first`. A first start waits half a second for its zygote, which may be too short on a busy
/// machine: then another launcher tries.
fn launcher_that_serves(first: &Path, programs: &[&Path], dir: &Path) -> (Launcher, Arc<Ahead>) {
    first_that(|(launcher, _)| run(launcher, dir, first, &[]).1 == Via::Fork, || launcher_expecting(programs))
}

/// Returns the first of some launchers that serves.
fn first_that<L>(serves: impl Fn(&L) -> bool, make: impl Fn() -> L) -> L {
    std::iter::repeat_with(make).take(20).find(serves).expect("a first start is served")
}

/// Starts the program with one argument, as tests do. Returns its output, and how it was started.
fn run(launcher: &Launcher, dir: &Path, program: &Path, env: &[(&'static str, &str)]) -> (String, Via) {
    let victim = Victim { dir: tempfile::tempdir_in(dir).unwrap(), program: program.to_path_buf() };
    let mut case = case(&["argument"]);
    case.env.extend(env.iter().map(|(name, value)| (*name, value.to_string())));
    let (ran, exit) = start(launcher, &victim, &case);
    assert_eq!(ran.status, Status::Exited(0), "{ran:?}");
    (ran.stdout, exit.via)
}

/// With this policy a first start is cold, unless there is a zygote.
fn after_one() -> Policy {
    Policy { choice: Choice::Auto { after: 1 }, ..Policy::default() }
}

const FIRST: Via = Via::Cold(Reason::FewStarts);

#[test]
fn the_first_start_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (says(dir.path(), "one", "one"), says(dir.path(), "other", "other"));
    let (launcher, _ahead) = launcher_that_serves(&one, &[&one], dir.path());
    assert_eq!(run(&launcher, dir.path(), &one, &[]), ("one\n".into(), Via::Reset));
    assert_eq!(run(&launcher, dir.path(), &other, &[]), ("other\n".into(), FIRST));
    let told = launcher.statistics().tools;
    assert_eq!(told.iter().map(|tool| tool.zygotes).collect::<Vec<_>>(), [1, 0]);
}

/// As LLVM's tools do. A stage's errors go to a temporary file of its owner's, as under lit.
#[test]
fn a_tool_that_looks_at_its_standard_error_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let (source, looks) = (dir.path().join("looks.c"), dir.path().join("looks"));
    let text = "#include <stdio.h>\n#include <sys/stat.h>\nstatic int is_file;\n\
                __attribute__((constructor)) static void look(void)\n\
                { struct stat found; is_file = fstat(2, &found) == 0 && S_ISREG(found.st_mode); }\n\
                int main(void) { printf(\"%d\\n\", is_file); return 0; }\n";
    std::fs::write(&source, text).unwrap();
    compile(&source, &looks, &[]);
    let serves = |(launcher, _): &(Launcher, _)| {
        let victim = Victim { dir: tempfile::tempdir_in(dir.path()).unwrap(), program: looks.clone() };
        let errors = victim.dir.path().join("err");
        std::fs::write(&errors, "").unwrap();
        std::fs::set_permissions(&errors, Permissions::from_mode(0o600)).unwrap();
        let (ran, exit) = start(launcher, &victim, &case(&["argument"]));
        assert_eq!(ran.stdout, "1\n");
        exit.via == Via::Fork
    };
    first_that(serves, || launcher_expecting(&[&looks]));
}

#[test]
fn another_environment_is_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let one = says(dir.path(), "one", "one");
    let serves = |(launcher, _): &(Launcher, _)| {
        assert_eq!(run(launcher, dir.path(), &one, &[("LC_ALL", "C")]), ("one\n".into(), FIRST));
        run(launcher, dir.path(), &one, &[]).1 == Via::Fork
    };
    first_that(serves, || launcher_expecting(&[&one]));
}

#[test]
fn a_program_that_was_replaced_meanwhile_is_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (says(dir.path(), "one", "one"), says(dir.path(), "other", "other"));
    let newer = says(dir.path(), "newer", "newer");
    // Zygotes are made one after the other, so the first one exists then.
    let (launcher, _ahead) = launcher_that_serves(&other, &[&one, &other], dir.path());
    std::fs::rename(&newer, &one).unwrap();
    await_age(&one);
    assert_eq!(run(&launcher, dir.path(), &one, &[]).0, "newer\n");
}

#[test]
fn what_the_settings_keep_cold_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let one = says(dir.path(), "one", "one");
    let (launcher, ahead) = launcher_ahead(Policy { never: vec!["one".into()], ..after_one() });
    expect(&ahead, &[&one]);
    let launcher = launcher.with_policy(after_one());
    assert_eq!(run(&launcher, dir.path(), &one, &[]), ("one\n".into(), FIRST));
}

/// With the most arguments, with two to four, and two whose stacks lie anywhere.
const OBSERVATION_RUNS: usize = 6;

/// Waits until the program has `count` processes.
fn await_processes(program: &Path, count: usize) {
    let until = Instant::now() + Duration::from_secs(10);
    while common::processes_of(program).len() != count {
        assert!(Instant::now() < until, "{:?} of {}", common::processes_of(program), program.display());
        std::thread::yield_now();
    }
}

#[test]
fn what_nobody_asked_for_ends_with_the_launcher() {
    let dir = tempfile::tempdir().unwrap();
    let one = says(dir.path(), "one", "one");
    let (launcher, ahead) = launcher_expecting(&[&one]);
    await_processes(&one, 1);
    drop((launcher, ahead));
    await_processes(&one, 0);
}

#[test]
fn what_does_not_get_to_main_ends_with_the_launcher_and_keeps_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let (source, hangs) = (dir.path().join("hangs.c"), dir.path().join("hangs"));
    let text = "__attribute__((constructor)) static void hang(void) { for (volatile int x = 0;; x++); }\n\
                int main(void) { return 0; }\n";
    std::fs::write(&source, text).unwrap();
    compile(&source, &hangs, &[]);
    let (other, begun) = (says(dir.path(), "other", "other"), Instant::now());
    let (launcher, ahead) = launcher_expecting(&[&hangs, &other]);
    await_processes(&hangs, OBSERVATION_RUNS);
    assert_eq!(run(&launcher, dir.path(), &other, &[]), ("other\n".into(), FIRST));
    drop((launcher, ahead));
    await_processes(&hangs, 0);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_the_settings_that_count_keep_cold_is_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let one = says(dir.path(), "one", "one");
    let (launcher, ahead) = launcher_ahead(after_one());
    expect(&ahead, &[&one]);
    await_processes(&one, 1);
    let launcher = launcher.with_policy(Policy { cold_below: vec![dir.path().to_path_buf()], ..after_one() });
    await_processes(&one, 0);
    assert_eq!(run(&launcher, dir.path(), &one, &[]).1, Via::Cold(Reason::TestOutput));
}

#[test]
fn a_program_has_one_zygote_however_often_it_is_expected() {
    let dir = tempfile::tempdir().unwrap();
    let one = says(dir.path(), "one", "one");
    let _serving = first_that(
        |(launcher, _)| run(launcher, dir.path(), &one, &[]).1 == Via::Fork,
        || {
            let (launcher, ahead) = launcher_ahead(after_one());
            expect(&ahead, &[&one, &one]);
            expect(&ahead, &[&one]);
            (launcher.with_policy(after_one()), ahead)
        },
    );
    // The zygote, and the persistent process that it has made.
    await_processes(&one, 2);
}
