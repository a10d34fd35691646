//! A job of the server gets the same input as the command itself would, and has the same effects.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::bench::{Bench, await_begun, await_end, await_that, kill, lines, pid, told};

/// Runs `line` in a shell, cold and warm. Both must have the same output.
fn same_both_ways(bench: &Bench, line: &str) -> String {
    let run = |setting: &str| {
        let mut command = bench.command("/bin/sh".as_ref());
        // Both have the variable; values other than "cold" and "explain" have no effect.
        command.env("HOTSTART_EXEC", setting).args(["-c", line]).stdin(File::open("/dev/null").unwrap());
        told(&command.output().expect("sh runs")).replace(&format!("HOTSTART_EXEC={setting}"), "")
    };
    let before = bench.warm_starts();
    let (cold, warm) = (run("cold"), run("warm"));
    assert_eq!(cold, warm, "{line}");
    assert!(bench.warm_starts() > before, "{line} was not warm: {}", bench.status());
    warm
}

#[test]
fn a_copy_has_what_its_client_was_given() {
    a_job_has_what_its_client_was_given(&Bench::starting("fork"));
}

#[test]
fn a_reset_tool_has_what_its_client_was_given() {
    a_job_has_what_its_client_was_given(&Bench::starting("rewind"));
}

fn a_job_has_what_its_client_was_given(bench: &Bench) {
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let (client, tool) = (bench.path("bin/hotstart-exec"), tool);
    let run = format!("{} {}", client.display(), tool.display());
    let told = same_both_ways(bench, &format!("{run} 'a b' '' 'ü\n' last"));
    assert!(told.contains("argument \n") && told.contains("argument last"), "{told}");
    std::fs::write(bench.path("in"), "one\ntwo\nthree\n").unwrap();
    let told = same_both_ways(bench, &format!("umask 027; ODD='= =' {run} x < in 2> err; cat err"));
    assert!(told.contains("umask 27") && told.contains("variable ODD== =") && told.contains("input three"));
    assert!(told.contains("to standard error"));
    let more = same_both_ways(bench, &format!("{run} x 3< in 5>> out 7<> in; cat out"));
    assert!(more.contains("fd 3 ") && more.contains("fd 5 ") && more.contains("fd 7 "), "{more}");
    same_both_ways(bench, &format!("(read line; {run} x) < in"));
    same_both_ways(bench, &format!("mkdir -p sub/dir && cd sub/dir && {run} x"));
    same_both_ways(bench, &format!("ulimit -n 300; {run} x"));
    same_both_ways(bench, &format!("ulimit -f 100; {run} x"));
    // As gcc does for its stages, and as a shell, ccache and nohup do.
    for before in [
        "ulimit -Ss 65536",
        "ulimit -c 0",
        "trap '' HUP",
        "trap '' INT QUIT; ulimit -Ss 65536",
        "trap '' PIPE",
    ] {
        assert!(same_both_ways(bench, &format!("{before}; {run} x")).contains("limit 3 "), "{before}");
    }
    assert!(same_both_ways(bench, &format!("{run} x & wait")).contains("signal 2 is not default"));
    let high = format!("exec bash -c 'exec 63<in 99<in; {run} x' 8<in");
    let told = same_both_ways(bench, &high);
    assert!(told.contains("fd 63 ") && told.contains("fd 99 "), "{told}");
    same_both_ways(bench, &format!("cat in | {run} x | cat"));
    // As ninja starts its commands, and as make does.
    assert!(same_both_ways(bench, &format!("setsid {run} x")).contains("leads its process group 1"));
    assert!(same_both_ways(bench, &format!("{run} x")).contains("leads its process group 0"));
}

#[test]
fn a_client_ends_as_its_job_does() {
    let bench = Bench::new();
    for (how, number) in
        [("exit", 0), ("exit", 1), ("exit", 255), ("die", 6), ("die", 9), ("die", 11), ("die", 15)]
    {
        // A tool that a signal has ended is cold from then on.
        let tool = bench.tool(&format!("{how}-{number}"));
        bench.warm_up(&tool);
        let run = |setting: &str| {
            let mut client = bench.client();
            client.env("HOTSTART_EXEC", setting).arg(&tool).args([how, &number.to_string()]);
            // The client does not repeat the core dump, so the test does not compare that flag.
            let status = client.status().expect("it runs");
            use std::os::unix::process::ExitStatusExt;
            (status.code(), status.signal())
        };
        let before = bench.warm_starts();
        assert_eq!(run("cold"), run("warm"), "{how} {number}");
        assert_eq!(bench.warm_starts(), before + 1);
    }
}

#[test]
fn compilers_are_warm_beside_leaked_descriptors_and_by_relative_paths() {
    let bench = Bench::new();
    let tool = bench.tool("clang");
    bench.warm_up(&tool);
    let client = bench.path("bin/hotstart-exec").display().to_string();
    let clang = tool.display();
    let bash = |line: &str| format!("exec bash -c 'exec 99</dev/null; {line}' 8</dev/null");
    same_both_ways(&bench, &bash(&format!("{client} {clang} exit 3")));
    same_both_ways(&bench, &format!("mkdir -p sub; cd sub; {client} ../clang x"));
    // A compiler uses a descriptor if an argument names it.
    let told = same_both_ways(&bench, &bash(&format!("{client} {clang} /dev/fd/99")));
    assert!(told.contains("fd 99 "), "{told}");
}

