//! Unusual connections and inputs of a tool: terminals, broken pipes, closed descriptors, much of everything. Cold starts,
//! forks and persistent processes must agree.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use common::{Case, KINDS, Victim, case, compile, plain_spec, start, victim, warm_launcher, without_channel};
use hotstart_launch::{Choice, EnvBlock, Exit, Group, Launcher, Limit, Policy, Reason, Resource, Spec, Via};
use hotstart_model::{Environment, Status};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// Starts the victim with these standard streams.
fn start_on(launcher: &Launcher, victim: &Victim, args: &[&str], stdio: [BorrowedFd<'_>; 3]) -> Exit {
    let env: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let argv: Vec<&str> = std::iter::once("victim").chain(args.iter().copied()).collect();
    let spec = Spec { env: EnvBlock::new(&env), ..plain_spec(&victim.program, &argv, Path::new("/"), stdio) };
    launcher.start(&spec, &Group::new()).expect("it starts").wait()
}

/// Calls `run` once with a cold launcher and three times with a warm one. All results must agree.
fn agree<R: PartialEq + std::fmt::Debug>(name: &str, run: impl Fn(&Launcher) -> (R, Via)) {
    // First, since from then on nothing that this process has inherited is passed on.
    let warm = warm_launcher(&[name]);
    let (expected, _) = run(&Launcher::new());
    for round in 0..3 {
        let (ran, via) = run(&warm);
        assert!(via.is_warm(), "{via:?} in round {round}");
        assert!(ran == expected, "{via:?} in round {round}:\n{ran:#?}\nand not\n{expected:#?}");
    }
}

fn terminal() -> (File, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let tool = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    // The time at which the kernel echoes typed input does not depend on the tool.
    let mut settings = tcgetattr(&tool).unwrap();
    settings.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&tool, OptionalActions::Now, &settings).unwrap();
    (File::from(user), tool)
}

#[test]
fn on_a_terminal() {
    let victim = victim();
    agree("victim", |launcher| {
        let (mut user, tool) = terminal();
        user.write_all(b"typed\n\x04").unwrap();
        let exit = start_on(launcher, &victim, &["print"], [tool.as_fd(); 3]);
        drop(tool);
        let mut shown = Vec::new();
        // A terminal ends with an error where a pipe would end.
        let _ = user.read_to_end(&mut shown);
        let shown = without_channel(&String::from_utf8_lossy(&shown));
        assert!(shown.contains("tty 1") && shown.contains("in: typed"), "{shown}");
        ((exit.status, shown), exit.via)
    });
}

#[test]
fn on_streams_that_fail() {
    let victim = victim();
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let write_only = File::options().write(true).open("/dev/null").unwrap();
    let (reader, no_reader) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    drop(reader);
    let (no_writer, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    drop(writer);
    let (null, full) = (null.as_fd(), full.as_fd());
    for stdio in [
        [null, full, null],
        [write_only.as_fd(), null, null],
        [null, no_reader.as_fd(), null],
        [null, null, no_reader.as_fd()],
        [no_writer.as_fd(), null, null],
    ] {
        agree("victim", |launcher| {
            let exit = start_on(launcher, &victim, &["print"], stdio);
            (exit.status, exit.via)
        });
    }
}

/// A shell closes the descriptors and becomes the tool. Here the shell is the warm program.
#[test]
fn on_closed_descriptors() {
    let victim = victim();
    let program = Path::new("/bin/sh").canonicalize().unwrap();
    let name = program.file_name().unwrap().to_str().unwrap().to_owned();
    let shell = Victim { dir: tempfile::tempdir().unwrap(), program };
    for closing in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("echo before; exec {} print {closing}", victim.program.display());
        agree(&name, |launcher| {
            let case = Case { argv: vec!["sh".into(), "-c".into(), script.clone()], ..case(&[]) };
            let (ran, exit) = start(launcher, &shell, &case);
            assert!(ran.stdout.starts_with("before\n"), "{ran:?}");
            let lines: Vec<_> = ran.stdout.lines().chain(ran.stderr.lines()).map(str::to_owned).collect();
            ((ran.status, lines), exit.via)
        });
    }
}

/// Returns variables of `bytes` bytes in all. The victim looks for the last one.
fn variables(count: usize, bytes: usize) -> Vec<(&'static str, String)> {
    let name = |number: usize| -> &'static str { Box::leak(format!("V{number}").into_boxed_str()) };
    let mut env: Vec<_> = (1..count).map(|number| (name(number), "x".repeat(bytes / count))).collect();
    env.push(("LAST", String::new()));
    env
}

