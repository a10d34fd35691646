//! Small suites of every shape: hotstart must find the tests that lit finds, with the same configs and warnings.
//!
//! Needs a Python with the lit package, see `python`. If HOTSTART_LIT_19 names `utils/lit` of an LLVM 19 tree, the
//! tests also compare with that lit. HOTSTART_LIT_TREE may name a further build tree to compare.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotstart_lit::config::{Config, Format};
use hotstart_lit::load::{Discovered, LoadError, load};
use hotstart_lit::probe::ProbeError;
use hotstart_lit::settings::Settings;
use hotstart_lit::suite::Test;
use hotstart_lit::times::{Recalled, record};
use hotstart_model::{
    Diagnostic, Dialect, Event, Events, JobId, JobSource, Severity, Transcript, Verdict, Work,
};
use serde_json::{Value, json};

/// Returns a Python with lit: HOTSTART_LIT_PYTHON, else the one from `make venv`.
fn python() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os("HOTSTART_LIT_PYTHON").map_or(default, PathBuf::from);
    assert!(python.exists(), "no Python with lit at {}: run `make venv`", python.display());
    python
}

/// Returns the lits to compare with: the Python's own, and lit 19 if named.
fn packages() -> Vec<Option<PathBuf>> {
    let old = std::env::var_os("HOTSTART_LIT_19").map(|path| Some(PathBuf::from(path)));
    std::iter::once(None).chain(old).collect()
}

#[derive(Default)]
struct Said(Mutex<Vec<Diagnostic>>);

impl Events for Said {
    fn send(&self, event: Event) {
        if let Event::Diagnostic(diagnostic) = event {
            self.0.lock().unwrap().push(diagnostic);
        }
    }
}

/// A directory with suites, and the settings to load it.
struct Space {
    dir: tempfile::TempDir,
    root: PathBuf,
    params: Vec<(String, String)>,
    config_map: Vec<(PathBuf, PathBuf)>,
}

impl Space {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        Space { dir, root, params: Vec::new(), config_map: Vec::new() }
    }

    /// Writes files given as name and text.
    fn write(self, files: &[(&str, &str)]) -> Self {
        for (name, text) in files {
            let path = self.dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self
    }

    fn settings(&self, paths: &[&str], package: Option<PathBuf>) -> Settings {
        Settings {
            paths: paths.iter().map(PathBuf::from).collect(),
            cwd: self.root.clone(),
            python: Some(python()),
            lit_package: package,
            params: self.params.clone(),
            config_map: self.config_map.clone(),
            ..Settings::default()
        }
    }

    fn load(&self, paths: &[&str], package: Option<PathBuf>) -> (Discovered, Vec<Diagnostic>) {
        let said = Said::default();
        let found = load(&self.settings(paths, package), &said).unwrap();
        (found, said.0.into_inner().unwrap())
    }

    /// Returns the tests that lit finds, and its diagnostics as `kind: message`.
    fn lit(&self, paths: &[&str], package: Option<&Path>) -> (Value, Vec<String>) {
        let map: serde_json::Map<String, Value> =
            self.config_map.iter().map(|(from, to)| (from.display().to_string(), json!(to))).collect();
        let builtin = if map.is_empty() { json!({}) } else { json!({ "config_map": map }) };
        let params = self.params.iter().map(|(key, value)| format!("-D{key}={value}"));
        let args: Vec<String> = params.chain(paths.iter().map(|path| (*path).to_owned())).collect();
        let given = json!({"package": package, "builtin": builtin, "args": args}).to_string();
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/discovery_driver.py");
        let out = Command::new(python()).arg(driver).arg(given).current_dir(&self.root).output().unwrap();
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success() || out.status.code() == Some(2), "{stderr}");
        let messages = stderr.lines().filter_map(|line| line.strip_prefix("lit: ")?.splitn(3, ':').nth(2));
        let messages = messages.map(|message| message.trim().to_owned()).collect();
        (serde_json::from_slice(&out.stdout).unwrap_or(json!({"tests": [], "configs": []})), messages)
    }

    /// Compares hotstart with lit; returns the names of the tests.
    fn compare(&self, paths: &[&str]) -> Vec<String> {
        let mut names = Vec::new();
        for package in packages() {
            let (expected, messages) = self.lit(paths, package.as_deref());
            let (found, said) = self.load(paths, package.clone());
            let said: Vec<String> = said.iter().map(worded).collect();
            assert_eq!(said, messages, "{package:?}");
            let (rows, configs) = describe(&found.tests);
            let differing = rows.iter().zip(expected["tests"].as_array().unwrap()).find(|(a, b)| a != b);
            assert_eq!(differing, None, "{package:?}");
            assert_eq!(rows.len(), expected["tests"].as_array().unwrap().len());
            let differing = configs.iter().zip(expected["configs"].as_array().unwrap()).find(|(a, b)| a != b);
            assert_eq!(differing, None, "{package:?}");
            names = rows.iter().map(|row| row[0].as_str().unwrap().to_owned()).collect();
        }
        names
    }
}

