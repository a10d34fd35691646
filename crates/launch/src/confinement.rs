//! What a process may do less than its rights say, where the kernel does not let two processes be compared.

use crate::sys;

/// Returns the lines of a process's status that tell of seccomp: the mode, and the number of filters. `None` if it cannot be read.
fn seccomp_of(process: &str) -> Option<(u64, Option<u64>)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(':')?.trim().parse().ok()
    };
    // Kernels without seccomp show neither; those before Linux 5.9 show no number.
    Some((value("Seccomp").unwrap_or(0), value("Seccomp_filters")))
}

/// Returns whether a process with `filters` seccomp filters has those of process 1 and no others, as in a container.
///
/// Filters cannot be read. They are inherited, and no process can drop one: so a process that has added some of its own has more of them
/// than process 1. One that was put into the container from outside (`docker exec`) has filters of its own, by the container's runtime.
pub fn has_filters_of_first(filters: u64) -> bool {
    seccomp_of("1").is_some_and(|(_, of_first)| of_first == Some(filters))
}

/// Returns why this process cannot be compared with another one: it has seccomp filters of its own, or Landlock rules. Neither can be
/// read. `None` if there are none.
pub fn confinement() -> Option<&'static str> {
    match seccomp_of("thread-self") {
        Some((0, _)) => {}
        Some((_, Some(filters))) if has_filters_of_first(filters) => {}
        _ => {
            return Some(
                "hotstart runs under a seccomp filter, which cannot be compared with that of another run",
            );
        }
    }
    match sys::settings::landlock_domains() {
        Some(0) => None,
        _ => Some("hotstart runs under Landlock rules, which cannot be compared with those of another run"),
    }
}
