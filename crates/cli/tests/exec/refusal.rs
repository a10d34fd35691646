//! If equality is not certain, the client runs the command itself and can say why.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};

use crate::bench::{Bench, told};

fn explained(command: &mut Command) -> Output {
    command.env("HOTSTART_EXEC", "explain").output().expect("it runs")
}

/// Returns the client's reason for a command in a shell that runs it after `before`.
fn reason(bench: &Bench, before: &str, tool: &std::path::Path) -> String {
    let line =
        format!("{before} '{}' '{}' exit 0", bench.path("bin/hotstart-exec").display(), tool.display());
    let run = explained(bench.command("/bin/sh".as_ref()).args(["-c", &line]));
    assert!(run.status.success(), "{}", told(&run));
    String::from_utf8(run.stderr)
        .unwrap()
        .rsplit_once("cold: ")
        .map_or(String::new(), |(_, why)| why.trim().into())
}

#[test]
fn what_cannot_be_passed_on_is_a_reason() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let reasons = [
        ("", ""),
        ("exec nice -n 3", "another priority or scheduling policy than the server's"),
        ("trap '' SEGV; exec", "signals are blocked, or such are ignored as tell of a fault"),
        ("ulimit -t 700; exec", "other resource limits than the server's"),
        ("exec setarch -R", "another execution domain than the server's"),
        ("exec 0<&-;", "a standard stream is closed"),
        ("exec 1999</dev/null;", "too many descriptors, or too high numbers"),
        (
            "exec setpriv --no-new-privs",
            "a seccomp filter of its own, or other restrictions than the server's",
        ),
    ];
    for (before, why) in reasons {
        // A shell that cannot use descriptors above 9 needs bash; setpriv and setarch are part of util-linux.
        let line =
            if before.contains("99") { "exec bash -c 'exec 1999</dev/null; exec \"$@\"' -" } else { before };
        assert_eq!(reason(&bench, line, &tool), why, "{before}");
    }
    let status = bench.status();
    assert!(status.contains("1 cold: other resource limits than the server's"), "{status}");
}

const UNUSUAL: &str = "it has settings (prctl, NUMA policy) that are not the usual ones";

/// The same directory by two mounts, of which one may be read-only. Only root can mount.
#[test]
fn a_directory_by_another_mount_is_a_reason() {
    let bench = Bench::starting("fork");
    let (tool, client, dir) = (bench.tool("tool"), bench.path("bin/hotstart-exec"), bench.path("dir"));
    std::fs::create_dir(&dir).unwrap();
    // A server has the mount namespace of the client that starts it.
    let script = "export HOTSTART_EXEC=explain; cd \"$3\" && mount --bind . . && umount . || exit 77; \
                  tries=0; while test -n \"$(\"$1\" \"$2\" exit 0 2>&1)\"; do \
                  tries=$((tries + 1)); test $tries -lt 3000 || exit 78; sleep 0.1; done; \
                  mount --bind . . && exec \"$1\" \"$2\" exit 5";
    let mut inside = bench.command("/usr/bin/unshare".as_ref());
    inside.args(["-m", "sh", "-c", script, "-"]).arg(&client).arg(&tool).arg(&dir);
    let run = inside.output().expect("it runs");
    if run.status.code() != Some(5) && run.status.code() != Some(78) {
        eprintln!("skipped: nothing can be mounted here: {}", told(&run));
        return;
    }
    assert!(
        told(&run).contains("its working directory was renamed, or is below another mount"),
        "{}",
        told(&run)
    );
}

