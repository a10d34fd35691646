//! Random command lines, parsed by lit itself and by hotstart: same settings, or the same error.
//!
//! One Python process serves all cases. The generator leaves out the deliberate differences of hotstart: its own options, a
//! `--` joined to its option by `=`, abbreviations of `--time-tests` (which lit accepts and then forgets), and regular
//! expressions that do not compile, whose error texts `crates/python` tests.
#![forbid(unsafe_code)]
// One `json!` for all settings.
#![recursion_limit = "256"]

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hotstart_cli::args::{self, Invocation, LitOptions, Request, UsageError};
use hotstart_model::Dialect;
use hotstart_report::histogram::Slowest;
use hotstart_report::{DiagnosticLevel, Shown};
use serde_json::{Value, json};

const CASES: usize = 3000;

/// Answers each line of JSON, a command line and an environment, with lit's settings or its error.
const DRIVER: &str = r#"
import contextlib, io, json, os, sys
import lit, lit.cl_arguments, lit.util
lit.util.usable_core_count = lambda: 3
os.environ["COLUMNS"] = "80"
VARIABLES = [v for v in os.environ if v.startswith("LIT_")]
for v in VARIABLES: del os.environ[v]

def plain(value):
    if hasattr(value, "output_file"): return value.output_file
    if hasattr(value, "pattern"): return value.pattern
    if isinstance(value, lit.Test.ResultCode): return value.name
    if isinstance(value, lit.cl_arguments.TestOrder): return value.value
    if isinstance(value, (list, tuple)): return [plain(v) for v in value]
    if isinstance(value, float): return repr(value)
    return value

for line in sys.stdin:
    case = json.loads(line)
    os.environ.update(case["env"])
    sys.argv = ["lit"] + case["argv"]
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            opts = lit.cl_arguments.parse_args()
        answer = {k: plain(v) for k, v in vars(opts).items()}
    except SystemExit as e:
        answer = {"exit": e.code, "error": err.getvalue().splitlines()[-1:], "out": "" if e.code else out.getvalue()[:5]}
    for v in case["env"]: del os.environ[v]
    print(json.dumps(answer), flush=True)
"#;

/// A Python process with lit that answers all cases.
struct Lit {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Lit {
    fn start(cwd: &Path) -> Lit {
        let mut process = Command::new(lit_python())
            .args(["-c", DRIVER])
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the Python with lit starts");
        let to = process.stdin.take().expect("piped");
        let from = BufReader::new(process.stdout.take().expect("piped"));
        Lit { process, to, from }
    }

    fn parse(&mut self, argv: &[String], env: &HashMap<&str, String>) -> Value {
        writeln!(self.to, "{}", json!({ "argv": argv, "env": env })).expect("lit reads");
        let mut line = String::new();
        self.from.read_line(&mut line).expect("lit answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{argv:?} {env:?}: {error}: {line:?}"))
    }
}

impl Drop for Lit {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the Python that has the lit package, made by `make venv`.
fn lit_python() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os("HOTSTART_LIT_PYTHON").map_or_else(default, PathBuf::from);
    assert!(python.exists(), "{} does not exist; run `make venv`", python.display());
    python
}

