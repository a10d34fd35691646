//! The order of the runs: A B B A for two candidates, rotated and mirrored for more.
//!
//! Every second round mirrors the one before, so that within two rounds each candidate has the same mean position. Even
//! changes over time, such as a warming machine, cancel out. With more than two, each pair of rounds begins with the next
//! candidate; with three, each one follows each other one.

/// Returns the indices of `count` candidates in the order of this round, which counts from 0.
pub fn order(round: usize, count: usize) -> Vec<usize> {
    let start = if count > 2 { round / 2 % count } else { 0 };
    let mut order: Vec<usize> = (0..count).map(|n| (n + start) % count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(rounds: usize, count: usize) -> String {
        let one = |round| order(round, count).iter().map(|&n| (b'A' + n as u8) as char).collect::<String>();
        (0..rounds).map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn two_run_a_b_b_a() {
        assert_eq!(letters(4, 2), "AB BA AB BA");
    }

    #[test]
    fn more_are_rotated_and_mirrored() {
        assert_eq!(letters(6, 3), "ABC CBA BCA ACB CAB BAC");
    }

    #[test]
    fn each_has_the_same_mean_place() {
        for count in 1..6 {
            let mut places = vec![0; count];
            for round in 0..2 * count {
                order(round, count).iter().enumerate().for_each(|(place, &who)| places[who] += place);
            }
            assert!(places.iter().all(|&sum| sum == places[0]), "{count}: {places:?}");
        }
    }
}
