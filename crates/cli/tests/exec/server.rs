//! The life of the server: it starts on first use, is the only one, and ends.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::bench::{Bench, await_gone, await_that, kill, pid, told};

#[test]
fn the_first_client_starts_a_server_and_holds_nothing_open() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    assert!(bench.status().is_empty());
    // The pipe closes with the command, though the server lives on.
    let first = bench.client().arg(&tool).args(["exit", "5"]).output().expect("it runs");
    assert_eq!(first.status.code(), Some(5));
    await_that("the server", || bench.server().is_some());
    let server = bench.server().unwrap().as_raw_nonzero();
    let link = |name: &str| std::fs::read_link(format!("/proc/{server}/{name}")).unwrap();
    assert_eq!(link("cwd"), std::path::Path::new("/"));
    assert_eq!(link("fd/0"), std::path::Path::new("/dev/null"));
    assert_eq!(link("fd/1"), std::path::Path::new("/dev/null"));
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[4], "0", "no terminal: {stat}");
    let again = bench.hotstart().args(["server", "run"]).output().expect("it runs");
    assert!(told(&again).contains("a server runs already"), "{}", told(&again));
}

#[test]
fn to_ask_for_a_server_makes_no_directory() {
    let bench = Bench::new();
    let status = bench.hotstart().args(["server", "status"]).output().expect("it runs");
    assert!(status.status.code() == Some(1) && told(&status).contains("no server runs in"), "{status:?}");
    assert!(!bench.path("server").exists());
}

#[test]
fn an_idle_server_ends_and_leaves_nothing() {
    let bench = Bench::new();
    let mut server = bench.hotstart();
    server.env("HOTSTART_SERVER_IDLE", "0").args(["server", "run"]);
    let mut server = server.spawn().expect("it runs");
    assert!(server.wait().expect("it ends").success());
    let left: Vec<_> =
        std::fs::read_dir(bench.path("server")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["exec-3.socket.lock"]);
}

#[test]
fn sigterm_ends_it_in_order() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let server = bench.server().expect("a server");
    kill(server, Signal::TERM);
    await_gone(server);
    assert!(!bench.path("server/exec-3.socket").exists());
    let stop = bench.hotstart().args(["server", "stop"]).output().expect("it runs");
    assert!(told(&stop).contains("no server runs in"), "{}", told(&stop));
}

/// The first client starts the server, which must not keep what that client had blocked.
#[test]
fn a_server_does_not_keep_signals_blocked() {
    let bench = Bench::new();
    let blocking = |command: Command| {
        let mut env = Command::new("/usr/bin/env");
        env.arg("--block-signal=USR1")
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::null());
        env.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env_remove("HOTSTART_EXEC");
        env
    };
    let mut server = blocking(bench.hotstart()).args(["server", "run"]).spawn().expect("it runs");
    await_that("the server", || bench.server().is_some());
    let before = bench.warm_starts();
    let grep = bench.path("grep");
    std::fs::copy("/usr/bin/grep", &grep).expect("copied");
    let blocked = |mut command: Command| {
        told(&command.arg(&grep).args(["SigBlk:", "/proc/self/status"]).output().expect("it runs"))
    };
    await_that("warm starts", || {
        assert!(blocked(bench.client()).contains("SigBlk:\t0000000000000000\n"));
        bench.warm_starts() > before
    });
    assert!(blocked(blocking(bench.client())).contains("SigBlk:\t0000000000000200\n"));
    kill(pid(&server), Signal::TERM);
    assert!(server.wait().expect("it ends").success());
}

/// Returns a command as a shell starts it under `ulimit -f 8`: 4 KiB, less than the client's own file.
fn limited(program: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -f 8; exec \"$@\"", "sh"]).arg(program.get_program());
    shell.args(program.get_args());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    shell.env_remove("HOTSTART_EXEC");
    shell
}

#[test]
fn a_limit_on_file_size_keeps_no_command_from_running() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    let [whole, client] = [bench.hotstart(), bench.client()].map(|program| limited(&program));
    for (mut command, words) in [(whole, &["exec", "--"][..]), (client, &[])] {
        let run = command.args(words).arg(&tool).args(["exit", "7"]).output().expect("it runs");
        assert_eq!(run.status.code(), Some(7), "{}", told(&run));
    }
    let mut server = limited(&bench.hotstart());
    let server = server.args(["server", "run"]).output().expect("it runs");
    assert!(told(&server).contains("limit on file size (ulimit -f)"), "{}", told(&server));
    // A server that could not start does not prevent a later one.
    bench.warm_up(&tool);
    let before = bench.warm_starts();
    let mut warm = limited(&bench.client());
    let run = warm.arg(&tool).output().expect("it runs");
    assert!(told(&run).contains("limit 1 4096 4096\n"), "{}", told(&run));
    assert_eq!(bench.warm_starts(), before + 1, "{}", bench.status());
}

#[test]
fn wrong_settings_and_words_are_told() {
    let bench = Bench::new();
    for (name, value) in [("HOTSTART_SERVER_IDLE", "soon"), ("HOTSTART_SERVER_START", "hot")] {
        let run = bench.hotstart().env(name, value).args(["server", "run"]).output().expect("it runs");
        assert_eq!(run.status.code(), Some(2));
        assert!(told(&run).contains(name), "{}", told(&run));
    }
    for words in [&["server"][..], &["server", "dance"], &["exec"], &["exec", "--"], &["exec", "--fast"]] {
        let run = bench.hotstart().args(words).output().expect("it runs");
        assert_eq!(run.status.code(), Some(2), "{words:?}");
        assert!(told(&run).contains("see --help"), "{}", told(&run));
    }
}

#[test]
fn a_thousand_clients_at_once_are_all_served_or_run_cold() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let before = bench.warm_starts();
    let start = |number: usize| {
        let mut client = bench.client();
        client.arg(&tool).args(["exit", &(number % 200).to_string()]).stdout(Stdio::null());
        client.spawn().expect("it runs")
    };
    let clients: Vec<_> = (0..1000).map(start).collect();
    for (number, mut client) in clients.into_iter().enumerate() {
        assert_eq!(client.wait().expect("it ends").code(), Some((number % 200) as i32), "client {number}");
    }
    let status = bench.status();
    assert!(status.contains(" 0 jobs running"), "{status}");
    // The number of warm starts depends on the machine: a client that finds every zygote busy for some milliseconds runs
    // cold. But an overload must leave the server as it was.
    assert!(bench.warm_starts() > before, "{status}");
    bench.warm_up(&tool);
}
