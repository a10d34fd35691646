//! A tool that leaves its process in every possible state: what a reset restores, and when the process retires.

mod common;

use common::{Case, Victim, case, compile, processes_of, resetting_launcher, start};
use hotstart_launch::{Choice, Launcher, OnDoubt, Policy, Retirement, Stopped, ToolStatistics, Via};
use hotstart_model::Status;

const ROUNDS: usize = 6;

fn dirty() -> Victim {
    tool("dirty")
}

fn tool(name: &str) -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join(name);
    let source = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/{}.c"), name);
    compile(std::path::Path::new(&source), &program, &["-pthread"]);
    Victim { dir, program }
}

fn dirty_case(args: &[&str]) -> Case {
    let mut case = case(args);
    case.argv[0] = "dirty".to_owned();
    case.env.push(("LC_ALL", "C".to_owned()));
    case
}

/// Runs the case several times in persistent processes, and compares each run with a cold one. Returns the tool's statistics.
fn as_cold(args: &[&str]) -> ToolStatistics {
    let victim = dirty();
    let warm = resetting_launcher(&["dirty"]);
    let case = dirty_case(args);
    let (expected, _) = start(&Launcher::new(), &victim, &case);
    for round in 0..ROUNDS {
        let (ran, exit) = start(&warm, &victim, &case);
        assert_eq!(ran, expected, "{args:?} in round {round}, {:?}", exit.via);
        assert!(exit.via.is_warm() && !exit.lost, "{exit:?}");
    }
    warm.statistics().tools.remove(0)
}

#[test]
fn everything_a_tool_may_change_is_put_back() {
    for end in ["return", "exit", "_exit", "quick_exit"] {
        let tool = as_cold(&["all", "7", end]);
        assert_eq!(tool.only_forked, None, "{end}");
        assert_eq!(
            (tool.forks, tool.resets, tool.audits),
            (1, ROUNDS as u64 - 1, ROUNDS as u64 - 1),
            "{end}"
        );
        assert!(tool.retired.is_empty(), "{tool:?}");
    }
}

#[test]
fn what_is_set_by_no_function_of_its_name_is_put_back() {
    // Past libc's names, by the kernel, which resets an action, or by the code to which a handler returns.
    for how in ["unnoticed", "resets", "stack", "library"] {
        let tool = as_cold(&[how, "3", "exit"]);
        assert!(tool.resets == ROUNDS as u64 - 1 && tool.only_forked.is_none(), "{how}: {tool:?}");
    }
}

/// This holds, too, where the pages of an earlier run are used again.
#[test]
fn memory_is_mapped_and_unmapped_as_in_a_fresh_process() {
    let victim = tool("maps");
    let warm = resetting_launcher(&["maps"]);
    let seeds: Vec<String> = (0..24).map(|seed| seed.to_string()).collect();
    let cold: Vec<_> = seeds.iter().map(|seed| start(&Launcher::new(), &victim, &case(&[seed])).0).collect();
    assert!(
        cold.iter().all(|ran| matches!(ran.status, Status::Exited(_)) && ran.stdout.lines().count() > 60)
    );
    for round in 0..4 {
        for (seed, expected) in seeds.iter().zip(&cold) {
            let (ran, exit) = start(&warm, &victim, &case(&[seed]));
            assert_eq!(ran.stdout, expected.stdout, "{seed} in round {round}, {:?}", exit.via);
            assert_eq!(&ran, expected, "{seed} in round {round}, {:?}", exit.via);
            // A call that fails may have changed mappings before.
            let fails = ran.stdout.lines().any(|line| line.starts_with("remap") && line.ends_with(": -1"));
            assert!(exit.doubtful == fails, "{seed} in round {round}: {}", ran.stdout);
        }
    }
    let tool = warm.statistics().tools.remove(0);
    assert!(tool.resets > 40 && tool.retired.keys().all(|why| *why == Retirement::Calls), "{tool:?}");
    let warm = resetting_launcher(&["maps"]);
    for seed in seeds.iter().map(|seed| format!("{seed}c")) {
        let (expected, _) = start(&Launcher::new(), &victim, &case(&[&seed]));
        assert_eq!(start(&warm, &victim, &case(&[&seed])).0, expected, "{seed}");
    }
}

#[test]
fn pages_are_not_kept_where_that_could_be_seen() {
    let victim = tool("maps");
    for (how, retires) in [("1l", true), ("1g", false), ("1r", true), ("1t", true), ("1h", true)] {
        let warm = resetting_launcher(&["maps"]);
        let (expected, _) = start(&Launcher::new(), &victim, &case(&[how]));
        for round in 0..ROUNDS {
            let (ran, exit) = start(&warm, &victim, &case(&[how]));
            assert_eq!(ran, expected, "{how} in round {round}, {:?}", exit.via);
        }
        let tool = warm.statistics().tools.remove(0);
        assert_eq!(!tool.retired.is_empty(), retires, "{how}: {tool:?}");
    }
}

