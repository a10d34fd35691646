//! An adversary of the matcher: a generator that looks for wrong passes, in either dialect.
//!
//! It derives an expression and a text that it may match at the same time, from a grammar of all that is easily got wrong: nested
//! groups, empty alternatives, odd sets and bounds, anchors anywhere, blocks that are none, prefixes within prefixes. The input is made of
//! these texts, as the directives want it, and then changed a little, again and again. So complicated check files pass often, and most
//! other inputs nearly pass. Only passes of the matcher need be compared with the program, which is the slow part.

use std::collections::HashMap;

use hotstart_filecheck::Dialect;

/// Inputs for each check file.
const INPUTS: usize = 24;

/// A check file with its options, and some inputs.
pub struct Case {
    pub args: Vec<String>,
    pub check: String,
    pub inputs: Vec<String>,
}

/// A generator of cases (xorshift).
pub struct Adversary {
    state: u64,
    dialect: Dialect,
    /// The texts of variables, as the derived input has them.
    values: HashMap<&'static str, String>,
}

/// A part of a check file, and a text that it may match.
type Derived = (String, String);

const KINDS: [&str; 10] = ["", "", "-NEXT", "-NEXT", "-SAME", "-NOT", "-EMPTY", "-LABEL", "-COUNT-2", "-DAG"];

impl Adversary {
    pub fn new(seed: u64, dialect: Dialect) -> Self {
        Adversary { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, dialect, values: HashMap::new() }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % limit
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn atom(&mut self, depth: usize) -> Derived {
        const SETS: [(&str, &str); 20] = [
            ("[ab]", "b"),
            ("[^a]", "b"),
            ("[^ab]", "1"),
            ("[^ ]", "a"),
            ("[]a]", "]"),
            ("[^]a]", "b"),
            ("[a-]", "-"),
            ("[a-c1]", "c"),
            ("[(]", "("),
            ("[[:alpha:]]", "a"),
            ("[^[:space:]]", "a"),
            ("[[a]", "["),
            ("[.*]", "*"),
            ("[\\]]", "]"),
            ("[\\w]", "w"),
            ("[^\\n]", "a"),
            ("[a\\-c]", "-"),
            ("[$^]", "$"),
            ("[^^]", "a"),
            ("[b-a]", "a"),
        ];
        const ESCAPES: [(&str, &str); 16] = [
            ("\\(", "("),
            ("\\)", ")"),
            ("\\.", "."),
            ("\\[", "["),
            ("\\\\", "\\"),
            ("\\d", "1"),
            ("\\w", "a"),
            ("\\s", " "),
            ("\\S", "b"),
            ("\\b", ""),
            ("\\1", "a"),
            ("\\a", "a"),
            ("\\n", "\n"),
            ("\\$", "$"),
            ("\\{", "{"),
            ("\\t", "\t"),
        ];
        const ODD: [&str; 10] = ["{", "}", "]", "{,2}", "(?=a)", "(?i)", "(?P<n>a)", ")", "(", "*"];
        let of = |pair: (&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
        match self.below(20) {
            0..=6 => {
                let letter = self.of(&["a", "b", "1", " ", "x", "=", "%", ","]).to_owned();
                (letter.clone(), letter)
            }
            7 | 8 => (".".to_owned(), self.of(&["a", "b", " ", "."]).to_owned()),
            9 | 10 => of(self.of(&SETS)),
            11 => of(self.of(&ESCAPES)),
            12 => (self.of(&["^", "$"]).to_owned(), String::new()),
            13 if self.one_in(4) => {
                let odd = self.of(&ODD).to_owned();
                (odd.clone(), odd)
            }
            _ if depth > 0 => {
                let (expression, text) = self.expression(depth - 1);
                let open = if self.one_in(8) { "(?:" } else { "(" };
                (format!("{open}{expression})"), text)
            }
            _ => ("a".to_owned(), "a".to_owned()),
        }
    }

    fn expression(&mut self, depth: usize) -> Derived {
        let count = 1 + self.below(5) / 3;
        let mut all: Vec<Derived> = Vec::new();
        for _ in 0..count {
            let mut sequence = (String::new(), String::new());
            for _ in 0..self.below(3) + usize::from(!self.one_in(10)) {
                let (atom, text) = self.atom(depth);
                let (bound, times) = match self.below(12) {
                    0 => ("*", self.below(3)),
                    1 => ("+", 1 + self.below(2)),
                    2 => ("?", self.below(2)),
                    3 => self.of(&[("{2}", 2), ("{1,2}", 1), ("{0,2}", 0), ("{2,}", 3), ("{0}", 0)]),
                    4 => self.of(&[("*?", 1), ("+?", 1), ("??", 0), ("*+", 1), ("**", 1), ("+*", 1)]),
                    _ => ("", 1),
                };
                sequence.0 += &atom;
                sequence.0 += bound;
                sequence.1 += &text.repeat(times);
            }
            all.push(sequence);
        }
        let text = all[self.below(all.len())].1.clone();
        let expressions: Vec<String> = all.into_iter().map(|one| one.0).collect();
        (expressions.join("|"), text)
    }

    fn name(&mut self) -> &'static str {
        self.of(&["X", "X", "Y", "$Z", "X1"])
    }

    fn block(&mut self) -> Derived {
        const ODD: [&str; 12] =
            ["[[", "]]", "{{", "}}", "[", "]", "{", "}", "[[#X]]", "[[# @LINE]]", "[[@LINE]]", "[[X"];
        match self.below(10) {
            0..=3 => {
                let (expression, text) = self.expression(2);
                (format!("{{{{{expression}}}}}"), text)
            }
            4 | 5 => {
                let (name, (expression, text)) = (self.name(), self.expression(2));
                self.values.insert(name, text.clone());
                (format!("[[{name}:{expression}]]"), text)
            }
            6 | 7 => {
                let name = self.name();
                (format!("[[{name}]]"), self.values.get(name).cloned().unwrap_or_default())
            }
            8 if self.dialect == Dialect::Llvm => {
                let number = self.below(12);
                let (block, text) = self.of(&[
                    ("[[#N:]]", "7"),
                    ("[[#N]]", "7"),
                    ("[[#N+1]]", "8"),
                    ("[[#%x,H:]]", "a"),
                    ("[[#%.2u,D:]]", "07"),
                    ("[[#N-7]]", "0"),
                    ("[[#%X,H]]", "A"),
                ]);
                let text = if self.one_in(4) { number.to_string() } else { text.to_owned() };
                (block.to_owned(), text)
            }
            _ => {
                let odd = self.of(&ODD).to_owned();
                (odd.clone(), odd)
            }
        }
    }

    /// Returns the text of a directive.
    fn text(&mut self) -> Derived {
        let (mut text, mut matched) = (String::new(), String::new());
        for _ in 0..=self.below(4) {
            if self.one_in(2) {
                let (block, part) = self.block();
                text += &block;
                matched += &part;
                continue;
            }
            let word = self.of(&[
                "a", "b", "ab", "a b", " ", "  ", "x", "(", "a.b", "%0 = ", "1", "\\", "|", "CHECK", "-",
            ]);
            text += word;
            matched += word;
            if self.one_in(12) {
                matched += self.of(&[" ", "\t"]);
            }
        }
        (text, matched)
    }

    fn prefix(&mut self) -> &'static str {
        if self.one_in(12) { self.of(&["A", "AB", "CHECK-A", "CHECK2", "COM"]) } else { "CHECK" }
    }

