//! Tools that `not` starts are warm too, with the same results as cold.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::stop::{await_end_of, await_text};
use crate::suite::{Run, Suite};

/// Returns the directory of `not`, `tool` (a shell), `broken` (not executable), and `other` (`not` by another name).
fn programs() -> &'static Path {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    let make = || {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lit/not.c");
        let compile = |name: &str, more: &[&str]| {
            let mut cc = Command::new("cc");
            let built = cc.args(["-O1", "-o"]).arg(dir.path().join(name)).arg(source).args(more).output();
            let built = built.expect("cc runs");
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        };
        compile("not", &[]);
        compile("other", &[]);
        compile("broken", &["-Wl,--dynamic-linker=/nowhere/ld.so"]);
        std::fs::copy("/bin/sh", dir.path().join("tool")).expect("a shell");
        dir
    };
    DIRECTORY.get_or_init(make).path()
}

fn suite(lines: &[(&str, &str)]) -> Suite {
    let dir = programs().display();
    let substitutions = ["not", "tool", "broken", "other"]
        .map(|name| format!("config.substitutions.append(('%{name}', '{dir}/{name}'))\n"));
    let suite = Suite::new(&substitutions.concat());
    for (name, line) in lines {
        suite.file(&format!("{name}.test"), line);
    }
    suite
}

/// Returns the number of warm and cold starts by `not`.
fn nested(run: &Run) -> (u32, u32) {
    let line =
        run.err.lines().find_map(|line| line.strip_prefix("hotstart: what 'not' started: started warm "));
    let Some(line) = line else { return (0, 0) };
    let (warm, cold) = line.split_once(", left to the client (cold) ").expect("both are told");
    (warm.parse().expect("a count"), cold.parse().expect("a count"))
}

const WARM: [&str; 5] = ["-j1", "--order=lexical", "--start=rewind", "--verify=0", "--explain"];

fn warm(suite: &Suite, more: &[&str]) -> Run {
    suite.run(&[&WARM[..], more, &["."]].concat())
}

/// Returns the tests' output files, by name.
fn outputs(suite: &Suite) -> Vec<(PathBuf, Vec<u8>)> {
    let files =
        std::fs::read_dir(suite.path("Output")).expect("tests wrote").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "out")).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(&path).expect("it can be read"))).collect()
}

fn verdicts(run: &Run) -> Vec<&str> {
    run.out
        .lines()
        .filter(|line| line.contains(" t :: "))
        .filter_map(|line| line.split(" (").next())
        .collect()
}

#[test]
fn it_is_as_cold_in_everything_that_it_can_see() {
    let script = "%not %tool -c 'read -r line; echo $line; echo $A $# \"$@\"; pwd; umask; ulimit -a; \
                  echo error >&2; exit 3' name x 'a b' '' < %s >> %t.out 2>&1";
    let lines = [
        ("plain", format!("RUN: {script}\n").repeat(4)),
        ("variable", format!("RUN: env A=ü {script}\n").repeat(4)),
        (
            "directory",
            format!("RUN: mkdir -p %t.dir\nRUN: cd %t.dir\n{}", format!("RUN: {script}\n").repeat(3)),
        ),
        ("files", format!("RUN: ulimit -n 300\n{}", format!("RUN: {script}\n").repeat(3))),
        ("mask", format!("RUN: umask 027\n{}", format!("RUN: {script}\n").repeat(3))),
        ("pipe", "RUN: echo in | %not %tool -c 'read line; echo $line; exit 1' | sort > %t.out\n".repeat(3)),
        ("fails", "RUN: %not %tool -c 'exit 0' > %t.out\n".to_owned()),
        ("killed", "RUN: %not %tool -c 'echo a; kill -9 $$' > %t.out\n".to_owned()),
        ("crashes", "RUN: %not %tool -c 'echo a; kill -11 $$' > %t.out\n".to_owned()),
    ];
    let lines: Vec<_> = lines.iter().map(|(name, text)| (*name, &text[..])).collect();
    let suite = suite(&lines);
    let cold = suite.run(&["-j1", "--order=lexical", "--cold", "."]);
    let cold_outputs = outputs(&suite);
    assert_eq!(cold_outputs.len(), lines.len());
    let clean = || std::fs::remove_dir_all(suite.path("Output")).expect("it is ours");
    for start in ["--start=fork", "--start=rewind"] {
        clean();
        let run = warm(&suite, &[start]);
        assert_eq!(verdicts(&run), verdicts(&cold), "{start}");
        assert_eq!(outputs(&suite), cold_outputs, "{start}");
        // A test whose tool is ended by a signal proves nothing: it runs again without counting as a failure.
        run.ends_with(1).warns("failures confirmed cold: 1;");
        // Failing tests run again, cold.
        assert_eq!(nested(&run), (23, 0), "{run:#?}");
    }
    clean();
    warm(&suite, &["--parity=rewind"]).ends_with(1).warns("faults of hotstart: 0\n");
}

