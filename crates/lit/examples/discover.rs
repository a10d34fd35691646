//! Lists the tests below the given paths, as `lit --show-suites --show-tests` does, and reports the time of each part.
//!
//! Serves to compare discovery with lit by `diff`, and to measure it without the rest of hotstart.

use hotstart_lit::load;
use hotstart_lit::order::arrange_for_listing;
use hotstart_lit::settings::Settings;
use hotstart_lit::suite::Test;
use hotstart_model::{Event, Events};

struct Print;

impl Events for Print {
    fn send(&self, event: Event) {
        if let Event::Diagnostic(diagnostic) = event {
            let place = diagnostic.place.unwrap_or_default();
            eprintln!("{place}: {:?}: {}", diagnostic.severity, diagnostic.message);
        }
    }
}

fn main() {
    let settings = Settings {
        paths: std::env::args_os().skip(1).map(Into::into).collect(),
        cwd: std::env::current_dir().expect("a working directory"),
        ..Settings::default()
    };
    let found = match load::load(&settings, &Print) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    eprintln!("{:?} {:?}", found.timing, found.counts);
    let mut tests: Vec<Test> = found.tests.to_vec();
    arrange_for_listing(&mut tests);
    println!("-- Test Suites --");
    for group in tests.chunk_by(|a, b| a.suite().index == b.suite().index) {
        let suite = group[0].suite();
        println!("  {} - {} tests", suite.name, group.len());
        println!("    Source Root: {}", suite.source_root.display());
        println!("    Exec Root  : {}", suite.exec_root.display());
        let features: Vec<_> = suite.config.available_features.iter().map(String::as_str).collect();
        println!("    Available Features: {}", features.join(" "));
        let mut pairs: Vec<_> = suite.config.substitutions.iter().map(|s| (&s.key, &s.value)).collect();
        pairs.sort();
        let lines: Vec<_> = pairs.iter().map(|(key, value)| format!("{key} => {value}")).collect();
        println!("    Available Substitutions: {}", lines.join(&format!("\n{}", " ".repeat(29))));
    }
    println!("-- Available Tests --");
    tests.iter().for_each(|test| println!("  {}", test.full_name()));
}