#[test]
fn with_much_of_everything() {
    let victim = victim();
    let big = |bytes: usize| vec![("BIG", "b".repeat(bytes)), ("LAST", String::new())];
    let arguments = |count: usize| -> Vec<String> {
        ["victim", "count"]
            .into_iter()
            .map(str::to_owned)
            .chain((0..count).map(|n| format!("argument-{n}")))
            .collect()
    };
    let count = case(&["count"]);
    let warm = warm_launcher(&["victim"]);
    for (case, reason) in [
        (Case { env: big(117 << 10), ..count.clone() }, None),
        (Case { env: big(121 << 10), ..count.clone() }, Some(Reason::LargeRequest)),
        (Case { env: variables(1000, 50_000), ..count.clone() }, None),
        (Case { env: variables(5000, 50_000), ..count.clone() }, Some(Reason::LargeRequest)),
        (Case { env: variables(5000, 1 << 20), ..count.clone() }, Some(Reason::LargeRequest)),
        (Case { argv: arguments(1400), env: big(1), ..count.clone() }, None),
        (Case { argv: arguments(5000), env: big(1), ..count.clone() }, Some(Reason::LargeRequest)),
        (Case { argv: arguments(90_000), env: big(1), ..count }, Some(Reason::LargeRequest)),
    ] {
        let (expected, _) = start(&Launcher::new(), &victim, &case);
        assert_eq!(expected.status, Status::Exited(0), "{expected:?}");
        let (ran, exit) = start(&warm, &victim, &case);
        assert_eq!(ran, expected);
        assert_eq!(reason.map(Via::Cold).unwrap_or(exit.via), exit.via, "{}", ran.stdout);
        assert!(reason.is_some() || exit.via.is_warm(), "{:?}: {}", exit.via, ran.stdout);
    }
}

/// The kernel accepts no single string of 128 KiB.
#[test]
fn too_much_is_the_same_error() {
    let victim = victim();
    let null = File::open("/dev/null").unwrap();
    let long = "x".repeat(200 << 10);
    let errors = [Launcher::new(), warm_launcher(&["victim"])].map(|launcher| {
        let null = [null.as_fd(); 3];
        let spec = plain_spec(&victim.program, &["victim", &long], Path::new("/"), null);
        launcher.start(&spec, &Group::new()).unwrap_err().to_string()
    });
    assert_eq!(errors[0], errors[1]);
    assert!(errors[0].contains("Argument list too long"), "{}", errors[0]);
}

/// The search path of libraries changes what is loaded: by a variable, and by a file that appears.
#[test]
fn with_another_library_on_the_way() {
    let victim = victim();
    let dir = victim.dir.path().canonicalize().unwrap();
    for (sub, value) in [("first", 1), ("second", 2), ("other", 3)] {
        std::fs::create_dir(dir.join(sub)).unwrap();
        std::fs::write(dir.join("lib.c"), format!("int value(void) {{ return {value}; }}")).unwrap();
        let library = dir.join(sub).join("libvalue.so");
        compile(&dir.join("lib.c"), &library, &["-shared", "-fPIC", "-Wl,-soname,libvalue.so"]);
    }
    std::fs::write(dir.join("user.c"), "int value(void); int main(void) { return value(); }").unwrap();
    let path = format!("-Wl,--enable-new-dtags,-rpath,{0}/first:{0}/second", dir.display());
    let library = dir.join("second/libvalue.so");
    compile(&dir.join("user.c"), &victim.program, &[&path, "-Wl,--no-as-needed", library.to_str().unwrap()]);
    std::fs::rename(dir.join("first/libvalue.so"), dir.join("libvalue.so")).unwrap();
    common::await_age(&dir.join("first"));
    let warm = warm_launcher(&["victim"]);
    let run = |env: Vec<(&'static str, String)>| {
        let (ran, exit) = start(&warm, &victim, &Case { env, ..case(&[]) });
        (ran.status, exit.via.is_warm())
    };
    let other = || vec![("LD_LIBRARY_PATH", dir.join("other").display().to_string())];
    assert_eq!(run(Vec::new()), (Status::Exited(2), true));
    assert_eq!(run(other()), (Status::Exited(3), true));
    assert_eq!(run(Vec::new()), (Status::Exited(2), true));
    std::fs::rename(dir.join("libvalue.so"), dir.join("first/libvalue.so")).unwrap();
    assert_eq!(run(Vec::new()).0, Status::Exited(1), "the new one comes first");
    std::fs::rename(dir.join("first/libvalue.so"), dir.join("libvalue.so")).unwrap();
    assert_eq!(run(Vec::new()).0, Status::Exited(2), "and is gone again");
    assert_eq!(run(other()).0, Status::Exited(3));
}

