//! Tests the binary as users run it: its lists and refusals, and that its acts do what they claim.

use std::path::Path;
use std::process::{Command, Output};

use hotstart_fuzz::generate::{Request, Role, Sequence};
use hotstart_fuzz::run::{Mode, Place, Program, Session, Workshop, sources};

fn warm_fuzz(arguments: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warm-fuzz")).args(arguments).current_dir(dir).output().expect("it runs")
}

#[test]
fn there_are_150_acts_of_all_roles_and_families() {
    let dir = tempfile::tempdir().unwrap();
    let listed = warm_fuzz(&["--list"], dir.path());
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.lines().count() >= 150, "{} acts", text.lines().count());
    for word in ["Disturbs", "Observes", "Both", "Ends", "Rare", "Before", "files", "cpu", "threads"] {
        assert!(text.contains(word), "{word}");
    }
}

#[test]
fn wrong_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let status = |arguments: &[&str]| warm_fuzz(arguments, dir.path()).status.code();
    assert_eq!(status(&["--frob", "1"]), Some(2));
    assert_eq!(status(&["--replay", "absent"]), Some(2));
    let unknown = warm_fuzz(&["--act", "no_such_act", "--minutes", "0"], dir.path());
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert_eq!(error, "warm-fuzz: there is no act 'no_such_act'; --list prints all\n");
}

/// Runs each act alone, and each of those before `main` alone.
#[test]
fn each_act_shows_the_same_in_two_cold_processes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut workshop = Workshop::open(&root).unwrap();
    let session = Session::new(Place::new(&root.join("job")));
    let program = workshop.program(&[]).unwrap();
    let request = |acts: &[&str]| Request {
        acts: acts.iter().map(|act| (*act).to_owned()).collect(),
        ..Request::default()
    };
    let alone = workshop.catalogue.acts.iter().filter(|act| act.role != Role::Rare);
    let sequence = Sequence {
        before: Vec::new(),
        arguments: 0,
        requests: alone.map(|act| request(&[&act.name])).collect(),
    };
    let run =
        |sequence: &Sequence, program: &Program| session.run(sequence, program, Mode::Cold).unwrap().observed;
    let (first, second) = (run(&sequence, &program), run(&sequence, &program));
    for (number, request) in sequence.requests.iter().enumerate() {
        assert_eq!(first[number], second[number], "{:?}", request.acts);
        assert!(!first[number].timed_out, "{:?}", request.acts);
    }
    let before: Vec<String> = sources::before_names().into_iter().map(str::to_owned).collect();
    for names in before.chunks(12) {
        let program = workshop.program(names).unwrap();
        let sequence = Sequence { before: names.to_vec(), arguments: 0, requests: vec![request(&[]); 2] };
        assert_eq!(run(&sequence, &program), run(&sequence, &program), "{names:?}");
    }
}

/// The program of a finding contains only the finding's acts, and does the same.
#[test]
fn a_program_with_only_the_acts_of_a_finding_does_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut workshop = Workshop::open(&root).unwrap();
    let session = Session::new(Place::new(&root.join("job")));
    let acts = ["data_count", "x87_show", "fd_list", "end_return_code"];
    let before = ["before_env".to_owned()];
    let source = root.join("finding.c");
    std::fs::write(&source, sources::standalone(&acts, &["before_env"])).unwrap();
    let (whole, part) = (workshop.program(&before).unwrap(), workshop.program_of(&source).unwrap());
    let request = Request { acts: acts.map(str::to_owned).to_vec(), ..Request::default() };
    let sequence = Sequence { before: before.to_vec(), arguments: 0, requests: vec![request] };
    let run = |program| session.run(&sequence, program, Mode::Cold).unwrap().observed;
    assert_eq!(run(&whole), run(&part));
    assert!(run(&part)[0].output.contains("before_env: (unset)\ndata_count: 3\n"));
}

/// Any acts of a finding are in one file, so no two files of acts may clash.
#[test]
fn all_acts_fit_into_one_program() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut workshop = Workshop::open(&root).unwrap();
    let acts: Vec<String> = workshop.names().map(str::to_owned).collect();
    let acts: Vec<&str> = acts.iter().map(String::as_str).collect();
    let source = root.join("all.c");
    std::fs::write(&source, sources::standalone(&acts, &sources::before_names())).unwrap();
    workshop.program_of(&source).unwrap();
    std::fs::write(&source, sources::standalone(&[], &[])).unwrap();
    workshop.program_of(&source).unwrap();
}

/// A program that does nothing is the same in every mode, and starts as requested.
#[test]
fn the_modes_are_what_they_are_called() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut workshop = Workshop::open(&root).unwrap();
    let session = Session::new(Place::new(&root.join("job")));
    let program = workshop.program(&[]).unwrap();
    let request = Request { acts: vec!["data_count".to_owned()], ..Request::default() };
    let sequence = Sequence { before: Vec::new(), arguments: 0, requests: vec![request; 5] };
    let run = |mode| session.run(&sequence, &program, mode).unwrap();
    let cold = run(Mode::Cold);
    assert_eq!(cold.warm(), 0);
    for mode in [Mode::Fork, Mode::Reset, Mode::Audited, Mode::Cloned] {
        let warm = run(mode);
        assert_eq!(warm.clones, if mode == Mode::Cloned { 2 } else { 0 });
        assert_eq!((warm.warm(), &warm.observed), (5, &cold.observed), "{mode:?}");
        assert_eq!(warm.audit, None);
    }
}

/// Runs with one number of arguments begin at a deferred snapshot, once their process has learned it.
#[test]
fn runs_with_one_number_of_arguments_are_deferred() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut workshop = Workshop::open(&root).unwrap();
    let session = Session::new(Place::new(&root.join("job")));
    let program = workshop.program(&[]).unwrap();
    let show = Request { acts: vec!["data_count".to_owned()], ..Request::default() };
    let requests = [vec![Request::default(); 6], vec![show; 6]].concat();
    let sequence = Sequence { before: Vec::new(), arguments: 20, requests };
    for mode in [Mode::Reset, Mode::Audited, Mode::Cloned] {
        let warm = session.run(&sequence, &program, mode).unwrap();
        assert!(warm.deferred >= 3, "{mode:?}: {warm:?}");
    }
}
