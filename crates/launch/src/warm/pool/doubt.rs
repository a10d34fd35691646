//! Lets a tool rest, cold, when too many of its recent runs are doubtful.
//!
//! A doubtful run costs a second, cold run of the whole test. Whether runs are doubtful depends on the tests more than on the tool: the
//! tests that crash opt lie side by side, and a suite that begins with yesterday's failures begins with them. So the share is that of
//! recent runs, and no rest is for ever. Each rest is twice as long as the last one, unless the tool was warm for longer in between.
//!
//! Some tools are doubtful in nearly all runs, as a grep that looks at its mappings. That is remembered (`warm/doubts.rs`), and such a tool
//! begins the next run of tests with a rest.

/// Doubtful runs that suffice, if they are more than one in so many.
const DOUBTFUL_MIN: u32 = 2;
const DOUBTFUL_ONE_IN: u32 = 8;
/// Runs after which both counts are halved, so that old runs count for less.
const RECENT: u32 = 64;
/// Cold starts of the first rest, also of a tool that is remembered, and of the longest.
const REST_FIRST: u32 = 16;
const REST_MOST: u32 = 1024;
/// A tool is remembered if so many of its runs are doubtful, and at least one in this many of all. It is forgotten if fewer than one in so
/// many of at least so many runs are, or if its first warm run in a run of tests is not.
const REMEMBERED_MIN: u32 = 4;
const REMEMBERED_ONE_IN: u32 = 2;
const FORGOTTEN_ONE_IN: u32 = 4;
const FORGOTTEN_AFTER: u32 = 16;

/// The doubts about one tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubted {
    /// Recent runs, and how many of them were doubtful.
    recent: u32,
    doubtful: u32,
    /// Runs since the last rest.
    runs: u32,
    /// Cold starts that are left of this rest, and the length of the last one.
    left: u32,
    last: u32,
    /// All runs, and how many of them were doubtful.
    all: u32,
    all_doubtful: u32,
    /// Whether the tool is remembered as doubtful in most runs. `None` if this record has neither been told nor decided.
    is_known: Option<bool>,
}

impl Doubted {
    /// Returns the record of a tool that is remembered as doubtful in most runs. It begins with a rest, unless it is `tried`.
    pub(crate) fn known(tried: bool) -> Self {
        let rest = if tried { 0 } else { REST_FIRST };
        Doubted { left: rest, last: rest, is_known: Some(true), ..Doubted::default() }
    }

    /// Counts a start. Returns whether the tool rests, so that the start is cold.
    pub(crate) fn rests(&mut self) -> bool {
        let rests = self.left > 0;
        self.left = self.left.saturating_sub(1);
        rests
    }

    /// Records a run, and whether it was doubtful. Runs that began before a rest do not count during it. Returns whether the tool is now
    /// one that is doubtful in most runs, if that has changed.
    pub(crate) fn ran(&mut self, is_doubtful: bool) -> Option<bool> {
        if self.left > 0 {
            return None;
        }
        self.all = self.all.saturating_add(1);
        self.all_doubtful = self.all_doubtful.saturating_add(u32::from(is_doubtful));
        if self.recent == RECENT {
            self.recent /= 2;
            self.doubtful /= 2;
        }
        self.runs = self.runs.saturating_add(1);
        self.recent += 1;
        self.doubtful += u32::from(is_doubtful);
        // The first run after a rest is a trial.
        let least = if self.last > 0 && self.runs == 1 { 1 } else { DOUBTFUL_MIN };
        let rests = is_doubtful && self.doubtful >= least && self.doubtful * DOUBTFUL_ONE_IN > self.recent;
        if rests {
            self.rest();
        }
        self.news(rests)
    }

    fn news(&mut self, rests: bool) -> Option<bool> {
        let (all, doubtful) = (u64::from(self.all), u64::from(self.all_doubtful));
        let is_mostly = doubtful * u64::from(REMEMBERED_ONE_IN) >= all;
        let is_seldom = self.all >= FORGOTTEN_AFTER && doubtful * u64::from(FORGOTTEN_ONE_IN) < all;
        let is_known = if rests && is_mostly && self.all_doubtful >= REMEMBERED_MIN {
            true
        } else if is_seldom || (self.is_known == Some(true) && (all, doubtful) == (1, 0)) {
            false
        } else {
            return None;
        };
        (self.is_known.replace(is_known) != Some(is_known)).then_some(is_known)
    }

