//! The suite: one test for each kind of result, and one of a format that reports metrics.

use std::fs;
use std::io;
use std::path::Path;

const KINDS_CONFIG: &str = r#"
import lit.formats, os, sys
config.name = "kinds"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".txt"]
config.available_features.update(["zlib", "asserts"])
config.substitutions.append(("%flaky", "python %S/flaky.py"))
config.substitutions.append(("%add", "1 + 1"))
config.environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + config.environment["PATH"]
"#;

/// Fails, then passes, and leaves nothing behind.
const FLAKY: &str = "import os, sys
if os.path.exists(sys.argv[1]): os.remove(sys.argv[1])
else: open(sys.argv[1], 'w').close(); sys.exit(1)
";

const METRICS_CONFIG: &str = r#"
import os, sys
sys.path.insert(0, os.path.dirname(__file__))
import measuring
config.name = "metrics"
config.suffixes = [".m"]
config.test_format = measuring.Measuring()
"#;

const METRICS_FORMAT: &str = r#"
import lit.Test, lit.formats
class Measuring(lit.formats.FileBasedTest):
    def execute(self, test, lit_config):
        result = lit.Test.Result(lit.Test.PASS, "measured \u00fc")
        if test.path_in_suite[-1] == "plain.m": return result
        result.addMetric("size", lit.Test.toMetricValue(12))
        result.addMetric("Time", lit.Test.toMetricValue(0.125))
        result.addMetric("all", lit.Test.toMetricValue({"b": [1, 2.5, "x"], "a": {}}))
        for name in ["second", "first"]:
            micro = lit.Test.Result(lit.Test.PASS, "", 0.5)
            micro.addMetric("count", lit.Test.toMetricValue(len(name)))
            result.addMicroResult(name, micro)
        return result
"#;

/// Tests by path; the last one needs psutil.
const KINDS: [(&str, &str); 11] = [
    ("dir.d/pass.txt", "RUN: echo \"some <output> & ]]> \u{e9}\"\n"),
    ("fail.txt", "RUN: echo before\nRUN: not echo \"a ]]> b\"\n"),
    ("flaky.txt", "ALLOW_RETRIES: 2\nRUN: %flaky %t\n"),
    ("norun.txt", "nothing to run\n"),
    ("pass.txt", "RUN: echo out\n"),
    ("requires.txt", "REQUIRES: nosuch, zlib && other\nRUN: true\n"),
    ("syntax.txt", "RUN: echo 'unbalanced\n"),
    ("unsupported.txt", "UNSUPPORTED: zlib\nRUN: true\n"),
    ("xfail.txt", "XFAIL: *\nRUN: false\n"),
    ("xpass.txt", "XFAIL: *\nRUN: true\n"),
    ("zzz.txt", "RUN: python -c \"import time; time.sleep(60)\"\n"),
];

/// Unmet conditions of `requires.txt`.
pub const MISSING: [&str; 2] = ["nosuch", "zlib && other"];

/// Writes both suites.
pub fn write(root: &Path, can_time_out: bool) -> io::Result<()> {
    fs::create_dir_all(root.join("kinds/dir.d"))?;
    fs::create_dir_all(root.join("metrics"))?;
    fs::write(root.join("kinds/lit.cfg"), KINDS_CONFIG)?;
    fs::write(root.join("kinds/flaky.py"), FLAKY)?;
    let count = if can_time_out { KINDS.len() } else { KINDS.len() - 1 };
    for (path, text) in &KINDS[..count] {
        fs::write(root.join("kinds").join(path), text)?;
    }
    fs::write(root.join("metrics/lit.cfg"), METRICS_CONFIG)?;
    fs::write(root.join("metrics/measuring.py"), METRICS_FORMAT)?;
    fs::write(root.join("metrics/measured.m"), "")?;
    fs::write(root.join("metrics/plain.m"), "")
}

/// Returns suite and path of all tests, in the order of full names.
pub fn tests(root: &Path) -> Vec<(usize, Vec<String>)> {
    let of_kinds = KINDS.iter().filter(|(path, _)| root.join("kinds").join(path).exists());
    let paths = of_kinds.map(|(path, _)| (0, *path)).chain([(1, "measured.m"), (1, "plain.m")]);
    paths.map(|(suite, path)| (suite, path.split('/').map(str::to_owned).collect())).collect()
}

pub const SUITES: [&str; 2] = ["kinds", "metrics"];

/// Returns the substitutions of the first suite's config.
pub fn substitutions() -> Vec<(String, String)> {
    [("%flaky", "python %S/flaky.py"), ("%add", "1 + 1")]
        .map(|(key, value)| (key.into(), value.into()))
        .to_vec()
}