    pub fn case(&mut self) -> Case {
        if self.one_in(3) {
            return self.captures();
        }
        self.values.clear();
        let (mut check, mut input) = (String::new(), String::new());
        let last = self.below(5);
        for index in 0..=last {
            let (kind, prefix, (text, matched)) = (self.of(&KINDS), self.prefix(), self.text());
            let text = if kind == "-EMPTY" && !self.one_in(9) { String::new() } else { text };
            let literal = if self.one_in(25) { "{LITERAL}" } else { "" };
            let before = self.of(&["", "", "", "; ", "x ", "_", "1", "CHECK ", "COM: ", "A: b "]);
            let blank = self.of(&[" ", " ", " ", "", "  ", "\t"]);
            check += &format!("{before}{prefix}{kind}{literal}:{blank}{text}");
            check += if index < last || !self.one_in(4) { "\n" } else { "" };
            match kind {
                "-SAME" => input += &matched,
                "-EMPTY" => input += "\n\n",
                "-NOT" if !self.one_in(8) => {}
                "-COUNT-2" => input += &format!("\n{matched}\n{matched}"),
                _ => input += &format!("\n{matched}"),
            }
            if self.one_in(6) {
                input += self.of(&["b", "\n", "a\n", " ", "\nab"]);
            }
        }
        if !self.one_in(5) {
            input = input.trim_start_matches('\n').to_owned();
        }
        input += self.of(&["\n", "\n", "\n", "", "\n\n", "a"]);
        let mut inputs = vec![input];
        while inputs.len() < INPUTS {
            // Half of them change the first input, the others the one before.
            let from = if self.one_in(2) { 0 } else { inputs.len() - 1 };
            let mutant = self.mutant(&inputs[from].clone());
            inputs.push(mutant);
        }
        Case { args: self.args(), check, inputs }
    }

