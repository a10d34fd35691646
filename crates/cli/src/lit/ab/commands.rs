//! The two command lines of a comparison: the same words except for the program and for options that only hotstart has.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hotstart_bench::command::{Command, line};
use hotstart_lit::probe::python::Surroundings;
use hotstart_lit::settings::Settings;

use crate::args::LitOptions;

/// Refuses options that ask for something other than a run, or for a file that the comparison itself needs.
pub(super) fn refuse_other_work(options: &LitOptions) -> Result<(), String> {
    if options.reports.json.is_some() {
        return Err("--ab reads the results of each run by -o; leave -o away, and ask for the comparison's \
                    own report by --ab-report"
            .to_owned());
    }
    if options.show_suites || options.show_tests || options.show_used_features {
        return Err(
            "--ab compares runs; leave --show-suites, --show-tests and --show-used-features away".to_owned()
        );
    }
    Ok(())
}

/// Returns the command for this program, with all words except those of the comparison.
pub(super) fn own(options: &LitOptions, results: &Path) -> Result<Command, String> {
    let own = ["hotstart", "lit"].map(OsString::from).to_vec();
    let words = options.words.for_hotstart();
    let name = line(&[own.clone(), words.clone()].concat());
    Ok(Command { name, program: own_binary()?, argv: with_results(own, results, words) })
}

/// Returns the command that `--ab` names, with lit's words; with all words if it is hotstart again.
pub(super) fn other(options: &LitOptions, cwd: &Path, results: &Path) -> Result<Command, String> {
    let typed = options.own.ab.with.as_deref().unwrap_or_default();
    let typed = hotstart_python::shlex::split(typed).map_err(|error| format!("argument --ab: {error}"))?;
    if typed.is_empty() {
        return Err("argument --ab: no command; write for example --ab lit".to_owned());
    }
    let path = std::env::var_os("PATH");
    let found = match Command::find(typed.clone(), path.as_deref(), cwd) {
        Err(_) if typed == ["lit"] => Command::find(lit_of_python(options, cwd)?, path.as_deref(), cwd),
        found => found,
    };
    let found = found.map_err(|error| format!("argument --ab: {error}"))?;
    let is_own = found.program.canonicalize().ok() == own_binary()?.canonicalize().ok();
    let words = if is_own { options.words.for_hotstart() } else { options.words.for_lit() };
    let name = line(&[found.argv.clone(), words.clone()].concat());
    Ok(Command { name, program: found.program, argv: with_results(found.argv, results, words) })
}

/// Returns a call of lit by the Python that evaluates the configs, for systems without a command `lit`.
fn lit_of_python(options: &LitOptions, cwd: &Path) -> Result<Vec<OsString>, String> {
    if options.own.lit_package.is_some() {
        let how = "name the lit of --lit-package as `--ab 'python3 DIR/lit.py'`";
        return Err(format!("argument --ab: there is no program 'lit' along PATH; {how}"));
    }
    let named = options.own.lit_python.clone().map(OsString::from);
    let python = named.or_else(|| std::env::var_os("HOTSTART_LIT_PYTHON").filter(|name| !name.is_empty()));
    let python = python.or_else(|| python_with_script(cwd)).unwrap_or_else(|| "python3".into());
    // In a virtual environment, pip has installed the script beside Python.
    let script = Path::new(&python).with_file_name("lit");
    if python.as_bytes().contains(&b'/') && script.exists() {
        return Ok(vec![script.into()]);
    }
    let call = "import sys; from lit.main import main; sys.exit(main())";
    Ok([&python, OsStr::new("-c"), OsStr::new(call)].map(OsString::from).to_vec())
}

/// Finds the Python of an environment with the script `lit`, in the places where a run looks for Python.
fn python_with_script(cwd: &Path) -> Option<OsString> {
    let settings = Settings { cwd: cwd.to_path_buf(), ..Settings::default() };
    let surroundings = Surroundings::of_process();
    let found = surroundings.places(&settings).filter_map(|place| place.found);
    let mut own = found.filter(|found| found.lit_package.is_none());
    own.find(|found| found.python.with_file_name("lit").exists()).map(|found| found.python.into())
}

fn own_binary() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("cannot find this binary: {error}"))
}

fn with_results(command: Vec<OsString>, results: &Path, words: Vec<OsString>) -> Vec<OsString> {
    [command, vec!["-o".into(), results.into()], words].concat()
}
