//! One question to FileCheck: what its answer depends on, and a hash of that.

use std::sync::Arc;

use hotstart_filecheck::{Asked, Ready, Undecided, battery};
use hotstart_model::Environment;

use super::Call;
use super::libraries::Scene;
use super::passes::Hash;
use super::trust::Tool;
use crate::mark::Mark;

/// A use of FileCheck, before its input is known.
pub(crate) struct Question {
    pub(super) tool: Arc<Tool>,
    /// The hash of everything that the answer depends on, except the input. `None` if no passes are remembered.
    pub(super) asked: Option<Hash>,
    request: Asked,
    check: Arc<[u8]>,
    /// With the check file's version from before it was read.
    pub(super) scene: Scene,
    /// The parsed check file. Without one, a pass with this check file is remembered, and it is parsed only if another input
    /// makes that necessary.
    prepared: Option<Ready>,
}

/// Prefixes of the names of variables that FileCheck or LLVM's support library may look at.
const VARIABLES: [&str; 8] = ["FILECHECK_", "LLVM_", "LC_", "LANG", "TERM", "COLOR", "CLICOLOR", "NO_COLOR"];

impl Question {
    pub(super) fn new(
        tool: Arc<Tool>,
        asked: Option<Hash>,
        request: Asked,
        check: Arc<[u8]>,
        scene: Scene,
    ) -> Self {
        Question { tool, asked, request, check, scene, prepared: None }
    }

    /// Parses the check file.
    pub(super) fn prepare(&mut self) -> Result<(), Undecided> {
        self.prepared = Some(self.request.clone().prepare(&self.check)?);
        Ok(())
    }

    /// Whether FileCheck passes with this input, by the matcher.
    pub(super) fn decide(mut self, input: &[u8]) -> Result<(), Undecided> {
        if self.prepared.is_none() {
            self.prepare()?;
        }
        self.prepared.expect("prepared above").decide(input)
    }
}

/// Adds a field, so that no two lists of fields look alike.
fn add(hasher: &mut blake3::Hasher, field: &[u8]) {
    hasher.update(&(field.len() as u64).to_le_bytes());
    hasher.update(field);
}

/// Returns the hash of a FileCheck.
pub(super) fn about(tool: &Tool, files: &[Mark]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("hotstart: a FileCheck, 1");
    // The pass may be the matcher's, and another version of it may decide otherwise.
    add(&mut hasher, battery::version(tool.dialect).as_bytes());
    for mark in files {
        add(&mut hasher, mark.path.as_os_str().as_encoded_bytes());
        mark.numbers.iter().for_each(|number| add(&mut hasher, &number.to_le_bytes()));
    }
    add(&mut hasher, b"");
    for (name, value) in &tool.loader {
        add(&mut hasher, name.as_encoded_bytes());
        add(&mut hasher, value.as_encoded_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// Returns the hash of a call and its check file.
pub(super) fn called(call: &Call<'_>, check: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("hotstart: a call of FileCheck, 1");
    for (name, value) in looked_at(call.env) {
        add(&mut hasher, name.as_encoded_bytes());
        add(&mut hasher, value.as_encoded_bytes());
    }
    add(&mut hasher, b"");
    call.args.iter().for_each(|arg| add(&mut hasher, arg.as_bytes()));
    add(&mut hasher, check);
    *hasher.finalize().as_bytes()
}

/// Returns the hash of everything that the answer depends on except the input.
pub(super) fn asked(filecheck: &Hash, call: &Hash) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("hotstart: a question to FileCheck, 2");
    hasher.update(filecheck);
    hasher.update(call);
    *hasher.finalize().as_bytes()
}

/// Returns what stands for a question that the matcher has left to FileCheck at the end of the input.
pub(super) fn left(asked: &Hash) -> Hash {
    *blake3::Hasher::new_derive_key("hotstart: a question left to FileCheck, 1")
        .update(asked)
        .finalize()
        .as_bytes()
}

/// Returns the hash of a question with its input.
pub(super) fn answered(asked: &Hash, input: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("hotstart: a pass of FileCheck, 1");
    hasher.update(asked);
    hasher.update(input);
    *hasher.finalize().as_bytes()
}

fn looked_at(env: &Environment) -> impl Iterator<Item = (&std::ffi::OsStr, &std::ffi::OsStr)> {
    let is_looked_at = |name: &std::ffi::OsStr| {
        let name = name.as_encoded_bytes();
        VARIABLES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
    };
    env.iter().filter(move |(name, _)| is_looked_at(name))
}
