//! Tests of whole command lines. `tests/args_like_lit.rs` compares them with argparse.

use std::collections::HashMap;

use super::*;
use hotstart_model::Dialect;
use hotstart_report::Shown;
use hotstart_report::histogram::Slowest;

fn parsed_with(argv: &[&str], env: &[(&str, &str)]) -> Result<Request, UsageError> {
    let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let env: HashMap<&str, OsString> = env.iter().map(|(name, value)| (*name, value.into())).collect();
    parse(&Invocation {
        argv: &argv,
        env: &|name| env.get(name).cloned(),
        cwd: Path::new("/cwd"),
        cores: 3,
        columns: 80,
        check_regex: &|pattern| if pattern == "(" { Err("bad".to_owned()) } else { Ok(()) },
    })
}

fn options_with(argv: &[&str], env: &[(&str, &str)]) -> LitOptions {
    match parsed_with(argv, env) {
        Ok(Request::Run(options)) => *options,
        other => panic!("{argv:?}: {other:?}"),
    }
}

fn options(argv: &[&str]) -> LitOptions {
    options_with(argv, &[])
}

fn error_with(argv: &[&str], env: &[(&str, &str)]) -> String {
    let UsageError(text) = parsed_with(argv, env).unwrap_err();
    assert!(text.starts_with("usage: lit [-h]") && text.ends_with('\n'), "{text}");
    text.lines().last().unwrap().strip_prefix("lit: error: ").unwrap().to_owned()
}

fn error(argv: &[&str]) -> String {
    error_with(argv, &[])
}

#[test]
fn defaults() {
    let options = options(&["a", "b"]);
    assert_eq!(options.test_paths, ["a", "b"]);
    assert_eq!(options.workers, 3);
    assert!(!options.no_gtest_sharding && options.filter.is_none() && options.shard.is_none());
}

#[test]
fn values_bundles_and_abbreviations() {
    let options = options(&[
        "-sva",
        "-j4",
        "-Dx=1=2",
        "--param",
        "y",
        "--order=lexical",
        "--filter-o=a",
        "--max-te",
        "5",
        "t",
    ]);
    assert_eq!(options.workers, 4);
    assert_eq!(options.user_params, [("x".into(), "1=2".into()), ("y".into(), String::new())]);
    assert_eq!((options.filter_out.as_deref(), options.max_tests), (Some("a"), Some(5)));
    let levels = options.console.levels(Dialect::V23);
    assert_eq!((levels.results, levels.output, levels.progress_bar), (Shown::All, Shown::All, true));
}

#[test]
fn own_options_take_no_abbreviation_away() {
    let options = options(&["--deb", "--verb", "--par=x", "--ex", "--lit-py", "py", "t"]);
    assert!(options.debug && !options.own.debug_times && options.exclude_xfail);
    assert_eq!(options.user_params, [("x".into(), String::new())]);
    assert_eq!(options.own.warm, WarmOptions::default());
    assert_eq!(options.own.lit_python.as_deref(), Some(Path::new("/cwd/py")));
}

#[test]
fn warm_options() {
    let own = options(&[
        "--warm=opt,llc",
        "--keep-cold",
        "clang",
        "--start=fork",
        "--allocator=opt=system",
        "--explain",
        "--verify=2.5%",
        "--parity",
        "--template-memory=64",
        "--hotstart-config=h.toml",
        "t",
    ]);
    let warm = own.own.warm;
    assert_eq!(warm.warm.unwrap(), ["opt", "llc"]);
    assert_eq!(warm.keep_cold.unwrap(), ["clang"]);
    assert_eq!(warm.allocators.unwrap(), [(Some("opt".to_owned()), Allocator::System)]);
    assert_eq!((warm.start, warm.verify, warm.template_memory), (Some(Start::Fork), Some(2.5), Some(64)));
    assert!(warm.explain && warm.parity == Some(Parity::Fork));
    assert_eq!(warm.config_file, ConfigFile::File("/cwd/h.toml".into()));
    assert_eq!(options(&["t"]).own.warm, WarmOptions::default());
}

#[test]
fn the_last_way_of_starting_holds() {
    assert_eq!(options(&["--cold", "--start", "auto", "t"]).own.warm.start, Some(Start::Auto));
    assert_eq!(options(&["--start=auto", "--cold", "t"]).own.warm.start, Some(Start::Cold));
}

#[test]
fn the_configuration_file_can_be_named_by_the_environment() {
    let env = [("HOTSTART_CONFIG", "/h.toml")];
    let file = |argv: &[&str]| options_with(argv, &env).own.warm.config_file;
    assert_eq!(file(&["t"]), ConfigFile::File("/h.toml".into()));
    assert_eq!(file(&["--hotstart-config=", "t"]), ConfigFile::None);
}

#[test]
fn lit_opts_come_last() {
    let env = [("LIT_OPTS", "-j 2 'c d'"), ("LIT_MAX_WORKERS", "9")];
    let options = options_with(&["-j", "7"], &env);
    assert_eq!((options.workers, options.test_paths), (2, vec!["c d".into()]));
    assert_eq!(error_with(&["t"], &[("LIT_OPTS", "'")]), "LIT_OPTS: No closing quotation");
}

#[test]
fn the_environment_stands_in() {
    let env = [("LIT_MAX_WORKERS", "9"), ("LIT_XFAIL", "a;b"), ("LIT_FILTER", "x")];
    let options = options_with(&["--filter", "y", "t"], &env);
    assert_eq!((options.workers, options.filter.as_deref()), (9, Some("y")));
    assert_eq!(options.xfail, ["a", "b"]);
    assert_eq!(
        error_with(&[], &[("LIT_RUN_SHARD", "x")]),
        "argument --run-shard: requires positive integer, but found 'x'"
    );
}

