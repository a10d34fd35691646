//! Configs with values of types that lit does not expect: what that means is lit's business, and hotstart has to agree.

use crate::compare::compare;
use crate::suite::Suite;

/// Local configs, by the name of their directories.
const CONFIGS: [(&str, &str); 57] = [
    ("plain", ""),
    ("value-int", "config.substitutions.append(('%n', 5))"),
    ("value-none", "config.substitutions.append(('%n', None))"),
    ("value-path", "import pathlib; config.substitutions.append(('%n', pathlib.Path('/x')))"),
    ("value-bytes", "config.substitutions.append(('%n', b'x'))"),
    ("value-captures", "config.substitutions.append((r'%(n)', SubstituteCaptures(r'[\\1]')))"),
    ("value-captures-none", "config.substitutions.append((r'%(n)', SubstituteCaptures(None)))"),
    ("pair-list", "config.substitutions.append(['%n', 'x'])"),
    ("pair-text", "config.substitutions.append('%n')"),
    ("pair-of-three", "config.substitutions.append(('%n', 'x', 'y'))"),
    ("pairs-dict", "config.substitutions = {'%n': 'x'}"),
    ("pairs-tuple", "config.substitutions = (('%n', 'x'),)"),
    ("key-bytes", "config.substitutions.append((b'%n', 'x'))"),
    ("key-int", "config.substitutions.append((5, 'x'))"),
    ("key-i", "import re; config.substitutions.append((re.compile('%N', re.I), 'x'))"),
    ("key-a", "import re; config.substitutions.append((re.compile(r'%n\\w*', re.A), 'x'))"),
    ("key-x", "import re; config.substitutions.append((re.compile('% n # c', re.X), 'x'))"),
    ("key-defined", "import re; config.substitutions.append((re.compile('%{zz}'), 'x'))"),
    ("env-int", "config.environment['X'] = 1"),
    ("env-bool", "config.environment['X'] = True"),
    ("env-none", "config.environment['X'] = None"),
    ("env-list", "config.environment['X'] = ['a']"),
    ("env-path", "import pathlib; config.environment['X'] = pathlib.Path('/x')"),
    ("env-bytes", "config.environment['X'] = b'x'"),
    ("env-key-bytes", "config.environment[b'X'] = 'x'"),
    ("env-key-equals", "config.environment['A=B'] = 'x'"),
    ("env-key-empty", "config.environment[''] = 'x'"),
    ("env-nul", "config.environment['X'] = 'a\\0b'"),
    ("env-byte", "config.environment['X'] = 'a\\udcff'"),
    ("env-half", "config.environment['X'] = 'a\\ud800'"),
    ("env-path-none", "config.environment['PATH'] = None"),
    ("env-path-path", "import pathlib; config.environment['PATH'] = pathlib.Path('/bin')"),
    ("feature-int", "config.available_features.add(5)"),
    ("feature-none", "config.available_features.add(None)"),
    ("features-list", "config.available_features = ['aa', 'aa']"),
    ("features-text", "config.available_features = 'aa'"),
    ("features-dict", "config.available_features = {'aa': 1}"),
    ("features-none", "config.available_features = None"),
    ("limit-text", "config.limit_to_features = 'xaax'; config.available_features.add('aa')"),
    ("limit-list", "config.limit_to_features = ['aa']; config.available_features.add('aa')"),
    ("retries-text", "config.test_retry_attempts = '2'"),
    ("retries-real", "config.test_retry_attempts = 1.5"),
    ("retries-none", "config.test_retry_attempts = None"),
    ("retries-true", "config.test_retry_attempts = True"),
    ("retries-negative", "config.test_retry_attempts = -1"),
    ("time-text", "config.maxIndividualTestTime = '60'"),
    ("time-none", "config.maxIndividualTestTime = None"),
    ("time-true", "config.maxIndividualTestTime = True"),
    ("suffixes-text", "config.suffixes = '.t'"),
    ("suffixes-tuple", "config.suffixes = {('.t', '.u')}"),
    ("excludes-int", "config.excludes = [5, 'd.t']"),
    ("pipefail-text", "config.pipefail = 'False'"),
    ("unsupported-text", "config.unsupported = 'no'"),
    ("recursion-true", "config.recursiveExpansionLimit = True"),
    ("recursion-large", "config.recursiveExpansionLimit = 1 << 40"),
    ("format-substitutions", "config.test_format.extra_substitutions = [('%n', 5)]"),
    ("format-commands", "config.test_format.preamble_commands = [5]"),
];

