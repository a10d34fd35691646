//! Tests which scripts are accepted. tests/native shows that both shells agree on these.

use super::*;
use hotstart_model::{Command, Dialect, Interpreter};

fn shell() -> ExternalShell {
    ExternalShell {
        shell: "/bin/bash".into(),
        script_path: "/nowhere".into(),
        prefix: Vec::new(),
        may_be_native: true,
    }
}

fn script(text: &str, env: &[(&str, &str)]) -> Script {
    Script {
        commands: vec![Command { label: "RUN: at line 1".into(), text: text.to_owned() }],
        dialect: Dialect::V19,
        interpreter: Interpreter::External(shell()),
        pipefail: true,
        cwd: "/".into(),
        make_dirs: Vec::new(),
        env: Arc::new([("PATH", "/usr/bin:/bin")].iter().chain(env).copied().collect()),
        timeout: None,
        tmp_base: "/nowhere".into(),
        captures: false,
        lit_package_dir: None,
        lit_python: None,
        cold: hotstart_model::ColdTools::None,
        wraps: Default::default(),
    }
}

fn refusal(text: &str) -> Option<Refusal> {
    accept(&script(text, &[]), &shell()).err()
}

#[test]
fn what_is_within() {
    for text in [
        "",
        "opt -S < a | FileCheck a 2>&1",
        "a > b 2>&1 && c 2> d ; e &> f || g >& h",
        "! a",
        "env -u B A=1 a | b",
        "env A=1 env B=2 a",
        "echo -n a -b > c",
        "echo a | cat",
        "rm -rf /a/b* ; mkdir -p c",
        "cd /a/b && export A='b c' && : d",
        "test -f a && test ! -e b && test 1 -lt 2 || true",
        "a | /b/c",
        "test 1 -ne 999999999999999999 ; test -1 -le 0 ; test 08 = 8",
        "export ASAN_OPTIONS=a && export FOO=b",
        "test -e /dev/null && test /dev = /proc && test -n /dev/fd/255 && test ! -z /proc && a < /dev/null",
    ] {
        assert_eq!(refusal(text), None, "{text}");
    }
}

#[test]
fn what_is_not() {
    for (text, reason) in [
        ("a ;", "not in the internal shell's language"),
        ("a=b", "an assignment"),
        ("a=b c", "an assignment"),
        ("printf x", "a builtin of bash"),
        ("if a", "a builtin of bash"),
        ("wait", "a builtin of bash"),
        (": > a", "a builtin of bash"),
        ("true --help", "a builtin of bash"),
        ("test a", "a builtin of bash"),
        ("echo -e a", "`echo` with options, patterns or redirected errors"),
        ("echo -n -e a", "`echo` with options, patterns or redirected errors"),
        ("echo a 2> b", "`echo` with options, patterns or redirected errors"),
        ("cd a", "`cd` other than to a plain absolute path"),
        ("cd /a/../b", "`cd` other than to a plain absolute path"),
        ("cd /a | b", "`cd` other than to a plain absolute path"),
        ("export A", "`export` other than of one variable"),
        ("export LC_ALL=x", "`export` other than of one variable"),
        ("export UID=5", "`export` other than of one variable"),
        ("export RANDOM=5", "`export` other than of one variable"),
        ("export PIPESTATUS=5", "`export` other than of one variable"),
        ("export BASH_ARGV0=x", "`export` other than of one variable"),
        ("export UNKNOWN=x", "`export` other than of one variable"),
        ("export PATH=/a", "`export` other than of one variable"),
        ("env PATH=/a b", "a variable that steers shells"),
        ("env -i a", "an option of `env`"),
        ("env A=1", "a command without a name"),
        ("env A=1 echo b", "a builtin after `env` or `not`"),
        ("! a | b", "`!` before a pipeline"),
        ("a | ! b", "`!` before a pipeline"),
        ("a/b", "a program by another path than a plain absolute one"),
        ("a *.c", "a pattern for file names"),
        ("a /*/b", "a pattern for file names"),
        ("a /x//y*", "a pattern for file names"),
        ("a > /b*", "a redirection to a pattern"),
        ("a 2>&1 > b", "a redirection of another kind"),
        ("a 1> b", "a redirection of another kind"),
        ("a >&2", "a redirection of another kind"),
        ("a 2>&0", "a redirection of another kind"),
        ("a > b | c", "a redirection of another kind"),
        ("a | b < c", "a redirection of another kind"),
        ("a > b > c", "a descriptor redirected twice"),
        ("a 2> b 2>&1", "a descriptor redirected twice"),
        ("a > /dev/fd/3", "a redirection to something on /proc or below /dev"),
        ("true > /proc/self/fd/1", "a redirection to something on /proc or below /dev"),
        ("a < //proc/self/fd/0", "a redirection to something on /proc or below /dev"),
        ("test 1 -ne 99999999999999999999", "a builtin of bash"),
        ("test 1000000000000000000 -gt 1", "a builtin of bash"),
        ("test 08 -eq 8", "a builtin of bash"),
        ("test +1 -eq 1", "a builtin of bash"),
        ("test ' 1' -eq 1", "a builtin of bash"),
        ("test - -eq 1", "a builtin of bash"),
        ("test '' -lt 1", "a builtin of bash"),
        ("! test -e /dev/fd/255", "`test` of something on /proc or below /dev"),
        ("test ! -e /proc/self/fd/255", "`test` of something on /proc or below /dev"),
        ("test a -ef /dev/fd/255", "`test` of something on /proc or below /dev"),
        ("cd /proc/self && ! grep -q bash comm", "`cd` other than to a plain absolute path"),
        ("cat /proc/self/fd/*", "a pattern for file names"),
        ("/a/../b", "a program by another path than a plain absolute one"),
        ("/a/./b", "a program by another path than a plain absolute one"),
        ("/a//b", "a program by another path than a plain absolute one"),
        ("./a", "a program by another path than a plain absolute one"),
        ("env A=1 -u B a", "an option of `env`"),
        ("a | test -e b", "a builtin of bash"),
        ("a /b/.*", "a pattern for file names"),
        ("%1", "a program's name with a character that may mean something to bash"),
        (".a", "a program's name with a character that may mean something to bash"),
        ("env A=1 .a", "a program's name with a character that may mean something to bash"),
        ("-a", "a program's name with a character that may mean something to bash"),
        ("env -u PATH a", "a variable that steers shells"),
        ("env -u '' a", "a variable that steers shells"),
        ("env -u A=B a", "a variable that steers shells"),
        ("printenv | a", "the environment in bash's order"),
    ] {
        assert_eq!(refusal(text), Some(reason), "{text}");
    }
}