#[test]
fn a_large_block_is_faulted_in_once() {
    let victim = tool("maps");
    let warm = resetting_launcher(&["maps"]);
    let faults: Vec<_> =
        (0..ROUNDS).map(|_| start(&warm, &victim, &case(&["1b"])).1.usage.minor_faults).collect();
    assert!(faults[0] >= 512 && faults[1..].iter().all(|&count| count < 100), "{faults:?}");
}

/// Files that a process held by its mappings are closed when its end is known.
#[test]
fn a_mapped_file_is_closed_before_the_end_is_told() {
    let tool = hold_a_file("hold");
    assert!(tool.resets > 20 && tool.retired.is_empty(), "{tool:?}");
}

/// This holds, too, for an instruction that makes the system call past libc's name for it.
#[test]
fn a_file_that_is_mapped_by_a_raw_call_is_closed_before_the_end_is_told() {
    let tool = hold_a_file("unseen");
    assert!(tool.resets > 20 && tool.retired.is_empty(), "{tool:?}");
}

fn hold_a_file(how: &str) -> ToolStatistics {
    let victim = dirty();
    // Audited runs report their end later.
    let choice = Choice::Only(vec!["dirty".to_owned()]);
    let warm = Launcher::new().with_policy(Policy {
        choice,
        audit_one_in: 0,
        on_doubt: OnDoubt::Bear,
        ..Policy::default()
    });
    let file = victim.dir.path().join("held");
    let how = format!("{how}={}", file.display());
    for round in 0..30 {
        let (ran, exit) = start(&warm, &victim, &dirty_case(&[&how, "5", "exit"]));
        assert_eq!(ran.status, Status::Exited(5), "round {round}, {:?}", exit.via);
        let held = std::fs::File::open(&file).unwrap();
        let free = rustix::fs::flock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        assert!(free.is_ok(), "round {round}, {:?}: {free:?}", exit.via);
    }
    warm.statistics().tools.remove(0)
}

#[test]
fn threads_that_wait_are_ended_as_at_any_end() {
    for end in ["return", "_exit"] {
        let tool = as_cold(&["pool", "3", end]);
        assert!(tool.resets >= ROUNDS as u64 / 2 && tool.only_forked.is_none(), "{tool:?}");
        // A thread that may not have reached its wait is ended at once, with the persistent process.
        as_cold(&["thread", "3", end]);
    }
}

/// A fresh process would be gone before the crash.
#[test]
fn a_thread_that_crashes_behind_the_end_of_main_is_ended_like_any() {
    let tool = as_cold(&["crashes", "4"]);
    assert_eq!((tool.resets, tool.only_forked), (ROUNDS as u64 - 1, None));
}

#[test]
fn a_pending_signal_is_dropped_as_at_any_end() {
    let tool = as_cold(&["pending", "2"]);
    assert_eq!((tool.resets, tool.only_forked), (ROUNDS as u64 - 1, None));
}

#[test]
fn what_cannot_be_put_back_ends_the_worker_and_not_the_answer() {
    let expected = [
        ("deaf", Retirement::Threads),
        ("works", Retirement::Threads),
        ("child", Retirement::Children),
        // A child that has ended may have left others, or changed its parent's limits.
        ("family", Retirement::Children),
        ("limited", Retirement::Children),
        ("timer", Retirement::Timers),
        // The end of a process does not wait for what a socket still holds.
        ("late", Retirement::Calls),
        ("lingers", Retirement::Calls),
        ("permit", Retirement::Calls),
        // ld.so would fault when it binds a function.
        ("protect", Retirement::Calls),
        ("over", Retirement::Calls),
        ("nice", Retirement::Calls),
        ("user", Retirement::Calls),
        ("lends", Retirement::Calls),
        ("mutex", Retirement::Calls),
        ("asks", Retirement::Calls),
    ];
    for (how, why) in expected {
        let tool = as_cold(&[how, "9"]);
        assert_eq!((tool.resets, tool.retired.get(&why)), (0, Some(&2)), "{how}: {tool:?}");
        // After two retirements and no reset it is only forked, for a while.
        assert_eq!((tool.forks, tool.only_forked), (ROUNDS as u64, Some(Stopped::Retires(why))), "{how}");
    }
}

