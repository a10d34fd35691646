//! The available acts, as the compiled program lists them.

use std::collections::BTreeSet;

/// The purpose of an act (`enum role` of acts/act.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Changes state.
    Disturbs,
    /// Shows state.
    Observes,
    /// Does both.
    Both,
    /// Ends the process.
    Ends,
    /// Takes much time.
    Rare,
    /// Runs before `main`.
    Before,
}

/// One act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// Its name.
    pub name: String,
    /// Its subject. Acts of one family are often drawn together.
    pub family: String,
    /// Its purpose.
    pub role: Role,
}

/// All acts of a program.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// In link order.
    pub acts: Vec<Act>,
    /// Acts that retire a persistent process. With too many of them in a sequence, nothing is ever reset.
    pub retiring: BTreeSet<String>,
}

impl Catalogue {
    /// Reads the output of `--list`. An error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let acts = text.lines().map(|line| parse_act(line).ok_or_else(|| format!("not an act: '{line}'")));
        let acts = acts.collect::<Result<Vec<_>, _>>()?;
        let names: BTreeSet<_> = acts.iter().map(|act| &act.name).collect();
        if names.len() != acts.len() {
            return Err("two acts have the same name".to_owned());
        }
        Ok(Catalogue { acts, retiring: BTreeSet::new() })
    }

    /// Returns the act of this name.
    pub fn find(&self, name: &str) -> Option<&Act> {
        self.acts.iter().find(|act| act.name == name)
    }

    /// Returns the acts of a role, of one family or of all.
    pub fn of(&self, role: Role, family: Option<&str>) -> Vec<&Act> {
        let fits = |act: &&Act| act.role == role && family.is_none_or(|family| act.family == family);
        self.acts.iter().filter(fits).collect()
    }

    /// Returns the names of all families.
    pub fn families(&self) -> Vec<&str> {
        let families: BTreeSet<_> = self.acts.iter().map(|act| act.family.as_str()).collect();
        families.into_iter().collect()
    }
}

fn parse_act(line: &str) -> Option<Act> {
    let mut words = line.split_whitespace();
    let (name, family) = (words.next()?.to_owned(), words.next()?.to_owned());
    let role = match words.next()? {
        "disturbs" => Role::Disturbs,
        "observes" => Role::Observes,
        "both" => Role::Both,
        "ends" => Role::Ends,
        "rare" => Role::Rare,
        "before" => Role::Before,
        _ => return None,
    };
    Some(Act { name, family, role })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let catalogue = Catalogue::parse("a files disturbs\nb cpu observes\n").unwrap();
        assert_eq!(catalogue.families(), ["cpu", "files"]);
        assert_eq!(catalogue.of(Role::Observes, None)[0].name, "b");
        assert!(catalogue.of(Role::Observes, Some("files")).is_empty());
        assert_eq!(Catalogue::parse("a b c").unwrap_err(), "not an act: 'a b c'");
        assert!(Catalogue::parse("a x both\na y both").is_err());
    }
}
