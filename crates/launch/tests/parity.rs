//! The victim started cold and as a fork, with one table of cases: same output, same status, byte for byte.
//!
//! runtime/tests/victim.c has the victim's output. It is the checklist of everything in which a fork could differ.

mod common;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use common::{
    Case, RESETS, Ran, Victim, await_age, case, compile, plain_spec, processes_of, resetting_launcher, start,
    victim, warm_launcher, without_channel,
};
use hotstart_launch::{
    Choice, Group, Launcher, Limit, Policy, ProcessGroup, Reason, Resource, StartError, Stopped,
    ToolStatistics, Via,
};
use hotstart_model::Status;

fn table() -> Vec<Case> {
    let limit = |resource, value| Limit { resource, soft: Some(value), hard: Some(value) };
    let many: Vec<String> = (0..400).map(|n| format!("argument-{n}")).collect();
    let many: Vec<&str> = std::iter::once("print").chain(many.iter().map(String::as_str)).collect();
    let mut cases = vec![
        case(&[]),
        case(&["print", "", "x y", "\u{fc}"]),
        case(&many),
        case(&["exec", "again"]),
        case(&["exit", "0"]),
        case(&["exit", "42"]),
        case(&["_exit", "43"]),
        case(&["abort"]),
        case(&["overflow"]),
        case(&["alarm"]),
        case(&["timer"]),
        case(&["plugin"]),
        case(&["error"]),
        Case { argv: vec!["/other/path/multicall".into(), "print".into()], ..case(&[]) },
        Case { env: Vec::new(), ..case(&[]) },
        Case { env: vec![("LC_ALL", "C.UTF-8".into()), ("TZ", "UTC".into())], ..case(&[]) },
        Case { env: vec![("LC_ALL", "absent.locale".into()), ("TZ", "absent/zone".into())], ..case(&[]) },
        Case { env: vec![("GLIBC_TUNABLES", "glibc.malloc.perturb=85".into())], ..case(&[]) },
        Case { env: vec![("MALLOC_PERTURB_", "170".into()), ("MALLOC_ARENA_MAX", "1".into())], ..case(&[]) },
        Case { env: vec![("BIG", "b".repeat(60_000))], ..case(&[]) },
        Case { env: vec![("LD_PRELOAD", "libm.so.6".into())], ..case(&[]) },
        Case { input: "", group: Some(ProcessGroup::Inherit), ..case(&[]) },
        Case { extra: true, ..case(&[]) },
    ];
    cases.extend([1, 2, 6, 9, 11, 13, 15].map(|n: i32| case(&["raise", &n.to_string()])));
    cases.push(Case { limits: vec![limit(Resource::FileSize, 1 << 20)], umask: None, ..case(&[]) });
    cases
}

#[test]
fn copies_are_as_fresh_processes() {
    as_fresh_processes(&warm_launcher(&["victim"]), |_| true);
}

#[test]
fn reset_processes_are_as_fresh_ones() {
    let warm = resetting_launcher(&["victim"]);
    as_fresh_processes(&warm, |_| true);
    let tool = &warm.statistics().tools[0];
    assert!(!matches!(tool.only_forked, Some(Stopped::Differs(_))), "{tool:?}");
    // A run that ends as another program retires its persistent process.
    let warm = resetting_launcher(&["victim"]);
    let returns = ["exit", "_exit", "timer", "plugin", "error"];
    (0..2).for_each(|_| {
        as_fresh_processes(&warm, |case| case.argv.get(1).is_some_and(|how| returns.contains(&&**how)))
    });
    let tools = warm.statistics().tools;
    let is_reset = |tool: &ToolStatistics| tool.resets > 8 && tool.audits > 8 && tool.only_forked.is_none();
    assert!(tools.iter().all(|tool| is_reset(tool) == RESETS), "{tools:?}");
}

fn as_fresh_processes(warm: &Launcher, concerns: impl Fn(&Case) -> bool) {
    let victim = victim();
    let cold = Launcher::new();
    for case in table().into_iter().filter(|case| concerns(case)) {
        // With a limit, a cold start goes through the hotstart binary, which a test is not.
        if !case.limits.is_empty() {
            let (ran, exit) = start(warm, &victim, &case);
            assert!(exit.via.is_warm());
            assert!(ran.stdout.contains("Max file size             1048576              1048576"));
            continue;
        }
        let (expected, exit) = start(&cold, &victim, &case);
        assert_eq!(exit.via, Via::Cold(Reason::OnlyWay));
        for round in 0..2 {
            let (mut ran, exit) = start(warm, &victim, &case);
            ran.stdout = without_channel(&ran.stdout);
            let name = &case.argv[..case.argv.len().min(4)];
            let said = || warm.statistics().tools.iter().find_map(|tool| tool.constructors.clone());
            assert!(
                exit.via.is_warm(),
                "{name:?} {:?} in round {round}: {:?} {:?}",
                case.env,
                exit.via,
                said()
            );
            for (ours, theirs) in ran.stdout.lines().zip(expected.stdout.lines()) {
                assert_eq!(ours, theirs, "{name:?} in round {round}, {:?}", exit.via);
            }
            assert_eq!(ran, expected);
        }
    }
}

