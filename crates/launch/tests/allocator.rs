//! A tool gets its chosen allocator however it is started, cannot see it, and does not pass it on.

mod common;

use std::path::{Path, PathBuf};

use common::{Case, KINDS, RESETS, Ran, Victim, case, compile};
use hotstart_launch::{
    AllocatorChoice, Allocators, Choice, Launcher, Limit, Policy, Reason, Resource, ToolStatistics, Via,
};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests");

fn allocates() -> (Victim, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    let (program, library) = (at("allocates"), at("liballocator.so"));
    compile(&Path::new(SOURCES).join("allocates.c"), &program, &[]);
    compile(&Path::new(SOURCES).join("allocator.c"), &library, &["-shared", "-fPIC", "-fno-builtin"]);
    (Victim { dir, program }, library)
}

fn of_tool(library: &Path) -> Allocators {
    let tools = vec![("allocates".to_owned(), Some(library.to_owned()))];
    Allocators::new(AllocatorChoice { all: None, tools }).unwrap()
}

fn cold(library: &Path) -> Launcher {
    Launcher::new().with_allocators(of_tool(library))
}

fn warm(library: &Path, resets: bool) -> Launcher {
    let choice = Choice::Only(vec!["allocates".into()]);
    let policy = Policy { choice, resets, audit_one_in: 1, ..Policy::default() };
    cold(library).with_policy(policy)
}

fn run(launcher: &Launcher, victim: &Victim, case: &Case) -> (Ran, Via) {
    let (ran, exit) = common::start(launcher, victim, case);
    assert!(!exit.lost, "{exit:?}");
    (ran, exit.via)
}

fn tool(launcher: &Launcher) -> ToolStatistics {
    launcher.statistics().tools.remove(0)
}

#[test]
fn cold_forked_and_reset_have_it_and_do_not_see_it() {
    let (victim, library) = allocates();
    let case = case(&["child"]);
    let (expected, _) = run(&cold(&library), &victim, &case);
    assert_eq!(
        (expected.stdout.as_str(), expected.stderr.as_str()),
        ("victim: allocator chosen, LD_PRELOAD unset\nchild: allocator system, LD_PRELOAD unset\n", "")
    );
    let (system, _) = run(&Launcher::new(), &victim, &case);
    assert!(system.stdout.starts_with("victim: allocator system"), "{system:?}");
    for &resets in KINDS {
        let launcher = warm(&library, resets);
        // A child retires the persistent process, so only the last run has one.
        let without = common::case(&[]);
        let (alone, _) = run(&cold(&library), &victim, &without);
        for round in 0..6 {
            let is_alone = resets && round < 5;
            let (ran, via) = run(&launcher, &victim, if is_alone { &without } else { &case });
            assert_eq!(&ran, if is_alone { &alone } else { &expected }, "{via:?} in round {round}");
            assert_eq!(via, if resets && round > 0 { Via::Reset } else { Via::Fork });
        }
        let tool = tool(&launcher);
        assert_eq!((tool.allocator.as_deref(), tool.no_allocator), (Some(&*library), None));
        assert_eq!((tool.only_forked.is_none(), tool.audits), (RESETS, if resets { 4 } else { 0 }));
        // The launcher that confirms failures has the allocator, too.
        assert_eq!(run(&launcher.cold(), &victim, &case).0, expected);
    }
}

#[test]
fn the_users_own_preloads_stay_and_limits_are_set() {
    let (victim, library) = allocates();
    for users in ["libm.so.6", ""] {
        let mut case = case(&[]);
        case.env.insert(1, ("LD_PRELOAD", users.to_owned()));
        let expected = format!("victim: allocator chosen, LD_PRELOAD {users}\n");
        case.limits = Vec::new();
        assert_eq!(run(&cold(&library), &victim, &case).0.stdout, expected);
        assert_eq!(run(&warm(&library, true), &victim, &case).0.stdout, expected);
        case.limits = vec![Limit { resource: Resource::FileSize, soft: Some(1 << 20), hard: Some(1 << 20) }];
        assert_eq!(run(&warm(&library, true), &victim, &case).0.stdout, expected);
    }
}

#[test]
fn a_program_that_cannot_have_it_is_started_as_it_is() {
    let (victim, library) = allocates();
    compile(&Path::new(SOURCES).join("allocates.c"), &victim.program, &["-static", "-w"]);
    let launcher = warm(&library, true);
    let (ran, via) = run(&launcher, &victim, &case(&[]));
    assert_eq!(ran.stdout, "victim: allocator system, LD_PRELOAD unset\n");
    assert_eq!(via, Via::Cold(Reason::Static));
    assert_eq!((tool(&launcher).allocator, tool(&launcher).no_allocator), (None, Some(Reason::Static)));
}

/// The requests of such an allocator look like those of the rest of the program. Only jemalloc's clock is allowed.
#[test]
fn an_allocator_within_the_program_may_read_the_coarse_clock_if_it_is_jemalloc() {
    let coarse = "-DALLOCATOR_CLOCK=CLOCK_MONOTONIC_COARSE";
    let is_jemalloc = "-DALLOCATOR_NAME=\"<jemalloc>: \"";
    for (flags, is_warm) in [
        (vec![coarse, "-DALLOCATOR_SEEDS=0", is_jemalloc], true),
        (vec![coarse, "-DALLOCATOR_SEEDS=0"], false),
        (vec!["-DALLOCATOR_CLOCK=CLOCK_MONOTONIC", "-DALLOCATOR_SEEDS=0", is_jemalloc], false),
        (vec![coarse, "-DALLOCATOR_SEEDS=1", is_jemalloc], false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().canonicalize().unwrap().join("allocates");
        let own = Path::new(SOURCES).join("allocator.c");
        let options = [&flags[..], &["-fno-builtin", "-rdynamic", own.to_str().unwrap()]].concat();
        compile(&Path::new(SOURCES).join("allocates.c"), &program, &options);
        is_as_cold(&Victim { dir, program }, is_warm, &flags);
    }
}

/// Whatever library defines `malloc` may keep the time and the random bytes that it asks for before `main`, unless it is known not to.
#[test]
fn an_allocator_that_is_not_known_may_not_ask() {
    for (name, is_warm) in [("libjemalloc.so.2", true), ("libmimalloc.so.2.0", true), ("libcounts.so", false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        let (program, library) = (at("allocates"), at(name));
        compile(&Path::new(SOURCES).join("allocator.c"), &library, &["-shared", "-fPIC", "-fno-builtin"]);
        compile(
            &Path::new(SOURCES).join("allocates.c"),
            &program,
            &["-Wl,--no-as-needed", library.to_str().unwrap()],
        );
        is_as_cold(&Victim { dir, program }, is_warm, &[name]);
    }
}

/// Starts it several times, each as a cold start is, and warm only if `is_warm`.
fn is_as_cold(victim: &Victim, is_warm: bool, told: &[&str]) {
    let choice = Choice::Only(vec!["allocates".into()]);
    let launcher = Launcher::new().with_policy(Policy { choice, audit_one_in: 1, ..Policy::default() });
    let (expected, _) = run(&Launcher::new(), victim, &case(&[]));
    assert!(expected.stdout.contains("allocator chosen"), "{expected:?}");
    for _ in 0..4 {
        let (ran, via) = run(&launcher, victim, &case(&[]));
        assert_eq!((&ran, via.is_warm()), (&expected, is_warm), "{told:?} {via:?}");
        assert!(is_warm || via == Via::Cold(Reason::ReadsClock), "{told:?} {via:?}");
    }
}
