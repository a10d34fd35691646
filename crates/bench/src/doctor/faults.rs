//! The cost of new memory: by kind of page, and with several threads or processes that fault at once.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use hotstart_launch::probe::{self, Fault, Workers};

use super::patience::Patience;
use super::{Curve, Finding, MIB, Table, affordable, cell};
use crate::render::seconds;

/// Bytes that each worker touches.
const EACH: usize = 32 * MIB;
/// Number of repetitions, and the time after which the lower bound is enough. The shortest time counts: other processes, or
/// the kernel's compaction for a huge page, only ever add to it.
const TIMES: std::ops::RangeInclusive<usize> = 2..=8;
const TIME: Duration = Duration::from_millis(400);
const PAGE: f64 = 4096.0;
const WORKERS: [Workers; 6] = [
    Workers::Threads(1),
    Workers::Threads(2),
    Workers::Threads(4),
    Workers::Processes(1),
    Workers::Processes(2),
    Workers::Processes(4),
];

/// Measures the time per 4 KiB, by kind of page and number of workers.
pub(super) fn by_kind(patience: &Patience) -> (Table, Vec<Finding>) {
    let heads = ["", "1 thread", "2 threads", "4 threads", "1 process", "2 processes", "4 processes"];
    let mut table = Table::new("page faults: time for each 4 KiB of all workers together", &heads);
    table.note(format!(
        "each worker touches {} MiB of its own; from the first's start to the last's end, divided by all pages of \
         4 KiB: on free processors, twice the workers would take half the time; the least of up to {}",
        EACH / MIB,
        TIMES.end()
    ));
    let file = page_cache_file();
    let mut findings = Vec::new();
    let mut one_by_one = |label: &str, kind: Result<Fault<'_>, String>| {
        let found: Vec<Option<f64>> =
            WORKERS.iter().map(|&w| row_cell(&mut table, label, &kind, w, patience)).collect();
        table.row(label, found.iter().map(|&c| cell(c)));
        let points = |from: usize| {
            let xs = [1.0, 2.0, 4.0].into_iter().zip(&found[from..from + 3]);
            xs.filter_map(|(x, y)| Some((x, (*y)?))).collect()
        };
        table.curves.push(Curve { name: format!("{label}, threads"), points: points(0) });
        found[0]
    };
    let fresh = one_by_one("fresh, 4 KiB pages", Ok(Fault::Fresh));
    let huge = one_by_one("fresh, 2 MiB pages", huge_pages().map(|()| Fault::FreshHuge));
    let bulk = one_by_one("fresh, in bulk by MADV_POPULATE_WRITE", Ok(Fault::Bulk));
    let copied = one_by_one("copied after a fork", Ok(Fault::Copied));
    one_by_one(
        "of a file in the page cache",
        file.as_ref().map(|f| Fault::File(f.as_fd())).map_err(String::clone),
    );
    table.across = "threads".to_owned();
    if let Some(fresh) = fresh {
        findings.push(Finding::Faults { fresh, huge, bulk, copied });
    }
    (table, findings)
}

fn row_cell(
    table: &mut Table,
    label: &str,
    kind: &Result<Fault<'_>, String>,
    workers: Workers,
    patience: &Patience,
) -> Option<f64> {
    let found = kind.clone().and_then(|kind| per_page(kind, workers, patience));
    found.map_err(|why| table.gap(label, why)).ok()
}

fn per_page(kind: Fault<'_>, workers: Workers, patience: &Patience) -> Result<f64, String> {
    let (Workers::Threads(count) | Workers::Processes(count)) = workers;
    affordable(EACH * count * 2, EACH * count * 2)?;
    let pages = (EACH * count) as f64 / PAGE;
    let once = || {
        let faulted = probe::fault(kind, workers, EACH).map_err(|error| error.to_string())?;
        if matches!(kind, Fault::FreshHuge) && faulted.faults as f64 > pages / 8.0 {
            return Err("the kernel gave small pages where huge ones were asked for".to_owned());
        }
        if matches!(kind, Fault::Bulk) && faulted.elapsed.as_secs_f64() / pages < 20e-9 {
            return Err("the kernel does not know MADV_POPULATE_WRITE (Linux 5.14)".to_owned());
        }
        Ok(faulted.elapsed.as_secs_f64() / pages)
    };
    let times = patience.repeat(TIMES, TIME, once)?;
    Ok(times.into_iter().fold(f64::INFINITY, f64::min))
}

