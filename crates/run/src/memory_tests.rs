//! What is remembered of a test, and what a pass that was wrong leads to. Runs are made up.

use super::*;
use crate::Checks;
use crate::fake::{Ended, FakeExecutor, FakeSource, code, run_job, settings};
use crate::schedule::RunSettings;

/// A place that is shared, which may lose what it has.
#[derive(Clone, Debug, Default)]
struct Place(Arc<Mutex<BTreeMap<String, Vec<u8>>>>, String);

impl Place {
    fn share(&self, memory: Arc<Memory>) -> Arc<Memory> {
        let memory = Arc::into_inner(memory).expect("nobody else has it");
        Arc::new(memory.shared_in(|name| Place(Arc::clone(&self.0), name)))
    }
}

impl Shared for Place {
    fn get(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(&self.1).cloned()
    }

    fn put(&self, value: Vec<u8>) {
        self.0.lock().unwrap().insert(self.1.clone(), value);
    }
}

fn traced(exit_code: i32, inputs: Result<Vec<Input>, String>) -> Traced {
    Traced { transcript: code(exit_code).transcript, inputs }
}

/// Runs the test, which ends as listed: first traced, otherwise as any test.
fn run(memory: &Arc<Memory>, traces: Vec<Traced>, exit_code: i32, xfail: bool) -> Ended {
    let executor = FakeExecutor::of_cold_tools(vec![code(exit_code)]);
    executor.traced.lock().unwrap().extend(traces);
    let source = FakeSource { suite: Some("t".to_owned()), xfail, ..FakeSource::default() };
    let settings = RunSettings { memory: Some(Arc::clone(memory)), ..settings() };
    run_job(&source, &executor, &settings, &Checks::sampled(0.0))
}

fn memory(dir: &Path) -> Arc<Memory> {
    Arc::new(Memory::new(dir, true, None))
}

/// Runs the test, which would fail, until it is not run, or is run as the sample. Returns whether it was not run.
fn is_remembered(memory: &Arc<Memory>) -> bool {
    run(memory, Vec::new(), 0, false).outcome.unwrap().is_cached
}

#[test]
fn a_traced_pass_is_remembered_between_runs() {
    let dir = tempfile::tempdir().unwrap();
    let first = memory(dir.path());
    let ended = run(&first, vec![traced(0, Ok(Vec::new()))], 1, false);
    assert_eq!((ended.verdict(), ended.outcome.unwrap().is_cached), (Verdict::PASS, false));
    first.save();
    // The sample is another one in each run: one in twenty runs this test.
    assert!((0..20).any(|_| is_remembered(&memory(dir.path()))));
    // Without knowledge, the traced run is lost and the other one counts.
    assert_eq!(run(&memory(&dir.path().join("empty")), Vec::new(), 1, false).verdict(), Verdict::FAIL);
}

#[test]
fn only_a_traced_pass_with_known_inputs_is_remembered() {
    for (trace, exit_code) in
        [(traced(0, Err("asks for the time".to_owned())), 0), (traced(1, Ok(Vec::new())), 0)]
    {
        let dir = tempfile::tempdir().unwrap();
        let memory = memory(dir.path());
        assert_eq!(run(&memory, vec![trace], exit_code, false).verdict(), Verdict::PASS);
        assert!((0..40).all(|_| !is_remembered(&memory)));
    }
}

#[test]
fn a_pass_is_no_pass_where_a_failure_is_expected() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    run(&memory, vec![traced(0, Ok(Vec::new()))], 0, false);
    assert_eq!(run(&memory, Vec::new(), 1, true).verdict(), Verdict::XFAIL);
    let dir = tempfile::tempdir().unwrap();
    let memory = Arc::new(Memory::new(dir.path(), true, None));
    assert_eq!(run(&memory, vec![traced(0, Ok(Vec::new()))], 0, true).verdict(), Verdict::XPASS);
    assert!((0..40).all(|_| !is_remembered(&memory)));
}

#[test]
fn a_pass_that_was_wrong_ends_all_remembering_of_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    // The sample is another one in each run.
    let wrong = (0..2000).find_map(|_| {
        let memory = memory(dir.path());
        run(&memory, vec![traced(0, Ok(Vec::new()))], 0, false);
        memory.save();
        let ended = run(&memory, Vec::new(), 1, false);
        (!ended.told.is_empty()).then_some((ended, memory))
    });
    let (ended, memory) = wrong.expect("one in twenty is run");
    assert_eq!(ended.verdict(), Verdict::FAIL);
    assert!(ended.message().contains("t :: 0 was known to pass"), "{}", ended.message());
    let later = self::memory(dir.path());
    for memory in [memory, later] {
        run(&memory, vec![traced(0, Ok(Vec::new()))], 0, false);
        assert!((0..40).all(|_| !is_remembered(&memory)));
        assert_eq!(memory.counts().off.len(), 1);
    }
}

#[test]
fn a_pass_in_a_shared_place_is_remembered_elsewhere() {
    let (dirs, place) = (tempfile::tempdir().unwrap(), Place::default());
    let another = |number: u32| place.share(memory(&dirs.path().join(number.to_string())));
    let first = another(0);
    run(&first, vec![traced(0, Ok(Vec::new()))], 1, false);
    first.save();
    assert!((1..20).any(|number| is_remembered(&another(number))));
    // Damaged, it is as good as empty.
    place.0.lock().unwrap().values_mut().for_each(|value| value.truncate(5));
    assert!((20..40).all(|number| !is_remembered(&another(number))));
}

#[test]
fn what_several_runners_share_is_kept() {
    let (dirs, place) = (tempfile::tempdir().unwrap(), Place::default());
    let another = |number: u32| place.share(memory(&dirs.path().join(number.to_string())));
    // Both have read the place before the other one writes to it.
    let (one, other) = (another(0), another(1));
    for (memory, key) in [(&one, [1; 4]), (&other, [2; 4])] {
        assert_ne!(memory.verdicts.ask(&key, Path::new("/")), Known::Passes);
        memory.verdicts.passed(key, Vec::new());
    }
    one.save();
    other.save();
    let third = another(2);
    for key in [[1; 4], [2; 4]] {
        assert_eq!(third.verdicts.ask(&key, Path::new("/")), Known::Passes);
    }
}

#[test]
fn a_wrong_pass_switches_its_suite_off_for_all_who_share() {
    let (dirs, place) = (tempfile::tempdir().unwrap(), Place::default());
    let another = |number: u32| place.share(memory(&dirs.path().join(number.to_string())));
    let first = another(0);
    run(&first, vec![traced(0, Ok(Vec::new()))], 1, false);
    first.save();
    // Until it is the sample, and fails.
    for number in 1.. {
        let other = another(number);
        let fails = !run(&other, Vec::new(), 1, false).outcome.unwrap().is_cached;
        other.save();
        if fails {
            break;
        }
    }
    for number in 1000..1040 {
        let other = another(number);
        assert!(!is_remembered(&other));
        assert_eq!(other.counts().off.len(), 1);
    }
}
