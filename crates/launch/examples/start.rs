//! Measures what starting a tool costs, cold, forked and reset, interleaved: `start [-n COUNT] [-i FILE] [-w] TOOL ARGS`.
//! With -w nothing is started cold, as for a look at the others from outside. `bench/start` runs it on a list of tools.
//!
//! Times are from the request until the process has been waited for, its output thrown away. Interleaved, a start in a worker
//! follows a cold one, which leaves the processor's caches full of other things; the last line is for as many reset
//! starts in a row.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use hotstart_launch::{Choice, EnvBlock, Exit, Group, Launcher, Policy, ProcessGroup, Spec, Via};

struct Command {
    count: usize,
    input: PathBuf,
    fork_only: bool,
    tool: PathBuf,
    args: Vec<std::ffi::OsString>,
}

fn parse() -> Command {
    let mut args = std::env::args_os().skip(1).peekable();
    let mut command = Command {
        count: 200,
        input: "/dev/null".into(),
        fork_only: false,
        tool: PathBuf::new(),
        args: Vec::new(),
    };
    while let Some(option) = args.next_if(|a| a.to_str().is_some_and(|a| ["-n", "-i", "-w"].contains(&a))) {
        if option == "-w" {
            command.fork_only = true;
            continue;
        }
        let given = args.next().expect("a value after the option");
        if option == "-n" {
            command.count = given.to_str().and_then(|n| n.parse().ok()).expect("a count after -n");
        } else {
            command.input = given.into();
        }
    }
    command.args = args.collect();
    command.tool = command.args.first().expect("a tool").into();
    command
}

fn run(launcher: &Launcher, command: &Command, env: &EnvBlock) -> Exit {
    let input = File::open(&command.input).expect("the input can be read");
    let null = File::options().write(true).open("/dev/null").expect("the null device");
    let spec = Spec {
        program: command.tool.clone(),
        argv: command.args.clone(),
        env: env.clone(),
        cwd: std::path::Path::new("/tmp").into(),
        stdio: [input.as_fd(), null.as_fd(), null.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: false,
        process_group: ProcessGroup::New,
    };
    let group = Group::new();
    launcher.start(&spec, &group).expect("it starts").wait()
}

fn report(name: &str, exits: &[Exit]) -> Duration {
    let sorted = |value: fn(&Exit) -> Duration| {
        let mut values: Vec<_> = exits.iter().map(value).collect();
        values.sort();
        values
    };
    let (wall, cpu) = (sorted(|e| e.wall), sorted(|e| e.usage.user + e.usage.system));
    let mut faults: Vec<_> = exits.iter().map(|e| e.usage.minor_faults).collect();
    faults.sort();
    let middle = exits.len() / 2;
    println!(
        "{name:8} median {:?}  10% {:?}  90% {:?}  cpu {:?}  faults {}",
        wall[middle],
        wall[exits.len() / 10],
        wall[exits.len() * 9 / 10],
        cpu[middle],
        faults[middle]
    );
    wall[middle]
}

fn main() {
    let command = parse();
    let name = command.tool.file_name().expect("a file").to_string_lossy().into_owned();
    let choice = Choice::Only(vec![name]);
    let policy = |resets| Policy { choice: choice.clone(), resets, ..Policy::default() };
    let cold = Launcher::new();
    let (fork, resets) =
        (Launcher::new().with_policy(policy(false)), Launcher::new().with_policy(policy(true)));
    let env = EnvBlock::new(&std::env::vars_os().collect());
    let mut exits: [Vec<Exit>; 3] = Default::default();
    for round in 0..command.count + 5 {
        for (index, launcher) in [&cold, &fork, &resets].into_iter().enumerate() {
            if command.fork_only && index == 0 {
                continue;
            }
            let exit = run(launcher, &command, &env);
            if let (Via::Cold(reason), true) = (exit.via, index > 0) {
                println!("cold: {reason}");
                return;
            }
            if round >= 5 {
                exits[index].push(exit);
            }
        }
    }
    let row: Vec<Exit> = (0..command.count).map(|_| run(&resets, &command, &env)).collect();
    let status = exits[1][0].status;
    assert!(exits.iter().flatten().chain(&row).all(|e| e.status == status), "all end alike");
    let [c, f, r] = &exits;
    let medians: Vec<_> = [("cold", c), ("fork", f), ("reset", r)]
        .into_iter()
        .filter(|(_, exits)| !exits.is_empty())
        .map(|(name, exits)| report(name, exits))
        .collect();
    println!(
        "ratios {:.2?}",
        medians.iter().map(|m| medians[0].as_secs_f64() / m.as_secs_f64()).collect::<Vec<_>>()
    );
    if row.iter().all(|exit| exit.via == Via::Reset) {
        report("in a row", &row);
    }
    println!("memory {}", memory(&command.tool));
    for tool in resets.statistics().tools {
        if let Some(why) = tool.only_forked {
            println!("forked only: {why}");
        }
    }
}

/// What each process of the tool owns, as its share of anonymous pages: two templates and a worker.
fn memory(tool: &std::path::Path) -> String {
    let tool = tool.canonicalize().expect("it was started");
    let mut shares = Vec::new();
    for dir in std::fs::read_dir("/proc").expect("proc").flatten().map(|entry| entry.path()) {
        let status = std::fs::read_to_string(dir.join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
        let is_tool = std::fs::read_link(dir.join("exe")).is_ok_and(|exe| exe == tool);
        if parent != Some(std::process::id()) || !is_tool {
            continue;
        }
        let text = std::fs::read_to_string(dir.join("smaps_rollup")).unwrap_or_default();
        let kib = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:")?.split_whitespace().next());
        shares.extend(
            kib.and_then(|kib| kib.parse::<f64>().ok()).map(|kib| format!("{:.1} MiB", kib / 1024.0)),
        );
    }
    shares.join(", ")
}
