//! Finds where a tool keeps the number of its arguments before `main`, as Rust's library does. The runtime writes the number
//! of each start there.
//!
//! Only words in the data of a file count, since their addresses follow from the file's mapping. A word that a constructor
//! has allocated may lie elsewhere in the next process.

use super::maps::{self, Mapping};

/// A word, by a mapping of its file and its distance from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub path: String,
    /// The mapping's offset in the file.
    pub offset: u64,
    pub access: [u8; 4],
    pub distance: u64,
}

/// Returns the place of the word at `address`.
pub(super) fn place(maps: &[Mapping], address: u64) -> Option<Place> {
    let at = maps.iter().position(|mapping| (mapping.from..mapping.to).contains(&address))?;
    let file = maps[..=at].iter().rfind(|mapping| !mapping.path.is_empty())?;
    let place = Place {
        path: maps::owners(maps).get(at)?.to_string(),
        offset: file.offset,
        access: file.access,
        distance: address - file.from,
    };
    (place.path.starts_with('/') && find(maps, &place) == Some(address)).then_some(place)
}

/// Returns the addresses of `places` in a process; `None` if one of them is ambiguous or missing.
pub(crate) fn addresses(places: &[Place], pid: i32) -> Option<Vec<u64>> {
    if places.is_empty() {
        return Some(Vec::new());
    }
    let maps = maps::of(pid).ok()?;
    places.iter().map(|place| find(&maps, place)).collect()
}

/// Returns the word's address, if its mapping is the only one of that kind, and the word is private and writable.
fn find(maps: &[Mapping], place: &Place) -> Option<u64> {
    let is_same = |mapping: &Mapping| {
        (&mapping.path, mapping.offset, mapping.access) == (&place.path, place.offset, place.access)
    };
    let mut same = maps.iter().filter(|mapping| is_same(mapping));
    let address = same.next()?.from.checked_add(place.distance)?;
    let at = maps.iter().position(|mapping| (mapping.from..mapping.to).contains(&address))?;
    let is_own = maps::owners(maps)[at] == place.path && maps[at].access == *b"rw-p";
    (same.next().is_none() && is_own && address % 4 == 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(text: &str) -> Vec<Mapping> {
        text.lines().map(|line| maps::parse(line.trim()).unwrap()).collect()
    }

    #[test]
    fn a_word_is_found_again_where_its_file_lies_elsewhere() {
        let here = "1000-2000 r--p 00000000 fe:00 42  /bin/tool
                    2000-3000 rw-p 00001000 fe:00 42  /bin/tool
                    3000-5000 rw-p 00000000 00:00 0
                    9000-a000 rw-p 00000000 00:00 0   [heap]";
        let there = "71000-72000 r--p 00000000 fe:00 42  /bin/tool
                     72000-73000 rw-p 00001000 fe:00 42  /bin/tool
                     73000-75000 rw-p 00000000 00:00 0";
        for (address, elsewhere) in [(0x2008, 0x72008), (0x3ffc, 0x73ffc)] {
            let place = place(&maps(here), address).unwrap();
            assert_eq!(find(&maps(there), &place), Some(elsewhere));
        }
        let word = place(&maps(here), 0x2008).unwrap();
        for (address, why) in
            [(0x1008, "not written"), (0x9008, "no file's"), (0x2002, "odd"), (0x6000, "nothing")]
        {
            assert_eq!(place(&maps(here), address), None, "{why}");
        }
        let twice = format!("{there}\n80000-81000 rw-p 00001000 fe:00 42  /bin/tool");
        assert_eq!(find(&maps(&twice), &word), None);
        assert_eq!(find(&maps(&there.replace("72000-73000 rw-p", "72000-73000 rw-s")), &word), None);
    }
}