fn worded(diagnostic: &Diagnostic) -> String {
    let kind = match diagnostic.severity {
        Severity::Debug => "debug",
        Severity::Note => "note",
        Severity::Warning | Severity::Doubt => "warning",
        Severity::Error => "error",
        Severity::Fatal => "fatal",
    };
    format!("{kind}: {}", diagnostic.message)
}

/// Returns names and paths of the tests in order, each with the number of its config, and the configs.
fn describe(tests: &[Test]) -> (Vec<Value>, Vec<Value>) {
    let mut tests: Vec<_> = tests
        .iter()
        .map(|test| (test.full_name(), test.source_path(), test.exec_path(), test.config()))
        .collect();
    tests.sort_by(|a, b| (&a.0, &a.1, &a.2).cmp(&(&b.0, &b.1, &b.2)));
    let mut configs: Vec<&Arc<Config>> = Vec::new();
    let mut rows = Vec::new();
    for (name, source, exec, config) in tests {
        let known = configs.iter().rposition(|known| Arc::ptr_eq(known, config));
        let number = known.unwrap_or_else(|| {
            configs.push(config);
            configs.len() - 1
        });
        rows.push(json!([name, source, exec, number]));
    }
    (rows, configs.into_iter().map(|config| describe_config(config)).collect())
}

fn describe_config(config: &Config) -> Value {
    let text = |value: &std::ffi::OsStr| value.to_str().unwrap().to_owned();
    let temporary = ["TMP", "TMPDIR", "TEMP", "TEMPDIR"];
    let environment = config.environment.iter().map(|(key, value)| [text(key), text(value)]);
    let format = match &config.format {
        None => "NoneType",
        Some(Format::ShTest { .. }) => "ShTest",
        Some(Format::GoogleTest { .. }) => "GoogleTest",
        Some(Format::Executable) => "ExecutableTest",
        Some(Format::Python(class)) => class.rsplit('.').next().unwrap(),
    };
    json!({
        "suffixes": config.suffixes,
        "excludes": config.excludes,
        "environment": environment.filter(|[key, _]| !temporary.contains(&key.as_str())).collect::<Vec<_>>(),
        "substitutions": config.substitutions.iter().map(|s| [&s.key, &s.value]).collect::<Vec<_>>(),
        "available_features": *config.available_features,
        "unsupported": config.unsupported,
        "pipefail": config.pipefail,
        "limit_to_features": config.limit_to_features,
        "standalone_tests": config.standalone_tests,
        "recursive_expansion_limit": config.recursive_expansion_limit,
        "test_retry_attempts": config.test_retry_attempts,
        "format": format,
    })
}

const MAIN: &str = "\
import lit.formats, os
config.name = 'Main'
config.suffixes = ['.txt', '.test']
config.excludes = ['Inputs', 'not.txt']
config.test_format = lit.formats.ShTest()
config.test_source_root = os.path.dirname(__file__)
config.substitutions.append(('%one', '1'))
config.available_features.add('first')
config.environment['OWN'] = lit_config.params.get('own', 'none')
";

const SITE: &str = "\
import os
here = os.path.dirname(__file__)
config.test_exec_root = here
config.available_features.add('site')
lit_config.load_config(config, os.path.join(os.path.dirname(here), 'src', 'lit.cfg.py'))
";

