//! Unit tests of the scan for directives. `tests/suite_against_lit.rs` compares it with lit.

use super::*;

fn parsed(content: &[u8]) -> Result<Directives, Rejection> {
    parse(content, &Features::new(&[] as &[String]), true)
}

fn commands(content: &str) -> Vec<String> {
    let directives = parsed(content.as_bytes()).expect("a well-formed test").script;
    let text = |directive| match directive {
        Directive::Command { text, .. } => text,
        Directive::Definition(definition) => format!("{} = {}", definition.name, definition.value),
    };
    directives.into_iter().map(text).collect()
}

fn complaint(content: &[u8]) -> String {
    match parsed(content) {
        Err(Rejection::Malformed(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keywords_are_found_anywhere_and_take_the_rest_of_the_line() {
    let found = commands("; NORUN: a RUN: b\r\nx END. RUN: c\nRUN:d");
    assert_eq!(found, ["%dbg(RUN: at line 1)  a RUN: b", "%dbg(RUN: at line 3) d"]);
}

#[test]
fn end_stops_only_when_alone() {
    assert_eq!(commands("RUN: a\nEND. b\nRUN: c\n END. \nRUN: d\n").len(), 2);
    assert_eq!(commands("RUN: a\nx: y\nEND.").len(), 1);
}

#[test]
fn continuations_keep_leading_blanks() {
    assert_eq!(commands("RUN: a \\  \nREQUIRES: true\nRUN:  b\n"), ["%dbg(RUN: at line 1)  a   b"]);
    let open = complaint(b"RUN: a \\\nDEFINE: %{x} = 1\nRUN: b\n");
    assert_eq!(open, "Test has unterminated 'RUN:' directive (with '\\') at line 1");
}

#[test]
fn line_expressions_are_computed() {
    let found = commands("\nRUN: %(line) %(line+1) %(line - 3) %(line+1 0) %(linex)\n");
    assert_eq!(found, ["%dbg(RUN: at line 2)  2 3 -1 %(line+1 0) %(linex)"]);
}

#[test]
fn definitions_join_lines_with_a_blank() {
    assert_eq!(
        commands("DEFINE: %{a-b} =  x \\ \nDEFINE:   y \nRUN: a"),
        ["%{a-b} = x y", "%dbg(RUN: at line 3)  a"]
    );
    let empty = complaint(b"DEFINE: %{a} = \\\nDEFINE: \nRUN: a");
    assert_eq!(empty, "Substitution's continuation is empty\nin DEFINE: directive on test line 2");
    assert!(
        complaint(b"DEFINE: %{1} = x\n")
            .starts_with("Substitution name '%{1}' is malformed as it must start")
    );
    assert!(
        complaint(b"REDEFINE: x\n")
            .starts_with("Substitution's definition does not contain '='\nin REDEFINE:")
    );
}

#[test]
fn conditions_are_split_at_commas_and_checked() {
    let found = parsed(b"RUN: a\nXFAIL: *, a || \\\nXFAIL: b\nREQUIRES: , x ,,\n").unwrap();
    assert_eq!((found.xfails, found.requires), (vec!["*".into(), "a || b".into()], vec!["x".to_owned()]));
    let bad = complaint(b"RUN: a\nUNSUPPORTED: a b\n");
    let expected = "expected: <end of expression>\nhave: 'b'\nin expression: 'a b'\n\
                    in UNSUPPORTED: directive on test line 2";
    assert_eq!(bad, expected);
    assert_eq!(complaint(b"RUN: a\nXFAIL: a\\\n"), "Test has unterminated 'XFAIL:' lines (with '\\')");
}

#[test]
fn text_of_a_directive_must_be_utf_8() {
    assert!(parsed(b"\xff\xfe\nRUN: a\n").is_ok());
    assert_eq!(
        complaint(b"RUN: \xff\n"),
        "'utf-8' codec can't decode byte 0xff in position 1: invalid start byte"
    );
    let end = "'utf-8' codec can't decode bytes in position 0-1: unexpected end of data";
    assert_eq!(complaint(b"RUN:\xe2\x82\n"), end);
}

#[test]
fn retries_are_one_integer() {
    assert_eq!(parsed(b"RUN: a\nALLOW_RETRIES: 2\n").unwrap().allowed_retries, Some(2));
    let twice = complaint(b"RUN: a\nALLOW_RETRIES: 2\nALLOW_RETRIES: 2\n");
    assert_eq!(twice, "Test has more than one ALLOW_RETRIES lines");
    assert!(
        complaint(b"ALLOW_RETRIES: x\n")
            .starts_with("INTEGER parser requires the input to be an integer (got  x)")
    );
    assert_eq!(complaint(b"nothing"), "Test has no 'RUN:' line");
}
