//! Entry points for fuzz/: parsers that are private otherwise.

use crate::warm::wire::{End, Ready, Reply};

/// Decodes a message as each that the runtime sends; whether it is one.
pub fn runtime_message(bytes: &[u8]) -> bool {
    let known =
        [Ready::decode(bytes).is_some(), Reply::decode(bytes).is_some(), End::decode(bytes).is_some()];
    known.contains(&true)
}
