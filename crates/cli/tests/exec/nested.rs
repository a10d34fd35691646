//! Programs that a warm tool starts are warm too, with the same results as cold.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal};

use crate::bench::{Bench, await_begun, await_gone, await_that, clang, compile, kill, lines, told};

/// A server, a tool that starts others, and a tool named as a compiler in `real`.
struct Nest {
    bench: Bench,
    client: PathBuf,
    real: PathBuf,
    cores: &'static str,
}

impl Nest {
    fn new(how: &'static str) -> Nest {
        Nest::with_limit(how, "0")
    }

    /// Limits core files to this size, for the server and for its clients.
    fn with_limit(how: &'static str, cores: &'static str) -> Nest {
        let bench = Bench::starting(how);
        let (client, real, tool) = (bench.path("bin/hotstart-exec"), bench.path("real"), bench.tool("tool"));
        std::fs::create_dir(&real).unwrap();
        std::fs::copy(&tool, real.join("clang")).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exec/starts.c");
        compile(source.as_ref(), &bench.path("starts"));
        let nest = Nest { bench, client, real, cores };
        let line = format!("{} {} exit 0", nest.client.display(), tool.display());
        await_that("a server", || nest.run("explain", &line).ends_with("--\n"));
        nest
    }

    fn run(&self, how: &str, line: &str) -> String {
        let mut command = self.bench.command("/bin/sh".as_ref());
        let line = format!("ulimit -S -c {}; PATH={}:$PATH; {line}", self.cores, self.real.display());
        command.env("HOTSTART_EXEC", how).args(["-c", &line]);
        told(&command.output().expect("sh runs")).replace("HOTSTART_EXEC=warm", "HOTSTART_EXEC=cold")
    }

    /// Runs a line cold and warm. The results must be equal, with this number of warm starts.
    fn same(&self, line: &str, warm: u64) {
        let cold = self.run("cold", line);
        // The first warm start makes a zygote, which takes time; the second makes the first persistent process.
        for round in 0..3 {
            let before = self.bench.warm_starts();
            assert_eq!(cold, self.run("warm", line), "{line}, round {round}");
            let started = self.bench.warm_starts() - before;
            assert!(round == 0 || started == warm, "{line}: {started} warm\n{}", self.bench.status());
        }
    }

    /// The same with the tool that starts others: it starts `what` in the way `how`.
    fn starts(&self, how: &str, what: &str, warm: u64) {
        let line = format!("{} {} {how} {what}", self.client.display(), self.bench.path("starts").display());
        self.same(&line, warm);
    }
}

#[test]
fn tools_of_the_system_start_warm_compilers() {
    for how in ["fork", "rewind"] {
        let nest = Nest::new(how);
        let client = nest.client.display();
        nest.same(&format!("{client} env A=1 clang x"), 2);
        // This tool lists its descriptors, and is cold from then on.
        nest.same(&format!("echo a b c | {client} xargs -n 2 clang"), 0);
        // Without the variable that names the server's directory, the jobs' own value is used.
        nest.same(&format!("{client} env -u HOTSTART_EXEC_DIR clang x"), 2);
        nest.same(&format!("{client} env no-such-tool"), 1);
        nest.same(&format!("{client} env PATH=/nowhere clang"), 1);
        nest.same(&format!("{client} env HOTSTART_EXEC=cold clang"), 1);
        // These tools change their rights or their process group, so the server cannot be used.
        nest.same(&format!("{client} setsid -w clang x"), 0);
        nest.same(&format!("{client} timeout 60 clang x"), 0);
    }
}

#[test]
fn a_tool_that_turns_a_status_round_starts_warm_compilers() {
    let nest = Nest::new("rewind");
    std::fs::write(nest.bench.path("crashes.c"), "#pragma clang __debug crash\n").unwrap();
    let (client, clang, not) = (nest.client.display(), clang(), clang().with_file_name("not"));
    let (clang, not) = (clang.display(), not.display());
    nest.same(&format!("{client} {not} {clang} -c missing.c"), 2);
    nest.same(&format!("{client} {not} {clang} --version"), 2);
    // This tool sets the limit on core files to a byte, which a job of the server cannot be given.
    nest.same(&format!("{client} {not} --crash {clang} -cc1 -emit-obj crashes.c -o c.o 2> told"), 1);
    nest.same(&format!("{client} {not} --crash {clang} -c missing.c"), 1);
}

