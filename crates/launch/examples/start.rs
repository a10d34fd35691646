//! Measures what starting a tool costs, cold and as a copy, interleaved: `start [-n COUNT] [-i FILE] [-w] TOOL ARGS`.
//! With -w only copies are started, as for a look at them from outside.
//!
//! Times are from the request until the process has been waited for, its output thrown away.

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
        "{name:6} median {:?}  10% {:?}  90% {:?}  cpu {:?}  faults {}",
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
    let cold = Launcher::new();
    let warm = Launcher::new().with_policy(Policy { choice: Choice::Only(vec![name]), ..Policy::default() });
    let env = EnvBlock::new(&std::env::vars_os().collect());
    let (mut cold_exits, mut warm_exits) = (Vec::new(), Vec::new());
    for round in 0..command.count + 5 {
        let w = run(&warm, &command, &env);
        let c = if command.fork_only { w } else { run(&cold, &command, &env) };
        assert_eq!(c.status, w.status, "both end alike");
        if let Via::Cold(reason) = w.via {
            println!("cold: {reason}");
            return;
        }
        if round >= 5 {
            cold_exits.push(c);
            warm_exits.push(w);
        }
    }
    let (c, w) = (report("cold", &cold_exits), report("fork", &warm_exits));
    println!("ratio  {:.2}", c.as_secs_f64() / w.as_secs_f64());
    for tool in warm.statistics().tools {
        println!("{tool:?}");
    }
}
