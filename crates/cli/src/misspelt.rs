//! Guesses what a misspelt word means.

/// Least likeness of a guess, from 0 to 1. `--wrokers` and `--workers` have 0.97, `--cold` and `--color` 0.89.
const LIKE: f64 = 0.9;

/// Returns the known word that is most like this one, if any is like it.
pub(crate) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let rated = known.map(|name| (strsim::jaro_winkler(word, name), name)).filter(|(like, _)| *like >= LIKE);
    rated.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_word_that_is_like_another_is_guessed() {
        let known = || ["--workers", "--parity", "--keep-cold", "server", "exec"].into_iter();
        for (word, meant) in [
            ("--wrokers", Some("--workers")),
            ("--paritty", Some("--parity")),
            ("--keepcold", Some("--keep-cold")),
            ("servr", Some("server")),
            ("--frobnicate", None),
            ("run", None),
        ] {
            assert_eq!(nearest(word, known()), meant, "{word}");
        }
    }
}
