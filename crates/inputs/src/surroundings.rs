//! What every test of a run depends on, besides files: kernel, processor, user, limits, signals, and settings that an exec keeps.

use std::fs;

use crate::handlers;

/// Returns a text that is the same as long as these are.
pub fn surroundings() -> String {
    let system = rustix::system::uname();
    let parts = [system.sysname(), system.release(), system.version(), system.machine()];
    let mut text = parts.map(|part| part.to_string_lossy().into_owned()).join("\n");
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    // Relative parts of PATH, and whatever else is looked for from the runner's own directory.
    text.push_str(&format!("\n{:?}", std::env::current_dir().ok()));
    let processor = read("/proc/cpuinfo");
    let of_processor = ["vendor_id", "cpu family", "model", "stepping", "microcode", "flags", "cache size"];
    let constant = |line: &&str| of_processor.iter().any(|name| line.starts_with(name));
    // Up to the end of the first one.
    let first = processor.lines().take_while(|line| !line.is_empty()).filter(constant);
    let of_process = ["Uid", "Gid", "Groups", "Umask", "Sig", "Cap", "Cpus_allowed", "NoNewPrivs", "Seccomp"];
    // Of this thread: another one may be starting a thread, and blocks all signals meanwhile.
    let status = read("/proc/thread-self/status");
    let is_kept =
        |line: &&str| of_process.iter().any(|name| line.starts_with(name)) && !line.starts_with("SigQ");
    for line in first.chain(status.lines().filter(is_kept)) {
        text.push('\n');
        text.push_str(line);
    }
    text.push_str(&format!("\n{:?}", hotstart_launch::unusual_settings()));
    for path in ["/proc/self/personality", "/proc/thread-self/attr/current"] {
        text.push('\n');
        text.push_str(&read(path));
    }
    // A program may be given to another one tomorrow.
    text.push_str(&format!("\n{}", handlers::registered()));
    text + "\n" + &read("/proc/self/limits")
}
