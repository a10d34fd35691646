//! Clones of persistent processes: they behave as cold processes do, and all begin with what one of them has learned.

mod common;

use std::path::Path;

use common::{Case, Victim, case, compile, plain_spec, start};
use hotstart_launch::{
    Child, Choice, Clones, EnvBlock, Group, Launcher, OnDoubt, Policy, ToolStatistics, Via,
};
use hotstart_model::{Environment, Status};

const RUNS: u64 = 24;

/// Returns a launcher in which `name` has a persistent process from its second start on.
fn launcher(name: &str, clones: Clones, audit_one_in: u64) -> Launcher {
    let choice = Choice::Only(vec![name.to_owned()]);
    let policy = Policy {
        choice,
        clones,
        audit_one_in,
        learn_at_once: true,
        on_doubt: OnDoubt::Bear,
        ..Policy::default()
    };
    Launcher::new().with_policy(policy)
}

fn waits(greeting: &str) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("waits");
    build(&program, greeting);
    Victim { dir, program }
}

fn dirty() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("dirty");
    compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/tests/dirty.c"), &program, &["-pthread"]);
    Victim { dir, program }
}

fn build(program: &Path, greeting: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/tests/waits.c");
    compile(&source, program, &["-pthread", &format!("-DGREETING=\"{greeting}\"")]);
}

fn statistics(launcher: &Launcher) -> ToolStatistics {
    launcher.statistics().tools.remove(0)
}

/// Compares each run with a cold one.
fn compare(victim: &Victim, warm: &Launcher, request: impl Fn(u64) -> Case) -> ToolStatistics {
    for round in 0..RUNS {
        let case = request(round);
        let (expected, _) = start(&Launcher::new(), victim, &case);
        let (ran, exit) = start(warm, victim, &case);
        assert_eq!(ran, expected, "round {round}, {:?}", exit.via);
        assert!(exit.via.is_warm() && !exit.lost && !exit.doubtful, "{exit:?}");
    }
    statistics(warm)
}

#[test]
fn the_first_runs_of_clones_are_as_cold_ones() {
    let victim = waits("hello");
    for audit_one_in in [0, 1, 2] {
        let warm = launcher("waits", Clones::Each, audit_one_in);
        let used = compare(&victim, &warm, |round| case(&["some", &round.to_string()]));
        // One memory layout in a hundred is replaced by that of another zygote.
        let replaced = used.zygotes - 1;
        assert!(replaced <= 1, "{used:?}");
        assert_eq!(
            (used.forks, used.clones, used.only_forked.as_ref()),
            (1 + replaced, (RUNS - 1) / 2 - replaced, None),
            "{used:?}"
        );
        assert!(used.retired.is_empty(), "{used:?}");
        // Some come to learn it.
        assert!((RUNS / 2..RUNS).contains(&used.at_point), "{used:?}");
    }
}

#[test]
fn everything_that_a_run_changes_is_put_back_in_its_clones() {
    let victim = dirty();
    for audit_one_in in [0, 1] {
        let warm = launcher("dirty", Clones::Each, audit_one_in);
        let used = compare(&victim, &warm, |_| {
            let mut case = case(&["all", "7", "exit"]);
            case.env.push(("LC_ALL", "C".to_owned()));
            case
        });
        assert_eq!((used.clones, used.only_forked), ((RUNS - 1) / 2, None));
    }
}

/// Starts the program, which then waits.
fn begin<'g>(
    launcher: &'g Launcher,
    victim: &Victim,
    case: &Case,
    input: &std::os::fd::OwnedFd,
    group: &'g Group,
) -> Child<'g> {
    use std::os::fd::AsFd;
    let out = std::fs::File::options().write(true).open("/dev/null").unwrap();
    let cwd = victim.dir.path();
    let argv: Vec<&str> = case.argv.iter().map(String::as_str).collect();
    let mut spec = plain_spec(&victim.program, &argv, cwd, [input.as_fd(), out.as_fd(), out.as_fd()]);
    let env: Environment = case.env.iter().cloned().collect();
    spec.env = EnvBlock::new(&env);
    launcher.start(&spec, group).unwrap()
}

