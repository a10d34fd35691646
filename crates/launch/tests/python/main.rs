//! Python scripts, cold and as forks of a zygote that was halted where they first look at their request: equal in any order.

#[path = "../common/mod.rs"]
mod common;
mod doubts;
mod ends;
mod harness;
mod request;
mod starts;

use harness::{Ends, Script};

#[test]
fn a_script_that_is_stopped_at_its_arguments() {
    let script = Script::new("import sys\nprint(sys.argv[1:])\n");
    script.equals(&[&["a"], &[], &["b", "c d", ""]], Ends::Warm);
}