#[test]
fn signals_reach_the_job() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    for signal in [Signal::TERM, Signal::INT, Signal::TSTP, Signal::WINCH, Signal::CHILD, Signal::SEGV] {
        let log = bench.path(&format!("log{}", signal.as_raw()));
        let mut client =
            bench.client().arg(&tool).arg("catch").arg(&log).arg("gate").spawn().expect("it runs");
        await_begun(&log);
        kill(pid(&client), signal);
        let status = client.wait().expect("it ends");
        assert_eq!(status.code(), Some(signal.as_raw()));
        assert_eq!(lines(&log).len(), 2, "begun once, one signal: {:?}", lines(&log));
    }
}

#[test]
fn a_job_stops_and_goes_on_with_its_client() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let (log, gate) = (bench.path("log"), bench.path("gate"));
    let mut client = bench.client().arg(&tool).arg("wait").arg(&log).arg(&gate).spawn().expect("it runs");
    let job = await_begun(&log);
    kill(pid(&client), Signal::TSTP);
    await_that("both to stop", || is_stopped(job) && is_stopped(pid(&client)));
    std::fs::write(&gate, "").unwrap();
    kill(pid(&client), Signal::CONT);
    assert!(client.wait().expect("it ends").success());
    assert_eq!(lines(&log).len(), 2);
}

/// A process that goes on gets what is pending before it does anything else.
#[test]
fn a_signal_that_comes_while_a_job_is_stopped_reaches_it_before_it_goes_on() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    for round in 0..5 {
        let (log, gate) = (bench.path(&format!("log{round}")), bench.path(&format!("gate{round}")));
        let client = bench.client().arg(&tool).arg("wait").arg(&log).arg(&gate).process_group(0).spawn();
        let client = client.expect("it runs");
        let job = await_begun(&log);
        kill(pid(&client), Signal::TSTP);
        await_that("both to stop", || is_stopped(job) && is_stopped(pid(&client)));
        std::fs::write(&gate, "").unwrap();
        kill(pid(&client), Signal::TERM);
        kill(pid(&client), Signal::CONT);
        assert_eq!(await_end(client).signal(), Some(Signal::TERM.as_raw()));
        assert_eq!(lines(&log).len(), 1, "it has begun, and not gone on");
    }
}

fn is_stopped(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

/// Waits for a stop as the client's parent does; a stop of the client is shown only once it is complete.
fn await_stop(client: Pid) -> Option<Signal> {
    let status = rustix::process::waitpid(Some(client), rustix::process::WaitOptions::UNTRACED);
    let (_, status) = status.expect("it is a child").expect("something was waited for");
    status.stopping_signal().and_then(Signal::from_named_raw)
}

#[test]
fn a_job_that_stops_itself_stops_its_client() {
    for start in ["fork", "rewind"] {
        let bench = Bench::starting(start);
        let tool = bench.tool("tool");
        bench.warm_up(&tool);
        for signal in [Signal::STOP, Signal::TSTP] {
            let (log, gate) = (bench.path(&format!("log{}", signal.as_raw())), bench.path("gate"));
            let mut client = bench.client();
            client.arg(&tool).args(["stop", &signal.as_raw().to_string()]).arg(&log).arg(&gate);
            let before = bench.warm_starts();
            // The system stops no group without a parent in its session by SIGTSTP.
            let mut client = client.process_group(0).spawn().expect("it runs");
            assert_eq!(await_stop(pid(&client)), Some(signal));
            assert_eq!(lines(&log).len(), 0, "it has not gone on");
            kill(pid(&client), Signal::CONT);
            await_begun(&log);
            std::fs::write(&gate, "").unwrap();
            assert!(client.wait().expect("it ends").success());
            assert_eq!(lines(&log).len(), 2);
            assert_eq!(bench.warm_starts(), before + 1, "{}", bench.status());
            std::fs::remove_file(&gate).unwrap();
        }
    }
}

#[test]
fn a_job_goes_on_where_the_command_could_not_stop() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let (log, gate) = (bench.path("log"), bench.path("gate"));
    std::fs::write(&gate, "").unwrap();
    let mut client = bench.client_in_session();
    client.arg(&tool).args(["stop", &Signal::TSTP.as_raw().to_string()]).arg(&log).arg(&gate);
    let before = bench.warm_starts();
    assert!(client.status().expect("it runs").success());
    assert_eq!(lines(&log).len(), 2);
    assert_eq!(bench.warm_starts(), before + 1, "{}", bench.status());
}

