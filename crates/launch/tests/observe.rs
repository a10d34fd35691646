//! The actions of constructors. A tool whose constructors look at inputs that vary from start to start is cold, for the
//! matching reason. One whose inputs can be tracked is warm, and correct when they change.

mod common;
#[path = "common/looks.rs"]
mod looks;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use common::{
    Case, RESETS, Victim, await_age, case, compile, plain_spec, resetting_launcher, start, warm_launcher,
};
use hotstart_launch::{Choice, EnvBlock, Group, Launcher, Limit, Policy, Reason, Resource, Spec, Via};
use hotstart_model::{Environment, Status};
use looks::{Looks, SOURCE, built, launchers, looks};

#[test]
fn what_differs_from_start_to_start_keeps_a_tool_cold() {
    let expected = [
        ("relative", Reason::RelativePath),
        ("random_device", Reason::ReadsClock),
        ("status", Reason::ReadsSystem),
        ("indirect", Reason::ReadsSystem),
        ("random_bytes", Reason::ReadsClock),
        ("kept_byte", Reason::ReadsClock),
        ("random_byte", Reason::ReadsClock),
        ("timespec", Reason::ReadsClock),
        ("used_time", Reason::ReadsClock),
        ("process", Reason::ReadsIdentity),
        ("thread_number", Reason::ReadsIdentity),
        ("group", Reason::ReadsIdentity),
        ("mask", Reason::ConstructorCall),
        ("terminal", Reason::Stdio),
        ("input", Reason::Stdio),
        ("streams", Reason::Stdio),
        ("stream_mode", Reason::ConstructorsDiffer),
        ("stream_empty", Reason::ConstructorsDiffer),
        ("stream_age", Reason::ConstructorsDiffer),
        ("stream_device", Reason::ConstructorsDiffer),
        ("stream_times", Reason::ConstructorsDiffer),
        ("stream_read", Reason::ConstructorsDiffer),
        ("stream_and_file", Reason::Stdio),
        ("directory", Reason::ReadsDirectory),
        ("variables", Reason::ReadsEnvironment),
        ("argument", Reason::KeepsArguments),
        ("call_with_argument", Reason::KeepsArguments),
        ("eighty_files", Reason::Limits),
        ("open_pages", Reason::KeepsArguments),
        ("write_argument", Reason::KeepsArguments),
        ("write_variable", Reason::KeepsArguments),
        ("odd_variable", Reason::ReadsEnvironment),
        ("through_proc", Reason::ReadsSystem),
        ("count_others", Reason::ConstructorsDiffer),
        ("count_some", Reason::ConstructorsDiffer),
        ("count_most", Reason::ConstructorsDiffer),
        ("count_away", Reason::KeepsArguments),
        ("count_signal", Reason::ConstructorsDiffer),
        ("count_mask", Reason::ConstructorsDiffer),
        #[cfg(target_arch = "x86_64")]
        ("count_rounding", Reason::ConstructorsDiffer),
        #[cfg(target_arch = "x86_64")]
        ("count_x87", Reason::ConstructorsDiffer),
        ("libc_table", Reason::ConstructorsDiffer),
        ("free_page", Reason::ConstructorCall),
        ("moved_page", Reason::ConstructorCall),
        ("log_line", Reason::WritesFiles),
        ("make_directory", Reason::WritesFiles),
        ("child", Reason::Threads),
        ("own_signal", Reason::ReadsIdentity),
        ("lock_owner", Reason::ConstructorsDiffer),
        ("lock_code", Reason::ConstructorsDiffer),
        ("random_code", Reason::ConstructorsDiffer),
        ("unknown", Reason::ConstructorCall),
        ("connection", Reason::ConstructorCall),
        ("runtimes_file", Reason::ReadsSystem),
        ("foreign_area", Reason::ConstructorCall),
        ("foreign_number", Reason::ConstructorCall),
        ("long_arguments", Reason::ConstructorsDiffer),
        ("packed_argument", Reason::ConstructorsDiffer),
        ("tagged_argument", Reason::ConstructorsDiffer),
        ("relative_list", Reason::KeepsArguments),
        #[cfg(target_arch = "x86_64")]
        ("list_in_key", Reason::KeepsArguments),
        ("list_and_number_at_exit", Reason::KeepsArguments),
        ("robust_list", Reason::ConstructorCall),
        ("sealed_argument", Reason::KeepsArguments),
        ("list_at_exit", Reason::KeepsArguments),
        ("name_for_logs", Reason::KeepsArguments),
        ("last_variable", Reason::ConstructorsDiffer),
        ("locked_page", Reason::ConstructorCall),
        ("eighty_files", Reason::Limits),
        ("wiped_random", Reason::KeepsArguments),
        ("patched_libc", Reason::ConstructorCall),
        ("own_key", Reason::ReadsClock),
        ("kernels_time", Reason::ReadsClock),
        ("counter", Reason::ReadsClock),
        #[cfg(target_arch = "x86_64")]
        ("old_call", Reason::NotObserved),
    ];
    for (look, reason) in expected {
        let tool = looks(look);
        for warm in launchers() {
            for _ in 0..2 {
                let (_, _, via) = tool.start_with(&warm, &case(&["one"]));
                assert_eq!(via, Via::Cold(reason), "{look}");
            }
            let said = warm.statistics().tools.remove(0).constructors;
            assert!(said.is_some_and(|(why, detail)| why == reason && !detail.is_empty()), "{look}");
        }
    }
}

