//! Starts that the server makes cold, to compare their CPU time with that of warm ones.

use crate::bench::{Bench, await_that, told};

#[test]
fn a_start_that_is_compared_has_what_its_client_was_given() {
    let bench = Bench::starting("auto");
    let tool = bench.tool("tool");
    let client = bench.path("bin/hotstart-exec");
    std::fs::write(bench.path("in"), "one\ntwo\n").unwrap();
    // As gcc starts its stages below ccache.
    let line = format!(
        "trap '' HUP; ulimit -Ss 65536; exec {} {} 'a b' '' x 3< in < in 2> /dev/null",
        client.display(),
        tool.display()
    );
    let run = |setting: &str| {
        let mut shell = bench.command("/bin/sh".as_ref());
        let output = shell.env("HOTSTART_EXEC", setting).args(["-c", &line]).output().expect("sh runs");
        told(&output).replace(&format!("HOTSTART_EXEC={setting}"), "")
    };
    let cold = run("cold");
    assert!(
        cold.contains("input two") && cold.contains("fd 3 ") && cold.contains("signal 1 is not"),
        "{cold}"
    );
    let count = |name: &str| bench.status_json()[name].as_u64().expect("a count");
    run("warm");
    await_that("a server", || bench.server().is_some());
    await_that("a cold start to compare with", || {
        assert_eq!(run("warm"), cold);
        count("compared") > 0
    });
    assert!(count("warm") >= 8, "{}", bench.status());
    let status = bench.status_json();
    let cpu = &status["tools"][0]["cpu_time"];
    assert_eq!(cpu["cold_runs"], status["compared"]);
    for time in ["cold_seconds", "warm_seconds", "overhead_seconds"] {
        assert!(cpu[time].as_f64().is_some_and(|seconds| seconds > 0.0), "{time}: {status}");
    }
    assert!(bench.status().contains("run cold by the server, to compare "), "{}", bench.status());
}
