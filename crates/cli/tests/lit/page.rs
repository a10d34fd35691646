//! The HTML page of a run: every figure equals that of the JSON report of the same run.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::suite::Suite;

fn suite() -> Suite {
    let suite = Suite::new("");
    suite.file("good/a.test", "RUN: true\nRUN: sh -c 'sleep 0.05'\n");
    suite.file("good/b.test", "RUN: echo x | cat\n");
    suite.file("bad/c.test", "RUN: sh -c 'cat %S/filecheck >&2; exit 1'\n");
    suite.file("bad/d.test", "UNSUPPORTED: system\nRUN: true\n");
    suite.file("bad/lit.local.cfg", "config.available_features.add('system')\n");
    let dump = "c.test:1:7: error: CHECK-NEXT: expected string not found in input\nRUN: sh -c\n      ^\n\
                Input was:\n<<<<<<\n          1: found \nnext:1'0     X error: no match found\n>>>>>>\n";
    suite.file("bad/filecheck", dump);
    suite
}

/// Returns the data of the page and of the JSON report of one run.
fn both(suite: &Suite) -> (Value, Value) {
    suite.run(&["--html=p.html", "-o", "r.json", "--run-line-times", "--start=rewind", "."]).ends_with(1);
    (data(suite), json(suite, "r.json"))
}

/// Returns the data of the page.
fn data(suite: &Suite) -> Value {
    let page = fs::read_to_string(suite.path("p.html")).expect("a page");
    let (_, rest) = page.split_once("<script id=\"run\" type=\"application/json\">").expect("its data");
    let (data, _) = rest.split_once("</script>").expect("their end");
    serde_json::from_str(data).expect("JSON")
}

fn json(suite: &Suite, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(suite.path(name)).expect("a report")).expect("JSON")
}

/// Converts a report's seconds to nanoseconds.
fn nanos(seconds: &Value) -> Option<u64> {
    seconds.as_f64().map(|seconds| (seconds * 1e9).round() as u64)
}

fn names(page: &Value) -> Vec<String> {
    let tests = &page["tests"];
    let name = |(file, dir): (&Value, &Value)| {
        let (suite, path) = (
            &page["dirs"][dir.as_u64().unwrap() as usize][0],
            &page["dirs"][dir.as_u64().unwrap() as usize][1],
        );
        let suite = page["suites"][suite.as_u64().unwrap() as usize].as_str().unwrap();
        format!("{suite} :: {}/{}", path.as_str().unwrap(), file.as_str().unwrap())
    };
    tests["name"].as_array().unwrap().iter().zip(tests["dir"].as_array().unwrap()).map(name).collect()
}

#[test]
fn figures_are_those_of_the_json_report() {
    let (page, report) = both(&suite());
    assert_eq!(page["elapsed"].as_u64(), nanos(&report["elapsed"]));
    let tests = report["tests"].as_array().unwrap();
    let by_name: BTreeMap<_, _> = tests.iter().map(|test| (test["name"].as_str().unwrap(), test)).collect();
    let names = names(&page);
    assert_eq!((names.len(), by_name.len()), (4, 4));
    for (place, name) in names.iter().enumerate() {
        let test = by_name[name.as_str()];
        let code = page["tests"]["code"][place].as_u64().unwrap() as usize;
        assert_eq!(page["codes"][code]["name"], test["code"], "{name}");
        assert_eq!(page["tests"]["ns"][place].as_u64(), nanos(&test["elapsed"]), "{name}");
        let lines = test["run_lines"].as_array().map_or(&[][..], Vec::as_slice);
        let shown = page["lines"][place].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(lines.len(), shown.len(), "{name}");
        for (line, shown) in lines.iter().zip(shown) {
            let label = format!("RUN: {}", shown[0].as_str().unwrap());
            assert_eq!(line["line"].as_str(), Some(label.as_str()));
            assert_eq!(
                (shown[1].as_u64(), shown[2].as_u64()),
                (nanos(&line["elapsed"]), nanos(&line["cpu"]))
            );
        }
    }
    for code in page["codes"].as_array().unwrap() {
        let count = tests.iter().filter(|test| test["code"] == code["name"]).count();
        assert_eq!(code["count"].as_u64(), Some(count as u64), "{}", code["name"]);
    }
    let slept = names.iter().position(|name| name.ends_with("a.test")).unwrap();
    let line = page["lines"][slept][1][1].as_u64().unwrap();
    let whole = page["tests"]["ns"][slept].as_u64().unwrap();
    assert!((50_000_000..=whole).contains(&line), "{line} of {whole}");
}

