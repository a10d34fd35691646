//! Scripts and modules that call lit's main function, and the parameters that they pass.

use std::fs;

use crate::suite::{Run, Suite};
use crate::{HOTSTART, command, lines, python, repository, run, shim, was_hotstart};

/// Creates a suite that passes only with the real lit, a wrapper's parameters, and no shim on PYTHONPATH.
fn suite() -> Suite {
    let suite = Suite::new(
        "import os, lit.main\n\
         assert lit.main.__file__.endswith('main.py') and hasattr(lit.main, 'print_discovered')\n\
         p = lit_config.params\n\
         assert p.get('mode') in ('Debug', 'Release') and p.get('off') is False and p['n'] == [1, None], p\n\
         assert 'shim' not in os.environ.get('PYTHONPATH', ''), os.environ['PYTHONPATH']\n\
         config.substitutions += [('%mode', p['mode']), ('%path', os.environ.get('PYTHONPATH', 'none'))]\n",
    );
    suite.file("a.test", "RUN: echo %mode %path\nRUN: true\n");
    suite
}

const WRAPPER: &str = "import sys\nfrom lit.main import main\n\
                       main({'mode': 'Debug', 'off': False, 'n': [1, None]})\n";

fn passes(run: &Run) -> &Run {
    assert!(was_hotstart(run), "{run:#?}");
    run.has("PASS: t :: a.test (1 of 1)").ends_with(0)
}

#[test]
fn wrappers_hand_over_parameters_of_any_kind() {
    let suite = suite();
    let wrapper = suite.file("wrapper.py", WRAPPER);
    let wrapper = wrapper.to_str().expect("a path");
    let lit = run(python(&[wrapper, "-a", "."]).current_dir(suite.path(".")));
    lit.ends_with(0).says("# | Debug none");

    let shim = shim();
    let mut by_shim = python(&[wrapper, "-a", "."]);
    let by_shim = run(by_shim.env("PYTHONPATH", &shim).current_dir(suite.path(".")));
    assert_eq!(lines(&passes(&by_shim).out), lines(&lit.out));

    let mut with_more = python(&[wrapper, "-a", "-D", "mode=Release", "."]);
    let path = format!("/nonexistent:{}:/elsewhere", shim.display());
    passes(&run(with_more.env("PYTHONPATH", path).current_dir(suite.path("."))))
        .says("# | Release /nonexistent:/elsewhere");
}

#[test]
fn lit_as_a_module_is_hotstart_under_the_shim() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    for module in ["lit.main", "lit"] {
        let mut python = python(&["-m", module, "."]);
        passes(&run(python.env("PYTHONPATH", shim()).current_dir(suite.path("."))));
    }
    let mut imported = python(&["-c", "import lit.main; lit.main.main()", "."]);
    passes(&run(imported.env("PYTHONPATH", shim()).current_dir(suite.path("."))));
}

#[test]
fn a_sitecustomize_that_the_shim_hides_is_run_all_the_same() {
    let suite = Suite::new("");
    let other = suite.file("other/sitecustomize.py", "print('also here')\n");
    let other = other.parent().expect("it has one").display().to_string();
    let mut python = python(&["-c", "import sitecustomize, sys; print('hotstart_lit' in sys.modules)"]);
    let path = format!("{}:{other}", shim().display());
    run(python.env("PYTHONPATH", path)).says("also here\nTrue\n").ends_with(0);
}

#[test]
fn what_cannot_be_handed_over_is_named() {
    let suite = Suite::new("");
    let text = "from lit.main import main\nmain({'when': object()})\n";
    let wrapper = suite.file("llvm-lit", text);
    let mut python = python(&[wrapper.to_str().expect("a path"), "."]);
    run(python.env("PYTHONPATH", shim()).current_dir(suite.path(".")))
        .warns("llvm-lit: error: the builtin parameter 'when' is of type object, which cannot be handed over")
        .ends_with(2);
}