/// The tool, or another process, knows the number: no later run has it.
#[test]
fn a_number_that_was_shown_is_given_up() {
    for how in ["shares", "locks", "listens", "numbered"] {
        let tool = as_cold(&[how, "9"]);
        assert_eq!((tool.forks, tool.resets), (1, ROUNDS as u64 - 1), "{how}: {tool:?}");
        assert!(tool.retired.is_empty() && tool.only_forked.is_none(), "{how}: {tool:?}");
    }
}

#[test]
fn a_tool_that_takes_or_closes_the_workers_socket_ends_as_it_would() {
    for how in ["closes", "takes"] {
        let tool = as_cold(&[how, "4"]);
        assert_eq!((tool.resets, tool.forks), (0, ROUNDS as u64), "{how}: {tool:?}");
    }
}

#[test]
fn a_killed_tool_is_killed_and_the_next_run_is_as_ever() {
    let victim = dirty();
    let warm = resetting_launcher(&["dirty"]);
    for round in 0..10 {
        let (killed, exit) = start(&warm, &victim, &dirty_case(&["", "0", "kill"]));
        assert_eq!((killed.status, exit.lost), (Status::Signaled(9), false), "round {round}");
        assert_eq!(start(&warm, &victim, &dirty_case(&["all", "5"])).0.status, Status::Exited(5));
    }
}

/// Killing a persistent process between two runs loses no run silently: the tool is forked or started cold, or the run is
/// reported as lost.
#[test]
fn a_worker_killed_while_idle_is_noticed() {
    let victim = dirty();
    let warm = resetting_launcher(&["dirty"]);
    for _ in 0..20 {
        let (ran, exit) = start(&warm, &victim, &dirty_case(&["", "3"]));
        assert!(exit.lost || ran.status == Status::Exited(3), "{exit:?}");
        for pid in processes_of(&victim.program) {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    let (ran, exit) = start(&warm, &victim, &dirty_case(&["", "3"]));
    assert!(exit.lost || (ran.status == Status::Exited(3) && exit.via != Via::Reset), "{exit:?}");
}

#[test]
fn a_job_is_told_what_its_worker_had_run_for_others() {
    let victim = dirty();
    let warm = resetting_launcher(&["dirty"]);
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    let groups: Vec<_> = (0..4)
        .map(|job| {
            let group = hotstart_launch::Group::of_job(job);
            let stdio = [std::os::fd::AsFd::as_fd(&null); 3];
            let spec =
                common::plain_spec(&victim.program, &["dirty", "all", "7", "exit"], victim.dir.path(), stdio);
            assert!(warm.start(&spec, &group).expect("it starts").wait().via.is_warm());
            if job == 2 {
                group.doubt_workers();
            }
            group
        })
        .collect();
    let visits: Vec<_> = groups.iter().map(|group| group.visits(8)).collect();
    assert!(visits[0].is_empty(), "a worker just made has run nothing: {visits:?}");
    assert!(visits[3].is_empty(), "a worker that is doubted runs nothing more: {visits:?}");
    let [visit] = visits[2].as_slice() else { panic!("one worker took part: {visits:?}") };
    let jobs: Vec<_> = visit.last.iter().map(|served| served.job).collect();
    assert_eq!((visit.earlier, jobs.as_slice()), (2, [Some(0), Some(1)].as_slice()));
    assert_eq!(
        (visit.command.as_str(), visit.last[0].command.as_str()),
        ("dirty all 7 exit", "dirty all 7 exit")
    );
}

/// A fork tells its zygote of the system calls that have come to the gate by a signal. The next fork makes them by a jump.
#[test]
fn a_zygote_replaces_the_calls_that_its_forks_have_made() {
    let victim = dirty();
    let policy = Policy { choice: Choice::Only(vec!["dirty".into()]), resets: false, ..Policy::default() };
    let warm = Launcher::new().with_policy(policy);
    let case = dirty_case(&["return"]);
    let (expected, _) = start(&Launcher::new(), &victim, &case);
    for round in 0..ROUNDS {
        let (ran, exit) = start(&warm, &victim, &case);
        assert_eq!((ran, exit.via), (start(&Launcher::new(), &victim, &case).0, Via::Fork), "round {round}");
    }
    assert_eq!(start(&warm, &victim, &case).0, expected);
    let zygote = processes_of(&victim.program);
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", zygote[0])).unwrap();
    // The kernel lists a mapping, then its figures.
    let mut is_text = false;
    let written = maps.lines().any(|line| {
        if line.contains(" r-xp ") || line.contains("-p ") && line.contains('/') {
            is_text = line.contains(" r-xp ") && line.contains("/libc.so");
        }
        is_text && line.starts_with("Private_Dirty:") && !line.ends_with(" 0 kB")
    });
    assert!(written, "{maps}");
}
