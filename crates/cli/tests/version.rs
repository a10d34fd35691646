//! `hotstart --version`: one line, or the kinds of start that this system allows.

use std::path::Path;
use std::process::Command;

fn version(args: &[&str], path: Option<&str>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotstart"));
    command.arg("--version").args(args);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().expect("hotstart starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn it_is_one_line_unless_more_is_asked_for() {
    let short = version(&[], None);
    assert_eq!(short, format!("hotstart {}\n", env!("CARGO_PKG_VERSION")));
    let long = version(&["--verbose"], None);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
    let system = format!("system: Linux {}, {}, glibc 2.", release.trim(), std::env::consts::ARCH);
    assert!(long.starts_with(&format!("{short}{system}")), "{long}");
    assert!(
        long.contains("\n  system calls handed to the process (Linux 5.11; rewind needs it): "),
        "{long}"
    );
    assert!(long.contains("  sealed memory files: yes\n  executable memory files"), "{long}");
    assert!(long.contains("\n  glibc for warm starts: "), "{long}");
}

/// Warm starts work on systems where these tests run; other tests need them too.
#[test]
#[cfg(target_arch = "x86_64")]
fn kinds_of_start_are_tried() {
    let long = version(&["--verbose"], Some("/usr/bin:/bin"));
    assert!(long.ends_with("/true:\n  fork: yes\n  rewind: yes\n  cold: yes\n"), "{long}");
}

#[test]
fn a_kind_that_does_not_work_says_why() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let script = dir.path().join("true");
    std::fs::write(&script, "#!/bin/sh\n").expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, executable).expect("it is ours");
    let long = version(&["--verbose"], dir.path().to_str());
    assert!(long.contains("  fork: no: ") && long.contains("  rewind: no: "), "{long}");
    std::fs::remove_file(&script).expect("it is there");
    let long = version(&["--verbose"], dir.path().to_str());
    assert!(long.contains("not tried, as there is no program 'true' along PATH"), "{long}");
}

#[test]
fn the_lit_that_counts_is_named() {
    let python = std::env::var("HOTSTART_LIT_PYTHON").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
        std::path::PathBuf::from,
    );
    let ask = "import lit, os; print(lit.__version__, 'in', repr(os.path.dirname(lit.__file__)), end='')";
    let asked = Command::new(&python).args(["-c", ask]).output().expect("a Python with lit");
    let expected = String::from_utf8(asked.stdout).expect("text");
    let ask = |python: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotstart"));
        let output = command.args(["--version", "--verbose"]).env("HOTSTART_LIT_PYTHON", python).output();
        String::from_utf8(output.expect("hotstart starts").stdout).expect("text")
    };
    let long = ask(&python);
    assert!(long.contains(&format!("\nlit: {expected}, run by '")), "{long}");
    let without = ask(Path::new("/nonexistent"));
    assert!(without.contains("\nlit: none; cannot find '/nonexistent'"), "{without}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotstart"));
    command.args(["--version", "--verbose"]).current_dir(dir.path()).env("PATH", dir.path());
    for name in ["HOTSTART_LIT_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"] {
        command.env_remove(name);
    }
    let nowhere = String::from_utf8(command.output().expect("hotstart starts").stdout).expect("text");
    assert!(nowhere.contains("\nlit: none; a run of `hotstart lit` lists the places"), "{nowhere}");
}