/// Creates a source tree and a build tree.
fn two_trees() -> Space {
    Space::new().write(&[
        ("src/lit.cfg.py", MAIN),
        ("obj/lit.site.cfg.py", SITE),
        ("src/top.txt", ""),
        ("src/not.txt", ""),
        ("src/.hidden.txt", ""),
        ("src/other.c", ""),
        ("src/Inputs/data.txt", ""),
        ("src/Output/old.txt", ""),
        ("src/a/one.test", ""),
        ("src/a/b/two.ll", ""),
        ("src/a/b/two.txt", ""),
        ("src/a/b/c/three.ll", ""),
    ])
}

#[test]
fn a_build_tree_leads_to_the_source_tree() {
    let names = two_trees().compare(&["obj"]);
    assert_eq!(names, ["Main :: a/b/two.txt", "Main :: a/one.test", "Main :: top.txt"]);
}

#[test]
fn local_configs_change_what_is_below_them() {
    let space = two_trees().write(&[
        ("src/a/b/lit.local.cfg", "config.suffixes = {'.ll'}\nconfig.excludes.add('Inputs')\n"),
        (
            "src/a/b/c/lit.local.cfg.py",
            "config.environment['DEEP'] = 'é'\nconfig.substitutions.insert(0, ('%two', '2'))\n\
             config.unsupported = 'first' in config.root.available_features\n\
             config.pipefail = 0\nconfig.limit_to_features = ['x']\nconfig.recursiveExpansionLimit = 3\n\
             config.test_retry_attempts = 2\nlit_config.note('it is %r' % os.path.basename(__file__))\n",
        ),
    ]);
    let names = space.compare(&["obj", "obj/a/b/c"]);
    assert_eq!(names.iter().filter(|name| name.ends_with("three.ll")).count(), 2);
    assert!(names.contains(&"Main :: a/b/two.ll".to_owned()));
}

#[test]
fn a_local_config_can_reach_the_suite_s() {
    let space = two_trees()
        .write(&[(
            "src/a/lit.local.cfg",
            "config.parent = None\nMAIN.substitutions.append(('%late', 'x'))\n",
        )])
        .write(&[("src/lit.cfg.py", &format!("{MAIN}import builtins\nbuiltins.MAIN = config\n"))]);
    space.compare(&["obj"]);
}

#[test]
fn tests_are_named_and_repeated_and_missing() {
    let mut space = two_trees();
    space.params = vec![("own".into(), "a=b".into()), ("flag".into(), String::new())];
    let names =
        space.compare(&["obj/a/one.test", "src/a", "./src/../obj/a", "obj/absent", "obj/other.c", "/"]);
    // src/lit.cfg.py alone is another suite of the same name.
    assert_eq!(names.iter().filter(|name| *name == "Main :: a/one.test").count(), 3);
}

#[test]
fn a_config_map_leads_from_the_source_tree_to_the_site_config() {
    let mut space = two_trees();
    space.config_map = vec![(space.root.join("src/lit.cfg.py"), space.root.join("obj/lit.site.cfg.py"))];
    let names = space.compare(&["src/a"]);
    assert_eq!(names.len(), 2);
}

#[test]
fn suites_lie_in_suites_in_either_tree() {
    let nested = "import lit.formats\nconfig.name = 'Nested'\nconfig.suffixes = ['.txt']\n\
                  config.test_format = lit.formats.ShTest()\n";
    let space = two_trees().write(&[
        ("src/n/lit.cfg", nested),
        ("src/n/sub/in.txt", ""),
        ("src/m/lit.cfg", "config.name = 'Empty'\n"),
        ("src/m/in.txt", ""),
        ("src/o/in.txt", ""),
        (
            "obj/o/lit.site.cfg",
            "import lit.formats, os\nconfig.name = 'Outer'\nconfig.suffixes = ['.txt']\n\
             config.test_format = lit.formats.ShTest()\nhere = os.path.dirname(__file__)\n\
             config.test_source_root = here.replace('obj', 'src')\n",
        ),
    ]);
    let names = space.compare(&["obj", "src/n/sub"]);
    assert_eq!(names.iter().filter(|name| name.starts_with("Nested :: sub/")).count(), 2);
    assert!(names.contains(&"Outer :: in.txt".to_owned()));
}

