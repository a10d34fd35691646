//! Where ld.so looks for a function depends on the object that calls it: the global scope, a library's own, or both. The runtime binds
//! functions before `main`, and keeps what ld.so has bound in a run; it must never choose another one than ld.so does.

mod common;

use std::path::Path;

use common::{Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::{Choice, Launcher, OnDoubt, Policy};
use hotstart_model::Status;

const ROUNDS: usize = 8;

/// A library from a line of C.
fn library(dir: &Path, name: &str, source: &str, flags: &[&str]) -> String {
    let (file, out) = (dir.join(name).with_extension("c"), dir.join(name));
    std::fs::write(&file, source).unwrap();
    compile(&file, &out, &[&["-shared", "-fPIC", "-O0", "-Wl,-z,lazy"], flags].concat());
    out.display().to_string()
}

fn program(dir: tempfile::TempDir, source: &str, linked: &str, flags: &[&str]) -> Victim {
    let path = dir.path().canonicalize().unwrap();
    let (file, program) = (path.join("victim.c"), path.join("victim"));
    std::fs::write(&file, source).unwrap();
    let shared = ["-O0", "-Wl,--no-as-needed", linked, "-Wl,-z,lazy", "-ldl"];
    compile(&file, &program, &[&shared, flags].concat());
    Victim { dir, program }
}

fn launchers() -> [Launcher; 3] {
    let choice = Choice::Only(vec!["victim".to_owned()]);
    let unaudited = Policy { choice, audit_one_in: 1000, on_doubt: OnDoubt::Bear, ..Policy::default() };
    [warm_launcher(&["victim"]), resetting_launcher(&["victim"]), Launcher::new().with_policy(unaudited)]
}

fn compare(victim: &Victim, ways: &[&str]) {
    for launcher in launchers() {
        for round in 0..ROUNDS {
            for way in ways {
                let (cold, _) = start(&Launcher::new(), victim, &case(&[way]));
                let (ran, exit) = start(&launcher, victim, &case(&[way]));
                assert!(matches!(cold.status, Status::Exited(_)), "{cold:?}");
                assert!(exit.via.is_warm(), "{way}: {:?}", exit.via);
                assert_eq!(ran, cold, "{way} in round {round}, {:?}", exit.via);
            }
        }
    }
}

#[test]
fn a_library_with_a_scope_of_its_own_is_bound_there() {
    for (mode, flag) in [("RTLD_DEEPBIND", ""), ("RTLD_LAZY", "-Wl,-Bsymbolic"), ("RTLD_LAZY", "-g")] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let base =
            library(&path, "libbase.so", "int helper(void) { return 1; }", &["-Wl,-soname,libbase.so"]);
        let flag = if flag.is_empty() { "-g" } else { flag };
        let source = "int helper(void) { return 2; } int plug(void) { return helper(); }";
        let plug = library(&path, "plug.so", source, &[flag]);
        let source = format!(
            "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint helper(void); static int (*plug)(void);\n\
             __attribute__((constructor)) static void open(void) {{ \
             plug = dlsym(dlopen(\"{plug}\", RTLD_LAZY | {mode}), \"plug\"); }}\n\
             int main(void) {{ printf(\"%d %d\\n\", helper(), plug()); return 0; }}"
        );
        let rpath = format!("-Wl,-rpath,{}", path.display());
        compare(&program(dir, &source, &base, &[&rpath]), &["x"]);
    }
}

/// A library that is made global in a run answers in that run, and in no other.
#[test]
fn a_library_that_is_promoted_in_a_run_is_found_in_that_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let one = library(&path, "one.so", "int which(void) { return 1; }", &[]);
    let two = library(&path, "two.so", "int which(void) { return 2; }", &[]);
    let source = "int which(void); int use(void) { return which(); }";
    let user = library(&path, "libuser.so", source, &["-Wl,-soname,libuser.so"]);
    let source = format!(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint use(void);\n\
         __attribute__((constructor)) static void open(void) {{ \
         dlopen(\"{one}\", RTLD_LAZY); dlopen(\"{two}\", RTLD_LAZY); }}\n\
         int main(int argc, char **argv) {{ \
         dlopen(argc > 1 && *argv[1] == '1' ? \"{one}\" : \"{two}\", RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL); \
         printf(\"%d\\n\", use()); return 0; }}"
    );
    let rpath = format!("-Wl,-rpath,{}", path.display());
    let flags = [&rpath, "-Wl,--unresolved-symbols=ignore-in-shared-libs"];
    compare(&program(dir, &source, &user, &flags), &["1", "2"]);
}

/// A run writes to a slot that ld.so would have bound to something else.
#[test]
fn what_a_run_has_bound_itself_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let source = "#define _GNU_SOURCE\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n#include <link.h>\n\
         #pragma weak umask\nmode_t umask(mode_t);\n\
         int main(int argc, char **argv) { \
         const ElfW(Rela) *slot = 0; const ElfW(Sym) *symbols = 0; const char *names = 0; size_t size = 0;\n\
         for (const ElfW(Dyn) *at = _DYNAMIC; at->d_tag; at++) {\n\
         if (at->d_tag == DT_JMPREL) slot = (void *)at->d_un.d_ptr;\n\
         if (at->d_tag == DT_PLTRELSZ) size = at->d_un.d_val / sizeof *slot;\n\
         if (at->d_tag == DT_SYMTAB) symbols = (void *)at->d_un.d_ptr;\n\
         if (at->d_tag == DT_STRTAB) names = (void *)at->d_un.d_ptr; }\n\
         if (argc > 1 && *argv[1] == 'w') for (size_t i = 0; i < size; i++) {\n\
         if (!strcmp(names + symbols[ELF64_R_SYM(slot[i].r_info)].st_name, \"umask\"))\n\
         *(void **)(_r_debug.r_map->l_addr + slot[i].r_offset) = (void *)alarm; }\n\
         const unsigned mask = umask(0); printf(\"%o\\n\", mask); return 0; }";
    compare(&program(dir, source, "-lm", &["-Wl,-z,norelro"]), &["w", "x"]);
}
