//! The machine behind a figure, and how quiet it was during the measurement.
//!
//! Read from /proc and /sys. A value that cannot be read is left out, never guessed.

use std::time::Instant;

use serde::Serialize;

use crate::stats::summary::{quantile, sorted};

/// The properties of a machine that affect times.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: Option<String>,
    /// Processors that this process may use.
    pub processors: usize,
    /// Whether the processor reports that it is virtual.
    pub virtual_machine: bool,
    /// Name and version of the kernel.
    pub kernel: Option<String>,
    /// Memory in MiB.
    pub memory_mib: Option<u64>,
    /// The CPU frequency governor.
    pub governor: Option<String>,
    /// The kernel's setting for transparent huge pages: its selected word.
    pub huge_pages: Option<String>,
    /// Load average over one minute.
    pub load: Option<f64>,
    /// Peak memory of this process. A smaller peak of a process it starts cannot be seen.
    pub own_memory_kib: Option<u64>,
}

impl Machine {
    /// Reads all values.
    pub fn read() -> Machine {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        Machine {
            processor: field("model name"),
            processors: std::thread::available_parallelism().map_or(1, |n| n.get()),
            virtual_machine: field("flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
            kernel: read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")),
            memory_mib: meminfo("MemTotal"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|line| selected(&line)),
            load: read("/proc/loadavg").and_then(|line| line.split(' ').next()?.parse().ok()),
            own_memory_kib: own_memory(),
        }
    }

    /// Returns the description as one line.
    pub fn line(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.processor.clone());
        let kind = if self.virtual_machine { "virtual processors" } else { "processors" };
        parts.push(format!("{} {kind}", self.processors));
        parts.extend(self.memory_mib.map(|mib| format!("{:.1} GiB", mib as f64 / 1024.0)));
        parts.extend(self.kernel.clone());
        parts.extend(self.governor.as_ref().map(|g| format!("governor {g}")));
        parts.extend(self.huge_pages.as_ref().map(|h| format!("huge pages {h}")));
        parts.extend(self.load.map(|load| format!("load {load}")));
        parts.join(", ")
    }
}

fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns a value of /proc/meminfo, in MiB.
pub fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    Some(line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

/// Reads a small file, without the white space around its text.
pub fn read(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Returns the word in brackets, the selected one of a kernel setting.
pub fn selected(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// How quiet the machine was while something was measured.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quiet {
    /// Excess of the slowest tenth of equal pieces of arithmetic over the median, as a share; the larger of the values
    /// before and after.
    pub jitter: f64,
    /// Share of all processor time that unmeasured processes used.
    pub others: Option<f64>,
    /// Share of all processor time that a hypervisor gave to other machines.
    pub stolen: Option<f64>,
}

/// A watch over the machine, started before a measurement and ended after it.
#[derive(Debug)]
pub struct Watch {
    jitter: f64,
    begun: Option<Jiffies>,
}

impl Watch {
    /// Starts watching. Takes about 40 ms.
    pub fn start() -> Watch {
        Watch { jitter: jitter(), begun: Jiffies::read() }
    }

    /// Ends watching. `own` is the processor time that the measured processes used, in seconds.
    pub fn end(self, own: f64) -> Quiet {
        let ended = Jiffies::read();
        let mut quiet = Quiet { jitter: self.jitter.max(jitter()), ..Quiet::default() };
        if let (Some(begun), Some(ended)) = (self.begun, ended) {
            let total = ended.total.saturating_sub(begun.total) as f64;
            if total > 0.0 {
                let busy = ended.busy.saturating_sub(begun.busy) as f64;
                let own = own * rustix::param::clock_ticks_per_second() as f64;
                quiet.others = Some(((busy - own) / total).max(0.0));
                quiet.stolen = Some(ended.stolen.saturating_sub(begun.stolen) as f64 / total);
            }
        }
        quiet
    }
}

#[derive(Clone, Copy, Debug)]
struct Jiffies {
    busy: u64,
    total: u64,
    stolen: u64,
}

impl Jiffies {
    fn read() -> Option<Jiffies> {
        Jiffies::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line: user nice system idle iowait irq softirq steal.
    fn parse(text: &str) -> Option<Jiffies> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> = line.split_ascii_whitespace().take(8).filter_map(|n| n.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, stolen] = fields[..] else { return None };
        let busy = user + nice + system + irq + softirq;
        Some(Jiffies { busy, total: busy + idle + iowait + stolen, stolen })
    }
}

/// Times 40 equal pieces of arithmetic of about a millisecond.
fn jitter() -> f64 {
    let piece = |rounds: u64| {
        let begun = Instant::now();
        let mut value = 1u64;
        for round in 0..rounds {
            value = std::hint::black_box(value.rotate_left(7) ^ round);
        }
        std::hint::black_box(value);
        begun.elapsed().as_secs_f64()
    };
    let rounds = (100_000.0 * 0.001 / piece(100_000).max(1e-6)) as u64;
    let times: Vec<f64> = (0..40).map(|_| piece(rounds.max(1))).collect();
    let times = sorted(&times);
    let middle = quantile(&times, 0.5);
    if middle > 0.0 { quantile(&times, 0.9) / middle - 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        assert_eq!(selected("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(selected("none"), None);
        let jiffies = Jiffies::parse("cpu  10 1 5 100 4 2 3 7 0 0\ncpu0 1\n").unwrap();
        assert_eq!((jiffies.busy, jiffies.total, jiffies.stolen), (21, 132, 7));
        assert!(Jiffies::parse("cpu 1 2\n").is_none());
        assert!(meminfo("MemTotal").is_some_and(|mib| mib > 0));
        assert!(meminfo("MemTot").is_none());
    }

    #[test]
    fn the_time_of_others_is_what_is_not_ones_own() {
        let quiet = Watch { jitter: 0.0, begun: Jiffies::parse("cpu  0 0 0 0 0 0 0 0\n") }.end(0.0);
        assert!(quiet.others.is_some_and(|share| share > 0.0 && share <= 1.0));
    }
}
