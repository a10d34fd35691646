//! A test that runs a tool twice, to find that its output depends on addresses, finds it.

mod common;

use common::{KINDS, Victim, case, compile, resetting_policy, start_in};
use hotstart_launch::{Group, Launcher, Policy};
use hotstart_model::Status;

const TELLS: &str = "#include <stdio.h>\n#include <stdlib.h>\nint main(void)\n\
                     { int local; printf(\"%p %p %p\\n\", (void *)&local, malloc(1), (void *)main); return 0; }\n";
/// A job's starts of the tool, and jobs.
const STARTS: usize = 4;
const JOBS: usize = 3;

#[test]
fn no_address_is_the_same_in_consecutive_starts_of_a_job() {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("tells.c"), dir.path().join("tells"));
    std::fs::write(&source, TELLS).unwrap();
    compile(&source, &program, &[]);
    let tells = Victim { dir, program };
    for &resets in KINDS {
        let launcher = Launcher::new().with_policy(Policy { resets, ..resetting_policy(&["tells"]) });
        for _ in 0..JOBS {
            let group = Group::new();
            let told: Vec<Vec<String>> = (0..STARTS)
                .map(|_| {
                    let (ran, exit) = start_in(&launcher, &tells, &case(&[]), &group);
                    assert!(exit.via.is_warm() && ran.status == Status::Exited(0), "{exit:?}");
                    ran.stdout.split_whitespace().map(str::to_owned).collect()
                })
                .collect();
            for pair in told.windows(2) {
                assert!(pair[0].iter().zip(&pair[1]).all(|(one, next)| one != next), "{told:?}");
            }
        }
    }
}
