//! Draws conclusions from measured runs: contrasts with their intervals, a verdict in words, warnings.
//!
//! Each candidate is compared with the first. Runs are paired by round, which cancels what a round's runs have in common (a
//! busy moment of the machine). With several comparisons, each interval is widened so that the confidence holds for all of
//! them together (Bonferroni).

use serde::Serialize;

use crate::machine::{Machine, Quiet, Watch};
use crate::measure::{Candidate, Failure, Halt, Metric, Observer, Plan, Runs, Series, measure};
use crate::stats::{Drift, Interval, Summary, drift, interval, summary};

/// Options of the statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Confidence of the intervals, as a share (0.95 for 95 %).
    pub confidence: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// Number of jobs that ran in parallel within each command, for the estimate of the overhead per process.
    pub jobs: Option<f64>,
    /// Number of processes that each command started, for the same estimate.
    pub processes: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { confidence: 0.95, seed: 1, jobs: None, processes: None }
    }
}

/// The result of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The machine it ran on.
    pub machine: Machine,
    /// How quiet the machine was.
    pub quiet: Quiet,
    /// Confidence for all comparisons together, as a share.
    pub confidence: f64,
    /// Confidence of each interval, as a share.
    pub confidence_each: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// Whether all planned runs were measured.
    pub complete: bool,
    /// The reason if not.
    pub failure: Option<String>,
    /// Seconds from the first timed run to the last.
    pub elapsed_s: f64,
    /// Median cost of a run beyond the command itself and its hooks, in microseconds.
    pub own_cost_us: f64,
    /// Whether outputs were compared and found equal.
    pub same_output: bool,
    /// The candidates.
    pub candidates: Vec<Described>,
    /// The comparison of each other candidate with the first.
    pub comparisons: Vec<Comparison>,
    /// Findings beside the costs, in words. Empty unless a caller adds some.
    pub remarks: Vec<String>,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
}

/// The description of one candidate.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// Letter by which tables refer to it.
    pub letter: String,
    /// Its name.
    pub name: String,
    /// The summary of each metric.
    pub metrics: Vec<(Metric, Summary)>,
    /// Rounds, from 1, whose wall time is an outlier.
    pub outliers: Vec<usize>,
    /// Trend of the wall time.
    pub drift: Option<Drift>,
    /// The cost of every run, in order.
    pub runs: Vec<crate::measure::Sample>,
    /// Position of each run among all timed runs.
    pub places: Vec<usize>,
}

impl Described {
    /// Returns the summary of one metric; all zero if it was not measured.
    pub fn summary(&self, metric: Metric) -> Summary {
        self.metrics.iter().find(|(m, _)| *m == metric).map(|(_, s)| *s).unwrap_or_default()
    }

    /// Returns all wall times, in seconds.
    pub fn walls(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.wall).collect()
    }
}

/// The comparison of one candidate with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Index of the reference candidate.
    pub reference: usize,
    /// Index of the other candidate.
    pub other: usize,
    /// The verdict, in words.
    pub verdict: String,
    /// The contrast of each metric.
    pub contrasts: Vec<Contrast>,
    /// Time saved × parallel jobs ÷ processes, in seconds per process.
    pub overhead_per_process: Option<Interval>,
}

impl Comparison {
    /// Returns the contrast of the wall times.
    pub fn wall(&self) -> Option<&Contrast> {
        self.contrasts.iter().find(|c| c.metric == Metric::Wall)
    }
}

/// The difference of one metric between two candidates.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Contrast {
    /// The metric.
    pub metric: Metric,
    /// Summary of the differences, other minus reference, round by round.
    pub difference: Summary,
    /// Trimmed mean of the differences, with its interval.
    pub difference_interval: Option<Interval>,
    /// Other divided by reference; `None` if a value is 0 or there are too few rounds.
    pub ratio: Option<Interval>,
}

impl Contrast {
    /// Returns whether the interval excludes equality.
    pub fn is_clear(&self) -> bool {
        match (self.ratio, self.difference_interval) {
            (Some(ratio), _) => !ratio.contains(1.0),
            (None, Some(difference)) => !difference.contains(0.0),
            (None, None) => false,
        }
    }
}