#[test]
fn each_way_of_starting_is_warm() {
    for how in ["fork", "rewind"] {
        let nest = Nest::new(how);
        let clang = nest.real.join("clang");
        for way in ["execv", "execve", "vfork", "spawn", "instead"] {
            nest.starts(way, &format!("{} 'a b' '' ü", clang.display()), 2);
        }
        for way in ["execvp", "execvpe", "spawnp"] {
            nest.starts(way, "clang x", 2);
        }
        nest.starts("execl", &format!("{} x", clang.display()), 1);
        nest.starts("spawn-closed", &format!("{} x", clang.display()), 1);
        nest.starts("execv", &format!("{} exit 3", clang.display()), 2);
        nest.starts("spawn", "/bin/true", 1);
        // A compiler that has crashed is cold from then on, and so is a tool that asks to be traced.
        nest.starts("execv", &format!("{} die 11", clang.display()), 1);
        nest.starts("spawn", &format!("{} die 9", clang.display()), 1);
        nest.starts("traced", &format!("{} x", clang.display()), 0);
    }
}

#[test]
fn what_cannot_be_executed_fails_where_it_did() {
    let nest = Nest::new("rewind");
    let at = |name: &str| nest.bench.path(name).display().to_string();
    let file = |name: &str, text: &[u8], mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = nest.bench.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // The header alone: a shell takes it for a script, and what follows may have commands in the background, in any order.
    let mut foreign = std::fs::read(nest.real.join("clang")).unwrap();
    foreign.truncate(64);
    foreign[18] ^= 0xff;
    file("foreign/clang", &foreign, 0o755);
    file("script/clang", b"echo a script \"$@\"\n", 0o755);
    file("hashbang/clang", b"#!/bin/sh\necho a script \"$@\"\n", 0o755);
    file("plain/clang", b"text\n", 0o644);
    std::fs::create_dir_all(nest.bench.path("folder/clang")).unwrap();
    for place in ["foreign", "script", "hashbang", "plain", "folder", "missing"] {
        for way in ["execv", "execvp", "execvpe", "spawn", "spawnp"] {
            nest.starts(way, &format!("{}/clang x", at(place)), 1);
        }
        let line = |way: &str| {
            let place = at(place);
            format!("PATH={place}:$PATH {} {} {way} clang x", nest.client.display(), at("starts"))
        };
        // After a file that cannot be executed libc searches on, but then starts the program itself.
        let warm = if place == "missing" { 2 } else { 1 };
        nest.same(&line("execvp"), warm);
        nest.same(&line("spawnp"), warm);
    }
    nest.starts("execv", "./real/clang x", 1);
    nest.starts("spawn", "real/clang x", 1);
    // A link to the client finds its program by itself.
    std::os::unix::fs::symlink(&nest.client, nest.bench.path("bin/clang")).unwrap();
    nest.starts("spawn", &format!("{}/bin/clang x", nest.bench.path("").display()), 2);
}

#[test]
fn where_a_core_file_would_be_left_the_tool_itself_leaves_it() {
    let pipe = std::fs::read("/proc/sys/kernel/core_pattern").is_ok_and(|text| text.starts_with(b"|"));
    let most = rustix::process::getrlimit(rustix::process::Resource::Core).maximum;
    let nest = Nest::with_limit("rewind", "$(ulimit -H -c)");
    let clang = nest.real.join("clang");
    let warm = if pipe || most == Some(0) { 2 } else { 1 };
    nest.starts("execv", &format!("{} exit 3", clang.display()), warm);
}

/// Starts a tool that starts a compiler that waits. Returns the client of the tool, and the compiler's process.
fn a_compiler_that_waits(nest: &Nest, log: &Path) -> (Child, Pid) {
    let (starts, clang) = (nest.bench.path("starts"), nest.real.join("clang"));
    nest.starts("spawn", &format!("{} exit 0", clang.display()), 2);
    let before = nest.bench.warm_starts();
    let job = format!("{} -c {} gate", clang.display(), log.display());
    let line = format!("ulimit -S -c 0; exec {} {} spawn {job}", nest.client.display(), starts.display());
    let mut command = nest.bench.command("/bin/sh".as_ref());
    let mut client = command.args(["-c", &line]).stderr(Stdio::null()).spawn().expect("it runs");
    let compiler = await_begun(log);
    let warm = nest.bench.warm_starts() - before;
    if warm != 2 {
        // The server, which ends with the test, would wait for the job.
        client.kill().expect("it is there");
        panic!("{warm} warm starts\n{}", nest.bench.status());
    }
    (client, compiler)
}