    fn rest(&mut self) {
        let before = if self.runs > self.last { 0 } else { self.last };
        let length = (2 * before).clamp(REST_FIRST, REST_MOST);
        (self.recent, self.doubtful, self.runs) = (0, 0, 0);
        (self.left, self.last) = (length, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `starts` starts; those for which `is_doubtful` answers so are doubtful if they are warm. Returns the numbers of warm starts
    /// and of doubtful ones.
    fn run(starts: u32, is_doubtful: impl Fn(u32) -> bool) -> (u32, u32) {
        let (mut doubted, mut warm, mut doubtful) = (Doubted::default(), 0, 0);
        for start in 0..starts {
            if !doubted.rests() {
                warm += 1;
                doubtful += u32::from(is_doubtful(start));
                doubted.ran(is_doubtful(start));
            }
        }
        (warm, doubtful)
    }

    #[test]
    fn seldom_doubtful_runs_let_it_be_warm() {
        assert_eq!(run(1000, |start| start % 16 == 0).0, 1000);
        assert_eq!(run(1000, |start| start == 0).0, 1000);
    }

    #[test]
    fn a_tool_that_is_always_doubtful_is_tried_ever_less_often() {
        assert_eq!(run(2, |_| true), (2, 2));
        assert_eq!(run(18, |_| true), (2, 2));
        assert_eq!(run(20_000, |_| true), (26, 26));
    }

    #[test]
    fn doubtful_runs_in_a_row_are_soon_forgotten() {
        let (warm, doubtful) = run(10_000, |start| start < 200);
        assert!(warm > 9_700 && doubtful <= 10, "{warm} {doubtful}");
        // Also if they come late: they are not lost among the many runs before.
        let (warm, doubtful) = run(10_000, |start| (5000..5200).contains(&start));
        assert!(warm > 9_700 && doubtful <= 20, "{warm} {doubtful}");
    }

    #[test]
    fn a_rest_is_short_again_after_the_tool_was_warm_for_longer() {
        let mut doubted = Doubted::default();
        let mut rest = |runs: u32| {
            for _ in 0..runs {
                doubted.ran(false);
            }
            while doubted.left == 0 {
                doubted.ran(true);
            }
            std::iter::repeat_with(|| doubted.rests()).take_while(|rests| *rests).count()
        };
        assert_eq!([rest(0), rest(0), rest(0), rest(300), rest(5)], [16, 32, 64, 16, 32]);
    }

    #[test]
    fn runs_that_end_during_a_rest_do_not_lengthen_it() {
        let mut doubted = Doubted::default();
        for _ in 0..40 {
            doubted.ran(true);
        }
        assert_eq!(std::iter::repeat_with(|| doubted.rests()).take_while(|rests| *rests).count(), 16);
    }

    #[test]
    fn a_tool_that_was_mostly_doubtful_is_tried_once_after_each_rest() {
        let mut doubted = Doubted::known(false);
        let mut rest = || std::iter::repeat_with(|| doubted.rests()).take_while(|rests| *rests).count();
        assert_eq!(rest(), 16);
        assert_eq!((doubted.ran(true), doubted.rests()), (None, true), "it is known already");
        for tried in [false, true] {
            let mut doubted = Doubted::known(tried);
            assert_eq!(doubted.rests(), !tried);
            while doubted.rests() {}
            assert_eq!([doubted.ran(false), doubted.ran(false)], [Some(false), None]);
        }
    }

    #[test]
    fn only_a_tool_that_is_doubtful_in_most_runs_is_remembered() {
        let news = |runs: &[bool]| {
            let mut doubted = Doubted::default();
            let ran = |&is_doubtful: &bool| {
                while doubted.rests() {}
                doubted.ran(is_doubtful)
            };
            runs.iter().filter_map(ran).collect::<Vec<_>>()
        };
        assert_eq!(news(&[true; 3]), []);
        assert_eq!(news(&[true; 9]), [true]);
        // It rests, but is mostly harmless.
        assert_eq!(news(&[&[false; 8][..], &[true; 6]].concat()), []);
        assert_eq!(news(&[&[true; 4][..], &[false; 14]].concat()), [true, false]);
    }
}
