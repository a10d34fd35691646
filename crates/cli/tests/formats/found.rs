//! What formats find in their process when a test runs: what configs have left there, and the tests as they were found.

use crate::compare::compare;
use crate::suite::Suite;

/// Creates a suite whose format, the class `F` of this text, is in a module of its own.
fn suite(text: &str) -> Suite {
    let suite = Suite::new(
        "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport own\n\
         config.suffixes = ['.t']\nconfig.test_format = own.F(False)\n",
    );
    suite.file("own.py", format!("import copy, lit.formats, lit.Test\n{text}"));
    suite
}

#[test]
fn all_configs_have_left_their_marks() {
    let suite = suite(
        "STATE = {}\n\
         class F(lit.formats.ShTest):\n\
         \x20   def execute(self, test, lit_config):\n\
         \x20       result = super().execute(test, lit_config)\n\
         \x20       result.output += repr((sorted(STATE.items()), lit_config.params.get('seen')))\n\
         \x20       if (test.path_in_suite[-1] == 'without.t') is bool(STATE):\n\
         \x20           result.code = lit.Test.FAIL\n\
         \x20       return result\n",
    );
    for test in ["with.t", "without.t", "below/with.t", "other/without.t"] {
        suite.file(test, "RUN: true\n");
    }
    suite.file("feature.t", "REQUIRES: late\nRUN: false\n");
    let config = "import own\nown.STATE['a'] = own.STATE.get('a', 0) + 1\nlit_config.params['seen'] = '1'\n\
                  config.root.available_features.add('late')\n";
    suite.file("below/lit.local.cfg", config);
    suite.file("other/lit.local.cfg", "raise SystemExit\n");
    compare(&suite, &["-a", "."]);
    compare(&suite, &["-a", "without.t", "below"]);
    // Nobody has read the other config then.
    compare(&suite, &["-a", "with.t", "without.t", "feature.t"]);
}

#[test]
fn tests_keep_what_their_format_gives_them() {
    let suite = suite(
        "class Own(lit.Test.Test):\n\
         \x20   def getMissingRequiredFeatures(self):\n\
         \x20       return ['own']\n\
         class F(lit.formats.ShTest):\n\
         \x20   def getTestsForPath(self, suite, path, lit_config, config):\n\
         \x20       for test in super().getTestsForPath(suite, path, lit_config, config):\n\
         \x20           name = path[-1].split('.')[0]\n\
         \x20           if name in ('xfails', 'requires', 'unsupported'):\n\
         \x20               setattr(test, name, ['{{.*}}'] if name == 'unsupported' else ['true', 'nope'])\n\
         \x20           if name == 'allowed_retries':\n\
         \x20               test.allowed_retries = 1\n\
         \x20           if name == 'config':\n\
         \x20               for word in ('one', 'two'):\n\
         \x20                   test.config = copy.deepcopy(config)\n\
         \x20                   test.config.environment['WORD'] = word\n\
         \x20                   test.config.substitutions.append(('%word', word))\n\
         \x20                   yield copy.copy(test)\n\
         \x20           elif name == 'class':\n\
         \x20               yield Own(suite, path, config)\n\
         \x20           elif name == 'parts':\n\
         \x20               yield lit.Test.Test(suite, path + ('/a',), config, file_path=suite.getSourcePath(path))\n\
         \x20           else:\n\
         \x20               yield test\n\
         \x20   def execute(self, test, lit_config):\n\
         \x20       if test.path_in_suite[-1] == '/a':\n\
         \x20           return lit.Test.PASS, test.getFilePath()\n\
         \x20       return super().execute(test, lit_config)\n",
    );
    for name in ["xfails", "requires", "unsupported", "class", "parts", "plain"] {
        suite.file(&format!("{name}.t"), "RUN: true\n");
    }
    suite.file("config.t", "RUN: echo %word\nRUN: sh -c 'test $WORD = one'\n");
    suite.file("allowed_retries.t", "RUN: test -e %t.l || sh -c 'touch %t.l; exit 1'\n");
    compare(&suite, &["-a", "."]);
    compare(&suite, &["-a", "--xfail=plain.t;requires.t", "--exclude-xfail", "."]);
    compare(
        &suite,
        &["-a", "--xfail-not=xfails.t", "--unsupported-not=unsupported.t", "xfails.t", "unsupported.t"],
    );
}

#[test]
fn a_test_that_has_no_pickle_is_an_error() {
    let suite = suite(
        "class F(lit.formats.ShTest):\n\
         \x20   def getTestsForPath(self, *given):\n\
         \x20       for test in super().getTestsForPath(*given):\n\
         \x20           test.hook = lambda: None\n\
         \x20           yield test\n",
    );
    suite.file("a.t", "RUN: true\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(2).warns("the format has changed the test 'a.t' while it found it");
    assert!(!run.out.contains("PASS"), "{run:#?}");
}