#[test]
fn killing_the_client_kills_what_its_tool_started() {
    for how in ["fork", "rewind"] {
        let nest = Nest::new(how);
        let (mut client, compiler) = a_compiler_that_waits(&nest, &nest.bench.path("log"));
        client.kill().expect("it is there");
        client.wait().expect("it ends");
        await_gone(compiler);
        await_that("both jobs to end", || nest.bench.status().contains("ended with their client 2"));
    }
}

#[test]
fn a_compiler_is_not_run_again_where_its_tool_has_died_with_the_server() {
    let nest = Nest::new("rewind");
    let log = nest.bench.path("log");
    let (mut client, compiler) = a_compiler_that_waits(&nest, &log);
    kill(nest.bench.server().expect("a server"), Signal::KILL);
    assert!(!client.wait().expect("it ends").success());
    await_gone(compiler);
    assert_eq!(lines(&log).len(), 1, "the compiler began once");
}

/// Runs of the tool that starts others, each of which must be as the cold one. Returns how many of them were resets.
fn resets(nest: &Nest, how: &str, what: &str) -> u64 {
    let line = format!("{} {} {how} {what}", nest.client.display(), nest.bench.path("starts").display());
    let count = || {
        let status = nest.bench.status_json();
        let tools = status["tools"].as_array().expect("a list");
        let tool =
            tools.iter().find(|tool| tool["program"].as_str().is_some_and(|name| name.ends_with("/starts")));
        tool.map_or(0, |tool| tool["reset"].as_u64().expect("a count"))
    };
    let (cold, before) = (nest.run("cold", &line), count());
    for round in 0..8 {
        assert_eq!(cold, nest.run("warm", &line), "{line}, round {round}\n{}", nest.bench.status());
    }
    count() - before
}

#[test]
fn a_tool_whose_children_were_all_jobs_of_the_server_is_reset() {
    let nest = Nest::new("rewind");
    let clang = nest.real.join("clang");
    let found = resets(&nest, "vfork", &format!("{} x", clang.display()));
    assert!(found >= 4, "{found} resets\n{}", nest.bench.status());
    for how in ["vfork-plain", "vfork-handler", "spawn"] {
        let found = resets(&nest, how, &format!("{} exit 3", clang.display()));
        assert!(found >= 6, "{how}: {found} resets\n{}", nest.bench.status());
    }
}

#[test]
fn a_tool_with_children_of_which_anything_is_unknown_is_not_reset() {
    let refused = [
        "fork",
        "vfork-blocked",
        "vfork-directory",
        "vfork-ignored",
        "vfork-left",
        "vfork-mask",
        "vfork-memory",
        "vfork-twice",
    ];
    let cases = refused.map(|how| (how, "clang x", 0)).into_iter().chain([
        ("vfork-plain", "true", 0),
        ("spawn", "true", 0),
        ("spawn-closed", "clang x", 0),
        ("spawnp", "clang-is-nowhere x", 0),
        // The first child is a job; it crashes, and the others are cold.
        ("vfork-plain", "clang die 11", 1),
    ]);
    for (how, what, expected) in cases {
        let nest = Nest::new("rewind");
        let name = what.split(' ').next().expect("a name");
        let program = if name == "true" { "/bin/true".into() } else { nest.real.join(name) };
        let found = resets(&nest, how, &what.replacen(name, &program.display().to_string(), 1));
        assert_eq!(found, expected, "{how} {what}\n{}", nest.bench.status());
    }
}

#[test]
fn a_tool_is_told_nothing_of_the_children_of_earlier_runs() {
    let nest = Nest::new("rewind");
    let clang = format!("{} x", nest.real.join("clang").display());
    assert!(resets(&nest, "vfork-plain", &clang) >= 4, "{}", nest.bench.status());
    // Their peak of memory cannot be told apart, so the tool is cold from then on.
    assert!(resets(&nest, "vfork-usage", &clang) <= 1, "{}", nest.bench.status());
}