#[test]
fn random_numbers_of_the_processor_are_noticed_by_their_difference() {
    #[cfg(target_arch = "x86_64")]
    let has_them = std::arch::is_x86_feature_detected!("rdrand");
    #[cfg(target_arch = "aarch64")]
    let has_them = std::arch::is_aarch64_feature_detected!("rand");
    if !has_them {
        return;
    }
    let tool = looks("random_instruction");
    for warm in launchers() {
        let (_, _, via) = tool.start_with(&warm, &case(&[]));
        assert_eq!(via, Via::Cold(Reason::ConstructorsDiffer));
    }
}

/// libc reads the number from memory that the kernel writes, so no call shows it.
#[test]
fn the_processor_that_a_tool_runs_on_is_noticed_by_its_difference() {
    if std::thread::available_parallelism().map_or(1, |count| count.get()) == 1 {
        return;
    }
    let tool = looks("processor");
    let (_, _, via) = tool.start_with(&warm_launcher(&["before"]), &case(&[]));
    assert!(matches!(via, Via::Cold(Reason::ConstructorsDiffer | Reason::ReadsSystem)), "{via:?}");
}

#[test]
fn what_is_the_same_at_every_start_is_warm() {
    for look in ["nothing", "computes", "kernels_library", "probed_page", "frame_part", "stream_and_nothing"]
    {
        let tool = looks(look);
        for warm in launchers() {
            for words in [&["before"][..], &["before", "a"], &["before", "b", "c"]] {
                assert!(tool.agrees(&warm, &case(words)).is_warm(), "{look}");
            }
        }
    }
}

/// glibc asks so before main since 2.41. Random bytes of the same function are refused, an answer that outlives its caller's frame, and a
/// question of a constructor's, which would be a fault in a zygote.
#[test]
fn how_large_a_state_of_the_kernels_random_function_is_is_the_same_at_every_start() {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/resolves.c"));
    for question in 0..4 {
        let tool = built(source, &[&format!("-DQUESTION={question}")]);
        let (answer, _) = start(&Launcher::new(), &tool.victim, &case(&[]));
        // Before Linux 6.11 there is no such function, and nothing is asked.
        let is_asked = answer.stdout != "0\n";
        for warm in launchers() {
            for words in [&["before"][..], &["before", "a"]] {
                let (_, _, via) = tool.start_with(&warm, &case(words));
                if is_asked && question > 0 {
                    assert_eq!(via, Via::Cold(Reason::ReadsClock), "{question}");
                } else {
                    assert!(tool.agrees(&warm, &case(words)).is_warm(), "{question}: {via:?}");
                }
            }
        }
    }
}