#[test]
fn linked_directories_are_followed_and_an_exec_root_within_is_not_entered() {
    let space =
        Space::new().write(&[("src/lit.cfg.py", MAIN), ("src/a/one.txt", ""), ("src/build/x.txt", "")]);
    let site = "import os\nconfig.test_exec_root = os.path.dirname(__file__)\n\
                lit_config.load_config(config, os.path.join(config.test_exec_root, '..', 'lit.cfg.py'))\n\
                config.test_source_root = os.path.dirname(config.test_exec_root)\n";
    let space = space.write(&[("src/build/lit.site.cfg.py", site)]);
    symlink("a", space.root.join("src/linked")).unwrap();
    symlink("nowhere", space.root.join("src/broken.txt")).unwrap();
    let names = space.compare(&["src/build"]);
    assert!(names.contains(&"Main :: linked/one.txt".to_owned()), "{names:?}");
}

#[test]
fn standalone_tests_are_found_only_by_name() {
    let space = two_trees().write(&[
        ("src/s/lit.local.cfg", "config.standalone_tests = True\n"),
        ("src/s/run.sh", ""),
        (
            "src/t/lit.local.cfg",
            "config.standalone_tests = True\nconfig.suffixes = []\nconfig.excludes = []\n",
        ),
        ("src/t/run.sh", ""),
    ]);
    let names = space.compare(&["obj", "obj/s/run.sh", "obj/t/run.sh"]);
    assert!(names.contains(&"Main :: s/run.sh".to_owned()) && names.contains(&"Main :: t/run.sh".to_owned()));
}

#[test]
fn formats_written_in_python_find_their_own_tests() {
    let format = "import lit.formats, lit.Test\n\
        class Doubled(lit.formats.ShTest):\n    def getTestsForPath(self, suite, path, lit_config, local):\n\
        \x20       if path[-1].endswith('.d'):\n            for n in 'ab':\n\
        \x20               yield lit.Test.Test(suite, path + (n,), local)\n\
        config.test_format = Doubled()\n";
    let space = two_trees().write(&[("src/d/lit.local.cfg", format), ("src/d/x.d", ""), ("src/d/e/y.d", "")]);
    let names = space.compare(&["obj"]);
    assert!(names.contains(&"Main :: d/e/y.d/b".to_owned()));
    let (found, _) = space.load(&["obj/d"], None);
    let plan = found.plan().unwrap();
    assert!(matches!(plan.prepare(JobId(0)), Work::Delegated));
}

#[test]
fn an_error_in_a_local_config_costs_only_the_tests_below_it() {
    let space = two_trees().write(&[("src/a/b/lit.local.cfg", "x = 1\nconfig.nothing.at_all\n")]);
    let (found, said) = space.load(&["obj"], None);
    let names: Vec<String> = found.tests.iter().map(|test| test.full_name()).collect();
    assert_eq!(names, ["Main :: a/one.test", "Main :: top.txt"]);
    assert_eq!(found.counts.given_up, 1);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].severity, Severity::Fatal);
    let place = format!("{}:2", space.root.join("src/a/b/lit.local.cfg").display());
    assert_eq!(said[0].place.as_ref(), Some(&place));
    assert!(said[0].message.starts_with("unable to parse config file"), "{}", said[0].message);
    assert!(said[0].message.contains("AttributeError"), "{}", said[0].message);
}

#[test]
fn syntax_errors_and_fatal_messages_name_their_line() {
    for (text, line) in
        [("x = 1\n\nif x\n", 3), ("\nlit_config.fatal('no')\n", 2), ("import absent_module\n", 1)]
    {
        let space =
            two_trees().write(&[("src/lit.cfg.py", text), ("other/lit.cfg.py", MAIN), ("other/x.txt", "")]);
        let (found, said) = space.load(&["obj", "other"], None);
        assert_eq!(found.tests.len(), 1, "{text}");
        let place = format!("{}:{line}", space.root.join("src/lit.cfg.py").display());
        assert_eq!(said[0].place, Some(place), "{said:?}");
    }
}

