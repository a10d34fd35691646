//! Process groups are as under lit, however tools are started: no tool leads one, and `kill 0` reaches the test's other stages.

use crate::suite::{Run, Suite};

const SHOW: &str =
    "read -r pid name state parent group rest < /proc/$$/stat; test $group != $pid && echo $group";

fn in_each_way(suite: &Suite, check: impl Fn(&Run)) {
    for start in ["cold", "fork", "rewind"] {
        check(&suite.run(&["-j1", "-v", "--verify=0", &format!("--start={start}"), "."]));
    }
}

#[test]
fn a_session_is_made_without_a_fork() {
    let suite = Suite::new("");
    suite.file("alone.test", "RUN: setsid sh -c 'exit 3'\n");
    suite.file("later.test", "RUN: echo x | setsid sh -c 'cat; exit 3'\n");
    suite.file("twice.test", "RUN: sh -c 'exit 0' | sort | setsid sh -c 'cat; exit 3'\n");
    in_each_way(&suite, |run| {
        let run = run.ends_with(1).says("  Failed: 3 ");
        assert_eq!(run.out.matches("# error: command failed with exit status: 3\n").count(), 3, "{run:#?}");
    });
}

#[test]
fn all_of_a_test_is_in_one_group_that_none_leads() {
    let suite = Suite::new("");
    let line = |to: &str| format!("RUN: sh -c '{SHOW}' | sort > %t.{to}\n");
    suite.file("a.test", [line("1"), line("2"), "RUN: diff %t.1 %t.2\n".to_owned()].concat());
    suite.file("b.test", format!("RUN: sort %s | sh -c '{SHOW}'\n"));
    in_each_way(&suite, |run| {
        run.ends_with(0).says("  Passed: 2 ");
    });
}

#[test]
fn a_signal_to_the_group_ends_the_tests_stages_and_no_other_test() {
    let suite = Suite::new("");
    for (name, signal) in [("a", "TERM"), ("b", "KILL"), ("c", "TERM")] {
        suite.file(&format!("{name}.test"), format!("RUN: sleep 60 | sh -c 'kill -{signal} 0'\n"));
        suite.file(&format!("{name}-next.test"), "RUN: sort %s | sh -c cat\n");
    }
    in_each_way(&suite, |run| {
        run.ends_with(1).says("  Passed: 3 ").says("  Failed: 3 ");
        for (status, stages) in [(-15, 4), (-9, 2)] {
            let line = format!("# error: command failed with exit status: {status}\n");
            assert_eq!(run.out.matches(&line).count(), stages, "{run:#?}");
        }
    });
}