/// Python draws its hash seed after its `main` has begun. Each start has its own, unless a variable sets it.
#[test]
fn with_a_seed_of_its_own() {
    let program = Path::new("/usr/bin/python3").canonicalize().expect("python3 is there, lit needs it");
    let name = program.file_name().unwrap().to_str().unwrap().to_owned();
    let python = Victim { dir: tempfile::tempdir().unwrap(), program };
    let warm = warm_launcher(&[&name]);
    let hash = |launcher: &Launcher, seed: &str| {
        let argv = ["python3", "-S", "-c", "print(hash('x'))"].map(str::to_owned).to_vec();
        let env = vec![("PYTHONHASHSEED", seed.to_owned())];
        let (ran, exit) = start(launcher, &python, &Case { argv, env, ..case(&[]) });
        assert_eq!(ran.status, Status::Exited(0), "{ran:?}");
        (ran.stdout, exit.via)
    };
    let (expected, _) = hash(&Launcher::new(), "7");
    let drawn: Vec<_> = (0..4).map(|_| hash(&warm, "random").0).collect();
    assert!(drawn.iter().any(|hash| *hash != drawn[0]), "{drawn:?}");
    assert_eq!(hash(&warm, "7").0, expected);
    println!("python3 is started by {:?}", hash(&warm, "7").1);
}

/// The settings that a process has from its exec, how a shell would set them, and how many MiB of the stack the process uses.
struct Setting {
    shell: &'static str,
    limits: Vec<Limit>,
    ignored: Option<u64>,
    deep: &'static str,
}

fn settings() -> Vec<Setting> {
    let stack = |mib: u64| Limit { resource: Resource::Stack, soft: Some(mib << 20), hard: None };
    let core = Limit { resource: Resource::Core, soft: Some(0), hard: Some(1 << 20) };
    let files = Limit { resource: Resource::OpenFiles, soft: Some(300), hard: Some(1000) };
    let set = |numbers: &[i32]| Some(numbers.iter().fold(0, |set, number| set | 1 << (number - 1)));
    let setting =
        |shell, limits: &[Limit], ignored, deep| Setting { shell, limits: limits.to_vec(), ignored, deep };
    vec![
        setting(":", &[], None, "1"),
        setting("ulimit -Ss 65536", &[stack(64)], None, "60"),
        setting("ulimit -Ss 65536; trap '' HUP INT QUIT PIPE", &[stack(64)], set(&[1, 2, 3, 13]), "60"),
        setting("ulimit -Sc 0; ulimit -Hc 2048", &[core], set(&[]), "7"),
        setting(
            "ulimit -Ss 2048; ulimit -Sc 0; ulimit -Hc 2048; ulimit -Sn 300; ulimit -Hn 1000; trap '' INT",
            &[stack(2), core, files],
            set(&[2]),
            "1",
        ),
        // This one dies.
        setting("ulimit -Ss 2048", &[stack(2)], None, "4"),
    ]
}

/// Runs the program with high or low descriptor numbers. Without a launcher it runs cold, in a shell.
fn run_in(victim: &Victim, warm: Option<&Launcher>, setting: &Setting, high: bool) -> (Status, String, Via) {
    let file = tempfile::tempfile().unwrap();
    (&file).write_all(b"read").unwrap();
    let path = victim.dir.path().join("out");
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let out = File::create(&path).unwrap();
    let numbers = if high { [63, 250] } else { [9, 30] };
    let words = numbers.map(|number| number.to_string());
    let program = victim.program.to_str().unwrap();
    let line = format!("{}; exec {program} {} {} {}", setting.shell, setting.deep, words[0], words[1]);
    let spec = plain_spec(
        if warm.is_some() { &victim.program } else { Path::new("/bin/sh") },
        &if warm.is_some() {
            vec![program, setting.deep, &words[0], &words[1]]
        } else {
            vec!["sh", "-c", &line]
        },
        Path::new("/"),
        [null.as_fd(), out.as_fd(), null.as_fd()],
    );
    let mut spec = Spec { extra_fds: numbers.map(|number| (number, file.as_fd())).to_vec(), ..spec };
    if warm.is_some() {
        (spec.limits, spec.ignored) = (setting.limits.clone(), setting.ignored);
    } else if setting.ignored.is_some() {
        // Whatever this test itself was started with: the shell adds its own.
        spec.ignored = Some(0);
    }
    let exit = warm.unwrap_or(&Launcher::new()).start(&spec, &Group::new()).unwrap().wait();
    (exit.status, std::fs::read_to_string(path).unwrap(), exit.via)
}

