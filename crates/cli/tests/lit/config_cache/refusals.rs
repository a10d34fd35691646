//! A config whose inputs cannot be followed is not stored, and the reason is printed. Stored configs are compared on request.

use std::fs;

use super::place::Place;

fn run_with(extra: &str) -> String {
    let at = Place::new();
    let text = fs::read_to_string(at.path("lit.cfg.py")).unwrap();
    at.file("lit.cfg.py", &format!("{text}\n{extra}\n"));
    // The first run may find files that have just changed.
    let runs: Vec<_> = (0..3).map(|_| at.run(&[])).collect();
    for run in &runs {
        assert!(run.err.contains("hotstart: configs were evaluated, and not kept: "), "{extra}: {run:#?}");
    }
    let line = runs[2].err.lines().find(|line| line.contains("not kept: ")).unwrap();
    line.split_once("not kept: ").unwrap().1.to_owned()
}

#[test]
fn what_may_depend_on_anything_is_not_kept() {
    for (extra, why) in [
        ("import time", "it imports time"),
        ("import random as r", "it imports random"),
        ("x = os.getpid()", "it uses os.getpid"),
        ("from os import urandom", "it uses os.urandom"),
        ("from glob import os as o", "it uses glob.os"),
        ("from lit.util import subprocess as sp", "it imports subprocess from lit.util"),
        ("from lit.util import *", "it imports * from lit.util"),
        ("x = os.path.expanduser('~daemon')", "it uses os.path.expanduser"),
        ("o = os", "it hands on the module os"),
        ("x = getattr(os, 'get' + 'pid')()", "it hands on the module os"),
        ("x = eval('1')", "it uses eval"),
        ("x = os.path.getmtime(here)", "it uses os.path.getmtime"),
        ("x = hash('a')", "it uses hash"),
        ("x = glob.os.getpid()", "it reaches os through another module"),
        ("x = lit.util.os.getpid()", "it reaches os through another module"),
        ("x = sys.modules['os'].getpid()", "it uses sys.modules"),
        ("f = getattr; x = f(glob, 'os').getpid()", "it uses getattr"),
        ("x = sys.stdout.isatty()", "it uses sys.stdout"),
        ("x = open('/proc/uptime').read()", "nothing tells when '/proc/uptime' changes"),
        ("x = os.listdir('/proc/self')", "nothing tells when '/proc/self"),
        ("x = os.path.exists('/proc/self/fd/9')", "nothing tells when '/proc/self/fd/9' changes"),
        ("x = open('/dev/urandom', 'rb').read(4)", "nothing tells when '/dev/urandom' changes"),
        ("import pathlib; x = pathlib.Path(here).samefile('/')", "it uses .samefile"),
        ("import pathlib; x = pathlib.Path(here).is_mount()", "it uses .is_mount"),
        ("import pathlib; config.owner = 1; x = pathlib.Path(here).owner()", "it uses .owner"),
        ("import pathlib; x = pathlib.Path.home()", "it uses .home"),
        ("x = [entry.inode() for entry in os.scandir(here)]", "it uses .inode"),
        ("config.pid = 1; x = subprocess.Popen(['true'], stdout=subprocess.PIPE).pid", "it uses .pid"),
        ("import pathlib; x = getattr(pathlib.Path(here), 'stat')()[6]", "it uses .stat"),
        ("x = getattr(here, 'low' + 'er')()", "it uses getattr with a name that is computed"),
        ("x = map(getattr, [here], ['lower'])", "it uses getattr"),
        ("import operator; x = operator.methodcaller('lower')(here)", "it uses operator.methodcaller"),
        ("import types; x = types.FunctionType", "it uses types.FunctionType"),
        ("x = __builtins__", "it uses __builtins__"),
        ("x = vars(config)", "it uses vars"),
    ] {
        let told = run_with(extra);
        assert!(
            told.ends_with(why) || why.starts_with("nothing tells") && told.contains(why),
            "{extra}: {told}"
        );
    }
}

#[test]
fn what_leaves_something_behind_is_not_kept() {
    for (extra, why) in [
        ("print('hello')", "a config prints or writes"),
        ("open(os.path.join(here, 'written'), 'w').close()", "a config writes"),
        ("subprocess.call(['true'])", "a config starts 'true'"),
        (
            "subprocess.Popen(['sh', '-c', 'date'], stdout=subprocess.PIPE).wait()",
            "a config starts '/usr/bin/sh -c date'",
        ),
        ("subprocess.check_output('true', shell=True)", "a config starts"),
        ("subprocess.check_output(['true'], cwd=here)", "a config starts"),
    ] {
        let told = run_with(extra);
        assert!(told.contains(why) || told.contains("a config starts"), "{extra}: {told}");
    }
}

#[test]
fn what_is_kept_is_compared_with_what_configs_say() {
    let at = Place::new();
    at.settle();
    let run = at.run(&["--check-config-cache"]);
    assert!(run.err.contains("configs were evaluated, and kept"), "{run:#?}");
    assert!(!run.err.contains("a fault of hotstart"), "{run:#?}");
    // Simulates a wrong entry in the cache. A run of the sample finds it and stores the right one.
    let put = || {
        at.settle();
        let caches = fs::read_dir(at.dir().join("cache/configs")).unwrap();
        for entry in caches.flat_map(|run| fs::read_dir(run.unwrap().path()).unwrap()) {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("of_config_1", "of_config_X")).unwrap();
        }
        Place::seen(&at.run(&[])).contains("of_config_X")
    };
    assert!((0..8).any(|_| put()), "it was put there");
    let checked = at.run(&["--check-config-cache"]);
    assert!(
        checked.err.contains("a fault of hotstart, not of the tests: what is kept of configs"),
        "{checked:#?}"
    );
    assert!(Place::seen(&checked).contains("of_config_1"), "what configs say counts");
    assert!(Place::seen(&at.run(&[])).contains("of_config_1"), "nothing of it was kept");
}

#[test]
fn without_the_cache_nothing_is_kept() {
    let at = Place::new();
    let run = at.run(&["--no-config-cache"]);
    assert!(run.err.contains("configs were evaluated, and not kept: that was asked for"), "{run:#?}");
    assert!(!at.dir().join("cache/configs").exists());
}