/// What the constructor is told of a stream is what each start's stream is. Files with content differ in their size.
#[test]
fn a_stream_with_content_is_no_empty_one() {
    let tool = looks("large_input");
    for warm in launchers() {
        for input in ["", "content", "", "content"] {
            let case = Case { input, ..case(&["before"]) };
            let via = tool.agrees(&warm, &case);
            assert_eq!(via.is_warm(), input.is_empty(), "{via:?}");
        }
    }
}

/// Rust's library keeps the number in this way, and the argument list as well.
#[test]
fn the_number_of_arguments_that_a_constructor_keeps_is_that_of_each_start() {
    let many: Vec<&str> = std::iter::repeat_n("x", 300).collect();
    for look in ["count", "count_twice", "count_for_libc", "list"] {
        let tool = looks(look);
        for warm in launchers() {
            for round in 0..20 {
                let words = [&[][..], &["a"], &["b", "c"], &many][round % 4];
                let via = tool.agrees(&warm, &case(words));
                assert!(via.is_warm(), "{look} {round}: {via:?}");
            }
            let tool = warm.statistics().tools.remove(0);
            assert!((tool.only_forked.is_none() || !RESETS) && tool.retired.is_empty(), "{tool:?}");
        }
    }
}

/// Which reason it is depends on where the stack lies in each run.
#[test]
fn what_is_made_of_an_address_in_another_way_keeps_a_tool_cold() {
    let kinds = [
        "variables_part",
        "auxiliary_part",
        "distance_part",
        "number_part",
        "list_shifted",
        "argument_shifted",
        "argument_upper",
        "number_upper",
        "variables_upper",
        "list_low",
        "auxiliary_vector",
    ];
    for look in kinds {
        let tool = looks(look);
        for warm in launchers() {
            let via = tool.agrees(&warm, &case(&["one"]));
            let is_told = matches!(via, Via::Cold(Reason::ConstructorsDiffer | Reason::KeepsArguments));
            assert!(is_told, "{look}: {via:?}");
        }
    }
}

/// Two bytes of the list's address, by chance, are in opt's data where it is linked with static libraries. A tool may put the address
/// together again.
#[test]
fn a_part_of_the_lists_address_leads_to_the_list_of_each_start() {
    for look in
        ["list_part", "list_end", "list_upper", "list_over", "list_half", "list_beyond", "list_aligned"]
    {
        let tool = looks(look);
        for warm in launchers() {
            for round in 0..20 {
                let words = [&["a"][..], &["b", "c"], &["d", "e", "f"]][round % 3];
                let via = tool.agrees(&warm, &case(words));
                assert!(via.is_warm(), "{look} {round}: {via:?}");
            }
        }
    }
}

/// Otherwise the number that the tool keeps could be taken for libc's own.
/// hotstart's runtime would call them, at other times than a fresh process.
#[test]
fn functions_of_libcs_of_its_own_keep_a_tool_cold() {
    let source = Path::new(SOURCE).with_file_name("functions.c");
    let flags = ["-rdynamic", "-fno-builtin", "-O0"];
    let own = Via::Cold(Reason::LibcFunctions);
    // Only resets move the break.
    for (function, is_needed) in [("STRLEN", true), ("MEMSET", true), ("SBRK", RESETS), ("ABS", false)] {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        let own_flag = format!("-DOWN_{function}");
        compile(&source, &at("own"), &[&flags[..], &[&own_flag]].concat());
        compile(&source, &at("plain"), &flags);
        compile(
            &source,
            &at("preloaded.so"),
            &[&flags[..], &[&own_flag, "-DPRELOADED", "-shared", "-fPIC"]].concat(),
        );
        let mut preloading = case(&[]);
        preloading.env.push(("LD_PRELOAD", at("preloaded.so").display().to_string()));
        for (name, case) in [("own", case(&[])), ("plain", preloading)] {
            let tool = Victim { dir: tempfile::tempdir().unwrap(), program: at(name) };
            for launcher in [warm_launcher(&[name]), resetting_launcher(&[name])] {
                for _ in 0..3 {
                    let (ran, exit) = start(&launcher, &tool, &case);
                    assert_eq!(ran.stdout, "0\n", "{name} {function}: {:?}", exit.via);
                    assert_eq!(exit.via == own, is_needed, "{name} {function}: {:?}", exit.via);
                    assert!(exit.via == own || exit.via.is_warm(), "{name} {function}: {:?}", exit.via);
                }
            }
        }
    }
}

