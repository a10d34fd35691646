//! All options, in the order in which help and messages list them.

mod ab;
mod debug;
mod execution;
mod general;
mod output;
mod own;
mod remote;
mod selection;
mod warm;

use super::flag::Flag;

/// Options that help shows together.
pub(super) struct Group {
    /// Headline; `None` for the first group, which follows the paths.
    pub title: Option<&'static str>,
    /// Its options, in order.
    pub flags: &'static [Flag],
}

const OF_LIT: [Group; 5] = [
    Group { title: None, flags: &general::FLAGS },
    Group { title: Some("Output Format"), flags: &output::FLAGS },
    Group { title: Some("Test Execution"), flags: &execution::FLAGS },
    Group { title: Some("Test Selection"), flags: &selection::FLAGS },
    Group { title: Some("Debug and Experimental Options"), flags: &debug::FLAGS },
];

const OWN: [Group; 4] = [
    Group { title: Some("Only in hotstart"), flags: &own::FLAGS },
    Group { title: Some("Tests on other machines, only in hotstart"), flags: &remote::FLAGS },
    Group { title: Some("Comparison with another lit, only in hotstart"), flags: &ab::FLAGS },
    Group { title: Some("Warm starts, only in hotstart"), flags: &warm::FLAGS },
];

/// Returns all groups.
pub(super) fn groups() -> impl Iterator<Item = &'static Group> {
    OF_LIT.iter().chain(&OWN)
}

/// Returns lit's options.
pub(super) fn of_lit() -> impl Iterator<Item = &'static Flag> {
    OF_LIT.iter().flat_map(|group| group.flags)
}

/// Returns hotstart's own options.
pub(super) fn own() -> impl Iterator<Item = &'static Flag> {
    OWN.iter().flat_map(|group| group.flags)
}

/// Returns whether the option belongs to the comparison with another lit.
pub(super) fn is_of_ab(flag: &Flag) -> bool {
    ab::FLAGS.iter().any(|known| known.names == flag.names)
}

/// Returns whether this is an option of lit that names a file for results.
pub(super) fn is_report(flag: &Flag) -> bool {
    let is_output =
        |name: &&str| *name == "--output" || name.ends_with("-output") && *name != "--test-output";
    flag.names.iter().any(is_output)
}

/// Returns whether lit has this option.
pub(super) fn is_of_lit(flag: &Flag) -> bool {
    of_lit().any(|known| known.names == flag.names)
}

/// Returns all options.
pub(super) fn all() -> impl Iterator<Item = &'static Flag> {
    of_lit().chain(own())
}

/// Returns the option of exactly this name.
pub(super) fn find(name: &[u8]) -> Option<(&'static Flag, &'static str)> {
    all().find_map(|flag| {
        let name = flag.names.iter().find(|known| known.as_bytes() == name)?;
        Some((flag, *name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_own_name_hides_an_abbreviation_of_lits() {
        // An exact name wins over what it abbreviates.
        for own in own().flat_map(|flag| flag.names) {
            let hides = |name: &&&str| name.starts_with(own);
            assert_eq!(of_lit().flat_map(|flag| flag.names).find(hides), None, "{own}");
        }
    }

    #[test]
    fn no_name_is_used_twice() {
        let mut names: Vec<_> = all().flat_map(|flag| flag.names).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
