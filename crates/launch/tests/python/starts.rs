//! The ways in which a script is started: by its first line, by `env`, and by the interpreter.

use std::os::unix::fs::symlink;

use crate::harness::{By, Ends, Script, python};

const LISTS: &[&[&str]] = &[&["a"], &[], &["-u", "c d", ""]];

/// Prints what shows how it was started.
const BODY: &str = "import sys\nprint(sys.argv, getattr(sys, 'orig_argv', 0), sys.flags, sys.path, sys.executable, __file__, \
                    __name__, sys.stdout.write_through)\nprint(open('/proc/self/cmdline').read().split('\\0'))\n\
                    print(sys.stdin.read())";

fn by(by: By, body: &str) -> Script {
    let mut script = Script::new("");
    script.by = by;
    script.write(body);
    script
}

#[test]
fn a_script_that_the_interpreter_is_given() {
    for options in [&[][..], &["-u"], &["-B", "-s"], &["-Bs"], &["-O"], &["-OO", "-u"]] {
        println!("{options:?}");
        by(By::Interpreter(options), BODY).equals(LISTS, Ends::Warm);
    }
    let mut script = by(By::Interpreter(&[]), BODY);
    let interpreter = python();
    script.name = Some(interpreter.file_name().unwrap().to_str().unwrap().to_owned());
    script.env.retain(|(name, _)| name != "PATH");
    let directory = interpreter.parent().unwrap().to_str().unwrap();
    script.env.push(("PATH".to_owned(), format!("/absent:{directory}")));
    script.equals(LISTS, Ends::Warm);
    // It would look for itself in the working directory.
    script.name = Some("absent".to_owned());
    script.equals_cold(LISTS);
    // Others are starts of the interpreter.
    for options in [&["-I"][..], &["-E"], &["-S"], &["-x"], &["-q"], &["-W", "error"], &["-X", "utf8"]] {
        println!("{options:?}");
        by(By::Interpreter(options), "import sys\nprint(sys.argv, sys.flags)").equals_in_output(LISTS);
    }
}

#[test]
fn scripts_of_one_interpreter_are_different_tools() {
    let one = by(By::Interpreter(&[]), "mode = 1\nimport sys\nprint(mode, sys.argv)");
    let mut two = by(By::Interpreter(&[]), "mode = 2\nimport sys\nprint(mode, sys.argv)");
    two.launcher = one.launcher.clone();
    for script in [&one, &two, &one] {
        script.equals(LISTS, Ends::Warm);
    }
    two.by = By::Interpreter(&["-O"]);
    two.equals(LISTS, Ends::Warm);
    two.by = By::Line("");
    two.equals(LISTS, Ends::Warm);
    two.write("mode = 3\nimport sys\nprint(mode, sys.argv)");
    two.equals(LISTS, Ends::Warm);
}

#[test]
fn a_script_whose_interpreter_env_finds() {
    let mut script = by(By::Line("#!/usr/bin/env python3"), BODY);
    let home = script.home().to_owned();
    for name in ["first", "second"] {
        std::fs::create_dir(home.join(name)).unwrap();
    }
    symlink(python(), home.join("second/python3")).unwrap();
    script.write(BODY);
    let path = ["first", "second"].map(|name| home.join(name).display().to_string()).join(":");
    script.env.retain(|(name, _)| name != "PATH");
    script.env.push(("PATH".to_owned(), path));
    script.equals(LISTS, Ends::Warm);
    // Another one that comes first.
    symlink(python(), home.join("first/python3")).unwrap();
    script.write(BODY);
    script.equals(LISTS, Ends::Warm);
    let (ran, _) = script.run(&script.launcher, &[]);
    assert!(ran.stdout.contains("first/python3"), "{ran:?}");
    // Another value of the variable.
    let last = script.env.len() - 1;
    script.env[last].1 = home.join("second").display().to_string();
    script.equals(LISTS, Ends::Warm);
    let (ran, _) = script.run(&script.launcher, &[]);
    assert!(ran.stdout.contains("second/python3"), "{ran:?}");
}

#[test]
fn the_line_where_a_script_halts_is_known() {
    let script = Script::new("import sys\nx = 1\nprint(sys.argv[1:])");
    script.equals(LISTS, Ends::Warm);
    let line = script.launcher.statistics().tools[0].halts_at.clone();
    assert_eq!(line, Some(format!("{}:4: sys.argv", script.program.display())));
    // A builtin module's functions may be called right after its import.
    let counted = Script::new("import gc; c = gc.get_count()\nimport sys\nprint(len(c), sys.argv[1:])");
    counted.equals(LISTS, Ends::Warm);
    let line = counted.launcher.statistics().tools[0].halts_at.clone();
    assert_eq!(line, Some(format!("{}:2: get_count", counted.program.display())));
    let refused = Script::new(
        "import locale\n\nlocale.setlocale(locale.LC_ALL, 'C')\nimport sys\nprint(sys.argv[1:], 'é')",
    );
    refused.equals_cold(LISTS);
    let why = refused.launcher.statistics().tools[0].constructors.clone().unwrap().1;
    assert_eq!(
        why,
        format!("{}:6: the locale by which arguments are decoded was changed", refused.program.display())
    );
}

#[test]
fn finalizers_run_where_interrupts_are_ignored() {
    for body in [
        "print(sys.argv[1:])",
        "d = D(1)\nn = sys.argv[1:]\ne = D(2)\ne.me = e",
        "import signal\nn = sys.argv[1:]\nprint(signal.getsignal(signal.SIGINT))\nk = D(3); k.me = k",
    ] {
        let loud = "import sys\nclass D:\n  def __init__(self, n): self.n = n\n  def __del__(self): print('end', self.n)\n";
        let mut script = Script::new(&format!("{loud}{body}\n"));
        script.ignored = Some(1 << 1);
        script.equals(LISTS, Ends::Warm);
    }
}
