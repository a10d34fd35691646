//! What a config changes of the process that evaluates it. lit runs its tests as children of that process, so that they inherit
//! it; hotstart's tools are children of the runner. The two states of the helper are compared, not a list of functions that a
//! config may call.

use std::fs;

/// Lines of `/proc/PID/status` that say what a child inherits.
const INHERITED: [&str; 14] = [
    "Umask",
    "Uid",
    "Gid",
    "Groups",
    "SigBlk",
    "SigIgn",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Cpus_allowed",
];
/// Fields of `/proc/PID/stat` that say the same, numbered as in proc(5).
const FIELDS: [(&str, usize); 5] = [
    ("process group", 5),
    ("session", 6),
    ("nice", 19),
    ("real-time priority", 40),
    ("scheduling policy", 41),
];
/// SIGINT, SIGPIPE and SIGXFSZ, as bits of a set. Python and lit ignore them by themselves, and children get the default.
const OWN: u64 = 1 << 1 | 1 << 12 | 1 << 24;

/// The attributes of a process that its children inherit, each with its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inherited(Vec<(String, String)>);

impl Inherited {
    /// Reads those of a process. `None` if the kernel does not tell.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        Some(Self(parse(&read("status")?, &read("limits")?, &read("stat")?)))
    }

    /// Returns a text that names each attribute that differs, with both values; `None` if none does.
    pub(super) fn changes(&self, now: &Self) -> Option<String> {
        let value = |(name, now): &(String, String)| {
            let before =
                self.0.iter().find(|(known, _)| known == name).map_or("unknown", |(_, before)| before);
            (before != now).then(|| format!("{name}: {now}, was {before}"))
        };
        let changed: Vec<String> = now.0.iter().filter_map(value).collect();
        (!changed.is_empty()).then(|| changed.join("; "))
    }
}

fn parse(status: &str, limits: &str, stat: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in status.lines().filter_map(|line| line.split_once(':')) {
        if INHERITED.contains(&name) {
            let ignored = || u64::from_str_radix(value.trim(), 16).map_or(0, |set| set & !OWN);
            let value = if name == "SigIgn" {
                format!("{:016x}", ignored())
            } else {
                value.trim().replace('\t', " ")
            };
            found.push((name.to_owned(), value));
        }
    }
    // "Max open files            1024                 4096                 files": columns of 26, 21 and 21 characters.
    for line in limits.lines().skip(1) {
        let column = |from: usize, to: usize| line.get(from..to.min(line.len())).unwrap_or("").trim();
        found.push((column(0, 26).to_owned(), format!("{} (hard {})", column(26, 47), column(47, 68))));
    }
    // The name of the program, in parentheses, may have blanks.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    for (name, number) in FIELDS {
        found.push((name.to_owned(), fields.get(number - 3).copied().unwrap_or("unknown").to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
        Max cpu time              unlimited            unlimited            seconds   \n\
        Max open files            1024                 4096                 files     \n";

    fn inherited(umask: &str, ignored: &str, files: &str, nice: &str) -> Inherited {
        let status = format!("Name:\tUmask: 1\nUmask:\t{umask}\nSigIgn:\t{ignored}\nVmRSS:\t  {umask} kB\n");
        let stat = format!(
            "7 (a) b) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 {nice} 1 0 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 0 0 0"
        );
        Inherited(parse(&status, &LIMITS.replace("1024", files), &stat))
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        let before = inherited("0022", "0000000001001000", "1024", "0");
        assert_eq!(before.changes(&before), None);
        let told = |now: Inherited| before.changes(&now).unwrap();
        assert_eq!(told(inherited("0077", "0000000001001000", "1024", "0")), "Umask: 0077, was 0022");
        assert_eq!(
            told(inherited("0022", "0000000001001000", "512 ", "5")),
            "Max open files: 512 (hard 4096), was 1024 (hard 4096); nice: 5, was 0"
        );
        let told = told(inherited("0022", "0000000000000200", "1024", "0"));
        assert_eq!(told, "SigIgn: 0000000000000200, was 0000000000000000");
    }

    #[test]
    fn python_ignores_some_signals_by_itself() {
        let [before, now] =
            ["0000000000000000", "0000000001001002"].map(|set| inherited("0022", set, "1024", "0"));
        assert_eq!(before.changes(&now), None);
    }

    #[test]
    fn this_process_has_all_of_them() {
        let own = Inherited::of(std::process::id() as i32).expect("the kernel tells");
        for name in INHERITED.iter().chain(&["Max stack size"]).chain(FIELDS.iter().map(|(name, _)| name)) {
            assert!(own.0.iter().any(|(known, value)| known == name && value != "unknown"), "{name}");
        }
    }
}