#[test]
fn what_an_exec_keeps_is_a_reason() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let python = "exec python3 -c 'import ctypes, os, signal, sys; prctl = ctypes.CDLL(None).prctl; \
                  exec(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])'";
    let reasons = [
        ("pass", ""),
        ("signal.alarm(1000)", "a timer is running"),
        ("signal.setitimer(signal.ITIMER_PROF, 1000)", "a timer is running"),
        ("signal.setitimer(signal.ITIMER_VIRTUAL, 0, 1000)", "a timer is running"),
        ("os.fork() or os._exit(0)", "it has child processes already"),
        ("prctl(1, 9)", "a signal is due when its parent ends"),
        ("prctl(36, 1)", "it is a subreaper"),
        ("prctl(41, 1, 0, 0, 0)", "it has no huge pages"),
        ("prctl(29, 1000)", "its timers are more or less exact than usual"),
        // PR_MCE_KILL.
        ("prctl(33, 1, 1, 0, 0)", UNUSUAL),
        ("os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))", UNUSUAL),
    ];
    for (statement, why) in reasons {
        assert_eq!(reason(&bench, &format!("{python} '{statement}'"), &tool), why, "{statement}");
    }
}

/// Its interpreter is told the path as it was given.
#[test]
fn a_script_by_a_relative_path_is_the_clients_own() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    std::fs::write(bench.path("script"), "#!/bin/sh\necho $0\n").unwrap();
    std::fs::set_permissions(bench.path("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!(
        "cd '{}' && exec '{}' ./script",
        bench.path("").display(),
        bench.path("bin/hotstart-exec").display()
    );
    let run = explained(bench.command("/bin/sh".as_ref()).args(["-c", &line]));
    assert_eq!(String::from_utf8_lossy(&run.stdout), "./script\n");
    let why = String::from_utf8_lossy(&run.stderr);
    assert!(why.contains("cold: a path depends on the working directory"), "{}", told(&run));
}

#[test]
fn directories_that_are_not_the_users_own_are_refused() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    std::fs::create_dir(bench.path("elsewhere")).unwrap();
    std::fs::set_permissions(bench.path("elsewhere"), std::fs::Permissions::from_mode(0o700)).unwrap();
    symlink(bench.path("elsewhere"), bench.path("server")).unwrap();
    let refused = |why: &str| {
        assert_eq!(reason(&bench, "", &tool), "the server's directory is not this user's own with mode 0700");
        for question in ["status", "run"] {
            let asked = bench.hotstart().args(["server", question]).output().expect("it runs");
            assert_eq!(asked.status.code(), Some(2));
            assert!(String::from_utf8_lossy(&asked.stderr).contains(why), "{}", told(&asked));
        }
    };
    refused("is a symbolic link");
    std::fs::remove_file(bench.path("server")).unwrap();
    std::fs::create_dir(bench.path("server")).unwrap();
    std::fs::set_permissions(bench.path("server"), std::fs::Permissions::from_mode(0o755)).unwrap();
    refused("is open to others");
    std::fs::set_permissions(bench.path("server"), std::fs::Permissions::from_mode(0o700)).unwrap();
    // Only root can change a directory's owner.
    if std::os::unix::fs::chown(bench.path("server"), Some(12345), None).is_ok() {
        refused("belongs to another user");
    }
    std::fs::remove_dir_all(bench.path("server")).unwrap();
    assert_eq!(std::fs::read_dir(bench.path("elsewhere")).unwrap().count(), 0, "nothing was made there");
}

#[test]
fn socket_and_directory_are_closed_to_others() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let mode = |name: &str| std::fs::metadata(bench.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("server"), 0o700);
    assert_eq!(mode("server/exec-3.socket"), 0o600);
    // Another user, if we may become one, cannot connect even if the directory's mode is wrong.
    std::fs::set_permissions(bench.path("server"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let other = bench.command("setpriv".as_ref()).args(["--reuid=12345", "--clear-groups", "true"]).status();
    if other.is_ok_and(|status| status.success()) {
        let opened = std::fs::Permissions::from_mode(0o777);
        for name in ["", "server/exec-3.socket"] {
            std::fs::set_permissions(bench.path(name), opened.clone()).unwrap();
        }
        let mut ask = bench.command("setpriv".as_ref());
        ask.args(["--reuid=12345", "--clear-groups"]).arg(bench.path("bin/hotstart-exec")).args(["true"]);
        let run = explained(&mut ask);
        assert!(told(&run).contains("not this user's own"), "{}", told(&run));
        assert!(!bench.status().contains("12345"));
    }
    std::fs::set_permissions(bench.path("server"), std::fs::Permissions::from_mode(0o700)).unwrap();
}
