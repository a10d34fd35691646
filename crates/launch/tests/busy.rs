//! A program that a test has just written can be executed, though other threads start processes at the same time.

mod common;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hotstart_launch::{EnvBlock, Exit, Group, Launcher, ProcessGroup, Spec};
use hotstart_model::{Environment, Status};

fn start(launcher: &Launcher, program: &Path) -> Exit {
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let spec = Spec {
        program: program.into(),
        argv: vec![program.into()],
        env: EnvBlock::new(&Environment::new()),
        cwd: Path::new("/").into(),
        stdio: [null.as_fd(), null.as_fd(), null.as_fd()],
        extra_fds: Vec::new(),
        umask: None,
        limits: Vec::new(),
        ignored: None,
        keep_cold: false,
        process_group: ProcessGroup::New,
    };
    launcher.start(&spec, &Group::new()).unwrap_or_else(|error| panic!("{error}")).wait()
}

/// Between its fork and its exec, another thread's child has the file open for writing, too. Until that child reaches its own
/// exec, exec refuses the file (ETXTBSY).
#[test]
fn a_program_just_written_can_be_executed() {
    let dir = tempfile::tempdir().unwrap();
    let (launcher, stop) = (Launcher::new(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    start(&launcher, Path::new("/bin/true"));
                }
            });
        }
        let results: Vec<_> = (0..200)
            .map(|turn| {
                let program = dir.path().join(format!("script-{turn}"));
                std::fs::write(&program, "#!/bin/sh\nexit 4\n").unwrap();
                std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
                std::panic::catch_unwind(|| start(&launcher, &program).status)
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert!(results.iter().all(|r| matches!(r, Ok(Status::Exited(4)))));
    });
}
