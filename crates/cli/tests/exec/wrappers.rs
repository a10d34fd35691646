//! Links by a compiler's name, together with wrappers that search for the next compiler of their name, as ccache does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};

use crate::bench::{Bench, lines, told};

/// Logs its run, and execs the next `clang` in PATH other than itself. Stops an endless loop.
const WRAPPER: &str = r#"#!/bin/sh
echo "$0" >> LOG
[ "$(wc -l < LOG)" -lt 9 ] || exit 98
IFS=:
for dir in $PATH; do
  [ "$dir/clang" = "$0" ] || ! [ -x "$dir/clang" ] || exec "$dir/clang" "$@"
done
exit 99
"#;

/// A tool that execs `clang`, its own name, if it has no arguments.
const RECURSIVE: &str = "#!/bin/sh\n[ $# = 0 ] && exec clang again\necho $0\n";

fn bench(wrapper: &str) -> Bench {
    let bench = Bench::new();
    symlink("hotstart-exec", bench.path("bin/clang")).unwrap();
    fs::create_dir(bench.path("wrap")).unwrap();
    let text = wrapper.replace("LOG", bench.path("log").to_str().unwrap());
    fs::write(bench.path("wrap/clang"), text).unwrap();
    fs::set_permissions(bench.path("wrap/clang"), fs::Permissions::from_mode(0o755)).unwrap();
    bench
}

/// Returns PATH with these directories of the bench, and `rest`.
fn path(bench: &Bench, directories: &[&str], rest: &str) -> String {
    let own: Vec<_> = directories.iter().map(|dir| bench.path(dir).display().to_string()).collect();
    format!("{}{rest}", own.join(":"))
}

/// Returns `clang` in the first of these directories, with all of them in PATH.
fn clang(bench: &Bench, directories: &[&str], rest: &str) -> Command {
    let mut command = bench.command(&bench.path(directories[0]).join("clang"));
    command.env("PATH", path(bench, directories, rest));
    command
}

fn run(bench: &Bench, directories: &[&str], setting: &str) -> Output {
    let mut command = clang(bench, directories, ":/usr/bin:/bin");
    command.arg("-v").env("HOTSTART_EXEC", setting).output().expect("it runs")
}

#[test]
fn a_wrapper_and_the_client_do_not_call_each_other_for_ever() {
    let bench = bench(WRAPPER);
    fs::create_dir(bench.path("real")).unwrap();
    let real = bench.tool("real/clang");
    let plain = run(&bench, &["wrap", "real"], "");
    assert!(plain.status.success(), "{}", told(&plain));
    fs::remove_file(bench.path("log")).unwrap();
    bench.warm_up(&real);
    let mut warm = bench.warm_starts();
    for (setting, directories, wrapped) in [
        ("cold", ["bin", "wrap", "real"], 1),
        ("", ["bin", "wrap", "real"], 1),
        ("", ["wrap", "bin", "real"], 2),
    ] {
        let output = run(&bench, &directories, setting);
        let text = told(&output);
        assert!(output.status.success() && !text.contains("HOTSTART_EXEC_AFTER"), "{text}");
        assert!(text.contains(&format!("argument {}\nargument -v\n", real.display())), "{text}");
        assert_eq!(lines(&bench.path("log")).len(), wrapped, "{text}");
        fs::remove_file(bench.path("log")).unwrap();
        assert_eq!(bench.warm_starts() - warm, u64::from(setting.is_empty()), "{}", bench.status());
        warm = bench.warm_starts();
    }
}

/// The kernel refuses such a file (ENOEXEC), and `execvp` has the shell read it.
#[test]
fn a_script_without_an_interpreter_is_one_of_the_shell() {
    let bench = bench("echo \"$0\" \"$@\"\n");
    let script = bench.path("wrap/clang").display().to_string();
    for setting in ["cold", ""] {
        let by_link = run(&bench, &["bin", "wrap"], setting);
        let by_launcher =
            bench.client().env("HOTSTART_EXEC", setting).args([&script, "-v"]).output().expect("it runs");
        for output in [by_link, by_launcher] {
            assert!(output.status.success(), "{}", told(&output));
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{script} -v\n"));
        }
    }
}

#[test]
fn a_wrapper_without_a_compiler_behind_it_fails() {
    let bench = bench(WRAPPER);
    let output = run(&bench, &["bin", "wrap"], "cold");
    // The system may have a clang of its own.
    let is_behind = ["/usr/bin/clang", "/bin/clang"].iter().any(|path| fs::exists(path).unwrap());
    assert!(is_behind || output.status.code() == Some(127), "{}", told(&output));
    assert_eq!(lines(&bench.path("log")).len(), 1);
}

#[test]
fn a_program_that_calls_itself_by_name_finds_itself() {
    let bench = bench(RECURSIVE);
    fs::create_dir(bench.path("real")).unwrap();
    bench.tool("real/clang");
    let output = clang(&bench, &["bin", "wrap", "real"], ":/usr/bin:/bin").output().expect("it runs");
    let found = format!("{}\n", bench.path("wrap/clang").display());
    assert_eq!(output.stdout, found.as_bytes(), "{}", told(&output));
}

#[test]
fn another_program_of_the_name_is_the_only_one_told_of_it() {
    let bench = bench(WRAPPER);
    for name in ["real", "more"] {
        fs::create_dir(bench.path(name)).unwrap();
    }
    bench.tool("real/clang");
    symlink(bench.path("real/clang"), bench.path("more/clang")).unwrap();
    fs::set_permissions(bench.path("wrap/clang"), fs::Permissions::from_mode(0o644)).unwrap();
    let told_of = |directories: &[&str]| {
        let output = clang(&bench, directories, "").env("HOTSTART_EXEC", "cold").output().expect("it runs");
        assert!(output.status.success(), "{}", told(&output));
        told(&output).contains("HOTSTART_EXEC_AFTER=")
    };
    assert!(!told_of(&["bin", "more", "wrap", "real"]), "one compiler by two paths");
    fs::set_permissions(bench.path("wrap/clang"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(told_of(&["bin", "real", "wrap"]));
}

/// gcc looks for its stages from its own name, along PATH if that is no path. There it would find the link, and nothing
/// beside it. So a link gives it the path, cold and warm.
#[test]
fn a_compiler_behind_a_link_finds_its_own_files() {
    let bench = Bench::starting("fork");
    bench.warm_up(&bench.tool("tool"));
    let path = |rest: &str| format!("{}:{rest}", bench.path("bin").display());
    let own = std::env::var("PATH").expect("a PATH");
    let found = bench.command("/bin/sh".as_ref()).args(["-c", "command -v cc"]).output().expect("sh runs");
    let real = String::from_utf8(found.stdout).expect("a path").trim().to_owned();
    symlink("hotstart-exec", bench.path("bin/cc")).unwrap();
    let ask = |program: &str, setting: &str, question: &str| {
        let mut command = bench.command(program.as_ref());
        command.env("PATH", path(&own)).env("HOTSTART_EXEC", setting).arg(question);
        told(&command.output().expect("it runs"))
    };
    for question in ["-print-search-dirs", "-print-prog-name=cc1", "-print-prog-name=collect2"] {
        let plain = ask(&real, "", question);
        let before = bench.warm_starts();
        assert_eq!(ask("cc", "cold", question), plain);
        assert_eq!(ask("cc", "", question), plain);
        assert_eq!(bench.warm_starts(), before + 1, "{}", bench.status());
    }
}