/// Returns the words of each line of a table that ends in a name, by that name.
fn rows(text: &str, columns: usize) -> BTreeMap<String, Vec<String>> {
    let words = text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let rows = words
        .filter(|words| words.len() == columns && words[0].starts_with(|first: char| first.is_ascii_digit()));
    rows.map(|mut words| (words.pop().unwrap(), words)).collect()
}

#[test]
fn other_figures_are_those_of_other_reports() {
    let suite = suite();
    let options = ["--html=p.html", "--record=w.json", "--time-by=tool", "--explain", "--start=rewind", "."];
    let run = suite.run(&options);
    run.ends_with(1);
    let page = data(&suite);
    let record = json(&suite, "w.json");
    let names = names(&page);
    for test in record["tests"].as_array().unwrap() {
        let place = names.iter().position(|name| *name == test["name"]).unwrap();
        let shown = ["worker", "at", "ns"].map(|key| &page["tests"][key][place]);
        assert_eq!(shown, ["worker", "at", "took"].map(|key| &test[key]), "{test}");
    }
    let number = |value: &Value| value.as_u64().unwrap();
    let explained = rows(&run.err, 5);
    for tool in page["starts"].as_array().unwrap() {
        let told = &explained[tool["program"].as_str().unwrap()];
        let warm = number(&tool["resets"]) + number(&tool["forks"]);
        let saved = format!("{:.2}", tool["saved"].as_f64().unwrap() / 1e9);
        assert_eq!(told[..3], [warm.to_string(), tool["cold"].to_string(), saved], "{tool}");
    }
    let timed = rows(&run.out, 5);
    for tool in page["tools"].as_array().unwrap() {
        let told = &timed[tool["name"].as_str().unwrap()];
        let seconds = |key: &str| format!("{:.2}s", tool[key].as_f64().unwrap() / 1e9);
        assert_eq!(
            told,
            &[&seconds("cpu"), &told[1], &seconds("wall"), &tool["runs"].to_string()].map(String::from)
        );
    }
    assert!(page["tools"].as_array().unwrap().len() >= 3 && page["starts"].as_array().unwrap().len() >= 3);
}

#[test]
fn a_failure_tells_line_stage_and_both_sides() {
    let (page, report) = both(&suite());
    let failures = page["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1);
    let blame = failures[0]["blame"].as_str().unwrap();
    assert!(blame.starts_with("RUN: at line 1, stage 1 of 1 (sh -c"), "{blame}");
    let output = report["tests"].as_array().unwrap().iter().find(|test| test["code"] == "FAIL").unwrap();
    assert_eq!(failures[0]["output"], output["output"]);
    let check = &failures[0]["checks"][0];
    assert_eq!(check["message"], "CHECK-NEXT: expected string not found in input");
    assert_eq!(check["rows"][1][1], "1: RUN: sh -c");
    assert_eq!(check["rows"][1][2], "       X error: no match found");
}

#[test]
fn starts_tools_and_the_run_before_are_told() {
    let suite = suite();
    both(&suite);
    let (page, report) = both(&suite);
    let total = |key: &str| -> u64 {
        page["starts"].as_array().unwrap().iter().map(|tool| tool[key].as_u64().unwrap()).sum()
    };
    assert!(total("resets") + total("forks") + total("cold") >= 3, "{}", page["starts"]);
    let tool = |name: &str| page["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
    assert!(tool("sh") && tool("true"), "{}", page["tools"]);
    let failed = names(&page).iter().position(|name| name.ends_with("c.test")).unwrap();
    assert!(page["tests"]["before"][failed].as_i64() < Some(0), "it failed the time before");
    assert_eq!(page["phases"][2][1].as_u64(), nanos(&report["elapsed"]));
    assert_eq!(page["workers"].as_u64(), Some(page["workers"].as_u64().unwrap().clamp(1, 4)));
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let suite = suite();
    let run = suite.run(&["--html=none/p.html", "good"]);
    run.ends_with(2).warns("could not write report 'none/p.html'");
}

#[test]
fn without_the_option_the_json_report_is_lits() {
    let suite = suite();
    suite.run(&["-o", "r.json", "good"]).ends_with(0);
    let report = fs::read_to_string(suite.path("r.json")).expect("a report");
    assert!(!report.contains("run_lines"), "{report}");
}
