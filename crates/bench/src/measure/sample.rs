//! What one run cost.

use hotstart_launch::Exit;
use serde::Serialize;

/// The cost of one run. Times are in seconds; plain numbers, as all of it goes into statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// From the request to start it until it was waited for.
    pub wall: f64,
    /// CPU time in user mode, of the process and of those it waited for.
    pub user: f64,
    /// CPU time in the kernel, likewise.
    pub system: f64,
    /// Peak resident memory of the largest process, in KiB.
    pub memory: f64,
    /// Page faults served without reading from disk.
    pub minor_faults: f64,
    /// Page faults that read from disk.
    pub major_faults: f64,
    /// Context switches because it waited.
    pub voluntary_switches: f64,
    /// Context switches because others were preferred.
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
    /// Both together, which the kernel counts exactly where it divides them by sampling.
    Cpu,
    /// Peak memory.
    Memory,
    /// Faults without reading.
    MinorFaults,
    /// Faults with reading.
    MajorFaults,
    /// Switches by waiting.
    VoluntarySwitches,
    /// Switches by preemption.
    InvoluntarySwitches,
}

impl Metric {
    /// All, in the order in which they are reported.
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

    /// The value of this figure.
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

    /// Its name for people.
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

    /// Its name in JSON and CSV, unit included.
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

    /// Whether it is a time, in seconds.
    pub fn is_time(self) -> bool {
        matches!(self, Metric::Wall | Metric::User | Metric::System | Metric::Cpu)
    }
}
