//! Generates regular expressions from a grammar. Most are valid, and nearly all of Python's syntax occurs. Tests of
//! other crates include this file, too.

/// Draws from a grammar. `below` returns a random number below its argument.
pub struct Grammar<'r> {
    /// The plain characters to match.
    pub letters: &'r [&'r str],
    /// The source of random numbers.
    pub below: &'r mut dyn FnMut(usize) -> usize,
    groups: usize,
}

impl<'r> Grammar<'r> {
    /// Returns a grammar over these plain characters.
    pub fn new(letters: &'r [&'r str], below: &'r mut dyn FnMut(usize) -> usize) -> Self {
        Grammar { letters, below, groups: 0 }
    }

    /// Returns a pattern.
    pub fn pattern(&mut self) -> String {
        self.groups = 0;
        let flags =
            if self.one_in(12) { self.pick(&["(?i)", "(?s)", "(?m)", "(?a)", "(?x)", "(?ai)"]) } else { "" };
        let mut pattern = format!("{flags}{}", self.alternatives(3));
        // A malformed pattern.
        if self.one_in(25) {
            let places: Vec<usize> = pattern.char_indices().map(|(at, _)| at).collect();
            let at = places.get((self.below)(places.len() + 1)).copied().unwrap_or(pattern.len());
            pattern.insert_str(
                at,
                self.pick(&["(", ")", "[", "]", "*", "+?", "{", "}", "\\", "|", "^", "?", "-", "$"]),
            );
        }
        pattern
    }

    fn one_in(&mut self, n: usize) -> bool {
        (self.below)(n) == 0
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[(self.below)(from.len())]
    }

    fn letter(&mut self) -> &'r str {
        self.letters[(self.below)(self.letters.len())]
    }

    fn alternatives(&mut self, depth: usize) -> String {
        let count = [1, 1, 1, 2, 3][(self.below)(5)];
        (0..count).map(|_| self.sequence(depth)).collect::<Vec<_>>().join("|")
    }

    fn sequence(&mut self, depth: usize) -> String {
        let count = [1, 1, 2, 2, 3, 4, 0][(self.below)(7)];
        (0..count).map(|_| self.item(depth)).collect()
    }

    fn item(&mut self, depth: usize) -> String {
        let kind = (self.below)(if depth == 0 { 12 } else { 16 });
        let atom = match kind {
            0..4 => self.letter().to_owned(),
            4 => ".".to_owned(),
            5 => self.pick(&[r"\w", r"\W", r"\d", r"\D", r"\s", r"\S"]).to_owned(),
            6 => self
                .pick(&[r"\.", r"\[", r"\]", r"\{", r"\-", r"\\", r"\x6f", r"\n", r"\t", r"\157", r"\u00e9"])
                .to_owned(),
            7 | 8 => self.set(),
            // These must not be repeated.
            9 => return self.pick(&["^", "$", r"\b", r"\B", r"\A", r"\Z"]).to_owned(),
            10 => self.pick(&["}", "]", "{", "{x}", "{,x}", "-", "#", "&"]).to_owned(),
            11 if self.groups > 0 => format!("\\{}", 1 + (self.below)(self.groups)),
            11 => self.letter().to_owned(),
            12 => return self.look(depth - 1),
            _ => self.group(depth - 1),
        };
        if self.one_in(3) { atom + self.repetition() } else { atom }
    }

    fn repetition(&mut self) -> &'static str {
        self.pick(&[
            "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{1,}", "{0}", "{0,1}?", "*+", "?+",
        ])
    }

    fn set(&mut self) -> String {
        const MEMBERS: &[&str] = &[
            "a-f", "n-t", "0-9", r"\w", r"\s", r"\D", r"\]", r"\\", r"\n", ".", "*", "(", "|", "{", "$", "^",
            "[", "&", "~",
        ];
        let mut set = self.pick(&["[", "[", "[", "[^", "[]", "[^]"]).to_owned();
        for _ in 0..=(self.below)(3) {
            let member = if self.one_in(2) { self.letter() } else { self.pick(MEMBERS) };
            // Python warns about an opening bracket at the front.
            set.push_str(if member == "[" && set.len() < 2 && !self.one_in(20) { "{" } else { member });
        }
        set + self.pick(&["]", "]", "]", "-]"])
    }

    fn group(&mut self, depth: usize) -> String {
        let open = match (self.below)(8) {
            0..4 => {
                let inner = self.alternatives(depth);
                self.groups += 1;
                return format!("({inner})");
            }
            4 => "(?:",
            5 => "(?>",
            6 => self.pick(&["(?i:", "(?s:", "(?m:", "(?a:", "(?-s:", "(?i-m:", "(?x:"]),
            _ if self.groups > 0 => {
                let (yes, no) = (self.sequence(depth), self.sequence(depth));
                return format!("(?({}){yes}|{no})", 1 + (self.below)(self.groups));
            }
            _ => "(?:",
        };
        format!("{open}{})", self.alternatives(depth))
    }

    fn look(&mut self, depth: usize) -> String {
        match self.pick(&["(?=", "(?!", "(?<=", "(?<!"]) {
            ahead @ ("(?=" | "(?!") => format!("{ahead}{})", self.alternatives(depth)),
            // Only content of fixed width.
            behind => {
                let set = if self.one_in(2) { self.set() } else { String::new() };
                format!("{behind}{}{set})", self.letter())
            }
        }
    }
}