/// A small random number generator (SplitMix64), seeded, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % limit as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const SWITCHES: &[&str] = &[
    "-q",
    "--quiet",
    "-s",
    "--succinct",
    "-v",
    "--verbose",
    "-vv",
    "--echo-all-commands",
    "-a",
    "--show-all",
    "-r",
    "--relative-paths",
    "--progress-bar",
    "--no-progress-bar",
    "--show-excluded",
    "--show-skipped",
    "--show-unsupported",
    "--show-pass",
    "--show-flakypass",
    "--show-fixed",
    "--show-xfail",
    "--gtest-sharding",
    "--no-gtest-sharding",
    "--vg",
    "--vg-leak",
    "--no-execute",
    "--report-failures-only",
    "--use-unique-output-file-name",
    "--allow-empty-runs",
    "--per-test-coverage",
    "--ignore-fail",
    "--update-tests",
    "--skip-test-time-recording",
    "--time-tests",
    "--time-tests=3",
    "--time-tests=all",
    "--time-tests=x",
    "--time-tests=",
    "--shuffle",
    "-i",
    "--incremental",
    "--filter-failed",
    "--exclude-xfail",
    "--debug",
    "--show-suites",
    "--show-tests",
    "--show-used-features",
    "--terse-summary",
    "--no-terse-summary",
    "-h",
    "--help",
    "--version",
    "-vva",
    "-sv",
    "-aq",
    "-vj2",
    "-sx",
    "-v=1",
    "-svj",
    "-ivD",
    "--unknown",
    "-x",
    "-xv",
    "-5",
    "-.5",
    "-5x",
    "-x y",
    "-",
    "--",
    "",
    "@args",
    "@missing",
    "@",
];

const VALUED: &[&str] = &[
    "-j",
    "--threads",
    "--workers",
    "--config-prefix",
    "-D",
    "--param",
    "--test-output",
    "--print-result-after",
    "--diagnostic-level",
    "-o",
    "--output",
    "--min-output-interval",
    "--path",
    "--vg-arg",
    "--xunit-xml-output",
    "--resultdb-output",
    "--time-trace-output",
    "--timeout",
    "--max-retries-per-test",
    "--max-failures",
    "--max-tests",
    "--max-time",
    "--order",
    "--filter",
    "--filter-out",
    "--xfail",
    "--xfail-not",
    "--unsupported",
    "--unsupported-not",
    "--num-shards",
    "--run-shard",
];

const VALUES: &[&str] = &[
    "1",
    "2",
    "3",
    "0",
    "-1",
    " +4",
    " 5 ",
    "1_0",
    "1__0",
    "1.5",
    "-0.5",
    "inf",
    "nan",
    "1e1",
    "x",
    "",
    "a=b",
    "a=b=c",
    "=",
    "a;b",
    "all",
    "off",
    "failed",
    "failed-or-flaky",
    "error",
    "warning",
    "note",
    "lexical",
    "random",
    "smart",
    "../up/./d",
    "/abs//x/..",
    "it's",
    "a\"b'c",
    "é",
    "-v",
    "--",
    "sp ace",
    "-sp ace",
    "\\n",
    "\t1",
];

const VARIABLES: &[&str] = &[
    "LIT_MAX_WORKERS",
    "LIT_FILTER",
    "LIT_FILTER_OUT",
    "LIT_XFAIL",
    "LIT_XFAIL_NOT",
    "LIT_UNSUPPORTED",
    "LIT_UNSUPPORTED_NOT",
    "LIT_NUM_SHARDS",
    "LIT_RUN_SHARD",
];

const OPTS: &[&str] =
    &["", "-v", "-j 5 -s", "--filter='a b'", "b c", "-Dx=\"y z\" --", "--order lexical", "@args"];

fn random_argv(random: &mut Random) -> Vec<String> {
    let mut argv = Vec::new();
    for _ in 0..random.below(5) {
        match random.below(8) {
            0 | 1 => argv.push(random.pick(SWITCHES).to_owned()),
            2 => argv.push(random.pick(&["t", "d/u", "a b"]).to_owned()),
            3 => argv.push(abbreviated(random)),
            4 => argv.push(format!("{}{}", random.pick(&["-j", "-D", "-o"]), joined_value(random))),
            5 => argv.push(format!("{}={}", random.pick(VALUED), joined_value(random))),
            _ => argv.extend([random.pick(VALUED).to_owned(), random.pick(VALUES).to_owned()]),
        }
    }
    if random.below(4) > 0 {
        argv.push("tests".to_owned());
    }
    argv
}