#[test]
fn what_cannot_be_executed_is_no_status_of_the_program() {
    let suite = suite(&[("a", "RUN: %not %tool -c 'exit 1'\n"), ("b", "RUN: %not %broken\n")]);
    suite.run(&["--cold", "."]).ends_with(1).has("PASS: t :: a.test").has("FAIL: t :: b.test");
    warm(&suite, &[]).ends_with(1).has("PASS: t :: a.test").has("FAIL: t :: b.test");
}

#[test]
fn only_not_and_what_lies_beside_it_is_meant() {
    let made = "RUN: %not /bin/sh -c 'exit 1'\nRUN: cp %tool %t-tool\nRUN: %not %t-tool -c 'exit 1'\n";
    let suite = suite(&[("a", "RUN: %other %tool -c 'exit 1'\n"), ("b", made)]);
    let run = warm(&suite, &[]);
    assert_eq!(nested(run.ends_with(0)), (0, 0));
}

#[test]
fn tools_that_are_to_be_cold_are_cold_there_too() {
    let line = "RUN: %not %tool -c 'exit 1'\n";
    let kept = suite(&[("a", line)]);
    let run = warm(&kept, &["--keep-cold=tool"]);
    assert_eq!(nested(run.ends_with(0)), (0, 1));
    run.warns("        1 cold: the settings say so\n");
    assert_eq!(nested(warm(&kept, &["--start=cold"]).ends_with(0)), (0, 0));
    // A cold start prints nothing where a test could see it.
    let kept =
        suite(&[("a", "RUN: env HOTSTART_EXEC=explain %not %tool -c 'exit 1' 2> %t\nRUN: not test -s %t\n")]);
    warm(&kept, &["--keep-cold=tool"]).ends_with(0);
    let asked = suite(&[("a", &format!("# HOTSTART-COLD: tool\n{line}"))]);
    assert_eq!(nested(warm(&asked, &[]).ends_with(0)), (0, 0));
}

#[test]
fn what_is_to_crash_is_cold() {
    let suite = suite(&[("a", "RUN: %not --crash %tool -c 'kill -11 $$'\n")]);
    assert_eq!(nested(warm(&suite, &[]).ends_with(0)), (0, 0));
}

#[test]
fn a_difference_makes_it_cold_everywhere() {
    // No tool can show how it was started. This one counts its runs: the first two are warm, the others cold.
    let seen = "RUN: %not %tool -c 'if test -e $0.2; then echo cold; elif test -e $0; then : > $0.2; \
                else : > $0; fi; exit 1' %S/seen > %t.out\n";
    let suite = suite(&[("a", seen), ("b", "RUN: %tool -c 'exit 0'\n")]);
    let run = warm(&suite, &["--start=fork", "--parity=fork"]);
    assert_eq!(nested(&run).0, 2, "{run:#?}");
    run.warns("faults of hotstart: 1\n").warns("cold 1: a warm start differed from a cold one\n");
}

#[test]
fn what_is_left_behind_ends_with_the_run() {
    let line = "RUN: %not %tool -c 'exit 1'\n\
                RUN: sh -c 'while ! test -s %t.pid; do :; done; echo' | \
                %not --leave %tool -c 'echo $$ >> %S/pids; echo > %t.pid; exec sleep 1000' > %t.out 2>&1\n";
    let suite = suite(&[("a", line)]);
    warm(&suite, &["--start=fork"]).ends_with(0);
    let pids = std::fs::read_to_string(suite.path("pids")).expect("written by the test");
    // The run is doubtful, as it does not wait for its child. The cold run leaves the same process as under lit.
    let [warm, cold] = pids.lines().collect::<Vec<_>>()[..] else { panic!("one of each run: {pids:?}") };
    await_end_of(warm.parse().expect("a process number"));
    assert!(Command::new("kill").arg(cold).status().expect("kill starts").success());
}

