//! Tools for which warm starts are not made start cold, with the reason and the right result. One tool only looks odd: LLVM
//! linked in statically.
//!
//! No compiler here is certain to make programs for musl or Go. So these are made by hand, with the mark that identifies
//! them. If the real one is installed, it is tried as well.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Case, Victim, case, compile, start, victim, warm_launcher};
use hotstart_launch::{Launcher, Reason, Via};
use hotstart_model::Status;

const MAIN: &str =
    "#include <stdio.h>\nint main(int n, char **v) { printf(\"%d %s\\n\", n, v[1]); return 5; }";

/// Starts `program` cold, and twice with a launcher that would start it warm. All results must agree. Returns the way of the
/// first of these; the second was the same, or both were warm.
fn as_cold(program: &Path, case: &Case) -> Via {
    let name = program.file_name().unwrap().to_str().unwrap();
    let victim = Victim { dir: tempfile::tempdir().unwrap(), program: program.to_owned() };
    let warm = warm_launcher(&[name]);
    let (expected, _) = start(&Launcher::new(), &victim, case);
    let via = [(); 2].map(|()| {
        let (ran, exit) = start(&warm, &victim, case);
        assert_eq!(ran, expected, "{name}");
        exit.via
    });
    assert!(via[0] == via[1] || via.iter().all(|via| via.is_warm()), "{name}: {via:?}");
    via[0]
}

/// Returns the path of `name`, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    if found.is_none() {
        println!("{name} is not installed: not tried");
    }
    found
}

fn build(dir: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let (source, program) = (dir.join("odd.c"), dir.canonicalize().unwrap().join(name));
    std::fs::write(&source, MAIN).unwrap();
    compile(&source, &program, flags);
    program
}

#[test]
fn linked_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    // glibc's loader under the name of musl's.
    let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"].map(Path::new);
    let loader = loader.into_iter().find(|path| path.exists()).expect("glibc's loader is there");
    std::os::unix::fs::symlink(loader, at("ld-musl-x86_64.so.1")).unwrap();
    let musl = format!("-Wl,--dynamic-linker={}", at("ld-musl-x86_64.so.1").display());
    for (name, flags, reason) in [
        ("static", &["-static"][..], Reason::Static),
        ("static-pie", &["-static-pie"], Reason::Static),
        ("musl", &[musl.as_str()], Reason::ForeignLoader),
    ] {
        let program = build(dir.path(), name, flags);
        assert_eq!(as_cold(&program, &case(&["a"])), Via::Cold(reason), "{name}");
    }
    assert_eq!(as_cold(&own_start(dir.path()), &case(&["a"])), Via::Cold(Reason::OwnStart));
    if installed("musl-gcc").is_some() {
        let out = at("real-musl");
        let built = Command::new("musl-gcc").arg("-o").args([&out, &at("odd.c")]).status().unwrap();
        assert!(built.success());
        assert_eq!(as_cold(&out, &case(&["a"])), Via::Cold(Reason::ForeignLoader));
    }
}

/// Builds a program that uses libc without being started by it.
fn own_start(dir: &Path) -> PathBuf {
    let (source, program) = (dir.join("start.c"), dir.canonicalize().unwrap().join("own-start"));
    std::fs::write(&source, "#include <unistd.h>\nvoid _start(void) { write(1, \"x\\n\", 2); _exit(5); }")
        .unwrap();
    compile(&source, &program, &["-nostartfiles"]);
    program
}

#[test]
fn built_by_go() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("go.c");
    for section in [".go.buildinfo", ".note.go.buildid"] {
        let mark =
            format!("__attribute__((section(\"{section}\"), used)) static const char mark[] = \"go\";");
        std::fs::write(&source, format!("{mark}\n{MAIN}")).unwrap();
        let program = dir.path().canonicalize().unwrap().join("go");
        compile(&source, &program, &[]);
        assert_eq!(as_cold(&program, &case(&["a"])), Via::Cold(Reason::Go), "{section}");
    }
}

