//! The measurements and their order.

use crate::run::{Place, runs};

#[test]
fn commands_run_by_turns_with_their_hooks_around_them() {
    let place = Place::new();
    let options = [
        "-r",
        "4",
        "-w",
        "0",
        "--setup",
        "echo s >> log",
        "--prepare",
        "echo p >> log",
        "--conclude",
        "echo c >> log",
        "--cleanup",
        "echo e >> log",
    ];
    let run = place.run(&options, &["echo A >> log", "echo B >> log"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let log = std::fs::read_to_string(place.path("log")).expect("they ran").replace('\n', "");
    let turns = "ABABBAABBA".chars().map(|c| format!("p{c}c")).collect::<String>();
    assert_eq!(log, format!("s{turns}e"));
}

#[test]
fn a_clear_difference_is_found_and_reported_in_every_form() {
    let place = Place::new();
    let files = ["--json", "r.json", "--csv", "r.csv", "--markdown", "r.md", "--html", "r.html"];
    let run =
        place.run(&[&["-r", "8", "--name", "quick"], &files[..]].concat(), &["sleep 0.02", "sleep 0.4"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let text = |name: &str| std::fs::read_to_string(place.path(name)).expect("a report");
    let verdict =
        run.out.lines().find(|line| line.starts_with("B takes ")).unwrap_or_else(|| panic!("{run:#?}"));
    assert!(verdict.contains("times as long as A, 95 % sure between"), "{verdict}");
    assert!(text("r.md").contains(verdict) && text("r.html").contains(verdict));
    assert!(run.out.contains("A: quick "), "{run:#?}");
    let ratio = &place.json("r.json")["comparisons"][0]["metrics"]["wall_s"]["ratio"];
    // A busy machine widens the interval, but the difference stays clear.
    assert!(ratio["low"].as_f64() > Some(1.0), "{ratio}");
    assert!(ratio["estimate"].as_f64().is_some_and(|estimate| (2.0..40.0).contains(&estimate)), "{ratio}");
    assert_eq!(text("r.csv").lines().count(), 17);
    let page = text("r.html");
    for outside in ["href=\"http", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "the page refers to {outside}");
    }
    assert!(page.contains("<figure data-plot>") && page.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_sweep_is_one_command_for_each_value() {
    let place = Place::new();
    let run = place.run(&["-r", "2", "--json", "r.json"], &["exit {0,00,000}"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let report = place.json("r.json");
    let names: Vec<&str> = (0..3).filter_map(|n| report["commands"][n]["name"].as_str()).collect();
    assert_eq!(names, ["sh -c 'exit 0'", "sh -c 'exit 00'", "sh -c 'exit 000'"]);
    assert_eq!((runs(&report, 2), report["comparisons"].as_array().map(Vec::len)), (2, Some(2)));
    assert_eq!(place.run(&["-r", "2", "--no-sweep"], &["test {1,2} = '{1,2}'"]).code, Some(0));
}

#[test]
fn standard_input_is_the_file_named() {
    let place = Place::new();
    std::fs::write(place.path("in"), "text").expect("a file");
    assert_eq!(place.run(&["-r", "2", "--input", "in"], &["test $(cat) = text"]).code, Some(0));
}

#[test]
fn a_run_costs_less_than_three_tenths_of_a_millisecond_beyond_itself() {
    let place = Place::new();
    let run = place.run(&["-r", "300", "--json", "r.json"], &["exit 0"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let cost = place.json("r.json")["own_cost_us"].as_f64().expect("a figure");
    assert!(cost < 300.0, "{cost} µs");
}

#[test]
fn a_time_is_filled_with_rounds() {
    let place = Place::new();
    let run = place.run(&["--minutes", "0.02", "--json", "r.json"], &["sleep 0.1", "sleep 0.1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let report = place.json("r.json");
    let (a, b) = (runs(&report, 0), runs(&report, 1));
    assert!(a == b && (1..=6).contains(&a), "{a} and {b} rounds in 1.2 s");
    assert!(report["elapsed_s"].as_f64().is_some_and(|elapsed| elapsed > 0.9), "{}", report["elapsed_s"]);
}
