//! Estimates the fraction of a run's time that is done. Tests count with their last times, or else with the average.

/// Sums of the known times of past and coming tests.
#[derive(Debug, Default)]
pub(crate) struct Predictor {
    completed: u32,
    elapsed: f64,
    known_left: u32,
    known_seconds_left: f64,
    unknown_left: u32,
}

impl Predictor {
    /// Creates a predictor from the last times of all tests, in seconds; zero is unknown.
    pub(crate) fn new(previous: impl Iterator<Item = f64>) -> Self {
        let mut predictor = Predictor::default();
        for seconds in previous {
            if seconds == 0.0 {
                predictor.unknown_left += 1;
            } else {
                predictor.known_left += 1;
                predictor.known_seconds_left += seconds;
            }
        }
        predictor
    }

    /// Counts a test that took `previous` seconds the last time and `elapsed` now. Returns the fraction that is done.
    pub(crate) fn advance(&mut self, previous: f64, elapsed: f64) -> f64 {
        self.completed += 1;
        self.elapsed += elapsed;
        if previous == 0.0 {
            self.unknown_left = self.unknown_left.saturating_sub(1);
        } else {
            self.known_left = self.known_left.saturating_sub(1);
            self.known_seconds_left -= previous;
        }
        let average = (self.elapsed + self.known_seconds_left) / f64::from(self.completed + self.known_left);
        let left = self.known_seconds_left + average * f64::from(self.unknown_left);
        let total = self.elapsed + left;
        if total > 0.0 { self.elapsed / total } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_tests_count_as_the_average() {
        let mut predictor = Predictor::new([0.0, 0.0, 0.0, 0.0].into_iter());
        assert_eq!(predictor.advance(0.0, 2.0), 0.25);
        assert_eq!(predictor.advance(0.0, 2.0), 0.5);
    }

    #[test]
    fn known_tests_count_as_long_as_they_took() {
        let mut predictor = Predictor::new([9.0, 1.0].into_iter());
        assert_eq!(predictor.advance(1.0, 1.0), 0.1);
        assert_eq!(predictor.advance(9.0, 9.0), 1.0);
    }

    #[test]
    fn no_time_is_no_progress() {
        assert_eq!(Predictor::new([0.0].into_iter()).advance(0.0, 0.0), 0.0);
    }
}
