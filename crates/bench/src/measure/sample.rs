//! The cost of one run.

use hotstart_launch::Exit;
use serde::Serialize;

/// The cost of one run. Times are in seconds. All values are plain numbers, since they go into statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Time from the request to start the process until it was waited for.
    pub wall: f64,
    /// CPU time in user mode, of the process and of the children it waited for.
    pub user: f64,
    /// CPU time in the kernel, of the same processes.
    pub system: f64,
    /// Peak resident memory of the largest process, in KiB.
    pub memory: f64,
    /// Page faults served without reading from disk.
    pub minor_faults: f64,
    /// Page faults that read from disk.
    pub major_faults: f64,
    /// Context switches because the process waited.
    pub voluntary_switches: f64,
    /// Context switches because another process was preferred.
    pub involuntary_switches: f64,
}

impl From<&Exit> for Sample {
    fn from(exit: &Exit) -> Self {
        let usage = &exit.usage;
        Sample {
            wall: exit.wall.as_secs_f64(),
            user: usage.user.as_secs_f64(),
            system: usage.system.as_secs_f64(),
            memory: usage.max_rss_kib as f64,
            minor_faults: usage.minor_faults as f64,
            major_faults: usage.major_faults as f64,
            voluntary_switches: usage.voluntary_switches as f64,
            involuntary_switches: usage.involuntary_switches as f64,
        }
    }
}

/// One of the figures of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Elapsed time.
    Wall,
    /// CPU time in user mode.
    User,
    /// CPU time in the kernel.
    System,
    /// CPU time in user mode and in the kernel. The kernel counts the sum exactly, but may divide it by sampling.
    Cpu,
    /// Peak memory.
    Memory,
    /// Page faults without reading.
    MinorFaults,
    /// Page faults with reading.
    MajorFaults,
    /// Context switches by waiting.
    VoluntarySwitches,
    /// Context switches by preemption.
    InvoluntarySwitches,
}

impl Metric {
    /// All metrics, in the order of reports.
    pub const ALL: [Metric; 9] = [
        Metric::Wall,
        Metric::User,
        Metric::System,
        Metric::Cpu,
        Metric::Memory,
        Metric::MinorFaults,
        Metric::MajorFaults,
        Metric::VoluntarySwitches,
        Metric::InvoluntarySwitches,
    ];

    /// Returns the value of this metric.
    pub fn of(self, sample: &Sample) -> f64 {
        match self {
            Metric::Wall => sample.wall,
            Metric::User => sample.user,
            Metric::System => sample.system,
            Metric::Cpu => sample.user + sample.system,
            Metric::Memory => sample.memory,
            Metric::MinorFaults => sample.minor_faults,
            Metric::MajorFaults => sample.major_faults,
            Metric::VoluntarySwitches => sample.voluntary_switches,
            Metric::InvoluntarySwitches => sample.involuntary_switches,
        }
    }

    /// Returns the metric's name for people.
    pub fn label(self) -> &'static str {
        match self {
            Metric::Wall => "wall time",
            Metric::User => "user time",
            Metric::System => "system time",
            Metric::Cpu => "user and system",
            Metric::Memory => "peak memory",
            Metric::MinorFaults => "minor faults",
            Metric::MajorFaults => "major faults",
            Metric::VoluntarySwitches => "voluntary switches",
            Metric::InvoluntarySwitches => "involuntary switches",
        }
    }

    /// Returns the metric's name in JSON and CSV, unit included.
    pub fn key(self) -> &'static str {
        match self {
            Metric::Wall => "wall_s",
            Metric::User => "user_s",
            Metric::System => "system_s",
            Metric::Cpu => "cpu_s",
            Metric::Memory => "memory_kib",
            Metric::MinorFaults => "minor_faults",
            Metric::MajorFaults => "major_faults",
            Metric::VoluntarySwitches => "voluntary_switches",
            Metric::InvoluntarySwitches => "involuntary_switches",
        }
    }

    /// Returns whether the metric is a time, in seconds.
    pub fn is_time(self) -> bool {
        matches!(self, Metric::Wall | Metric::User | Metric::System | Metric::Cpu)
    }
}