/// Returns a value for the same argument. Python 3.11 takes `--` for a separator even there, and loses the value.
fn joined_value(random: &mut Random) -> &'static str {
    match random.pick(VALUES) {
        "--" => "---",
        value => value,
    }
}

fn abbreviated(random: &mut Random) -> String {
    let names = if random.below(2) == 0 { SWITCHES } else { VALUED };
    let name = random.pick(names);
    let length = name.len().min(3 + random.below(12));
    let cut = name.get(..length).unwrap_or(name);
    let forgotten_by_lit = cut.len() > "--time-t".len() - 1 && "--time-tests".starts_with(cut);
    let cut = if forgotten_by_lit { "--verb" } else { cut };
    if random.below(3) == 0 { format!("{cut}={}", joined_value(random)) } else { cut.to_owned() }
}

fn random_env(random: &mut Random) -> HashMap<&'static str, String> {
    let mut env = HashMap::new();
    if random.below(3) == 0 {
        env.insert("LIT_OPTS", random.pick(OPTS).to_owned());
    }
    if random.below(3) == 0 {
        let value = if random.below(2) == 0 { "1" } else { random.pick(VALUES) };
        env.insert(random.pick(VARIABLES), value.to_owned());
    }
    env
}

fn hotstarts(argv: &[String], env: &HashMap<&str, String>, cwd: &Path) -> Value {
    let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let parsed = args::parse(&Invocation {
        argv: &argv,
        env: &|name| env.get(name).map(OsString::from),
        cwd,
        cores: 3,
        columns: 80,
        check_regex: &|_| Ok(()),
    });
    match parsed {
        Ok(Request::Run(options)) => settings(&options),
        Ok(Request::Help(text)) => json!({ "exit": 0, "error": [], "out": text[..5] }),
        Ok(Request::Version) => json!({ "exit": 0, "error": [], "out": "lit 2" }),
        Err(UsageError(text)) => json!({ "exit": 2, "error": [text.lines().last()], "out": "" }),
    }
}

/// Returns the settings under lit's names.
fn settings(options: &LitOptions) -> Value {
    let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_str().expect("UTF-8").to_owned());
    let levels = options.console.levels(Dialect::V23);
    let reports = &options.reports;
    let params: Vec<_> = options.user_params.clone();
    json!({
        "test_paths": options.test_paths.iter().map(|p| p.to_str()).collect::<Vec<_>>(),
        "workers": options.workers,
        "configPrefix": options.config_prefix,
        "user_params": params,
        "test_output": level(levels.output),
        "print_result_after": level(levels.results),
        "diagnostic_level": match levels.diagnostics {
            DiagnosticLevel::Error => "error",
            DiagnosticLevel::Warning => "warning",
            DiagnosticLevel::Note => "note",
        },
        "terse_summary": levels.terse_summary,
        "useProgressBar": levels.progress_bar,
        "minOutputInterval": python_float(levels.min_output_interval),
        "printPathRelativeCWD": options.relative_paths,
        "shown_codes": options.shown_codes,
        "output": text(&reports.json),
        "xunit_xml_output": text(&reports.xunit),
        "resultdb_output": text(&reports.resultdb),
        "time_trace_output": text(&reports.time_trace),
        "report_failures_only": reports.failures_only,
        "use_unique_output_file_name": reports.unique_names,
        "gtest_sharding": !options.no_gtest_sharding,
        "path": options.path.iter().map(|p| p.to_str()).collect::<Vec<_>>(),
        "useValgrind": options.use_valgrind,
        "valgrindLeakCheck": options.valgrind_leak_check,
        "valgrindArgs": options.valgrind_args,
        "noExecute": options.no_execute,
        "maxIndividualTestTime": options.timeout,
        "maxRetriesPerTest": options.max_retries_per_test,
        "max_failures": options.max_failures,
        "allow_empty_runs": options.allow_empty_runs,
        "per_test_coverage": options.per_test_coverage,
        "ignoreFail": options.ignore_fail,
        "update_tests": options.update_tests,
        "skip_test_time_recording": options.skip_test_time_recording,
        "time_tests": options.time_tests.map(|slowest| match slowest {
            Slowest::Count(count) => json!(count),
            Slowest::All => json!("all"),
        }),
        "max_tests": options.max_tests,
        "timeout": options.max_time,
        "order": options.order.name(),
        "incremental": !options.notices.is_empty(),
        "filter": options.filter.as_deref().unwrap_or(".*"),
        "filter_out": options.filter_out.as_deref().unwrap_or("^$"),
        "filterFailed": options.filter_failed,
        "xfail": list(&options.xfail),
        "xfail_not": list(&options.xfail_not),
        "exclude_xfail": options.exclude_xfail,
        "unsupported": list(&options.unsupported),
        "unsupported_not": list(&options.unsupported_not),
        "shard": options.shard,
        "debug": options.debug,
        "show_suites": options.show_suites,
        "show_tests": options.show_tests,
        "show_used_features": options.show_used_features,
    })
}