#[test]
fn a_constructor_that_keeps_the_address_of_an_argument_keeps_a_tool_cold() {
    for look in ["own_name", "second_argument", "thread_argument", "exit_argument"] {
        let tool = looks(look);
        for warm in launchers() {
            let via = tool.agrees(&warm, &case(&["one"]));
            assert_eq!(via, Via::Cold(Reason::KeepsArguments), "{look}");
        }
    }
}

#[test]
fn a_tool_is_not_taken_for_the_loader_by_its_name() {
    for (look, is_warm) in [("count", true), ("count_others", false), ("count_equal", false)] {
        let mut tool = looks(look);
        let renamed = tool.victim.program.with_file_name("ld-before");
        std::fs::rename(&tool.victim.program, &renamed).unwrap();
        await_age(&renamed);
        tool.victim.program = renamed;
        for warm in [warm_launcher(&["ld-before"]), resetting_launcher(&["ld-before"])] {
            for words in [&["a", "b"][..], &["a"]] {
                assert_eq!(tool.agrees(&warm, &case(words)).is_warm(), is_warm, "{look}");
            }
        }
    }
}

/// ld.so passes its own record of the arguments to a library that `main` opens.
#[test]
fn the_constructor_of_a_library_that_is_opened_later_has_the_arguments_of_the_start() {
    let source = Path::new(SOURCE).with_file_name("plugin.c");
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().canonicalize().unwrap().join(name);
    compile(&source, &at("plugin.so"), &["-DPLUGIN", "-shared", "-fPIC"]);
    let path = format!("-DPLUGIN_PATH=\"{}\"", at("plugin.so").display());
    compile(&source, &at("opens"), &[&path]);
    let tool = Victim { dir: tempfile::tempdir().unwrap(), program: at("opens") };
    for warm in [warm_launcher(&["opens"]), resetting_launcher(&["opens"])] {
        for round in 0..12 {
            let words = [&["a"][..], &["a", "b"], &[]][round % 3];
            let (cold, _) = start(&Launcher::new(), &tool, &case(words));
            let (ran, exit) = start(&warm, &tool, &case(words));
            assert_eq!((cold.status, &ran.stdout), (Status::Exited(0), &cold.stdout), "{round}");
            assert!(exit.via.is_warm(), "{round}: {:?}", exit.via);
        }
    }
}

/// A profiler puts its own function into a slot of the linkage table, and main is to call that. Nor is a name looked up that nobody has:
/// the loader's message would lie on the heap.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_a_constructor_has_put_into_a_linkage_table_stays() {
    let source = Path::new(SOURCE).with_file_name("hooks.c");
    let home = tempfile::tempdir().unwrap();
    let program = home.path().canonicalize().unwrap().join("hooks");
    let place = program.parent().unwrap().display().to_string();
    compile(
        &source,
        &program.with_file_name("libhooks.so"),
        &["-DLIBRARY", "-shared", "-fPIC", "-Wl,-z,lazy"],
    );
    let (search, run_path) = (format!("-L{place}"), format!("-Wl,-rpath,{place}"));
    let lazily = ["-Wl,-z,lazy", "-Wl,--unresolved-symbols=ignore-in-shared-libs"];
    compile(
        &source,
        &program,
        &[&lazily[..], &[&search, &run_path, "-Wl,--no-as-needed", "-lhooks"]].concat(),
    );
    let tool = Victim { dir: tempfile::tempdir().unwrap(), program };
    for warm in [warm_launcher(&["hooks"]), resetting_launcher(&["hooks"])] {
        for round in 0..8 {
            // It takes the hook out again in some of the runs.
            let words = [&["hooked"][..], &["unhook"], &["hooked"]][round % 3];
            let (cold, _) = start(&Launcher::new(), &tool, &case(words));
            let (ran, exit) = start(&warm, &tool, &case(words));
            assert_eq!((&ran.stdout, cold.status), (&cold.stdout, Status::Exited(0)), "{round}");
            assert!(exit.via.is_warm(), "{round}: {:?}", exit.via);
        }
    }
}

