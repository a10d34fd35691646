//! Starts that count as one: what was found of a file for the first of them holds for the others.
//!
//! The stages of a pipeline are started one after the other, and have most of their libraries in common. Nobody outside can
//! tell whether a file was changed before the second of them or before the first, unless the one who starts them changes it.

use std::cell::RefCell;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::sync::Arc;

use super::identity::{Identity, identify};

/// What was found at paths, which are the same if they are at the same address (`identity::Files`).
type Found = Vec<(*const CStr, Option<Identity>)>;

thread_local! {
    static FOUND: RefCell<Option<Found>> = const { RefCell::new(None) };
}

/// While it lives, the starts of this thread are one.
#[derive(Debug)]
pub struct Moment(PhantomData<*const ()>);

impl Moment {
    /// From now on, until this is dropped.
    pub fn begin() -> Moment {
        FOUND.set(Some(Vec::new()));
        Moment(PhantomData)
    }

    /// Takes note that this thread may have changed a file: the starts so far are not one with those to come.
    pub fn begin_again(&self) {
        FOUND.set(Some(Vec::new()));
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        FOUND.set(None);
    }
}

/// Calls `use_look` with a way to look at files, which asks the system once for each in a moment.
pub(super) fn looking<T>(use_look: impl FnOnce(&mut dyn FnMut(&Arc<CStr>) -> Option<Identity>) -> T) -> T {
    FOUND.with_borrow_mut(|found| match found {
        None => use_look(&mut |path| identify(path)),
        Some(found) => use_look(&mut |path| {
            let at = Arc::as_ptr(path);
            if let Some((_, known)) = found.iter().find(|(known, _)| std::ptr::addr_eq(*known, at)) {
                return *known;
            }
            let now = identify(path);
            found.push((at, now));
            now
        }),
    })
}
