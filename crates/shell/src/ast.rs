//! The meaning of a command to lit's shell, as plain data.
//!
//! There is no nesting: the language has neither subshells nor precedence, so a command is a flat list.

/// A word after unquoting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Taken as it is: `a.c`, `'*'`.
    Text(String),
    /// Expanded to file names when it is used: `*.c`.
    Glob(String),
}

impl Word {
    /// Returns the word as written, without quotes.
    pub fn text(&self) -> &str {
        match self {
            Word::Text(text) | Word::Glob(text) => text,
        }
    }

    /// Returns the text of a word that is no glob. Words like `env` count only in this form.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Word::Text(text) => Some(text),
            Word::Glob(_) => None,
        }
    }
}

/// The sign of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectOp {
    /// `<`
    In,
    /// `<&`
    DupIn,
    /// `<>`, which lit lexes as a here-document's sign.
    HereDoc,
    /// `>`
    Out,
    /// `>>`
    Append,
    /// `>&`
    DupOut,
    /// `&>`
    Both,
}

impl RedirectOp {
    /// Returns the sign as lit names it in messages.
    pub fn sign(self) -> &'static str {
        match self {
            RedirectOp::In => "<",
            RedirectOp::DupIn => "<&",
            RedirectOp::HereDoc => "<<",
            RedirectOp::Out => ">",
            RedirectOp::Append => ">>",
            RedirectOp::DupOut => ">&",
            RedirectOp::Both => "&>",
        }
    }
}

/// The target of a redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `> file`
    Word(Word),
    /// `> >`, `> |`: accepted by the parser, an error when it runs. The sign and its descriptor.
    Sign(&'static str, Option<u64>),
}

/// `2> file`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// `>`
    pub op: RedirectOp,
    /// `2`
    pub fd: Option<u64>,
    /// `file`
    pub target: Target,
}

/// `not tool -x < in`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// At least one.
    pub words: Vec<Word>,
    /// In the order written.
    pub redirects: Vec<Redirect>,
}

impl Command {
    /// Returns the words as users see them.
    pub fn shown(&self) -> Vec<String> {
        self.words.iter().map(|word| word.text().to_owned()).collect()
    }

    /// Whether lit considers the two equal. lit never considers globs equal to anything.
    pub fn same_to_lit(&self, other: &Command) -> bool {
        let plain = |c: &Command| {
            c.words.iter().all(|w| w.literal().is_some())
                && c.redirects.iter().all(|r| !matches!(r.target, Target::Word(Word::Glob(_))))
        };
        self == other && plain(self)
    }
}

/// `a | b | c`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// At least one.
    pub stages: Vec<Command>,
}

/// An operator between two pipelines. All bind equally tightly, from the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `;`
    Then,
    /// `&`: parsed, never supported.
    Background,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// `a && b | c ; d`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ast {
    /// `a`
    pub first: Pipeline,
    /// `&& b | c`, `; d`
    pub rest: Vec<(Operator, Pipeline)>,
}