#[test]
fn it_is_in_its_tests_process_group() {
    let show = "read -r pid name state parent group rest < /proc/$$/stat; echo $group";
    let line = format!(
        "RUN: %tool -c '{show}' > %t.1\nRUN: %not %tool -c '{show}; exit 1' > %t.2\nRUN: diff %t.1 %t.2\n"
    );
    let run = warm(&suite(&[("a", &line)]), &[]);
    run.ends_with(0);
    assert_eq!(nested(&run), (1, 0), "{run:#?}");
}

#[test]
fn its_time_is_its_own() {
    let run = warm(&suite(&[("a", "RUN: %not %tool -c 'exit 1'\n")]), &["--time-by=tool"]);
    let has = |end: &str| run.out.lines().any(|line| line.ends_with(end));
    assert!(has(" 1  tool") && has(" 1  not"), "{run:#?}");
}

#[test]
fn without_a_place_for_the_socket_it_is_cold() {
    let suite = suite(&[("a", "RUN: %not %tool -c 'exit 1'\n")]);
    let long = suite.path(&"t".repeat(100));
    std::fs::create_dir(&long).unwrap();
    let mut command = suite.command(&[&WARM[..], &["."]].concat());
    let run = Run::from(command.env("TMPDIR", &long).output().expect("hotstart starts"));
    run.ends_with(0).has("PASS: t :: a.test");
    run.warns("hotstart: what 'not' started was cold: the path").warns("is too long for a socket\n");
}

const LASTING: &str = "RUN: %not %tool -c 'exit 1'\nRUN: %not %tool -c 'exit 1'\n\
                       RUN: %not %tool -c 'sleep 1000 & echo $! $$ > %t.pid; wait'\n";

fn await_pids(suite: &Suite) -> Vec<i32> {
    let pids = await_text(&suite.path("Output/a.test.tmp.pid"));
    pids.split_whitespace().map(|pid| pid.parse().expect("a process number")).collect()
}

/// The runner waits for its end from the first of these programs on. What it does afterwards makes the run doubtful all the same.
#[test]
fn what_it_does_unfollowed_is_not_believed() {
    let look = "RUN: %not --look > %t 2>&1\n";
    let suite = suite(&[("a", look), ("b", look), ("c", look)]);
    let run = warm(&suite, &["--warm=not"]);
    run.ends_with(1).has("  Failed: 3 (100.00%)");
}

/// No server starts a script: it is `not`'s own child, and looks at its parent.
#[test]
fn a_child_that_may_look_at_it_makes_it_doubtful() {
    use std::os::unix::fs::PermissionsExt;
    let look = "RUN: %not %S/look\n";
    let names: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    let lines: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), look)).collect();
    let suite = suite(&lines);
    let script = suite.file("look", "#!/bin/sh\nif grep -q hotstart /proc/$PPID/maps; then exit 1; fi\n");
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    let run = warm(&suite, &["--warm=not"]);
    run.ends_with(1).has("  Failed: 8 (100.00%)").warns("cold 6: its recent runs started others");
}

#[test]
fn a_timeout_ends_it_with_its_test() {
    let suite = suite(&[("a", LASTING)]);
    let run = warm(&suite, &["--timeout=2"]);
    run.ends_with(1).has("TIMEOUT: t :: a.test");
    assert_eq!(nested(&run).0, 3, "{run:#?}");
    await_pids(&suite).into_iter().for_each(await_end_of);
}

#[test]
fn the_runners_end_is_its_end() {
    use rustix::process::Signal;
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let suite = suite(&[("a", LASTING)]);
        let place = suite.path("tmp");
        std::fs::create_dir(&place).unwrap();
        let mut command = suite.command(&[&WARM[..], &["."]].concat());
        command.env("TMPDIR", &place).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("hotstart starts");
        let pids = await_pids(&suite);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it runs");
        child.wait_with_output().expect("hotstart ends");
        pids.into_iter().for_each(await_end_of);
        let begun = std::time::Instant::now();
        while std::fs::read_dir(&place).unwrap().next().is_some() {
            assert!(begun.elapsed().as_secs() < 10, "{signal:?}: the directory is still there");
            std::thread::yield_now();
        }
    }
}
