//! What is found out about the constructors of tools: for each whether it can be warm, why not, and what the first start
//! took. Each is started as a test's last stage is: no input, pipes for its output.
//!
//! cargo run --release -p hotstart-launch --example observe -- TOOL...

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use hotstart_launch::{Choice, EnvBlock, Group, Launcher, Policy, ProcessGroup, Spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for tool in std::env::args_os().skip(1) {
        let program = Path::new(&tool);
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let cache = std::env::var_os("HOTSTART_CACHE_DIR").map(Into::into);
        let choice = Choice::Only(vec![name.clone()]);
        let policy = Policy { choice, cache, ..Policy::default() };
        let mut launcher = Launcher::new().with_policy(policy);
        launcher.prepare_warm();
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let mut line = format!("{name:24}");
        for _ in 0..3 {
            let (_read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            let spec = Spec {
                program: program.into(),
                argv: vec![tool.clone(), "--version".into()],
                env: EnvBlock::new(&std::env::vars_os().collect()),
                cwd: Path::new("/").into(),
                stdio: [null.as_fd(), null.as_fd(), write.as_fd()],
                extra_fds: Vec::new(),
                umask: None,
                limits: Vec::new(),
                ignored: None,
                keep_cold: false,
                process_group: ProcessGroup::New,
            };
            let group = Group::new();
            let begun = Instant::now();
            let exit = launcher.start(&spec, &group)?.wait();
            line += &format!(" {:?} {:.1} ms;", exit.via, begun.elapsed().as_secs_f64() * 1000.0);
        }
        if let Some((_, detail)) = &launcher.statistics().tools[0].constructors {
            line += &format!(" {detail}");
        }
        println!("{line}");
    }
    Ok(())
}