/// A zygote has the same settings as a process has from its exec.
#[test]
fn with_limits_signals_and_descriptors_of_their_own() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/inherits.c");
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("inherits");
    compile(Path::new(source), &program, &[]);
    let victim = Victim { dir, program };
    let settings = settings();
    // Room for a zygote and a persistent process for each setting.
    let many = |resets| {
        let choice = Choice::Only(vec!["inherits".to_owned()]);
        Policy {
            choice,
            resets,
            zygotes_per_tool: 8,
            workers_per_tool: 8,
            audit_one_in: 1,
            ..Policy::default()
        }
    };
    for &resets in KINDS {
        let warm = &Launcher::new().with_policy(many(resets));
        for round in 0..4 {
            for (setting, high) in settings.iter().flat_map(|setting| [(setting, true), (setting, false)]) {
                let (status, expected, _) = run_in(&victim, None, setting, high);
                let (ended, ran, via) = run_in(&victim, Some(warm), setting, high);
                let why = || warm.statistics().tools.remove(0).constructors;
                assert_eq!(
                    (ended, &ran),
                    (status, &expected),
                    "{via:?} in round {round}: {}, {:?}",
                    setting.shell,
                    why()
                );
                let only_forks = !resets || high || setting.limits.len() == 3 || setting.deep == "4";
                let resets = !only_forks && round > 0;
                let is_warm = via == Via::Reset || (!resets && via == Via::Fork);
                assert!(is_warm, "{via:?}: {}, {:?}", setting.shell, why());
            }
        }
    }
}

/// No request can have the number of the runtime's own descriptor.
#[test]
fn the_number_of_the_runners_connection_is_cold() {
    let victim = victim();
    let warm = warm_launcher(&["victim"]);
    let null = File::open("/dev/null").unwrap();
    let spec = plain_spec(&victim.program, &["victim"], Path::new("/"), [null.as_fd(); 3]);
    let spec = Spec { extra_fds: vec![(62, null.as_fd())], ..spec };
    let exit = warm.start(&spec, &Group::new()).unwrap().wait();
    assert_eq!(exit.via, Via::Cold(Reason::ManyDescriptors));
}

/// A request takes 32 descriptors. Two are the runtime's own, in a fork as well.
#[test]
fn as_many_descriptors_as_a_request_takes_are_warm_and_more_are_cold() {
    let victim = victim();
    let warm = warm_launcher(&["victim"]);
    let null = File::open("/dev/null").unwrap();
    let start = |count: i32| {
        let spec = plain_spec(&victim.program, &["victim"], Path::new("/"), [null.as_fd(); 3]);
        let extra_fds = (3..count).map(|number| (number, null.as_fd())).collect();
        let exit = warm.start(&Spec { extra_fds, ..spec }, &Group::new()).unwrap().wait();
        (exit.status, exit.via)
    };
    let (status, _) = start(3);
    for count in [29, 30, 31, 32] {
        let (ended, via) = start(count);
        assert_eq!(ended, status, "{count}");
        assert_eq!(via == Via::Cold(Reason::ManyDescriptors), count > 30, "{count}: {via:?}");
    }
}

/// A zygote that ignores faults would hide a tool's reaction to them.
#[test]
fn ignored_faults_are_cold() {
    let victim = victim();
    let warm = warm_launcher(&["victim"]);
    let null = File::open("/dev/null").unwrap();
    let spec = Spec {
        ignored: Some(1 << (11 - 1)),
        ..plain_spec(&victim.program, &["victim"], Path::new("/"), [null.as_fd(); 3])
    };
    let exit = warm.start(&spec, &Group::new()).unwrap().wait();
    assert_eq!(exit.via, Via::Cold(Reason::Signals));
}