    /// Returns a case that passes only if variables have certain values. What they get is ambiguous, and each input tries another guess.
    fn captures(&mut self) -> Case {
        const AMBIGUOUS: [&str; 16] = [
            ".*",
            ".+",
            "a*",
            "a+",
            "a?",
            "[ab]*",
            "[^ ]+",
            "a|ab",
            "(a|ab)(b|ba)?",
            "(ab)*",
            "(a|b)*b",
            "b*a",
            "(a|ab|b)+",
            ".*b",
            "a*b?",
            "(a*)(b)*",
        ];
        let expression = |adversary: &mut Self| match adversary.one_in(6) {
            true => adversary.expression(1).0,
            false => adversary.of(&AMBIGUOUS).to_owned(),
        };
        let mut first = String::new();
        for name in ["X", "Y"] {
            match self.below(4) {
                0 => first += self.of(&["a", "b", " ", "ab"]),
                1 => first += &format!("{{{{{}}}}}", expression(self)),
                _ => {}
            }
            first += &format!("[[{name}:{}]]", expression(self));
        }
        match self.below(4) {
            0 => first += self.of(&["a", "b", " "]),
            1 => first += &format!("{{{{{}}}}}", expression(self)),
            2 => first += self.of(&["{{$}}", "[[X]]", "[[Y]]"]),
            _ => {}
        }
        let start = if self.one_in(3) { "{{^}}" } else { "" };
        let check = format!("CHECK: {start}{first}\nCHECK-NEXT: <[[X]]|[[Y]]>\n");
        let mut inputs = Vec::new();
        while inputs.len() < 4 * INPUTS {
            let letters: Vec<&str> =
                (0..=self.below(6)).map(|_| self.of(&["a", "b", "a", "b", " ", "1"])).collect();
            let line = letters.concat();
            let mut piece = || {
                let from = self.below(line.len() + 1);
                let length = self.below(line.len() + 1 - from);
                &line[from..from + length]
            };
            inputs.extend((0..INPUTS / 3).map(|_| format!("{line}\n<{}|{}>\n", piece(), piece())));
        }
        Case { args: self.args(), check, inputs }
    }

    /// Returns an input with one small change.
    fn mutant(&mut self, input: &str) -> String {
        let mut all: Vec<char> = input.chars().collect();
        let at = self.below(all.len() + 1);
        match self.below(6) {
            0 | 1 => all.insert(at, self.of(&['a', 'b', '1', ' ', '\n', '\t', '(', ']', 'x'])),
            2 if at < all.len() => _ = all.remove(at),
            3 if at + 1 < all.len() => all.swap(at, at + 1),
            4 => {
                let end = at + self.below(all.len() + 1 - at);
                let piece = all[at..end].to_vec();
                all.splice(at..at, piece);
            }
            _ => {
                let end = (at + self.below(4)).min(all.len());
                all.drain(at..end);
            }
        }
        all.truncate(400);
        all.into_iter().collect()
    }

    fn args(&mut self) -> Vec<String> {
        let mut args = vec!["check".to_owned()];
        for (chance, option) in [
            (5, "--strict-whitespace"),
            (5, "--match-full-lines"),
            (12, "--allow-empty"),
            (12, "--check-prefix=A"),
            (12, "--check-prefixes=CHECK,CHECK-A"),
            (16, "--check-prefixes=CHECK,A,AB"),
            (12, "-DX=a"),
            (16, "-DX=a.b"),
            (20, "--comment-prefixes=A,x"),
            (15, "--enable-var-scope"),
            (30, "--allow-unused-prefixes"),
        ] {
            if self.one_in(chance) {
                args.push(option.to_owned());
            }
        }
        if self.dialect == Dialect::Llvm {
            for (chance, option) in [(10, "--ignore-case"), (15, "--implicit-check-not=b"), (15, "-D#N=7")] {
                if self.one_in(chance) {
                    args.push(option.to_owned());
                }
            }
        }
        args
    }
}