/// A process that waits for the child of its vfork is not seen to stop, and would wait for ever.
#[test]
fn a_job_goes_on_where_the_system_stops_nobody() {
    let bench = Bench::new();
    let tool = bench.tool("clang");
    bench.warm_up(&tool);
    let (log, gate) = (bench.path("log"), bench.path("gate"));
    let before = bench.warm_starts();
    let mut client = bench.client_in_session();
    let client = client.arg(&tool).arg("vfork").arg(&log).arg(&gate).spawn().expect("it runs");
    await_begun(&log);
    kill_process_group(pid(&client), Signal::TSTP).expect("it is there");
    std::fs::write(&gate, "").unwrap();
    assert!(await_end(client).success());
    assert_eq!(bench.warm_starts(), before + 1, "{}", bench.status());
}

#[test]
fn a_handler_is_called_where_the_system_stops_nobody() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let log = bench.path("log");
    let mut client = bench.client_in_session();
    let client = client.arg(&tool).arg("catch").arg(&log).arg("gate").spawn().expect("it runs");
    await_begun(&log);
    kill_process_group(pid(&client), Signal::TSTP).expect("it is there");
    assert_eq!(await_end(client).code(), Some(Signal::TSTP.as_raw()));
    assert_eq!(lines(&log).len(), 2, "begun once, one signal: {:?}", lines(&log));
}

/// The client sends its command again what came before the server answered. By then the stop was undone.
#[test]
fn a_command_that_was_stopped_and_continued_before_it_began_is_not_stopped() {
    let bench = Bench::new();
    bench.warm_up(&bench.tool("tool"));
    let server = bench.server().expect("a server");
    kill(server, Signal::STOP);
    // The server refuses scripts, so the client runs this one cold.
    std::fs::write(bench.path("script"), "#!/bin/sh\nexit 3\n").unwrap();
    std::fs::set_permissions(bench.path("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let client = bench.client().arg(bench.path("script")).process_group(0).spawn().expect("it runs");
    let status = |field: &str| {
        let text = std::fs::read_to_string(format!("/proc/{}/status", client.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(":\t")).unwrap();
        u64::from_str_radix(line, 16).unwrap()
    };
    await_that("the client to block signals", || status("SigBlk") != 0);
    for signal in [Signal::TSTP, Signal::CONT] {
        kill(pid(&client), signal);
        await_that("the client to take it", || status("ShdPnd") >> (signal.as_raw() - 1) & 1 == 0);
    }
    kill(server, Signal::CONT);
    assert_eq!(await_end(client).code(), Some(3));
}

#[test]
fn a_job_that_others_continue_continues_its_client() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let (log, gate) = (bench.path("log"), bench.path("gate"));
    let mut client = bench.client();
    client.arg(&tool).args(["stop", "19"]).arg(&log).arg(&gate);
    let mut client = client.spawn().expect("it runs");
    assert_eq!(await_stop(pid(&client)), Some(Signal::STOP));
    let children = bench.server().expect("a server").as_raw_nonzero();
    let children = std::fs::read_dir(format!("/proc/{children}/task"))
        .expect("it is there")
        .flatten()
        .flat_map(|task| {
            let found = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect::<Vec<_>>()
        });
    let stopped: Vec<Pid> = children.filter(|&child| is_stopped(child)).collect();
    let [job] = stopped[..] else { panic!("{stopped:?} are stopped") };
    kill(job, Signal::CONT);
    await_begun(&log);
    await_that("the client to go on", || !is_stopped(pid(&client)));
    std::fs::write(&gate, "").unwrap();
    assert!(client.wait().expect("it ends").success());
}

#[test]
fn the_big_binary_does_the_same() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let before = bench.warm_starts();
    let run = |client: &mut Command| told(&client.arg("--").arg(&tool).arg("x").output().expect("it runs"));
    assert_eq!(run(bench.hotstart().arg("exec")), run(&mut bench.client()));
    assert_eq!(bench.warm_starts(), before + 2);
    let missing = bench.hotstart().args(["exec", "--", "no-such-command"]).output().expect("it runs");
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("No such file or directory"));
    let unnamed = bench.client().args(["--", ""]).output().expect("it runs");
    assert_eq!(unnamed.status.code(), Some(127));
}

#[test]
fn a_link_runs_the_next_program_of_its_name() {
    let bench = Bench::new();
    let made = |dir: &str| {
        bench
            .hotstart()
            .args(["exec", "--install"])
            .arg(bench.path(dir))
            .arg("tool")
            .env("PATH", bench.path("real"))
            .output()
            .expect("it runs")
    };
    std::fs::create_dir(bench.path("real")).unwrap();
    let tool = bench.tool("real/tool");
    // Two clients with links of the same name must not run each other in an endless loop.
    assert!(made("links").status.success() && made("others").status.success());
    bench.warm_up(&tool);
    let path = ["links", "others", "real"].map(|dir| bench.path(dir).display().to_string()).join(":");
    let run = |name: &str| {
        let mut link = bench.command(&bench.path("links").join(name));
        link.env("PATH", &path).arg("x").stderr(Stdio::null()).output().expect("it runs")
    };
    let before = bench.warm_starts();
    let told = String::from_utf8(run("tool").stdout).unwrap();
    assert!(told.contains(&format!("argument {}\nargument x\n", tool.display())), "{told}");
    assert_eq!(bench.warm_starts(), before + 1);
    std::fs::remove_file(&tool).unwrap();
    assert_eq!(run("tool").status.code(), Some(127), "nothing but links");
}
