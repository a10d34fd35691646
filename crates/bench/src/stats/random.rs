//! Random numbers for resampling: SplitMix64 with a seed, so that the same samples always give the same interval.
//!
//! This is no library's generator: it has ten lines, and its sequence must not change with a library's version.

/// A generator; equal seeds give equal sequences.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which must not be 0. (Multiply and shift; its bias is below `bound` / 2^64.)
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Returns a number in 0..1.
    #[cfg(test)]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number of the normal distribution with mean 0 and deviation 1.
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences_within_bounds() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        let mut seen = [0; 5];
        for _ in 0..1000 {
            let value = a.below(5);
            assert_eq!(value, b.below(5));
            seen[value] += 1;
        }
        assert!(seen.iter().all(|&n| n > 140), "{seen:?}");
        assert_eq!(Random::new(0).bits(), 0xe220_a839_7b1d_cdaf, "SplitMix64's published first value");
    }
}
