//! The number of zygotes: the memory that they may own together, the order of eviction, and replacement.

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{KINDS, Victim, case, compile, processes_of, start};
use hotstart_launch::{Choice, Launcher, Policy, Reason, ToolStatistics, Via};
use hotstart_model::Status;

const MIB: u64 = 1 << 20;
/// Owns 8 MiB before `main`, asks for a variable, and prints its stack's address.
const LARGE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char mode[16];
char *block;
__attribute__((constructor)) static void fill(void)
{
    const char *value = getenv("MODE");
    snprintf(mode, sizeof mode, "%s", value ? value : "");
    memset(block = malloc(8 << 20), 1, 8 << 20);
}
int main(int argc, char **argv)
{
    printf("%p %s\n", (void *)__builtin_frame_address(0), mode);
    return argc > 9 && !argv;
}
"#;

/// Tools with different names and the same content.
struct Tools {
    dir: tempfile::TempDir,
    launcher: Launcher,
}

fn tools(names: &[&str], policy: Policy) -> Tools {
    tools_of(LARGE, names, policy)
}

fn tools_of(source: &str, names: &[&str], policy: Policy) -> Tools {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tool.c"), source).unwrap();
    for name in names {
        compile(&dir.path().join("tool.c"), &dir.path().join(name), &[]);
    }
    Tools { dir, launcher: Launcher::new().with_policy(policy) }
}

fn named(names: &[&str], memory: u64) -> Policy {
    let choice = Choice::Only(names.iter().map(|n| n.to_string()).collect());
    Policy { choice, memory, zygotes_per_tool: 2, resets: false, ..Policy::default() }
}

impl Tools {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Starts a tool. Returns its output, and how it was started.
    fn start(&self, name: &str, mode: &str) -> (String, Via) {
        let victim = Victim { dir: tempfile::tempdir().unwrap(), program: self.path(name) };
        let mut case = case(&[]);
        if !mode.is_empty() {
            case.env.push(("MODE", mode.to_owned()));
        }
        let (ran, exit) = start(&self.launcher, &victim, &case);
        assert_eq!(ran.status, Status::Exited(0));
        assert!(ran.stdout.ends_with(&format!(" {mode}\n")), "{ran:?}");
        (ran.stdout, exit.via)
    }

    /// Waits until there are zygotes of just these tools. Dropped zygotes end a little later.
    fn await_zygotes(&self, expected: &[(&str, usize)]) {
        let until = Instant::now() + Duration::from_secs(20);
        let counts = || expected.iter().map(|(n, _)| processes_of(&self.path(n)).len()).collect::<Vec<_>>();
        let wanted: Vec<_> = expected.iter().map(|(_, count)| *count).collect();
        while counts() != wanted {
            assert!(Instant::now() < until, "{:?} of {expected:?}", counts());
            std::thread::yield_now();
        }
    }

    fn statistics(&self, name: &str) -> ToolStatistics {
        let path = self.path(name);
        self.launcher.statistics().tools.into_iter().find(|t| t.program == path).expect("it was started")
    }
}

#[test]
fn the_zygote_not_used_for_longest_goes_first() {
    let names = ["a", "b", "c"];
    let tools = tools(&names, named(&names, 20 * MIB));
    let all_warm = |order: &str| {
        order.chars().for_each(|name| assert_eq!(tools.start(&name.to_string(), "").1, Via::Fork));
    };
    all_warm("ab");
    tools.await_zygotes(&[("a", 1), ("b", 1), ("c", 0)]);
    all_warm("c");
    tools.await_zygotes(&[("a", 0), ("b", 1), ("c", 1)]);
    all_warm("bcba");
    tools.await_zygotes(&[("a", 1), ("b", 1), ("c", 0)]);
    assert_eq!(["a", "b", "c"].map(|name| tools.statistics(name).zygotes), [2, 1, 1]);
}

#[test]
fn workers_are_counted_and_dropped_as_zygotes_are() {
    let names = ["a", "b"];
    let tools = tools(&names, Policy { resets: true, ..named(&names, 28 * MIB) });
    for name in ["a", "a", "b", "b"] {
        assert_ne!(tools.start(name, "").1, Via::Cold(Reason::Memory));
    }
    // A persistent process owns its memory twice: its current state, and its snapshot.
    tools.await_zygotes(&[("a", 0), ("b", 2)]);
    assert!(tools.statistics("b").resets > 0);
}