#[test]
fn a_umask_is_given_to_one_copy_only() {
    let victim = victim();
    let warm = warm_launcher(&["victim"]);
    let umask = |case: &Case| {
        let (ran, exit) = start(&warm, &victim, case);
        assert_eq!(exit.via, Via::Fork);
        ran.stdout.lines().find(|l| l.starts_with("Umask")).unwrap().to_owned()
    };
    let own = umask(&case(&[]));
    assert_eq!(umask(&Case { umask: Some(0o007), ..case(&[]) }), "Umask:\t0007");
    assert_eq!(umask(&case(&[])), own);
}

#[test]
fn what_a_request_cannot_carry_is_started_cold_and_right() {
    let victim = victim();
    let (cold, warm) = (Launcher::new(), warm_launcher(&["victim"]));
    let big: Vec<String> = (0..30_000).map(|n| format!("argument-{n}")).collect();
    let big: Vec<&str> = std::iter::once("print").chain(big.iter().map(String::as_str)).collect();
    let trace = Case { env: vec![("LD_TRACE_LOADED_OBJECTS", "1".into())], ..case(&["exit", "3"]) };
    let debug = Case { env: vec![("LD_DEBUG", "statistics".into())], ..case(&["exit", "3"]) };
    let with_reasons = [
        (case(&big), Reason::LargeRequest),
        (debug, Reason::LoaderVariable),
        (trace, Reason::LoaderVariable),
    ];
    for (case, reason) in with_reasons {
        let (expected, _) = start(&cold, &victim, &case);
        let (ran, exit) = start(&warm, &victim, &case);
        assert_eq!(exit.via, Via::Cold(reason));
        let told = |ran: &Ran| {
            let words = ran.stdout.split_whitespace().filter(|word| !word.starts_with("(0x"));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!((ran.status, told(&ran)), (expected.status, told(&expected)));
    }
}

#[test]
fn a_missing_directory_is_the_same_error() {
    let victim = victim();
    let warm = warm_launcher(&["victim"]);
    start(&warm, &victim, &case(&["exit", "0"]));
    let null = File::open("/dev/null").unwrap();
    let file = victim.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for (place, number) in [(victim.dir.path().join("absent"), libc::ENOENT), (file, libc::ENOTDIR)] {
        let spec = plain_spec(&victim.program, &["victim"], &place, [null.as_fd(); 3]);
        let error = warm.start(&spec, &Group::new()).unwrap_err();
        let StartError::Directory { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.raw_os_error(), Some(number), "{error}");
        assert!(error.to_string().starts_with("cannot enter directory '"), "{error}");
    }
}

#[test]
fn a_replaced_program_or_library_is_noticed_at_once() {
    let victim = victim();
    let dir = victim.dir.path();
    let library = |value: u32| {
        let source = dir.join("lib.c");
        std::fs::write(&source, format!("int value(void) {{ return {value}; }}")).unwrap();
        compile(&source, &dir.join("new.so"), &["-shared", "-fPIC", "-Wl,-soname,libvalue.so"]);
        std::fs::rename(dir.join("new.so"), dir.join("libvalue.so")).unwrap();
        await_age(&dir.join("libvalue.so"));
    };
    let program = |add: u32| {
        let source = dir.join("user.c");
        std::fs::write(&source, format!("int value(void); int main(void) {{ return value() + {add}; }}"))
            .unwrap();
        let library = dir.join("libvalue.so");
        compile(
            &source,
            &dir.join("new"),
            &["-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", library.to_str().unwrap()],
        );
        std::fs::rename(dir.join("new"), &victim.program).unwrap();
        await_age(&victim.program);
    };
    let warm = warm_launcher(&["victim"]);
    library(1);
    program(0);
    for round in 1..12 {
        let expected = if round % 2 == 0 {
            library(round);
            program(0);
            round
        } else {
            library(round);
            round
        };
        for _ in 0..2 {
            let (ran, _) = start(&warm, &victim, &case(&[]));
            assert_eq!(ran.status, Status::Exited(expected as i32));
        }
    }
    assert!(warm.statistics().tools.iter().any(|t| t.forks > 10), "{:?}", warm.statistics());
}

#[test]
fn a_killed_zygote_loses_no_start() {
    let victim = victim();
    let warm = warm_launcher(&["victim"]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for pid in processes_of(&victim.program) {
                    // Zygotes lead their own group and have no controlling argument; forks run "exit".
                    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                    if line.windows(5).all(|w| w != b"exit\0") && !line.is_empty() {
                        let pid = rustix::process::Pid::from_raw(pid).unwrap();
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                }
            }
        });
        for round in 0..150 {
            let (ran, _) = start(&warm, &victim, &case(&["exit", &(round % 100).to_string()]));
            if ran.status != Status::Exited(round % 100) {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert_eq!(ran.status, Status::Exited(round % 100));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn unfit_tools_are_cold_with_their_reason() {
    let victim = victim();
    let dir = victim.dir.path();
    let build = |name: &str, source: &str, flags: &[&str]| {
        let file = dir.join(format!("{name}.c"));
        std::fs::write(&file, source).unwrap();
        compile(&file, &dir.join(name), flags);
    };
    let main = "int main(void) { return 5; }";
    build("static", main, &["-static"]);
    build("asan", main, &["-fsanitize=address"]);
    build("setuid", main, &[]);
    std::fs::set_permissions(dir.join("setuid"), PermissionsExt::from_mode(0o4755)).unwrap();
    std::fs::write(dir.join("script"), format!("#!/bin/sh\nexit 5\n{}", "#".repeat(80))).unwrap();
    std::fs::set_permissions(dir.join("script"), PermissionsExt::from_mode(0o755)).unwrap();
    let before =
        |what: &str| format!("__attribute__((constructor)) static void c(int n, char **v) {{ {what} }}");
    let with =
        |name: &str, heads: &str, what: &str| build(name, &format!("{heads}\n{}\n{main}", before(what)), &[]);
    with(
        "thread",
        "#include <pthread.h>\nstatic void *t(void *p) { for (;;) ; return p; }",
        "pthread_t p; pthread_create(&p, 0, t, 0);",
    );
    with("opens", "#include <fcntl.h>", "open(\"/dev/null\", O_RDONLY);");
    with("shares", "#include <sys/mman.h>", "mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);");
    with("timer", "#include <unistd.h>", "alarm(1000);");
    with("virtual", "#include <sys/time.h>", "struct itimerval t = {{9, 0}, {9, 0}}; setitimer(1, &t, 0);");
    with("timers", "#include <time.h>\n#include <signal.h>", "timer_t t; timer_create(1, 0, &t);");
    with("epoll", "#include <sys/epoll.h>", "epoll_create1(0);");
    let attach = "int id = shmget(0, 4096, 0600); shmat(id, 0, 0); shmctl(id, 0, 0);";
    with("sysv", "#include <sys/shm.h>", attach);
    with(
        "blocks",
        "#include <signal.h>",
        "sigset_t s; sigemptyset(&s); sigaddset(&s, 10); sigprocmask(0, &s, 0);",
    );
    with("random", "#include <sys/random.h>\nstatic char r[16];", "getrandom(r, 16, 0);");
    with(
        "random_byte",
        "#include <sys/random.h>\nstatic char r;",
        "getrandom(&r, 1, GRND_NONBLOCK); r &= 4;",
    );
    with(
        "kept_random",
        "#include <sys/auxv.h>\nstatic int r; int h(void) { return r; }",
        "r = *(char *)getauxval(AT_RANDOM) & 4;",
    );
    with("setenv", "#include <stdlib.h>", "setenv(\"X\", \"1\", 1);");
    with("writes", "#include <unistd.h>", "write(1, \"x\", 1);");
    with("keeps", "static char *name; int f(void) { return !name; }", "name = v[0];");
    with("cwd", "#include <unistd.h>\nstatic char b[4096];", "getcwd(b, sizeof b);");
    with("pid", "#include <unistd.h>\nstatic int p; int g(void) { return p; }", "p = getpid();");
    with("clock", "#include <time.h>\nstatic long p; long g(void) { return p; }", "p = time(0);");
    let expected = [
        ("static", Reason::Static),
        ("asan", Reason::Instrumented),
        ("setuid", Reason::Privileged),
        ("script", Reason::Script),
        ("thread", Reason::Threads),
        ("opens", Reason::Descriptors),
        ("shares", Reason::SharedMemory),
        ("timer", Reason::Timers),
        ("virtual", Reason::Timers),
        ("timers", Reason::Timers),
        ("epoll", Reason::Descriptors),
        ("sysv", Reason::SharedMemory),
        ("blocks", Reason::Signals),
        ("random", Reason::ReadsClock),
        ("random_byte", Reason::ReadsClock),
        ("kept_random", Reason::ConstructorsDiffer),
        ("setenv", Reason::ReadsEnvironment),
        ("writes", Reason::Stdio),
        ("keeps", Reason::KeepsArguments),
        ("cwd", Reason::ReadsDirectory),
        ("pid", Reason::ReadsIdentity),
        ("clock", Reason::ReadsClock),
    ];
    let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    let warm = warm_launcher(&names);
    for (name, reason) in expected {
        let tool = Victim { dir: tempfile::tempdir().unwrap(), program: dir.join(name) };
        for _ in 0..2 {
            let (ran, exit) = start(&warm, &tool, &case(&[]));
            assert_eq!((ran.status, exit.via), (Status::Exited(5), Via::Cold(reason)), "{name}");
        }
    }
}

/// The strings of a request lie where the zygote's own were.
#[test]
fn a_tool_that_keeps_a_pointer_to_a_variable_is_cold() {
    for kept in ["getenv(\"MODE\")", "(char *)((unsigned long)getenv(\"MODE\") ^ 1)"] {
        let victim = victim();
        let source = victim.dir.path().join("keeps.c");
        let text = format!(
            "#include <stdlib.h>\nstatic char *v; __attribute__((constructor)) static void c(void) {{ v = {kept}; }} \
             int main(void) {{ return v == 0; }}"
        );
        std::fs::write(&source, text).unwrap();
        compile(&source, &victim.program, &[]);
        let warm = warm_launcher(&["victim"]);
        for _ in 0..3 {
            let case = Case { env: vec![("MODE", "1".into())], ..case(&[]) };
            let (ran, exit) = start(&warm, &victim, &case);
            assert_eq!((ran.status, exit.via.is_warm()), (Status::Exited(0), false), "{kept}");
        }
    }
}

#[test]
fn what_a_constructor_asked_for_joins_the_key() {
    let victim = victim();
    let source = victim.dir.path().join("asks.c");
    std::fs::write(
        &source,
        "#include <stdlib.h>\nstatic int v; __attribute__((constructor)) static void c(void) \
         { char *t = getenv(\"MODE\"); v = t ? atoi(t) : 0; } int main(void) { return v; }",
    )
    .unwrap();
    compile(&source, &victim.program, &[]);
    let warm = warm_launcher(&["victim"]);
    for mode in [1, 1, 2, 3, 2, 1, 0] {
        let case = Case { env: vec![("MODE", mode.to_string()), ("OTHER", "x".repeat(mode))], ..case(&[]) };
        let (ran, exit) = start(&warm, &victim, &case);
        assert_eq!((ran.status, exit.via), (Status::Exited(mode as i32), Via::Fork));
    }
}

#[test]
fn a_program_that_takes_addresses_of_library_functions_can_call_them() {
    let victim = victim();
    let source = victim.dir.path().join("address.c");
    // Without position independence, the address of malloc is the program's own jump to it.
    std::fs::write(
        &source,
        "#include <stdlib.h>\nvoid *(*volatile get)(size_t) = malloc; int main(void) \
         { char *a = get(3), *b = malloc(4); return a && b ? 6 : 1; }",
    )
    .unwrap();
    compile(&source, &victim.program, &["-no-pie", "-fno-pic"]);
    let (ran, exit) = start(&warm_launcher(&["victim"]), &victim, &case(&[]));
    assert_eq!((ran.status, exit.via), (Status::Exited(6), Via::Fork));
}

#[test]
fn many_threads_share_the_zygotes() {
    let victim = victim();
    let warm = warm_launcher(&["victim"]);
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let one = |code: i32| {
        let argv = ["victim", "exit", &code.to_string()];
        let spec = plain_spec(&victim.program, &argv, victim.dir.path(), [null.as_fd(); 3]);
        let exit = warm.start(&spec, &Group::new()).expect("it starts").wait();
        assert_eq!(exit.status, Status::Exited(code));
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let one = &one;
            scope.spawn(move || (0..40).for_each(|n| one(thread * 10 + n % 10)));
        }
    });
    let tools = warm.statistics().tools;
    assert_eq!(tools[0].forks + tools[0].cold_total(), 320);
    assert!(tools[0].cold.keys().all(|reason| *reason == Reason::Busy), "{tools:?}");
    assert!(tools[0].forks > 50, "{tools:?}");
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn retired_zygotes_leave_nothing_behind() {
    let victim = victim();
    let choice = Choice::Only(vec!["victim".into()]);
    let policy = Policy { choice, starts_per_zygote: 5, resets: false, ..Policy::default() };
    let warm = Launcher::new().with_policy(policy);
    for _ in 0..52 {
        let (_, exit) = start(&warm, &victim, &case(&["exit", "0"]));
        assert_eq!(exit.via, Via::Fork);
    }
    let tools = warm.statistics().tools;
    assert_eq!(tools[0].zygotes, 11, "52 starts at 5 for each zygote");
    // Every retired zygote has been reaped by now or will be soon. The last one is idle.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while processes_of(&victim.program).len() > 1 && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(processes_of(&victim.program).len(), 1);
    assert!(open_descriptors() < 120);
    drop(warm);
    while !processes_of(&victim.program).is_empty() && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(processes_of(&victim.program), [0; 0]);
}
