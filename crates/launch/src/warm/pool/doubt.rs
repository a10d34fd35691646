//! Lets a tool rest, cold, when too many of its recent runs are doubtful.
//!
//! A doubtful run costs a second, cold run of the whole test. Whether runs are doubtful depends on the tests more than on the tool: the
//! tests that crash opt lie side by side, and a suite that begins with yesterday's failures begins with them. So the share is that of
//! recent runs, and no rest is for ever. Each rest is twice as long as the last one, unless the tool was warm for longer in between.

/// Doubtful runs that suffice, if they are more than one in so many.
const DOUBTFUL_MIN: u32 = 2;
const DOUBTFUL_ONE_IN: u32 = 8;
/// Runs after which both counts are halved, so that old runs count for less.
const RECENT: u32 = 64;
/// Cold starts of the first rest, and of the longest.
const REST_FIRST: u32 = 16;
const REST_MOST: u32 = 1024;

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
}

impl Doubted {
    /// Counts a start. Returns whether the tool rests, so that the start is cold.
    pub(crate) fn rests(&mut self) -> bool {
        let rests = self.left > 0;
        self.left = self.left.saturating_sub(1);
        rests
    }

    /// Records a run, and whether it was doubtful. Runs that began before a rest do not count during it.
    pub(crate) fn ran(&mut self, is_doubtful: bool) {
        if self.left > 0 {
            return;
        }
        if self.recent == RECENT {
            self.recent /= 2;
            self.doubtful /= 2;
        }
        self.runs = self.runs.saturating_add(1);
        self.recent += 1;
        self.doubtful += u32::from(is_doubtful);
        if is_doubtful && self.doubtful >= DOUBTFUL_MIN && self.doubtful * DOUBTFUL_ONE_IN > self.recent {
            self.rest();
        }
    }

    fn rest(&mut self) {
        let before = if self.runs > self.last { 0 } else { self.last };
        let length = (2 * before).clamp(REST_FIRST, REST_MOST);
        *self = Doubted { left: length, last: length, ..Doubted::default() };
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
        assert_eq!(run(20_000, |_| true), (50, 50));
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
            (0..runs).for_each(|_| doubted.ran(false));
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
        (0..40).for_each(|_| doubted.ran(true));
        assert_eq!(std::iter::repeat_with(|| doubted.rests()).take_while(|rests| *rests).count(), 16);
    }
}