#[test]
fn time_tests_has_a_value_only_after_an_equals_sign() {
    assert_eq!(options(&["--time-tests", "all"]).time_tests, Some(Slowest::Count(20)));
    assert_eq!(options(&["--time-tests=ALL", "t"]).time_tests, Some(Slowest::All));
    assert_eq!(options(&["--time-tests=3", "t"]).time_tests, Some(Slowest::Count(3)));
    assert_eq!(error(&["--time-tests=", "t"]), "argument --time-tests requires a value after '='");
    assert_eq!(
        error(&["--time-tests", "--skip-test-time-recording", "t"]),
        "argument --skip-test-time-recording: not allowed with argument --time-tests"
    );
}

#[test]
fn errors_are_argparses() {
    for (argv, text) in [
        (&[][..], "the following arguments are required: TEST_PATH"),
        (&["-j", "0", "t"], "argument -j/--threads/--workers: requires positive integer, but found '0'"),
        (&["t", "-j"], "argument -j/--threads/--workers: expected one argument"),
        (
            &["--max", "1", "t"],
            "ambiguous option: --max could match --max-retries-per-test, --max-failures, --max-tests, --max-time",
        ),
        (&["t", "-v", "u", "-x"], "unrecognized arguments: u -x"),
        (&["t", "--wrokers=2"], "unrecognized arguments: --wrokers=2; did you mean '--workers'?"),
        (&["-vx", "t"], "argument -v/--verbose: ignored explicit argument 'x'"),
        (&["--debug=1", "t"], "argument --debug: ignored explicit argument '1'"),
        (
            &["--order", "x", "t"],
            "argument --order: invalid choice: 'x' (choose from 'lexical', 'random', 'smart')",
        ),
        (
            &["--start=rewound", "t"],
            "argument --start: invalid choice: 'rewound' (choose from 'auto', 'cold', 'fork', 'rewind')",
        ),
        (
            &["--verify", "101", "t"],
            "argument --verify: requires a percentage from 0 to 100, for example 0.5%, but found '101'",
        ),
        (&["--warm=", "t"], "argument --warm: requires at least one tool; --cold starts every tool cold"),
        (
            &["--keep-cold=a/b", "t"],
            "argument --keep-cold: requires names of tools without directory, but found 'a/b'",
        ),
        (&["--filter", "(", "t"], "argument --filter: invalid regular expression: '(', bad"),
        (&["--run-shard", "1", "t"], "--num-shards and --run-shard must be used together"),
        (
            &["--run-shard=3", "--num-shards=2", "t"],
            "--run-shard must be between 1 and --num-shards (inclusive)",
        ),
    ] {
        assert_eq!(error(argv), text);
    }
}

#[test]
fn two_dashes_end_options() {
    assert_eq!(options(&["-v", "--", "-q", "--"]).test_paths, ["-q", "--"]);
    assert_eq!(error(&["t", "-v", "--"]), "unrecognized arguments: --");
}

#[test]
fn help_and_version_stop_where_they_stand() {
    let help = |argv: &[&str]| match parsed_with(argv, &[]) {
        Ok(Request::Help(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(help(&["-vh", "--order=x"]).contains("--help prints all options"));
    assert!(help(&["--hel"]).contains("--order {lexical,random,smart}"));
    assert!(matches!(parsed_with(&["--vers"], &[]), Ok(Request::Version)));
    assert!(error(&["--order=x", "-h"]).starts_with("argument --order"));
}

#[test]
fn incremental_is_announced() {
    assert_eq!(
        options(&["-i", "t"]).notices,
        ["WARNING: --incremental is deprecated. Failing tests now always run first."]
    );
}

#[test]
fn words_are_told_apart_by_who_understands_them() {
    let argv =
        ["--ab", "lit -v", "-j", "2", "--lit-py=p", "--ab-runs=3", "-sv", "--ab-rep", "r.md", "--cold"];
    let options = options_with(&argv, &[("LIT_OPTS", "--time-tests -- --ab")]);
    let ab = &options.own.ab;
    assert_eq!((ab.with.as_deref(), ab.runs), (Some("lit -v".as_ref()), Some(3)));
    assert_eq!(ab.reports, [Path::new("/cwd/r.md")]);
    assert_eq!(options.words.for_lit(), ["--time-tests", "-j", "2", "-sv", "--", "--ab"]);
    let of_hotstart = ["--time-tests", "-j", "2", "--lit-py=p", "-sv", "--cold", "--", "--ab"];
    assert_eq!(options.words.for_hotstart(), of_hotstart);
    assert!(error(&["--ab-report=r.txt", "t"]).contains("found 'r.txt'"));
}

#[test]
fn a_replay_is_one_test_at_a_time_and_writes_no_reports() {
    let argv =
        ["-j4", "-o", "r.json", "--test-output=all", "--replay=t :: b", "--cold", "--replay", "t :: a", "t"];
    let options = options(&argv);
    assert_eq!(
        (options.own.replay.as_slice(), options.workers),
        (["t :: b", "t :: a"].map(str::to_owned).as_slice(), 1)
    );
    assert_eq!(options.own.warm.start, Some(Start::Reset));
    assert_eq!(options.words.for_replay(), ["-j4", "--test-output=all", "--cold", "t"]);
}