#[test]
fn parameters_can_be_given_without_python() {
    let suite = suite();
    let json = r#"{"mode": "Debug", "off": false, "n": [1, null]}"#;
    suite.file("params.json", json);
    for value in [json, "params.json"] {
        let run = suite.run(&["-a", "--builtin-parameters", value, "."]);
        passes(&run).says("# | Debug");
    }
    suite
        .run(&["--builtin-parameters={", "."])
        .warns("argument --builtin-parameters: not a JSON object")
        .ends_with(2);
}

#[test]
fn a_config_map_leads_to_the_site_config() {
    let source = Suite::new("assert False, 'the site config is meant'");
    source.file("a.test", "RUN: true\n");
    let site = source.file(
        "obj/site.py",
        "import lit.formats, os\nconfig.name = 'site'\nconfig.suffixes = ['.test']\n\
         config.test_format = lit.formats.ShTest(False)\nconfig.test_source_root = os.path.dirname(os.path.dirname(__file__))\n",
    );
    let main = fs::canonicalize(source.path("lit.cfg.py")).expect("it is there");
    let map = serde_json::json!({"config_map": {main.to_str().expect("a path"): site}});
    let run = source.run(&["--builtin-parameters", &map.to_string(), "a.test", "--show-suites"]);
    run.says("  site - 1 tests").ends_with(0);
}

#[test]
fn the_lit_of_the_llvm_that_is_tested_is_found_by_its_build_tree() {
    let suite = Suite::new("import lit\nconfig.name = lit.MARK");
    suite.file("build/test/a.test", "RUN: true\n");
    let package = suite.path("llvm/utils/lit/lit");
    let real = run(&mut python(&["-c", "import lit, os; print(os.path.dirname(lit.__file__))"])).out;
    fs::create_dir_all(&package).expect("directories");
    for entry in fs::read_dir(real.trim()).expect("lit's package") {
        let entry = entry.expect("an entry");
        if entry.file_name() != "__init__.py" {
            std::os::unix::fs::symlink(entry.path(), package.join(entry.file_name())).expect("a link");
        }
    }
    let init = fs::read_to_string(format!("{}/__init__.py", real.trim())).expect("lit's package");
    fs::write(package.join("__init__.py"), format!("{init}\nMARK = 'the tree'\n")).expect("a file");
    let source = suite.path("llvm").display().to_string();
    suite.file("build/CMakeCache.txt", format!("# comment\nLLVM_SOURCE_DIR:STATIC={source}\n"));
    let script = repository("python/hotstart-lit");
    let mut hotstart = python(&[script.to_str().expect("a path"), "--show-suites", "build/test"]);
    run(hotstart.current_dir(suite.path("."))).says("  the tree - 1 tests").ends_with(0);
}

#[test]
fn a_wrapper_that_never_calls_lit_is_an_error() {
    let script = repository("python/hotstart-lit");
    let suite = Suite::new("");
    let wrapper = suite.file("w.py", "print('nothing')\n");
    let mut other = python(&[script.to_str().expect("a path"), "--wrapper"]);
    run(other.arg(&wrapper)).warns("ended without calling lit.main.main").ends_with(2);
    let mut none = python(&[script.to_str().expect("a path"), "--wrapper", "nonesuch"]);
    run(&mut none)
        .warns("--wrapper needs the path of a script that runs lit; 'nonesuch' is no file")
        .ends_with(2);
}

#[test]
fn the_program_is_lit_by_the_name_of_a_link() {
    let suite = Suite::new("");
    let link = suite.path("llvm-lit");
    std::os::unix::fs::symlink(HOTSTART, &link).expect("a link");
    run(command(link)
        .arg("nonesuch")
        .current_dir(suite.path("."))
        .env("HOTSTART_LIT_PYTHON", crate::suite::lit_python()))
    .warns("llvm-lit: ")
    .ends_with(2);
}
