//! The two programs whose passes are decided. Each has rules of its own, and they share no matcher.

use crate::{Certain, Prepared, Request, pypi};

/// A program with rules of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// LLVM's FileCheck.
    #[default]
    Llvm,
    /// `filecheck` of PyPI, version 1.0.6.
    Pypi,
}

/// A call of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// LLVM's.
    Llvm(Request),
    /// PyPI's.
    Pypi(pypi::Request),
}

/// A call with its check file, parsed.
#[derive(Debug)]
pub enum Ready {
    /// LLVM's.
    Llvm(Prepared),
    /// PyPI's.
    Pypi(pypi::Prepared),
}

impl Dialect {
    /// Reads the arguments after the program's name, and the value of `FILECHECK_OPTS`, which PyPI's program ignores.
    pub fn parse<S: AsRef<str>>(self, args: &[S], environment: Option<&str>) -> Certain<Asked> {
        Ok(match self {
            Dialect::Llvm => Asked::Llvm(Request::parse(args, environment)?),
            Dialect::Pypi => Asked::Pypi(pypi::Request::parse(args)?),
        })
    }
}

impl Asked {
    /// Returns the check file, as given.
    pub fn check_file(&self) -> &str {
        match self {
            Asked::Llvm(request) => &request.check_file,
            Asked::Pypi(request) => &request.check_file,
        }
    }

    /// Returns the file to check. `None` is standard input.
    pub fn input_file(&self) -> Option<&str> {
        match self {
            Asked::Llvm(request) => request.input_file.as_deref(),
            Asked::Pypi(request) => request.input_file.as_deref(),
        }
    }

    /// Parses a check file. It is undecided if the program would complain about it without any input.
    pub fn prepare(self, check_file: &[u8]) -> Certain<Ready> {
        Ok(match self {
            Asked::Llvm(request) => Ready::Llvm(request.prepare(check_file)?),
            Asked::Pypi(request) => Ready::Pypi(request.prepare(check_file)?),
        })
    }

    /// Returns `Ok` if the program passes with this check file and this input, with status 0 and without output.
    pub fn decide(&self, check_file: &[u8], input: &[u8]) -> Certain<()> {
        self.clone().prepare(check_file)?.decide(input)
    }
}

impl Ready {
    /// Returns `Ok` if the program passes with this input.
    pub fn decide(self, input: &[u8]) -> Certain<()> {
        match self {
            Ready::Llvm(prepared) => prepared.decide(input),
            Ready::Pypi(prepared) => prepared.decide(input),
        }
    }
}