#[test]
fn messages_are_counted_and_a_config_may_stop_silently() {
    let text =
        format!("{MAIN}import sys\nlit_config.warning('w')\nlit_config.error('e')\nsys.exit()\nraise 1\n");
    let space = two_trees().write(&[("src/lit.cfg.py", &text)]);
    let (found, said) = space.load(&["obj"], None);
    assert_eq!((found.counts.warnings, found.counts.errors, found.counts.given_up), (1, 1, 0));
    assert_eq!(said.iter().map(worded).collect::<Vec<_>>(), ["warning: w", "error: e"]);
    assert_eq!(found.tests.len(), 3);
}

#[test]
fn a_config_can_end_the_run() {
    let space = two_trees().write(&[("src/lit.cfg.py", "import sys\nsys.exit('enough')\n")]);
    let error = load(&space.settings(&["obj"], None), &Said::default()).unwrap_err();
    let LoadError::Probe(ProbeError::Exit { status, text, .. }) = error else { panic!("{error}") };
    assert_eq!((status, text.as_deref()), (1, Some("enough")));
    let space = two_trees().write(&[("src/lit.cfg.py", "import os\nos._exit(3)\n")]);
    let error = load(&space.settings(&["obj"], None), &Said::default()).unwrap_err();
    assert!(matches!(error, LoadError::Probe(ProbeError::Ended(_))), "{error}");
}

#[test]
fn what_is_not_utf8_survives() {
    let text = format!("{MAIN}config.environment['BYTES'] = 'a\\udcffb'\n");
    let space = two_trees().write(&[("src/lit.cfg.py", &text)]);
    let (found, _) = space.load(&["obj"], None);
    let value = found.tests[0].config().environment.get("BYTES").unwrap();
    assert_eq!(std::os::unix::ffi::OsStrExt::as_bytes(value), b"a\xffb");
}

#[test]
fn a_suite_without_lit_says_what_to_install() {
    let space = two_trees();
    let empty = space.root.join("empty/lit");
    fs::create_dir_all(&empty).unwrap();
    fs::write(empty.join("__init__.py"), "raise ImportError('broken')\n").unwrap();
    let error =
        load(&space.settings(&["obj"], Some(space.root.join("empty"))), &Said::default()).unwrap_err();
    assert!(error.to_string().contains("pip install lit"), "{error}");
}

/// Returns an executable with this many tests, or one that fails if there are none.
fn googletest(tests: usize) -> String {
    let lines: String = (0..tests).map(|test| format!("echo '  t{test}'; ")).collect();
    format!("#!/bin/sh\necho A.; {lines} exit {}\n", u8::from(tests == 0))
}

