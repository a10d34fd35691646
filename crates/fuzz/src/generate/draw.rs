//! Draws sequences: acts, input, environment and limits.

use std::collections::BTreeSet;

use super::{Catalogue, Input, Limited, Random, Request, Role, Sequence};

/// Runs without acts at the head of a sequence. The first runs of a tool in persistent processes are always audited,
/// and a persistent process that fails an audit shows nothing to later runs.
const LEADING: usize = 4;
/// The same where all runs have as many arguments: after these the process has learned a deferred snapshot.
const LEARNING: usize = 6;
/// The limit of acts in one run.
const ACTS_MAX: usize = 15;
/// More than the acts of any run.
const ARGUMENTS: usize = 20;
/// One run in this many may have acts that retire the persistent process.
const RETIRING_ONE_IN: usize = 6;

/// Acts that differed together. They are no longer drawn together, so that one fault does not hide others.
pub type Known = BTreeSet<Vec<String>>;

/// Draws sequences from a catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'c> {
    /// The acts to draw from.
    pub catalogue: &'c Catalogue,
    /// An act that every sequence must have.
    pub always: Option<&'c str>,
}

impl Draw<'_> {
    /// Returns the next sequence, for a program with these acts before `main`.
    pub fn sequence(&self, random: &mut Random, before: &[String], known: &Known) -> Sequence {
        let arguments = if random.one_in(2) { ARGUMENTS } else { 0 };
        let leading = match arguments {
            _ if random.one_in(3) => 0,
            0 => LEADING,
            _ => LEARNING,
        };
        let families = self.catalogue.families();
        let theme = if random.one_in(3) { None } else { random.pick(&families).copied() };
        let mut sequence =
            Sequence { before: before.to_vec(), arguments, requests: vec![Request::default(); leading] };
        for _ in 0..2 + random.below(7) {
            // Other surroundings often have a process of their own, which has learned nothing.
            let is_plain = arguments > 0 && random.one_in(2);
            let mut request = if is_plain { Request::default() } else { surroundings(random) };
            request.acts = self.acts(random, theme);
            sequence.requests.push(request);
        }
        self.insert_always(random, &mut sequence);
        forget_known(&mut sequence, known);
        sequence
    }

    fn acts(&self, random: &mut Random, theme: Option<&str>) -> Vec<String> {
        let with_retiring = random.one_in(RETIRING_ONE_IN);
        let watches = random.one_in(2);
        let count = 1 + random.below(ACTS_MAX);
        let mut acts = Vec::new();
        for _ in 0..count {
            let role = match random.below(12) {
                0..=3 => Role::Observes,
                4..=6 if watches => Role::Observes,
                4..=7 => Role::Disturbs,
                _ => Role::Both,
            };
            let family = if random.one_in(3) { None } else { theme };
            acts.extend(self.pick(random, role, family, with_retiring));
        }
        if random.one_in(3) {
            acts.extend(self.pick(random, Role::Ends, None, true));
        } else if random.one_in(60) {
            acts.extend(self.pick(random, Role::Rare, None, with_retiring));
        }
        acts
    }

    fn pick(
        &self,
        random: &mut Random,
        role: Role,
        family: Option<&str>,
        with_retiring: bool,
    ) -> Option<String> {
        let of = |family| {
            let mut acts = self.catalogue.of(role, family);
            acts.retain(|act| with_retiring || !self.catalogue.retiring.contains(&act.name));
            acts
        };
        // Not every family has acts of every role.
        let act = random.pick(&of(family)).copied();
        act.or_else(|| random.pick(&of(None)).copied()).map(|act| act.name.clone())
    }

    /// Inserts the requested act into some runs, before acts that end the process.
    fn insert_always(&self, random: &mut Random, sequence: &mut Sequence) {
        let Some(name) = self.always else { return };
        let last = sequence.requests.len() - 1;
        let drawn = sequence.requests.iter().position(|request| !request.acts.is_empty()).unwrap_or(last);
        for at in drawn..=last {
            if at == last || random.one_in(2) {
                let acts = &mut sequence.requests[at].acts;
                let place = random.below(acts.len().max(1));
                acts.insert(place, name.to_owned());
            }
        }
    }
}