/// Returns how four runs at a time were started, and how they ended. Their first argument is to be "wait".
fn several(launcher: &Launcher, victim: &Victim, case: &Case) -> Vec<(Via, Status)> {
    let (input, end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let groups: Vec<Group> = (0..4).map(|_| Group::new()).collect();
    let children: Vec<_> = groups.iter().map(|group| begin(launcher, victim, case, &input, group)).collect();
    drop(end);
    children.into_iter().map(|child| (child.via(), child.wait().status)).collect()
}

#[test]
fn further_processes_are_clones_once_one_has_learned() {
    let victim = waits("hello");
    let warm = launcher("waits", Clones::OfLearned, 0);
    let before = compare(&victim, &warm, |round| case(&[&round.to_string()]));
    assert_eq!((before.forks, before.clones), (1, 0), "one process was enough");
    let (_, expected) = start(&Launcher::new(), &victim, &case(&["wait"]));
    let ran = several(&warm, &victim, &case(&["wait"]));
    assert_eq!(ran, vec![(Via::Reset, expected.status); 4]);
    let after = statistics(&warm);
    assert_eq!((after.forks, after.clones, after.only_forked.as_ref()), (1, 3, None), "{after:?}");
    assert_eq!(
        after.at_point - before.at_point,
        4,
        "clones know what was learned, and the first ones begin there after a dry run"
    );
    several(&warm, &victim, &case(&["wait"]));
    assert_eq!(statistics(&warm).at_point - after.at_point, 4);
    let none = launcher("waits", Clones::None, 0);
    compare(&victim, &none, |round| case(&[&round.to_string()]));
    several(&none, &victim, &case(&["wait"]));
    assert_eq!((statistics(&none).forks, statistics(&none).clones), (4, 0));
}

/// A program whose state at the deferred snapshot has its thread's number: libc keeps that in locks, and makes clocks of it.
fn holds(held: &str) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("holds");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/tests/holds.c");
    compile(&source, &program, &["-pthread", &format!("-DHELD=\"{held}\"")]);
    Victim { dir, program }
}

const HELD: [&str; 3] = ["locks", "number", "locale"];

fn with_locale(args: &[&str]) -> Case {
    let mut case = case(args);
    case.env.retain(|(name, _)| *name != "LC_ALL");
    case.env.push(("LC_ALL", "C.UTF-8".to_owned()));
    case
}

#[test]
fn where_the_process_number_is_in_what_was_learned_clones_learn_for_themselves() {
    for held in HELD {
        let victim = holds(held);
        for audit_one_in in [0, 1] {
            compare(&victim, &launcher("holds", Clones::Each, audit_one_in), |_| case(&["some"]));
            let warm = launcher("holds", Clones::OfLearned, audit_one_in);
            compare(&victim, &warm, |_| case(&["some"]));
            for _ in 0..8 {
                let ran = several(&warm, &victim, &case(&["wait"]));
                let well = |(via, status): &(Via, Status)| via.is_warm() && *status == Status::Exited(12);
                assert!(ran.iter().all(well), "{held}: {ran:?}");
            }
            let after = statistics(&warm);
            assert!(
                held == "locale" || (1..=3).contains(&after.clones),
                "only until one has failed: {after:?}"
            );
            assert_eq!(after.only_forked, None, "no audit has failed");
        }
    }
}

/// The snapshots of all numbers of arguments are kept as differences to the first one's. That may be half learned when others are on
/// trial, and must not be saved anew then.
#[test]
fn numbers_of_arguments_in_any_order_are_proved_against_what_was_given() {
    const ALL: [&str; 5] = ["wait", "a", "b", "c", "d"];
    for (held, clones) in HELD.iter().flat_map(|held| [(*held, Clones::Each), (*held, Clones::OfLearned)]) {
        let victim = holds(held);
        let warm = launcher("holds", clones, 0);
        let one = |count: usize| {
            let (expected, _) = start(&Launcher::new(), &victim, &with_locale(&ALL[..count]));
            let (ran, exit) = start(&warm, &victim, &with_locale(&ALL[..count]));
            assert_eq!(ran, expected, "{held}, {clones:?}, {count} arguments, {:?}", exit.via);
        };
        let four = |count: usize| {
            let ran = several(&warm, &victim, &with_locale(&ALL[..count]));
            let expected = Status::Exited(11 + count as i32);
            assert!(
                ran.iter().all(|(_, status)| *status == expected),
                "{held}, {clones:?}, {count}: {ran:?}"
            );
        };
        // One number is half learned, and another learned, when the first clones are made.
        [5, 1, 2, 2, 2, 2, 2].into_iter().for_each(one);
        [1, 2, 3, 3, 2].into_iter().for_each(four);
        [2, 3, 2, 1, 4, 2].into_iter().for_each(one);
        for round in 0..24 {
            one(1 + (round * round / 3 + round) % 4);
            four(1 + (round * round / 5 + round) % 4);
        }
    }
}

#[test]
fn no_clone_is_made_of_a_program_that_was_replaced() {
    let victim = waits("old");
    let warm = launcher("waits", Clones::OfLearned, 0);
    compare(&victim, &warm, |round| case(&[&round.to_string()]));
    std::fs::remove_file(&victim.program).unwrap();
    build(&victim.program, "new");
    several(&warm, &victim, &case(&["wait"]));
    assert_eq!(statistics(&warm).clones, 0);
    let (ran, _) = start(&warm, &victim, &case(&["x"]));
    assert!(ran.stdout.contains("new"), "{ran:?}");
}