#[test]
fn googletest_executables_are_asked_for_their_tests() {
    let format = "import lit.formats\nconfig.name = 'Unit'\n\
        config.test_format = lit.formats.GoogleTest('.;sub', 'Tests')\n";
    let (many, few, none) = (googletest(5), googletest(1), googletest(0));
    let files = [
        ("obj/u/lit.cfg", format),
        ("obj/u/ATests", &many),
        ("obj/u/sub/BTests", &few),
        ("obj/u/sub/CTests", &none),
        ("obj/u/sub/.DTests", &few),
        ("obj/u/v/lit.local.cfg", ""),
        ("obj/u/v/sub/ETests.py", "print('A.\\n  one')"),
        ("obj/u/empty/lit.cfg", format),
    ];
    let space = two_trees().write(&files);
    for (name, _) in files.iter().filter(|(name, _)| name.contains("Tests")) {
        let path = space.root.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let names = space.compare(&["obj/u", "obj", "obj/u/ATests"]);
    assert!(names.iter().any(|name| name.starts_with("Unit :: ./ATests/1/")), "{names:?}");
    assert!(names.contains(&"Unit :: sub/CTests/failed_to_discover_tests_from_gtest".to_owned()));
}

#[test]
fn groups_codes_and_parameters_come_from_configs() {
    let text = format!(
        "{MAIN}lit_config.parallelism_groups['few'] = 2\nlit_config.parallelism_groups['any'] = None\n\
         config.parallelism_group = lambda test: 'few' if test.path_in_suite[-1] == 'top.txt' else 'any'\n\
         import lit.Test\nlit.Test.ResultCode('SLOW', 'Slow', True)\nlit.main\n\
         lit_config.params['added'] = 7\n"
    );
    let space = two_trees().write(&[("src/lit.cfg.py", &text)]);
    let (found, _) = space.load(&["obj"], None);
    let plan = found.plan().unwrap();
    let groups: Vec<_> = (0..plan.count()).map(|job| plan.parallelism_group(JobId(job))).collect();
    assert_eq!(groups, [None, None, Some(("few".to_owned(), 2))]);
    assert_eq!(found.verdicts.iter().last().unwrap().1.name, "SLOW");
    assert_eq!(found.session.params["added"], "7");
}

#[test]
fn a_job_becomes_a_script_and_its_transcript_an_outcome() {
    let space = two_trees().write(&[("src/top.txt", "RUN: tool %one\n")]);
    let (found, _) = space.load(&["obj/top.txt"], None);
    let plan = found.plan().unwrap();
    assert_eq!((plan.count(), plan.label(JobId(0)).as_str()), (1, "Main :: top.txt"));
    for (exit_code, verdict) in [(0, Verdict::PASS), (1, Verdict::FAIL)] {
        let Work::Script(script) = plan.prepare(JobId(0)) else { panic!("not a script") };
        assert_eq!((script.commands[0].text.as_str(), &script.cwd), ("tool 1", &space.root.join("obj")));
        let transcript = Transcript { exit_code: Some(exit_code), ..Transcript::default() };
        let outcome = plan.conclude(JobId(0), 1, transcript).unwrap();
        assert_eq!(outcome.verdict, verdict);
        // The output of a passing test is not needed.
        assert_eq!(outcome.output.is_empty(), verdict == Verdict::PASS);
    }
}

#[test]
fn times_are_shared_with_lit() {
    let times = "-2.0e+00 top.txt\n3.0e+00 a/one.test\n";
    let space = two_trees().write(&[("obj/.lit_test_times.txt", times)]);
    let (found, _) = space.load(&["obj"], None);
    let names: Vec<_> = found.tests.iter().map(|test| test.path_text()).collect();
    assert_eq!(names, ["top.txt", "a/one.test", "a/b/two.txt"]);
    let finished = [(&found.tests[2], Duration::from_millis(1500), true)];
    let file = space.root.join("obj/.lit_test_times.txt");
    for recalled in [&found.times, &Recalled::default()] {
        assert_eq!(record(finished.into_iter(), Dialect::V23, recalled).unwrap(), []);
        let written = fs::read_to_string(&file).unwrap();
        assert_eq!(written, "-2.000000e+00 top.txt\n3.000000e+00 a/one.test\n-1.500000e+00 a/b/two.txt\n");
        fs::write(&file, times).unwrap();
    }
    // Another runner has written the file meanwhile.
    let (found, _) = space.load(&["obj"], None);
    let finished = [(&found.tests[2], Duration::from_millis(2500), false)];
    fs::write(&file, "1.000000e+00 a/three.test\n").unwrap();
    assert_eq!(record(finished.into_iter(), Dialect::V23, &found.times).unwrap(), []);
    let path = found.tests[2].path_text();
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, format!("1.000000e+00 a/three.test\n2.500000e+00 {path}\n"));
    let space = space.write(&[("obj/.lit_test_times.txt", "nonsense\n")]);
    let (found, said) = space.load(&["obj"], None);
    assert_eq!((found.tests.len(), found.counts.given_up), (0, 1));
    assert!(said[0].message.starts_with("found malformed timing data in '"), "{said:?}");
}

#[test]
fn the_directory_for_temporary_files_lives_as_long_as_the_plan() {
    let space = two_trees();
    let (found, _) = space.load(&["obj"], None);
    let Some(dir) = found.session.tmp_dir.clone() else { return };
    assert!(!dir.exists());
    let plan = found.plan().unwrap();
    assert!(dir.is_dir());
    assert_eq!(found.tests[0].config().environment.get("TEMPDIR").unwrap(), dir.as_os_str());
    plan.finish().unwrap();
    assert!(!dir.exists());
}

#[test]
fn a_tree_named_by_the_user_is_found_as_lit_finds_it() {
    let Some(tree) = std::env::var_os("HOTSTART_LIT_TREE") else { return };
    let names = Space::new().compare(&tree.to_str().unwrap().split(' ').collect::<Vec<_>>());
    assert!(!names.is_empty());
}