/// Observations with two numbers prove nothing about a third one, with which a constructor may compare.
#[test]
fn a_constructor_that_tests_for_one_number_of_arguments_is_found_out() {
    // For each: how many first starts have another number than the compared one, and whether the result then comes from the
    // cache.
    for (look, others, kept) in ["count_equal", "count_file"]
        .iter()
        .flat_map(|look| [(look, 0, false), (look, 3, false), (look, 3, true)])
    {
        let tool = looks(look);
        let cache = tempfile::tempdir().unwrap();
        let launcher = || {
            let choice = Choice::Only(vec!["before".into()]);
            let cache = kept.then(|| cache.path().join("observed"));
            let mut launcher = Launcher::new().with_policy(Policy { choice, cache, ..Policy::default() });
            launcher.prepare_warm();
            launcher
        };
        let mut warm = launcher();
        for round in 0..others {
            // With a larger number the compared one would be observed, too.
            let words = [&[][..], &["a"]][round % 2];
            let via = tool.agrees(&warm, &case(words));
            assert!(via.is_warm(), "{look} {round}: {via:?}");
            if kept {
                warm = launcher();
            }
        }
        for _ in 0..2 {
            if kept {
                warm = launcher();
            }
            let via = tool.agrees(&warm, &case(&["a", "b"]));
            assert_eq!(via, Via::Cold(Reason::ConstructorsDiffer), "{look}");
        }
        let said = warm.statistics().tools.remove(0).constructors;
        assert!(said.is_some_and(|(_, detail)| !detail.is_empty()), "{look}");
    }
}

#[test]
fn limits_and_processors_are_in_the_key() {
    let tool = looks("limit");
    for warm in launchers() {
        for soft in [100, 100, 50, 100, 50] {
            let limit = Limit { resource: Resource::OpenFiles, soft: Some(soft), hard: Some(soft) };
            let case = Case { limits: vec![limit], ..case(&[]) };
            // A zygote has the runner's limits.
            let (_, exit) = start(&warm, &tool.victim, &case);
            assert_eq!(exit.via, Via::Cold(Reason::Limits));
        }
        assert!(tool.agrees(&warm, &case(&[])).is_warm());
    }
    let tool = looks("processors");
    for warm in launchers() {
        assert!(tool.agrees(&warm, &case(&[])).is_warm());
    }
}

/// Returns the tool's output with `error` as its standard error.
fn says(launcher: &Launcher, tool: &Looks, error: BorrowedFd<'_>) -> (String, Via) {
    let out_path = tool.victim.dir.path().join("out");
    let (null, out) = (File::open("/dev/null").unwrap(), File::create(&out_path).unwrap());
    let spec =
        plain_spec(&tool.victim.program, &["before"], Path::new("/"), [null.as_fd(), out.as_fd(), error]);
    let spec = Spec { env: EnvBlock::new(&Environment::new()), ..spec };
    let exit = launcher.start(&spec, &Group::new()).unwrap().wait();
    (std::fs::read_to_string(out_path).unwrap(), exit.via)
}