/// Measures the candidates interleaved and draws conclusions. A candidate is a command ([`crate::measure::Process`]) or a
/// closure that measures by itself ([`crate::measure::FromFn`]).
pub fn ab(
    candidates: &mut [Box<dyn Candidate + '_>],
    plan: Plan,
    options: &Options,
    halt: &Halt,
    observer: &mut dyn Observer,
) -> Report {
    let (machine, watch) = (Machine::read(), Watch::start());
    let series = measure(candidates, plan, halt, observer);
    let used = series.runs.iter().flat_map(|runs| &runs.samples).map(|s| s.user + s.system).sum();
    report(&series, machine, watch.end(used), options)
}

/// Draws conclusions from measured runs.
pub fn report(series: &Series, machine: Machine, quiet: Quiet, options: &Options) -> Report {
    let others = series.runs.len().saturating_sub(1).max(1);
    let confidence_each = 1.0 - (1.0 - options.confidence) / others as f64;
    let candidates: Vec<Described> =
        series.runs.iter().enumerate().map(|(n, runs)| described(n, runs)).collect();
    let compare = |other| comparison(series, other, confidence_each, options);
    let comparisons: Vec<Comparison> = (1..series.runs.len()).map(compare).collect();
    let mut report = Report {
        machine,
        quiet,
        confidence: options.confidence,
        confidence_each,
        seed: options.seed,
        complete: series.failure.is_none(),
        failure: series.failure.as_ref().map(Failure::to_string),
        elapsed_s: series.elapsed.as_secs_f64(),
        own_cost_us: summary::median(&series.own_cost) * 1e6,
        same_output: series.same_output,
        candidates,
        comparisons,
        remarks: Vec::new(),
        warnings: Vec::new(),
    };
    report.warnings = warnings(&report);
    report
}

/// Returns A, B, … Z, then numbers.
fn letter(index: usize) -> String {
    if index < 26 { char::from(b'A' + index as u8).to_string() } else { format!("#{}", index + 1) }
}

fn described(index: usize, runs: &Runs) -> Described {
    let values = |metric: Metric| runs.samples.iter().map(|s| metric.of(s)).collect::<Vec<f64>>();
    let walls = values(Metric::Wall);
    Described {
        letter: letter(index),
        name: runs.name.clone(),
        metrics: Metric::ALL.iter().map(|&metric| (metric, Summary::of(&values(metric)))).collect(),
        outliers: summary::outliers(&walls).into_iter().map(|index| index + 1).collect(),
        drift: drift::drift(&walls),
        runs: runs.samples.clone(),
        places: runs.places.clone(),
    }
}

fn comparison(series: &Series, other: usize, confidence: f64, options: &Options) -> Comparison {
    let (a, b) = (&series.runs[0], &series.runs[other]);
    let contrasts: Vec<Contrast> =
        Metric::ALL.iter().map(|&metric| contrast(metric, a, b, confidence, options.seed)).collect();
    let overhead_per_process = match (options.jobs, options.processes) {
        (Some(jobs), Some(processes)) => contrasts[0].difference_interval.map(|saved| Interval {
            estimate: -saved.estimate * jobs / processes,
            low: -saved.high * jobs / processes,
            high: -saved.low * jobs / processes,
        }),
        _ => None,
    };
    let pairs = a.samples.len().min(b.samples.len());
    let verdict = verdict(&contrasts[0], pairs, &letter(0), &letter(other), options.confidence);
    Comparison { reference: 0, other, verdict, contrasts, overhead_per_process }
}

fn contrast(metric: Metric, a: &Runs, b: &Runs, confidence: f64, seed: u64) -> Contrast {
    let pairs: Vec<(f64, f64)> =
        a.samples.iter().zip(&b.samples).map(|(x, y)| (metric.of(x), metric.of(y))).collect();
    let differences: Vec<f64> = pairs.iter().map(|(x, y)| y - x).collect();
    let ratio = if pairs.iter().all(|&(x, y)| x > 0.0 && y > 0.0) {
        let logarithms: Vec<f64> = pairs.iter().map(|(x, y)| (y / x).ln()).collect();
        interval::interval(&logarithms, confidence, seed).map(|i| i.map(f64::exp))
    } else {
        None
    };
    Contrast {
        metric,
        difference: Summary::of(&differences),
        difference_interval: interval::interval(&differences, confidence, seed),
        ratio,
    }
}

/// Says in words what the wall times show.
fn verdict(wall: &Contrast, pairs: usize, a: &str, b: &str, confidence: f64) -> String {
    let Some(ratio) = wall.ratio else {
        let least = interval::PAIRS_MIN;
        return format!(
            "{a} and {b}: {pairs} rounds are too few to tell a difference; at least {least} are needed"
        );
    };
    if !wall.is_clear() {
        let ends = format!("{} and {}", signed_percent(ratio.low), signed_percent(ratio.high));
        return format!("no difference between {a} and {b} can be told: {b} takes between {ends}");
    }
    let sure = format!("{} % sure", number(confidence * 100.0));
    if ratio.estimate <= 0.5 || ratio.estimate >= 2.0 {
        let slower = ratio.estimate > 1.0;
        let times = |r: f64| format!("{:.2}", if slower { r } else { 1.0 / r });
        let (low, high) = if slower { (ratio.low, ratio.high) } else { (ratio.high, ratio.low) };
        let what = if slower { "takes {} times as long as" } else { "is {} times as fast as" };
        let what = what.replace("{}", &times(ratio.estimate));
        return format!("{b} {what} {a}, {sure} between {} and {}", times(low), times(high));
    }
    let percent = |r: f64| number((r - 1.0).abs() * 100.0);
    let (word, low, high) = if ratio.estimate < 1.0 {
        ("faster", ratio.high, ratio.low)
    } else {
        ("slower", ratio.low, ratio.high)
    };
    let found = percent(ratio.estimate);
    format!("{b} is {found} % {word} than {a}, {sure} between {} and {}", percent(low), percent(high))
}

fn signed_percent(ratio: f64) -> String {
    let word = if ratio < 1.0 { "less" } else { "more" };
    format!("{} % {word}", number((ratio - 1.0).abs() * 100.0))
}

/// Formats a number with at least two significant digits and at most two decimals.
fn number(value: f64) -> String {
    let text = if value >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Returns the reasons to doubt the figures, each with a remedy.
fn warnings(report: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    for candidate in &report.candidates {
        warnings.extend(drift_warning(candidate));
        warnings.extend(outlier_warning(candidate));
        let wall = candidate.summary(Metric::Wall);
        if wall.count > 0 && wall.median < 0.0005 {
            warnings.push(format!(
                "{} takes under half a millisecond: most of that is the start of a process",
                candidate.letter
            ));
        }
    }
    warnings.extend(memory_warning(report));
    if report.quiet.jitter > 0.1 {
        warnings.push(format!(
            "the machine is noisy: equal pieces of arithmetic took up to {:.0} % longer than usual; close other \
             programs, or measure for longer (`--minutes`)",
            report.quiet.jitter * 100.0
        ));
    }
    if let Some(others) = report.quiet.others.filter(|share| *share > 0.1) {
        let share = others * 100.0;
        warnings.push(format!("other processes used {share:.0} % of the processors' time; stop them"));
    }
    if let Some(stolen) = report.quiet.stolen.filter(|share| *share > 0.02) {
        let share = stolen * 100.0;
        warnings.push(format!("the hypervisor gave {share:.0} % of the processors' time to others"));
    }
    warnings
}

/// The kernel's peak memory of a process includes the time before its exec, when it has its parent's memory.
fn memory_warning(report: &Report) -> Option<String> {
    let own = report.machine.own_memory_kib? as f64;
    let hidden = |candidate: &&Described| {
        let memory = candidate.summary(Metric::Memory);
        memory.count > 0 && memory.median <= own * 1.02
    };
    let letters: Vec<&str> =
        report.candidates.iter().filter(hidden).map(|candidate| candidate.letter.as_str()).collect();
    if letters.is_empty() {
        return None;
    }
    let (letters, own) = (letters.join(", "), own / 1024.0);
    Some(format!(
        "the peak memory of {letters} may be less: what is below hotstart's own {own:.1} MiB cannot be seen"
    ))
}

fn drift_warning(candidate: &Described) -> Option<String> {
    let drift = candidate.drift.filter(|drift| drift.clear)?;
    let word = if drift.change > 0.0 { "slower" } else { "faster" };
    Some(format!(
        "{} got {:.1} % {word} over the run: something fills, warms up or throttles; more `--warmup` may help",
        candidate.letter,
        drift.change.abs() * 100.0
    ))
}

fn outlier_warning(candidate: &Described) -> Option<String> {
    let count = candidate.outliers.len();
    if count == 0 {
        return None;
    }
    let mut rounds: Vec<String> = candidate.outliers.iter().take(8).map(usize::to_string).collect();
    if count > rounds.len() {
        rounds.push("…".to_owned());
    }
    let (noun, verb) = if count == 1 { ("run", "lies") } else { ("runs", "lie") };
    Some(format!(
        "{count} {noun} of {} {verb} far from the others (round {}); the interval is little moved by them",
        candidate.letter,
        rounds.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sample;
    use crate::stats::random::Random;

    pub(crate) fn series(walls: &[Vec<f64>]) -> Series {
        let runs = walls.iter().enumerate().map(|(n, walls)| Runs {
            name: format!("command {n}"),
            samples: walls
                .iter()
                .map(|&wall| Sample { wall, user: wall / 2.0, ..Sample::default() })
                .collect(),
            places: (0..walls.len()).map(|round| round * 2 + n).collect(),
        });
        Series {
            runs: runs.collect(),
            own_cost: vec![1e-4],
            failure: None,
            elapsed: std::time::Duration::from_secs(1),
            same_output: false,
        }
    }

    fn noisy(center: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count).map(|_| center * (1.0 + 0.01 * random.normal())).collect()
    }

    fn verdict_of(walls: &[Vec<f64>]) -> String {
        let report = report(&series(walls), Machine::default(), Quiet::default(), &Options::default());
        report.comparisons[0].verdict.clone()
    }

    #[test]
    fn verdicts_say_what_the_interval_says() {
        let base = noisy(0.1, 40, 1);
        let faster = verdict_of(&[base.clone(), noisy(0.098, 40, 2)]);
        assert!(
            faster.starts_with("B is ") && faster.contains("% faster than A, 95 % sure between"),
            "{faster}"
        );
        let slower = verdict_of(&[base.clone(), noisy(0.11, 40, 3)]);
        assert!(slower.contains("% slower than A"), "{slower}");
        let equal = verdict_of(&[base.clone(), noisy(0.1, 40, 4)]);
        assert!(equal.starts_with("no difference between A and B can be told"), "{equal}");
        let much = verdict_of(&[base.clone(), noisy(0.02, 40, 5)]);
        assert!(much.starts_with("B is 5.0") || much.starts_with("B is 4.9"), "{much}");
        let few = verdict_of(&[base[..3].to_vec(), base[..3].to_vec()]);
        assert!(few.contains("3 rounds are too few"), "{few}");
    }

    #[test]
    fn the_overhead_of_a_process_is_saved_time_by_jobs_by_processes() {
        let options = Options { jobs: Some(4.0), processes: Some(100.0), ..Options::default() };
        let walls = series(&[vec![3.0; 10], vec![2.0; 10]]);
        let report = report(&walls, Machine::default(), Quiet::default(), &options);
        let overhead = report.comparisons[0].overhead_per_process.unwrap();
        assert!((overhead.estimate - 0.04).abs() < 1e-9, "{overhead:?}");
    }

    #[test]
    fn several_comparisons_have_wider_intervals_and_zeros_no_ratio() {
        let walls: Vec<Vec<f64>> = (0..5).map(|n| noisy(0.1, 30, n)).collect();
        let report = report(&series(&walls), Machine::default(), Quiet::default(), &Options::default());
        assert!((report.confidence_each - 0.9875).abs() < 1e-9);
        let zero = report.comparisons[0].contrasts.iter().find(|c| c.metric == Metric::MajorFaults).unwrap();
        assert!(zero.ratio.is_none() && !zero.is_clear());
    }

    #[test]
    fn two_closures_are_compared() {
        use crate::measure::{Amount, FromFn, Silent};
        let one = |name, wall| {
            Box::new(FromFn::new(name, move |_| Ok(Sample { wall, ..Sample::default() })))
                as Box<dyn Candidate>
        };
        let plan = Plan { amount: Some(Amount::Rounds(8)), warmups: 0 };
        let mut candidates = [one("a", 2.0), one("b", 1.9)];
        let report = ab(&mut candidates, plan, &Options::default(), &Halt::new(), &mut Silent);
        let verdict = &report.comparisons[0].verdict;
        assert_eq!(verdict, "B is 5 % faster than A, 95 % sure between 5 and 5");
    }

    #[test]
    fn drift_and_outliers_are_named() {
        let mut rising: Vec<f64> =
            noisy(0.1, 40, 9).iter().enumerate().map(|(n, v)| v + n as f64 * 0.001).collect();
        rising[5] = 1.0;
        let report = report(&series(&[rising]), Machine::default(), Quiet::default(), &Options::default());
        let all = report.warnings.join("\n");
        assert!(all.contains("A got") && all.contains("% slower over the run"), "{all}");
        assert!(all.contains("1 run of A lies far from the others (round 6)"), "{all}");
    }
}
