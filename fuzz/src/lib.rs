//! What each fuzz target does with its input: parse it, and check what must hold of whatever was accepted.
//!
//! A target that returns has passed. Inputs are kept so small that nothing takes long: lit has no limits for some of what is
//! parsed here (substitutions may multiply a line's length), and hotstart follows it.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use hotstart_lit::boolexpr::{self, Features};
use hotstart_lit::config::Substitution;
use hotstart_lit::directives;
use hotstart_lit::subst::{List, Pool, Substituter, TestPaths};
use hotstart_model::Dialect;
use hotstart_python::re::{Pattern, Replacement};
use hotstart_shell::Ast;

const DIALECTS: [Dialect; 2] = [Dialect::V19, Dialect::V23];

fn features() -> Features {
    Features::new(&["asserts", "x86-registered-target", "target=x86_64-linux-gnu"].map(str::to_owned))
}

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// A test file: RUN lines, conditions, DEFINE and REDEFINE, HOTSTART-COLD.
pub fn directives(data: &[u8]) {
    let features = features();
    let optional = directives::parse(data, &features, false);
    let required = directives::parse(data, &features, true);
    assert!(required.is_err() || optional.is_ok(), "a file without commands is all that may be refused");
}

/// An expression of REQUIRES, UNSUPPORTED, XFAIL or `%if`.
pub fn boolexpr(data: &[u8]) {
    let expression = text(data);
    let features = features();
    let value = features.evaluate(&expression);
    assert_eq!(features.evaluate(&expression), value, "a remembered value is the same");
    let mut names = BTreeSet::new();
    let _ = boolexpr::operands(&expression, &mut names);
    // Shorter than what nesting is limited to. A line break is a blank only behind the last token, as in lit.
    if let (Ok(value), true) = (value, expression.len() < 100 && !expression.contains('\n')) {
        assert_eq!(features.evaluate(&format!("!({expression})")), Ok(!value));
        assert_eq!(features.evaluate(&format!("({expression}) || ({expression})")), Ok(value));
    }
}

/// Lines: the command, then a key and a value for each substitution.
pub fn substitutions(data: &[u8]) {
    // Each substitution may multiply the length of the line by that of its value.
    const LONGEST: [usize; 7] = [200, 40, 6, 40, 6, 40, 6];
    let input = text(data);
    let lines: Vec<&str> = input.lines().collect();
    if lines.is_empty() || lines.iter().zip(LONGEST).any(|(line, longest)| line.len() > longest) {
        return;
    }
    let given: Vec<_> = lines[1..]
        .chunks_exact(2)
        .take(3)
        .map(|pair| Substitution {
            key: pair[0].into(),
            value: pair[1].into(),
            captures: pair[0].contains('('),
        })
        .collect();
    let features = features();
    for dialect in DIALECTS {
        let entries = Pool::new(dialect).entries(given.iter());
        let paths =
            TestPaths::new(Path::new("/suite/a b/t.test"), Path::new("/out/t.test"), None, dialect, false);
        for recursion_limit in [None, Some(0), Some(1)] {
            let list = List::new(&entries);
            let _ = Substituter { list, features: &features, paths: &paths, recursion_limit }.apply(lines[0]);
        }
    }
}

/// Lines: a Python pattern, a text, and a template of what replaces its matches.
pub fn python_re(data: &[u8]) {
    let input = text(data);
    let mut lines = input.splitn(3, '\n');
    let [pattern, subject, template] = std::array::from_fn(|_| lines.next().unwrap_or_default());
    if pattern.len() > 80 || subject.len() > 80 || template.len() > 80 {
        return;
    }
    for anchored in [Pattern::full, Pattern::at_start] {
        let _ = anchored(pattern).map(|compiled| compiled.is_match(subject));
    }
    let Ok(compiled) = Pattern::new(pattern) else { return };
    let literal = Replacement::Literal("<>".to_owned());
    let direct = compiled.sub(&literal, subject);
    if let Ok(Some(_)) = direct {
        assert!(subject.contains(compiled.literal()), "every match contains the literal");
    }
    if let Ok(general) = Pattern::without_shortcut(pattern) {
        if let (Ok(direct), Ok(general)) = (direct, general.sub(&literal, subject)) {
            assert_eq!(direct, general, "matched directly and by the general engine");
        }
    }
    if let Ok(template) = Replacement::template(template, &compiled) {
        let _ = compiled.sub(&template, subject);
    }
}

/// A command in lit's internal shell's language.
pub fn shell(data: &[u8]) {
    let command = text(data);
    for dialect in DIALECTS {
        if let Ok(ast) = hotstart_shell::parse(&command, dialect) {
            check_command(&ast);
        }
    }
    if hotstart_shell::fuzzing::is_native(&command) {
        assert!(hotstart_shell::parse(&command, Dialect::V23).is_ok(), "what may be run is in the language");
    }
}

fn check_command(ast: &Ast) {
    for pipeline in std::iter::once(&ast.first).chain(ast.rest.iter().map(|(_, pipeline)| pipeline)) {
        assert!(!pipeline.stages.is_empty());
        for stage in &pipeline.stages {
            assert_ne!(stage.words[0].literal(), Some(""), "a command has a name");
        }
    }
}

/// A message of a template or a worker to the runner.
pub fn runtime_wire(data: &[u8]) {
    if hotstart_launch::fuzzing::runtime_message(data) {
        assert_eq!(data[4..8], (data.len() as u32).to_ne_bytes(), "a message is as long as it says");
    }
}

/// A message of a client to the server of `hotstart exec`.
pub fn exec_wire(data: &[u8]) {
    static NULL: OnceLock<File> = OnceLock::new();
    let null = NULL.get_or_init(|| File::open("/dev/null").expect("/dev/null can be read"));
    hotstart_exec::fuzzing::client_message(data, || null.try_clone().expect("a descriptor is free").into());
}

/// A line of the Python helper that evaluates configs.
pub fn helper_json(data: &[u8]) {
    hotstart_lit::fuzzing::helper_line(data);
}