#[test]
fn not_must_be_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let path = format!("{}:/bin", dir.path().display());
    let refusal = |text: &str, pipefail| {
        let script = Script { pipefail, ..script(text, &[("PATH", &path)]) };
        accept(&script, &shell()).err()
    };
    let reason = Some("`not` that may not be the program");
    assert_eq!(refusal("not a", true), reason);
    fs::write(dir.path().join("not"), "another program of this name").unwrap();
    assert_eq!(refusal("not a", true), reason);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/native/not.c");
    let built = std::process::Command::new("cc").arg(source).arg("-o").arg(dir.path().join("not")).status();
    assert!(built.unwrap().success());
    assert_eq!((refusal("not a", true), refusal("not --crash env A=1 a", true)), (None, None));
    assert_eq!((refusal("not not a", true), refusal("not a | b", false)), (reason, reason));
    assert_eq!(refusal("not cd /", true), Some("a builtin after `env` or `not`"));
    assert_eq!(refusal("not -a b", true), Some("an option of `not`"));
    assert_eq!(refusal("env LD_PRELOAD=a not b", true), reason, "it would not start");
    assert_eq!(refusal("not env LD_PRELOAD=a b", true), None);
}

#[test]
fn shell_and_environment_must_be_plain() {
    let with = |env: &[(&str, &str)], shell: ExternalShell| accept(&script("a /c/b*", env), &shell).err();
    assert_eq!(with(&[], shell()), None);
    assert_eq!(with(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], shell()), None);
    assert_eq!(with(&[("LANG", "de_DE.UTF-8")], shell()), Some("a pattern for file names"));
    assert_eq!(with(&[("CDPATH", "x")], shell()), Some("a variable that bash treats in its own way"));
    assert_eq!(
        with(&[("BASH_FUNC_a%%", "() { :; }")], shell()),
        Some("a variable that bash treats in its own way")
    );
    assert_eq!(with(&[("PPID", "1")], shell()), Some("a variable that bash treats in its own way"));
    assert_eq!(with(&[("SHLVL", "1")], shell()), None);
    for depth in ["999", "-3", "x", ""] {
        assert_eq!(
            with(&[("SHLVL", depth)], shell()),
            Some("a nesting depth that is no small number"),
            "{depth}"
        );
    }
    for path in ["bin:/bin", "/bin:", "/usr/../bin", "/usr/./bin", "/usr//bin", "/usr/bin/:/bin", "/"] {
        let reason = "PATH has directories that are not absolute and plain";
        assert_eq!(with(&[("PATH", path)], shell()), Some(reason), "{path}");
    }
    for name in ["LANG", "LC_ALL", "LC_CTYPE"] {
        let reason = "a locale whose characters are not UTF-8";
        assert_eq!(with(&[(name, "zh_CN.gbk")], shell()), Some(reason));
    }
    assert_eq!(with(&[("LD_PRELOAD", "/a.so")], shell()), Some("a variable that bash treats in its own way"));
    assert_eq!(with(&[("A", &"a".repeat(100_000))], shell()), Some("a large script or environment"));
    let other = ExternalShell { shell: "/bin/sh".into(), ..shell() };
    assert_eq!(with(&[], other), Some("the shell is not the system's bash"));
    let valgrind = ExternalShell { prefix: vec!["valgrind".into()], ..shell() };
    assert_eq!(with(&[], valgrind), Some("the shell runs under another program"));
}

/// Not even a directory that the configuration names.
#[test]
fn directories_must_be_the_same_to_each_process() {
    let with = |cwd: &str, tmp_base: &str| {
        let script = Script { cwd: cwd.into(), tmp_base: tmp_base.into(), ..script("a", &[]) };
        accept(&script, &shell()).err()
    };
    assert_eq!(with("/", "/nowhere/t"), None);
    let reason = Some("a path that leads to /proc, to a device, or to an unknown file system");
    assert_eq!((with("/proc/self", "/nowhere/t"), with("/", "/proc/self/t")), (reason, reason));
}
