//! Who runs when: A B B A for two, rotated and mirrored for more.
//!
//! Every second round is the mirror of the one before, so that within two rounds each candidate has the same mean
//! place: what changes evenly over time (a warming machine) cancels out. With more than two, each pair of rounds
//! begins with another one, so that each follows each other one.

/// Indices of `count` candidates in the order of this round.
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