#[test]
fn instrumented() {
    let dir = tempfile::tempdir().unwrap();
    for (name, flag) in [
        ("address", "-fsanitize=address"),
        ("undefined", "-fsanitize=undefined"),
        ("thread", "-fsanitize=thread"),
        ("leak", "-fsanitize=leak"),
        ("coverage", "--coverage"),
        ("gprof", "-pg"),
    ] {
        let program = build(dir.path(), name, &[flag, "-Wno-error"]);
        assert_eq!(as_cold(&program, &case(&["a"])), Via::Cold(Reason::Instrumented), "{name}");
    }
    let stripped = dir.path().canonicalize().unwrap().join("stripped");
    assert!(
        Command::new("strip")
            .arg("-o")
            .args([&stripped, &dir.path().join("coverage")])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(as_cold(&stripped, &case(&["a"])), Via::Cold(Reason::Instrumented));
}

/// clang links its run-time libraries in statically, which looks different.
#[test]
fn instrumented_by_clang() {
    let llvm_bin =
        Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/llvm-bin")).output().unwrap();
    let clang = PathBuf::from(String::from_utf8(llvm_bin.stdout).unwrap().trim()).join("clang");
    assert!(clang.is_file(), "no clang beside the LLVM tools; run `make setup`");
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    std::fs::write(at("odd.c"), MAIN).unwrap();
    let mut tried = 0;
    for flags in [
        &["-fprofile-instr-generate", "-fcoverage-mapping"][..],
        &["--coverage"],
        &["-fsanitize=address"],
        &["-fsanitize=undefined"],
    ] {
        let program = at("tool");
        let built =
            Command::new(&clang).args(flags).arg("-o").args([&program, &at("odd.c")]).output().unwrap();
        let said = String::from_utf8_lossy(&built.stderr);
        if !built.status.success() {
            // The run-time libraries are in a separate package.
            assert!(said.contains("libclang_rt"), "{said}");
            println!("{flags:?}: not installed, not tried");
            continue;
        }
        tried += 1;
        assert_eq!(as_cold(&program, &case(&["a"])), Via::Cold(Reason::Instrumented), "{flags:?}");
    }
    println!("{tried} kinds tried");
}

#[test]
fn under_a_debugger() {
    let victim = victim();
    let program = victim.program.to_str().unwrap();
    for (tool, args) in [
        ("gdb", vec!["gdb", "-nx", "--batch", "-ex", "run", "--args", program, "exit", "7"]),
        ("valgrind", vec!["valgrind", "-q", program, "exit", "7"]),
        ("strace", vec!["strace", "-o/dev/null", program, "exit", "7"]),
    ] {
        // This is not the real one: it is recognized by its name.
        let named = victim.dir.path().canonicalize().unwrap().join(tool);
        std::fs::copy(&victim.program, &named).unwrap();
        assert_eq!(as_cold(&named, &case(&["exit", "7"])), Via::Cold(Reason::Debugger));
        let Some(real) = installed(tool) else { continue };
        let mut case = case(&[]);
        case.argv = args.iter().map(|a| (*a).to_owned()).collect();
        case.env.push(("DEBUGINFOD_URLS", String::new()));
        // gdb prints process numbers.
        let victim = Victim { dir: tempfile::tempdir().unwrap(), program: real };
        let (ran, exit) = start(&warm_launcher(&[tool]), &victim, &case);
        assert_eq!(exit.via, Via::Cold(Reason::Debugger), "{ran:?}");
        let ended = if tool == "gdb" {
            ran.stdout.contains("exited with code 07")
        } else {
            ran.status == Status::Exited(7)
        };
        assert!(ended, "{ran:?}");
    }
}

/// clang-format from PyPI has LLVM and the C++ library linked in, and was built elsewhere and long ago.
#[test]
fn llvm_linked_in_statically_is_warm() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os("HOTSTART_LIT_PYTHON").map_or(default, PathBuf::from);
    let find = "import clang_format, os; print(os.path.join(os.path.dirname(clang_format.__file__), 'data/bin/clang-format'))";
    let found = Command::new(&python).args(["-c", find]).output();
    let found = found.unwrap_or_else(|error| panic!("{}: {error}; run `make venv`", python.display()));
    let program = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    assert!(program.is_file(), "no clang-format in {}; run `make venv`", python.display());
    let case = Case {
        input: "int  main( ){return   0 ;}\nstruct S{int a,b;} ;\n",
        argv: vec!["clang-format".into(), "--style=LLVM".into()],
        ..case(&[])
    };
    assert_eq!(as_cold(&program, &case), Via::Fork);
    let missing = Case { argv: vec!["clang-format".into(), "absent.c".into()], ..case.clone() };
    assert_eq!(as_cold(&program, &missing), Via::Fork);
}

/// clang-format has this, too: an empty entry of RPATH is the working directory.
#[test]
fn a_library_in_the_working_directory_keeps_a_start_cold() {
    let victim = victim();
    let dir = victim.dir.path().canonicalize().unwrap();
    let library = |value: u32, path: &Path| {
        std::fs::write(dir.join("lib.c"), format!("int value(void) {{ return {value}; }}")).unwrap();
        compile(&dir.join("lib.c"), path, &["-shared", "-fPIC", "-Wl,-soname,libvalue.so"]);
    };
    std::fs::create_dir(dir.join("lib")).unwrap();
    library(1, &dir.join("lib/libvalue.so"));
    std::fs::write(dir.join("user.c"), "int value(void); int main(void) { return value(); }").unwrap();
    let flags = [&format!("-Wl,-rpath,:{}/lib", dir.display()), "-Wl,--no-as-needed", "lib/libvalue.so"];
    let library_path = dir.join(flags[2]);
    compile(&dir.join("user.c"), &victim.program, &[flags[0], flags[1], library_path.to_str().unwrap()]);
    let warm = warm_launcher(&["victim"]);
    let run = || {
        let (ran, exit) = start(&warm, &victim, &case(&[]));
        (ran.status, exit.via)
    };
    assert_eq!(run(), (Status::Exited(1), Via::Fork));
    library(2, &dir.join("libvalue.so"));
    assert_eq!(run(), (Status::Exited(2), Via::Cold(Reason::RelativePath)));
    std::fs::remove_file(dir.join("libvalue.so")).unwrap();
    let (status, via) = run();
    assert!(status == Status::Exited(1) && via.is_warm(), "{via:?}");
}