const TESTS: [(&str, &str); 7] = [
    ("a.t", "RUN: echo %n %nx %nwé\nRUN: true\n"),
    ("b.t", "RUN: echo hi | cat\nREQUIRES: !zz\n"),
    ("c.t", "RUN: false | true\nREQUIRES: aa\n"),
    ("d.t", "DEFINE: %{zz}=5\nRUN: echo %{zz}; false\n"),
    ("e.t", "RUN: :\n"),
    ("f.t", "RUN: true\nALLOW_RETRIES: 1\n"),
    ("g.t", "REQUIRES: {{a+}}\nRUN: true\n"),
];

fn directory(suite: &Suite, name: &str, config: &str) {
    suite.file(&format!("{name}/lit.local.cfg"), config);
    for (test, text) in TESTS {
        suite.file(&format!("{name}/{test}"), text);
    }
}

#[test]
fn values_of_other_types_do_what_they_do_in_lit() {
    let suite = Suite::new("config.suffixes = ['.t']");
    for (name, config) in CONFIGS {
        directory(&suite, name, config);
    }
    compare(&suite, &["-a", "."]);
    compare(&suite, &["-a", "--max-retries-per-test=1", "retries-none", "plain"]);
}

#[test]
fn a_limit_of_output_is_read_as_lit_reads_it() {
    let suite = Suite::new("config.suffixes = ['.t']");
    directory(&suite, ".", "");
    for limit in ["unlimited", " 1_0 ", "+3", "-2", "-999", "7.5", "0", "99999999999999999999999"] {
        compare(&suite, &["-a", &format!("-Doutput_limit={limit}"), "."]);
    }
}

#[test]
fn parameters_that_configs_set_are_objects() {
    for config in [
        "lit_config.params['output_limit'] = 1.5",
        "lit_config.params['output_limit'] = None",
        "lit_config.params['use_normalized_slashes'] = False",
        "lit_config.params['use_normalized_slashes'] = 1",
    ] {
        let suite = Suite::new(&format!("config.suffixes = ['.t']\n{config}"));
        suite.file("a\\b.t", "RUN: echo hello %s\n");
        compare(&suite, &["-a", "."]);
    }
}

/// Configs change those above them, too: then it is their last state that counts.
#[test]
fn a_config_is_made_odd_by_another_one() {
    let suite = Suite::new("config.suffixes = ['.t']");
    suite.file("a.t", "RUN: true\n");
    suite.file("b/b.t", "RUN: true\n");
    suite.file("b/lit.local.cfg", "config.root.environment['X'] = 1");
    compare(&suite, &["-a", "."]);
}

/// lit does not run a script's commands then, whose tools hotstart would start warm.
#[test]
fn commands_of_formats_get_the_objects() {
    let suite = crate::own_formats("Own()");
    suite.file("lit.local.cfg", "config.environment['X'] = 1\n");
    for (name, text) in [("analyze", "RUN: %analyze\n"), ("silent", ""), ("command", ""), ("tuple", "")] {
        suite.file(&format!("{name}.t"), text);
    }
    compare(&suite, &["-a", "."]);
}

/// Not of a format, but compared with lit here.
#[test]
fn commands_fail_as_in_python() {
    let suite = Suite::new("config.suffixes = ['.t']");
    for (name, text) in [
        ("half", "RUN: echo -e 'a\\ud800' > %t\n"),
        ("halves", "RUN: echo -e 'a\\ud83d\\ude00' >> %t\n"),
        ("whole", "RUN: echo -e '\\U0001f600' > %t\nRUN: cat %t\n"),
        ("file", "RUN: cd %s && /bin/true\n"),
    ] {
        suite.file(&format!("{name}.t"), text);
    }
    compare(&suite, &["-a", "."]);
}
