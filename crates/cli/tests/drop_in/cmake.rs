//! `tests/cmake-project`, whose targets LLVM's `add_lit_testsuite` makes, run by lit and by hotstart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::suite::{Run, lit_python};
use crate::{HOTSTART, command, lines, python, repository, run, shim, was_hotstart};

/// A build tree of the project; removed when dropped.
struct BuildTree {
    dir: tempfile::TempDir,
}

impl BuildTree {
    /// Configures the project with this lit.
    fn new(lit: &Path) -> Self {
        let tree = BuildTree { dir: tempfile::tempdir().expect("a temporary directory") };
        tree.configure(lit);
        tree
    }

    fn configure(&self, lit: &Path) {
        let mut cmake = command("cmake");
        cmake.args(["-G", "Ninja", "-S"]).arg(repository("tests/cmake-project")).arg("-B").arg(self.path(""));
        cmake.arg(format!("-DLLVM_DIR={}", llvm_dir().display()));
        cmake.arg(format!("-DPython3_EXECUTABLE={}", lit_python().display()));
        cmake.arg(format!("-DLLVM_EXTERNAL_LIT={}", lit.display()));
        let Ok(output) = cmake.output() else { panic!("no cmake: run `make setup`") };
        assert!(output.status.success(), "{:#?}", Run::from(output));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Builds a target.
    fn check(&self, target: &str) -> Run {
        for left in ["test/Output", "test/deep/Output", "unit/Output"] {
            // The directory may be missing.
            let _ = fs::remove_dir_all(self.path(left));
        }
        for left in ["test/.lit_test_times.txt", "unit/.lit_test_times.txt"] {
            let _ = fs::remove_file(self.path(left));
        }
        run(command("ninja").arg("-C").arg(self.path("")).arg(target))
    }

    /// Runs the wrapper that the project makes as LLVM's build does, on tests named by their place in the source tree.
    fn wrapper(&self, mut run_by: Command) -> Run {
        run_by.arg(self.path("bin/llvm-lit"));
        self.arguments(run_by)
    }

    fn arguments(&self, mut run_by: Command) -> Run {
        run_by.arg("-v").args(["--order=lexical", "-j1"]);
        run_by
            .arg(repository("tests/cmake-project/test"))
            .arg(repository("tests/cmake-project/unit/runs.sh"));
        run(&mut run_by)
    }
}

/// Returns the directory of LLVM's CMake files.
fn llvm_dir() -> PathBuf {
    let tools = Command::new(repository("tools/llvm-bin")).output().expect("tools/llvm-bin starts");
    assert!(tools.status.success(), "no LLVM: run `make setup`");
    let bin = PathBuf::from(String::from_utf8_lossy(&tools.stdout).trim());
    let dir = bin.join("../lib/cmake/llvm");
    assert!(
        dir.join("AddLLVM.cmake").exists(),
        "no CMake files of LLVM at {}: run `make setup`, or set LLVM_BIN to an LLVM that has them",
        dir.display()
    );
    dir
}

/// Returns a path to lit as users have it: a script beside the package, or one that pip made.
fn lit_script(tree: &tempfile::TempDir) -> PathBuf {
    let script = tree.path().join("run-lit");
    fs::write(&script, "from lit.main import main\nmain()\n").expect("a file");
    script
}

/// Returns the part of a target's output that follows the build of the tool.
fn results(run: &Run) -> Vec<String> {
    let begin = run.out.find("-- Testing:").unwrap_or_else(|| panic!("{run:#?}"));
    lines(&run.out[begin..]).into_iter().map(str::to_owned).collect()
}

// One test, since configuring takes seconds.
#[test]
fn a_project_is_tested_with_hotstart_as_with_lit() {
    let scripts = tempfile::tempdir().expect("a temporary directory");
    let tree = BuildTree::new(&repository("python/hotstart-lit"));
    let targets = ["check-drop-in", "check-unit", "check-all"];
    let got = targets.map(|target| tree.check(target));
    // A directory of the source tree: lit alone does not find the site config, but hotstart-lit learns it from llvm-lit.
    let deep = tree.check("check-drop-in-deep");
    deep.has("-- Testing: 1 tests").says("  Passed: 1").ends_with(0);

    tree.configure(&lit_script(&scripts));
    let expected = targets.map(|target| tree.check(target));
    for (got, expected) in got.iter().zip(&expected) {
        assert!(was_hotstart(got) && !was_hotstart(expected), "{got:#?}\n{expected:#?}");
        assert_eq!(results(got), results(expected));
        assert_eq!(got.code, expected.code);
    }
    got[0].has("-- Testing: 6 tests").ends_with(0);
    got[0].says("  Unsupported      : 2").says("  Passed           : 3").says("  Expectedly Failed: 1");
    got[2].has("-- Testing: 7 tests").ends_with(0);

    the_shim_replaces_lit(&tree);
    let by_lit = the_config_map_of_a_wrapper_is_honoured(&tree);
    in_the_place_of_the_wrapper_its_map_is_not_missed(&tree, &by_lit);
}

/// Replaces the wrapper that CMake made by links to the program and to the script.
fn in_the_place_of_the_wrapper_its_map_is_not_missed(tree: &BuildTree, by_lit: &Run) {
    let wrapper = tree.path("bin/llvm-lit");
    let place = |target: &Path| {
        fs::remove_file(&wrapper).expect("it is there");
        std::os::unix::fs::symlink(target, &wrapper).expect("a link");
    };
    // The tree does not know the parameter that this project's wrapper passes beside the map and the build mode.
    let by = |mut run_by: Command| {
        run_by.args(["--builtin-parameters", r#"{"loud": false}"#]);
        tree.arguments(run_by)
    };
    let script = wrapper.to_str().expect("a path");
    place(Path::new(HOTSTART));
    let direct = by(with_lit(command(&wrapper)));
    let mut from_path = with_lit(command("llvm-lit"));
    from_path.env("PATH", format!("{}:/usr/bin:/bin", tree.path("bin").display()));
    let from_path = by(from_path);
    let named = by({
        let mut named = with_lit(command(HOTSTART));
        named.arg("lit").arg("--build-tree").arg(tree.path(""));
        named
    });
    place(&repository("python/hotstart-lit"));
    let by_script = by(python(&[script]));
    for got in [direct, from_path, named, by_script] {
        assert!(was_hotstart(&got), "{got:#?}");
        assert_eq!(lines(&got.out), lines(&by_lit.out));
        assert_eq!(got.code, by_lit.code);
    }
    // Without site configs nothing shows which one is meant.
    fs::remove_file(tree.path("test/lit.site.cfg.py")).expect("it is there");
    fs::remove_file(tree.path("unit/lit.site.cfg.py")).expect("it is there");
    let lost = by(python(&[script]));
    lost.warns("in which no site config says what it was made from; name a path within that tree");
}

/// Sets the Python for a command that starts the program itself.
fn with_lit(mut command: Command) -> Command {
    command.env("HOTSTART_LIT_PYTHON", lit_python());
    command
}

fn the_shim_replaces_lit(tree: &BuildTree) {
    let mut ninja = command("ninja");
    let hotstart = run(ninja.arg("-C").arg(tree.path("")).arg("check-unit").env("PYTHONPATH", shim()));
    assert!(was_hotstart(&hotstart), "{hotstart:#?}");
    hotstart.has("-- Testing: 1 tests").ends_with(0);
}

fn the_config_map_of_a_wrapper_is_honoured(tree: &BuildTree) -> Run {
    let lit = tree.wrapper(python(&[]));
    lit.says("Passed           : 5").ends_with(0);
    assert!(!was_hotstart(&lit));

    let script = repository("python/hotstart-lit");
    let by_script = tree.wrapper(python(&[script.to_str().expect("a path"), "--wrapper"]));
    let by_module = {
        let mut module = python(&["-m", "hotstart_lit", "--wrapper"]);
        module.env("PYTHONPATH", repository("python"));
        tree.wrapper(module)
    };
    let by_shim = {
        let mut wrapper = python(&[]);
        // The wrapper itself puts it first, as llvm-lit does.
        wrapper.env("PYTHONPATH", shim()).env("DROP_IN_LIT", package_parent());
        tree.wrapper(wrapper)
    };
    for got in [by_script, by_module, by_shim] {
        assert!(was_hotstart(&got), "{got:#?}");
        assert_eq!(lines(&got.out), lines(&lit.out));
        assert_eq!(got.code, lit.code);
    }
    lit
}

fn package_parent() -> String {
    let where_is_it = "import lit, os; print(os.path.dirname(os.path.dirname(lit.__file__)))";
    run(&mut python(&["-c", where_is_it])).out.trim().to_owned()
}
