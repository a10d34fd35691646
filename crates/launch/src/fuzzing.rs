//! Entry points for fuzz/ to parsers that are otherwise private.

use crate::warm::wire::{End, Ready, Reply};

/// Decodes `bytes` as each message that the runtime sends. Returns whether it is one.
pub fn runtime_message(bytes: &[u8]) -> bool {
    let known =
        [Ready::decode(bytes).is_some(), Reply::decode(bytes).is_some(), End::decode(bytes).is_some()];
    known.contains(&true)
}
