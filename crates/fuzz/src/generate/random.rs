//! A small generator of pseudo-random numbers (SplitMix64): the same seed gives the same sequences on every machine.

/// The state of the generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the generator of the sequence `number` under `seed`.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random = Random(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        random.bits();
        random
    }

    /// Returns 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// Returns true once in `times` draws on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of `items`. `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.below(items.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed, number| {
            let mut random = Random::new(seed, number);
            (0..5).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn every_number_below_the_bound_comes() {
        let mut random = Random::new(7, 0);
        let mut seen = [false; 6];
        (0..200).for_each(|_| seen[random.below(6)] = true);
        assert_eq!(seen, [true; 6]);
        assert_eq!(random.pick::<u8>(&[]), None);
    }
}