#[test]
fn standard_streams_that_are_looked_at_are_in_the_key_by_their_kind() {
    use std::io::Write;
    let tool = looks("stream");
    let null = File::options().write(true).open("/dev/null").unwrap();
    let (_reader, pipe) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = tempfile::tempfile().unwrap();
    let mut written = tempfile::tempfile().unwrap();
    written.write_all(b"something").unwrap();
    for warm in launchers() {
        for _ in 0..2 {
            for error in [null.as_fd(), pipe.as_fd(), socket.as_fd(), file.as_fd()] {
                let ((expected, _), (said, via)) =
                    (says(&Launcher::new(), &tool, error), says(&warm, &tool, error));
                let found = || warm.statistics().tools.remove(0).constructors;
                assert!(said == expected && via.is_warm(), "{said} {expected} {via:?} {:?}", found());
            }
            let (said, via) = says(&warm, &tool, written.as_fd());
            assert_eq!(
                (said, via),
                (says(&Launcher::new(), &tool, written.as_fd()).0, Via::Cold(Reason::LooksAtStream))
            );
        }
    }
}

#[test]
fn a_variable_that_is_asked_for_is_in_the_key_whoever_asks() {
    let tool = looks("variable_of_libc");
    for warm in launchers() {
        let mode = |mode: &str| vec![("MODE", mode.to_owned()), ("MODEL", "x".into())];
        for env in [mode("1"), mode("1"), mode("2"), mode("1"), Vec::new()] {
            let via = tool.agrees(&warm, &Case { env, ..case(&[]) });
            // aarch64's C library reads a value from a multiple of 16 bytes on, which may lie in the string before.
            let is_read_too_far = cfg!(target_arch = "aarch64") && via == Via::Cold(Reason::KeepsArguments);
            let found = || warm.statistics().tools.remove(0).constructors;
            assert!(via.is_warm() || is_read_too_far, "{via:?} {:?}", found());
        }
    }
}

#[test]
fn a_constructor_that_faults_is_cold_and_faults() {
    let tool = looks("fault");
    let (expected, _) = start(&Launcher::new(), &tool.victim, &case(&[]));
    let (ran, exit) = start(&warm_launcher(&["before"]), &tool.victim, &case(&[]));
    assert!(matches!(ran.status, Status::Signaled(_)));
    assert_eq!((ran, exit.via), (expected, Via::Cold(Reason::Signals)));
}

#[test]
fn what_was_observed_is_kept_for_the_next_runner() {
    let dir = tempfile::tempdir().unwrap();
    let launcher = |cache: &Path| {
        let choice = Choice::Only(vec!["before".to_owned()]);
        Launcher::new().with_policy(Policy { choice, cache: Some(cache.into()), ..Policy::default() })
    };
    let copy = |from: &Path, to: &Path| {
        std::fs::create_dir(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    for (look, is_warm) in [("config", true), ("process", false)] {
        let tool = looks(look);
        let at = |name: &str| dir.path().join(format!("{look}-{name}"));
        // Each runner has a copy of the first one's cache, because a process remembers its own results.
        let run = |name: &str| {
            let warm = launcher(&at(name));
            let (cold, ran, via) = tool.start_with(&warm, &case(&[]));
            assert!(!is_warm || cold == ran);
            assert_eq!(via.is_warm(), is_warm, "{look} {name}: {via:?}");
            warm.statistics().tools.remove(0).observed
        };
        assert_eq!(run("first"), 1);
        copy(&at("first"), &at("second"));
        assert_eq!(run("second"), 0);
        copy(&at("first"), &at("damaged"));
        for entry in std::fs::read_dir(at("damaged")).unwrap().map(Result::unwrap) {
            std::fs::write(entry.path(), "damaged").unwrap();
        }
        assert_eq!(run("damaged"), 1);
        std::fs::write(at("file"), "").unwrap();
        assert_eq!(run("file"), 1);
        if is_warm {
            std::fs::write(&tool.watched, "changed").unwrap();
            await_age(&tool.watched);
            copy(&at("first"), &at("stale"));
            assert_eq!(run("stale"), 1);
        }
    }
}
