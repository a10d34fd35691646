//! Turns findings into advice. Each piece names the setting to change and the figure behind it.

use std::path::PathBuf;

use hotstart_launch::Reason;

use crate::machine::Machine;
use crate::render::seconds;

/// A figure that may call for a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Starting a process from a parent of 450 MiB, in seconds.
    ForkOfLargeProcess {
        /// With posix_spawn.
        spawn: f64,
        /// With fork and exec.
        fork: f64,
    },
    /// Time for 4 KiB of new memory in one thread, in seconds.
    Faults {
        /// With small pages.
        fresh: f64,
        /// With huge pages.
        huge: Option<f64>,
        /// In bulk.
        bulk: Option<f64>,
        /// With pages copied after a fork.
        copied: Option<f64>,
    },
    /// Time for an allocation in one thread, in seconds.
    Allocator {
        /// The library to preload.
        library: PathBuf,
        /// With the system's allocator.
        system: f64,
        /// With this library.
        time: f64,
    },
    /// Share of relocation in ld.so's time.
    Relocation {
        /// The tool.
        tool: String,
        /// The share.
        share: f64,
    },
    /// The time of a tool's start, in seconds.
    Warm {
        /// The tool.
        tool: String,
        /// Of a cold start.
        cold: f64,
        /// Of a warm start.
        warm: f64,
    },
    /// A tool that cannot be warm.
    NotWarm {
        /// The tool.
        tool: String,
        /// The reason.
        reason: Reason,
    },
}

/// Returns the changes that the findings call for.
pub fn advise(findings: &[Finding], machine: &Machine) -> Vec<String> {
    let mut advice: Vec<String> = findings.iter().filter_map(|finding| of(finding, machine)).collect();
    if let Some(governor) = machine.governor.as_deref().filter(|g| *g != "performance") {
        advice.push(format!(
            "the processors' speed is governed by `{governor}`: `cpupower frequency-set -g performance` makes short \
             runs faster and measurements steadier"
        ));
    }
    if advice.is_empty() {
        advice.push("nothing that a setting would change stood out".to_owned());
    }
    advice
}

fn of(finding: &Finding, machine: &Machine) -> Option<String> {
    match finding {
        Finding::ForkOfLargeProcess { spawn, fork } => (fork / spawn > 3.0).then(|| {
            format!(
                "starting a process by fork from one of 450 MiB takes {}, by posix_spawn {}: where a large program \
                 starts many, see that it uses posix_spawn (Python: `subprocess` with `close_fds=False` and no \
                 `preexec_fn`; make: 4.3 or later)",
                seconds(*fork),
                seconds(*spawn)
            )
        }),
        Finding::Faults { fresh, huge, .. } => faults(*fresh, *huge, machine),
        Finding::Allocator { library, system, time } => (system / time > 1.3).then(|| {
            let (system, time) = (seconds(*system), seconds(*time));
            let library = library.display();
            format!(
                "an allocation takes {system} with the system's allocator and {time} with {library}: tools that \
                 allocate much may gain by LD_PRELOAD={library}; measure with `hotstart ab`"
            )
        }),
        Finding::Relocation { tool, share } => (*share > 0.5).then(|| {
            format!(
                "relocation is {:.0} % of what ld.so does for `{tool}`: link it with -Wl,-Bsymbolic-functions and \
                 hidden visibility, or statically (LLVM: LLVM_LINK_LLVM_DYLIB=OFF)",
                share * 100.0
            )
        }),
        Finding::Warm { tool, cold, warm } => (cold / warm > 1.2).then(|| {
            let (cold, warm) = (seconds(*cold), seconds(*warm));
            format!(
                "`{tool}` takes {warm} instead of {cold} when it is started warm: run its tests with `hotstart lit` \
                 (`--start=auto`, the default)"
            )
        }),
        Finding::NotWarm { tool, reason } => Some(format!("`{tool}` cannot be started warm: {reason}{}", remedy(*reason))),
    }
}

/// Returns a change that would make the tool eligible for warm starts, if there is one.
fn remedy(reason: Reason) -> &'static str {
    match reason {
        Reason::Static => "; link it dynamically (LLVM: no -static in CMAKE_EXE_LINKER_FLAGS)",
        Reason::Script => "; name the program that the script runs",
        Reason::Instrumented => {
            "; a build without it can be (LLVM: LLVM_USE_SANITIZER= and LLVM_BUILD_INSTRUMENTED=)"
        }
        Reason::Privileged => "; a copy of it without these rights can be",
        _ => "",
    }
}

fn faults(fresh: f64, huge: Option<f64>, machine: &Machine) -> Option<String> {
    let huge = huge.filter(|huge| fresh / huge > 2.0)?;
    let (each, with) = (seconds(fresh), seconds(huge));
    let place = if machine.virtual_machine { "; faults are dear in virtual machines" } else { "" };
    let how = match machine.huge_pages.as_deref() {
        Some("always") => return None,
        Some("madvise") => {
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 lets programs ask for them, and \
             /sys/kernel/mm/transparent_hugepage/enabled set to `always` gives them to all"
        }
        _ => "set /sys/kernel/mm/transparent_hugepage/enabled to `madvise` or `always`",
    };
    Some(format!("4 KiB of memory take {each} by small pages and {with} by huge ones{place}: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_setting_and_only_where_it_pays() {
        let machine = Machine { huge_pages: Some("madvise".into()), ..Machine::default() };
        let dear = Finding::Faults { fresh: 2e-6, huge: Some(2e-7), bulk: None, copied: None };
        let advice = advise(std::slice::from_ref(&dear), &machine);
        assert!(advice[0].contains("GLIBC_TUNABLES=glibc.malloc.hugetlb=1"), "{advice:?}");
        let always = Machine { huge_pages: Some("always".into()), ..Machine::default() };
        assert!(advise(&[dear], &always)[0].starts_with("nothing"));
        let slow = Finding::ForkOfLargeProcess { spawn: 1e-4, fork: 1e-2 };
        assert!(advise(&[slow], &machine)[0].contains("posix_spawn"));
        let fine = Finding::ForkOfLargeProcess { spawn: 1e-4, fork: 2e-4 };
        assert!(advise(&[fine], &machine)[0].starts_with("nothing"));
        let library = PathBuf::from("/lib/libx.so");
        let faster = Finding::Allocator { library, system: 4e-8, time: 2e-8 };
        assert!(advise(&[faster], &machine)[0].contains("LD_PRELOAD=/lib/libx.so"));
        let fixed = Finding::NotWarm { tool: "t".into(), reason: Reason::Static };
        assert!(
            advise(&[fixed], &machine)[0]
                .contains("t` cannot be started warm: statically linked; link it dyn")
        );
        let governed = Machine { governor: Some("powersave".into()), ..machine };
        assert!(advise(&[], &governed)[0].contains("performance"));
    }
}