/// Removes acts so that no known finding remains: of each finding, the act that was drawn least often.
fn forget_known(sequence: &mut Sequence, known: &Known) {
    for acts in known {
        if !acts.iter().all(|act| sequence.has(act)) {
            continue;
        }
        let times =
            |name: &&String| sequence.requests.iter().flat_map(|r| &r.acts).filter(|act| act == name).count();
        let in_main = acts.iter().filter(|act| !sequence.before.contains(act));
        let Some(least) = in_main.min_by_key(times).cloned() else { continue };
        for request in &mut sequence.requests {
            request.acts.retain(|act| *act != least);
        }
    }
}

const VARIABLES: [(&str, &[&str]); 7] = [
    ("HS_A", &["1", "two", ""]),
    ("HS_B", &["x", "a longer value with spaces"]),
    ("TZ", &["UTC", "EST5EDT", "CET-1CEST"]),
    ("LC_ALL", &["C", "C.UTF-8", "absent"]),
    ("POSIXLY_CORRECT", &["1"]),
    ("MALLOC_ARENA_MAX", &["1"]),
    (
        "LD_LIBRARY_PATH",
        &["", ":", ".:sub", "/absent:/usr/share/doc", "/usr/lib/x86_64-linux-gnu", "/usr/share/doc;"],
    ),
];

fn surroundings(random: &mut Random) -> Request {
    let mut request = Request::default();
    for (name, values) in VARIABLES {
        let value = if random.one_in(4) { random.pick(values) } else { None };
        request.env.extend(value.map(|value| (name.to_owned(), (*value).to_owned())));
    }
    let texts = ["", "one\ntwo\nthree\n", "no end of line", "1 2 3 4 5 6 7 8 9\n"];
    let text = (*random.pick(&texts).unwrap_or(&"")).to_owned();
    request.input = match random.below(4) {
        0 => Input::Pipe(text),
        1 | 2 => Input::File(text),
        _ => Input::Null,
    };
    if random.one_in(2) {
        let content = if random.one_in(2) { "first" } else { "second, longer" };
        request.files.push(("config".to_owned(), content.to_owned()));
    }
    request.umask = random.one_in(8).then(|| if random.one_in(2) { 0o027 } else { 0 });
    if random.one_in(12) {
        // With fewer than 256 no start is warm.
        request.limits.push(Limited::Files(260));
    }
    if random.one_in(16) {
        request.limits.push(Limited::FileSize(1 << 20));
    }
    request.extra = random.one_in(6);
    request.merged = random.one_in(6);
    request.below = random.one_in(5);
    request.leads = random.one_in(4);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let text = "a files disturbs\nb files observes\nc cpu both\nd cpu ends\ne cpu disturbs\nf x rare\n";
        Catalogue::parse(text).unwrap()
    }

    fn draw(draw: Draw<'_>, known: &Known, number: u64) -> Sequence {
        draw.sequence(&mut Random::new(1, number), &[], known)
    }

    #[test]
    fn an_act_that_ends_the_process_is_the_last() {
        let catalogue = catalogue();
        let drawn = Draw { catalogue: &catalogue, always: None };
        for number in 0..200 {
            for request in draw(drawn, &Known::new(), number).requests {
                let end = request.acts.iter().position(|act| act == "d");
                assert!(end.is_none_or(|at| at + 1 == request.acts.len()), "{request:?}");
                assert!(request.acts.len() <= ACTS_MAX + 1);
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_in_every_sequence_and_what_is_known_in_none() {
        let catalogue = catalogue();
        let known = Known::from([vec!["a".to_owned(), "b".to_owned()]]);
        for number in 0..200 {
            let wanted = draw(Draw { catalogue: &catalogue, always: Some("e") }, &known, number);
            assert!(wanted.has("e"));
            assert!(!(wanted.has("a") && wanted.has("b")), "{wanted:?}");
        }
    }

    #[test]
    fn acts_that_retire_the_worker_are_drawn_seldom() {
        let mut catalogue = catalogue();
        catalogue.retiring.insert("a".to_owned());
        let drawn = Draw { catalogue: &catalogue, always: None };
        let sequences: Vec<_> = (0..200).map(|number| draw(drawn, &Known::new(), number)).collect();
        let runs = sequences.iter().flat_map(|sequence| &sequence.requests).filter(|r| !r.acts.is_empty());
        let (all, with) = runs.fold((0, 0), |(all, with), run| {
            (all + 1, with + usize::from(run.acts.iter().any(|act| act == "a")))
        });
        assert!(with > 0 && with * RETIRING_ONE_IN <= all, "{with} of {all}");
    }
}