/// Returns an error that says why there are no huge pages, if there are none.
fn huge_pages() -> Result<(), String> {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let setting = crate::machine::read(path).ok_or("the kernel has no transparent huge pages")?;
    match crate::machine::selected(&setting).as_deref() {
        Some("never") => Err(format!("{path} is `never`")),
        _ => Ok(()),
    }
}

/// Creates an unnamed file whose pages were all just written.
fn page_cache_file() -> Result<File, String> {
    let text = |error: std::io::Error| format!("no temporary file could be written: {error}");
    let dir = std::env::temp_dir();
    let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(&dir, flags, rustix::fs::Mode::from_raw_mode(0o600));
    let mut file = File::from(file.map_err(|error| text(error.into()))?);
    let block = vec![1; MIB];
    for _ in 0..EACH / MIB {
        std::io::Write::write_all(&mut file, &block).map_err(text)?;
    }
    Ok(file)
}

/// Measures filling memory, as a linker does with its output.
pub(super) fn filling(patience: &Patience) -> (Table, Vec<Finding>) {
    let mut table = Table::new("filling memory", &["", "first time", "once more", "faults"]);
    let bytes = match affordable(1024 * MIB, 64 * MIB).and_then(|bytes| bearable(bytes, patience)) {
        Ok(bytes) => bytes,
        Err(why) => {
            table.gap("filling memory", why);
            return (table, Vec::new());
        }
    };
    table.title = format!("filling {} MiB by one thread", bytes / MIB);
    for (label, huge) in [("4 KiB pages", false), ("2 MiB pages", true)] {
        let usable = if huge { huge_pages() } else { Ok(()) };
        let fill = || probe::fill(bytes, huge).map_err(|error| error.to_string());
        // Run twice and keep the last: a hypervisor provides memory only when it is touched for the first time.
        match usable.and_then(|()| patience.repeat(2..=2, Duration::ZERO, fill)) {
            Ok(filled) => {
                let last = filled[filled.len() - 1];
                let times = [last.first, last.again].map(|time| seconds(time.as_secs_f64()));
                table.row(label, times.into_iter().chain([last.faults.to_string()]));
            }
            Err(why) => table.gap(label, why),
        }
    }
    (table, Vec::new())
}

/// Fewest bytes that give a meaningful time for filling.
const LEAST: usize = 64 * MIB;
/// Most time for filling once.
const FILL: Duration = Duration::from_millis(2500);

/// Returns how much of `bytes` can be filled in bearable time, estimated by filling a little.
fn bearable(bytes: usize, patience: &Patience) -> Result<usize, String> {
    let fill = || probe::fill(LEAST, false).map_err(|error| error.to_string());
    let little = patience.repeat(1..=1, Duration::ZERO, fill)?[0].first.as_secs_f64();
    let times = (FILL.as_secs_f64() / little.max(1e-9)) as usize;
    Ok((LEAST * times.clamp(1, 1 << 20)).min(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience() -> Patience {
        Patience::new(Duration::from_secs(60))
    }

    #[test]
    fn what_is_filled_can_be_borne() {
        assert_eq!(bearable(1, &patience()), Ok(1));
        assert!(bearable(1024 * MIB, &patience()).unwrap() >= LEAST);
        assert!(bearable(LEAST, &patience().part(Duration::ZERO)).is_err());
    }

    #[test]
    fn a_page_costs_something() {
        let fresh = per_page(Fault::Fresh, Workers::Threads(1), &patience()).unwrap();
        assert!(fresh > 10e-9 && fresh < 1e-3, "{fresh}");
    }

    #[test]
    fn a_kind_that_is_refused_is_a_gap() {
        let mut table = Table::new("t", &[]);
        let found = row_cell(&mut table, "odd", &Err("of this".to_owned()), Workers::Threads(1), &patience());
        assert_eq!((found, table.gaps), (None, vec!["odd could not be measured because of this".to_owned()]));
    }
}