fn level(shown: Shown) -> &'static str {
    match shown {
        Shown::Off => "off",
        Shown::Failed => "failed",
        Shown::FailedOrFlaky => "failed-or-flaky",
        Shown::All => "all",
    }
}

/// An empty list in lit is a list of one empty name, which matches no more.
fn list(names: &[String]) -> Value {
    if names.is_empty() { json!([""]) } else { json!(names) }
}

fn python_float(value: f64) -> String {
    let text = format!("{value:?}");
    text.to_lowercase()
}

/// Converts lit's namespace to the form of [`settings`].
fn normalized(mut lits: Value) -> Value {
    let Some(settings) = lits.as_object_mut() else { return lits };
    // Fields that are compared as parts of another one, and those of shorthands, which lit leaves empty.
    let joined = ["reports", "numShards", "runShard"];
    let shorthands = ["quiet", "succinct", "verbose", "echo_all_commands", "show_all"];
    for name in joined.into_iter().chain(shorthands) {
        settings.shift_remove(name);
    }
    if let Some(params) = settings.get_mut("user_params").and_then(Value::as_array_mut) {
        for param in params {
            let text = param.as_str().expect("a string").to_owned();
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            *param = json!([name, value]);
        }
    }
    lits
}

#[test]
fn random_command_lines_mean_what_they_mean_to_lit() {
    let dir = tempfile::tempdir().expect("a directory for argument files");
    let cwd = dir.path().canonicalize().expect("exists");
    std::fs::write(cwd.join("args"), "-v\n--max-tests=3\n@more\n").expect("written");
    std::fs::write(cwd.join("more"), "-j\n7\nfrom file\n").expect("written");
    let mut lit = Lit::start(&cwd);
    let mut random = Random(0x6c69_7400);
    let mut accepted = 0;
    for case in 0..CASES {
        let (argv, env) = (random_argv(&mut random), random_env(&mut random));
        let expected = normalized(lit.parse(&argv, &env));
        accepted += usize::from(expected.get("exit").is_none());
        let actual = hotstarts(&argv, &env, &cwd);
        if actual != expected {
            let differing = differences(&actual, &expected);
            panic!("case {case}: {argv:?} {env:?}\nhotstart and lit differ in {differing:#?}");
        }
    }
    assert!(accepted > CASES / 10, "only {accepted} of {CASES} command lines were accepted");
}

fn differences(actual: &Value, expected: &Value) -> Vec<(String, Option<Value>, Option<Value>)> {
    let keys = [actual, expected].into_iter().filter_map(Value::as_object).flat_map(|object| object.keys());
    let pairs = keys.map(|key| (key.clone(), actual.get(key).cloned(), expected.get(key).cloned()));
    pairs.filter(|(_, actual, expected)| actual != expected).collect()
}