#[test]
fn a_tool_larger_than_the_budget_is_cold_and_says_so() {
    let tools = tools(&["a"], named(&["a"], 4 * MIB));
    for _ in 0..3 {
        assert_eq!(tools.start("a", "").1, Via::Cold(Reason::Memory));
    }
    tools.await_zygotes(&[("a", 0)]);
}

#[test]
fn zygotes_dropped_for_others_of_their_tool_are_not_counted_for_ever() {
    let tools = tools(&["other", "many"], named(&["other", "many"], 36 * MIB));
    tools.start("other", "");
    for turn in 0..12 {
        assert_eq!(tools.start("many", &format!("mode-{turn}")).1, Via::Fork);
    }
    assert_eq!(tools.statistics("many").zygotes, 12, "each mode has its own key");
    tools.await_zygotes(&[("other", 1), ("many", 2)]);
    assert_eq!(tools.start("other", "").1, Via::Fork);
    assert_eq!(tools.statistics("other").zygotes, 1);
}

#[test]
fn tools_that_push_each_other_out_pay_anew() {
    let policy = Policy { choice: Choice::Auto { after: 2 }, ..named(&[], 12 * MIB) };
    let tools = tools(&["a", "b"], policy);
    for _ in 0..12 {
        tools.start("a", "");
        tools.start("b", "");
    }
    for name in ["a", "b"] {
        let counts = tools.statistics(name);
        assert!(counts.zygotes >= 2 && counts.zygotes <= 4, "one in three starts at most: {counts:?}");
        assert_eq!(counts.cold.keys().collect::<Vec<_>>(), [&Reason::FewStarts]);
    }
}

#[test]
fn an_eager_choice_is_so_for_the_first_key_only() {
    let tools = tools(&["a"], Policy { choice: Choice::Eager, ..named(&[], 512 * MIB) });
    let few = Via::Cold(Reason::FewStarts);
    assert_eq!(tools.start("a", "mode-1").1, Via::Fork, "at once");
    // This zygote shows that the tool asks for its mode, so modes are keys from now on.
    assert_eq!(["mode-2", "mode-3", "mode-4"].map(|mode| tools.start("a", mode).1), [few; 3]);
    assert_eq!(["mode-2", "mode-1"].map(|mode| tools.start("a", mode).1), [Via::Fork; 2]);
    assert_eq!(tools.statistics("a").zygotes, 2);
}

/// A start that waits for the first zygote does not know yet which variables the tool asks for. Each start checks its own.
#[test]
fn a_start_that_waited_is_in_its_own_environment() {
    let policy = |choice| Policy { choice, resets: true, ..named(&[], 512 * MIB) };
    // The zygote exists before the other start has waited for long.
    let source = LARGE.replace("8 << 20", "8");
    let mut tools = tools_of(&source, &["a", "first"], policy(Choice::Eager));
    for trial in 0..60 {
        let choice = [Choice::Eager, Choice::Auto { after: 0 }][trial % 2].clone();
        tools.launcher = Launcher::new().with_policy(policy(choice));
        // This start does the work that all tools share.
        tools.start("first", "");
        std::thread::scope(|scope| {
            scope.spawn(|| tools.start("a", ""));
            scope.spawn(|| {
                // The second start comes at different moments while the zygote is made.
                (0..50 * trial).for_each(|_| std::thread::yield_now());
                tools.start("a", "on")
            });
        });
    }
}

#[test]
fn a_zygote_is_replaced_after_so_many_starts_and_with_it_the_memory_layout() {
    for &resets in KINDS {
        let policy = Policy { starts_per_zygote: 4, resets, ..named(&["a"], 512 * MIB) };
        let tools = tools(&["a"], policy);
        let places: Vec<String> = (0..12).map(|_| tools.start("a", "").0).collect();
        let groups: Vec<_> = places.chunk_by(|a, b| a == b).map(<[String]>::len).collect();
        // By chance, a layout of memory lets a persistent process learn nothing. Its zygote is replaced sooner.
        assert!(
            groups == [4; 3] || (resets && groups.len() > 3 && groups.iter().all(|starts| *starts <= 4)),
            "{places:?}"
        );
        let counts = tools.statistics("a");
        assert_eq!((counts.zygotes, counts.resets > 0), (groups.len() as u64, resets), "{counts:?}");
    }
}
