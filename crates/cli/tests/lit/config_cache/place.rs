//! A suite whose config inspects its environment in every way that the cache follows, and prints what it saw.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::suite::{Run, lit_python, prepare};

/// The config collects everything in a substitution, which the test prints.
const CONFIG: &str = r#"
import glob, json, os, platform, re, shutil, subprocess, sys
import lit.formats

here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(here, "early"), os.path.join(here, "modules")]
import helper

def text(name):
    path = os.path.join(here, name)
    if not os.path.exists(path):
        return "none"
    with open(path) as file:
        return file.read().strip()

def kind(name):
    path = os.path.join(here, name)
    return "%d%d%d%d" % (os.path.exists(path), os.path.isfile(path), os.path.isdir(path), os.path.islink(path))

def answer(*words):
    done = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return re.sub("[^a-z]", "", done.communicate()[0].decode()[:12])

config.name = "t"
config.suffixes = [".test"]
config.test_format = lit.formats.ShTest(False)
seen = [text("data/file"), text("data/late"), text("link/inner"), helper.VALUE, kind("data/file"), kind("data/late")]
seen += [kind("odd"), kind("link")]
seen += sorted(os.listdir(os.path.join(here, "data/list")))
seen += sorted(os.path.basename(path) for path in glob.glob(os.path.join(here, "data/glob/*.x")))
seen += sorted(name for _, _, names in os.walk(os.path.join(here, "data/tree")) for name in names)
seen += [str(os.access(os.path.join(here, "data/tool"), os.X_OK))]
search = os.pathsep.join(os.path.join(here, name) for name in ("bin1", "bin2"))
seen += [os.path.relpath(shutil.which("tool", path=search) or "none", here)]
seen += [os.path.relpath(lit.util.which("tool", search) or "none", here)]
seen += [answer(os.path.join(here, "bin1/llvm-answer"), "--version"), answer("llvm-found", "--version")]
seen += [os.environ.get("SEEN", "none"), os.environ.get("SEEN_LATE", "none"), os.path.basename(os.getcwd())]
seen += [lit_config.params.get("param", "none"), str(lit_config.maxIndividualTestTime), lit.__version__, str(len(lit_config.path))]
config.extra = text("extra.cfg") != "none"
config.of_extra = "none"
if config.extra:
    lit_config.load_config(config, os.path.join(here, "extra.cfg"))
    seen.append(config.of_extra)
seen.append(os.readlink(os.path.join(here, "link")) if os.path.islink(os.path.join(here, "link")) else "nolink")
seen.append(json.loads(text("data/json"))["value"])
seen.append("of config 1")
config.substitutions.append(("%seen", " ".join(str(value).replace(" ", "_") for value in seen)))
config.substitutions.append(("%local", "none"))
"#;

pub struct Place {
    dir: tempfile::TempDir,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let cwd = dir.path().join("suite");
        let place = Place { dir, args: Vec::new(), env: Vec::new(), cwd };
        place.file("lit.cfg.py", CONFIG);
        for (name, text) in [
            ("data/file", "one"),
            ("data/list/a", ""),
            ("data/glob/a.x", ""),
            ("data/tree/b/c", ""),
            ("data/tool", ""),
            ("data/json", r#"{"value": "j1"}"#),
            ("modules/helper.py", "VALUE = 'h1'\n"),
            ("bin2/tool", "#!/bin/sh\n"),
            ("extra.cfg", "config.of_extra = 'e1'\n"),
            ("dir1/inner", "inner1"),
            ("dir2/inner", "inner2"),
            ("tests/lit.local.cfg", "config.substitutions[-1] = ('%local', 'l1')\n"),
            ("tests/a.test", "RUN: echo SEEN %seen LOCAL %local\n"),
            ("more/b.test", "RUN: echo SEEN %seen LOCAL %local\n"),
        ] {
            place.file(name, text);
        }
        fs::create_dir_all(place.path("early")).expect("a directory");
        place.mode("bin2/tool", 0o755);
        fs::create_dir_all(place.path("bin1")).expect("a directory");
        place.program("bin1/llvm-answer", "/bin/echo");
        place.program("bin3/llvm-found", "/bin/cat");
        place.link("dir1", "link");
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("suite").join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory above")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    pub fn mode(&self, name: &str, mode: u32) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(self.path(name), mode).expect("it is ours");
    }

    /// Copies a system program to another name.
    pub fn program(&self, name: &str, of: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory above")).expect("a directory");
        let new = path.with_extension("new");
        fs::copy(of, &new).expect("a program");
        fs::rename(new, path).expect("it is ours");
    }

    pub fn link(&self, target: &str, name: &str) {
        drop(fs::remove_file(self.path(name)));
        std::os::unix::fs::symlink(target, self.path(name)).expect("a link");
    }

    pub fn remove(&self, name: &str) {
        let path = self.path(name);
        if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            .expect("it is there");
    }

    pub fn run(&self, more: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotstart"));
        command
            .args(["lit", "-a", "--cold", "--debug-times", "--config-cache"])
            .args(more)
            .args(&self.args)
            .current_dir(&self.cwd);
        if !self.args.iter().any(|arg| arg.ends_with("test")) {
            command.arg(self.path("tests"));
        }
        prepare(&mut command);
        let search = [self.path("bin0"), self.path("bin3"), "/usr/bin".into(), "/bin".into()];
        command.env("PATH", std::env::join_paths(search).expect("paths"));
        command.env("HOTSTART_CACHE_DIR", self.dir.path().join("cache"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").envs(self.env.iter().cloned());
        Run::from(command.output().expect("hotstart starts"))
    }

    /// Returns the line of what the config saw.
    pub fn seen(run: &Run) -> &str {
        let line = run.out.lines().find(|line| line.starts_with("# | SEEN") || line.starts_with("SEEN"));
        line.unwrap_or_else(|| panic!("nothing was seen in {run:#?}"))
    }

    /// Runs until evaluated configs are stored and used. A config whose files have just changed is not stored, so this may
    /// take several runs.
    pub fn settle(&self) {
        let mut last = None;
        for _ in 0..40 {
            let run = self.run(&[]);
            if run.err.contains("configs were not evaluated") {
                return;
            }
            last = Some(run);
        }
        panic!("configs are evaluated each time: {last:#?}");
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the Python that evaluates configs, under another name.
    pub fn other_python(&self) -> String {
        let link = self.dir.path().join("python");
        let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", lit_python().display());
        fs::write(&link, script).expect("a file");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&link, executable).expect("it is ours");
        link.display().to_string()
    }
}
