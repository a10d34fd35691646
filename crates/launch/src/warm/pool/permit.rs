//! A claim as a value: the holder of a permit may have one process, and dropping the permit frees the place.
//!
//! No code counts by hand. A path that returns early, or panics, frees the place like any other.

use std::fmt;
use std::sync::Arc;

use super::Unit;
use super::places::{Id, Why};

/// The kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Zygote,
    Worker,
}

/// A tool, as far as a permit knows it.
pub(crate) trait Owner: fmt::Debug + Send + Sync {
    /// Gives up a place that no permit holds any more.
    fn free(&self, kind: Kind, id: Id, why: Why);
}

/// A place in which the holder may have a process.
#[derive(Debug)]
pub(crate) struct Permit {
    owner: Option<Arc<dyn Owner>>,
    kind: Kind,
    id: Id,
    why: Why,
}

impl Permit {
    /// Creates a permit for the place `id`, which was claimed or emptied just now.
    pub(crate) fn new(owner: Arc<dyn Owner>, kind: Kind, id: Id) -> Self {
        Permit { owner: Some(owner), kind, id, why: Why::default() }
    }

    /// Creates a permit for a process without a place, which ends with its only run.
    pub(crate) fn without_place() -> Self {
        Permit { owner: None, kind: Kind::Worker, id: Id::NONE, why: Why::default() }
    }

    pub(crate) fn id(&self) -> Id {
        self.id
    }

    /// Gives up the permit but not the place, since the process goes back there.
    fn dissolve(mut self) -> Id {
        self.owner = None;
        self.id
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            owner.free(self.kind, self.id, self.why);
        }
    }
}

/// A process in use. If it is dropped, the process ends, and then its place is free.
#[derive(Debug)]
pub(crate) struct Held<P> {
    // Before the permit, since fields are dropped in this order.
    pub unit: Unit<P>,
    permit: Permit,
}

impl<P> Held<P> {
    pub(crate) fn new(unit: Unit<P>, permit: Permit) -> Self {
        Held { unit, permit }
    }

    pub(crate) fn id(&self) -> Id {
        self.permit.id()
    }

    /// Ends the process.
    pub(crate) fn retire(mut self, why: Why) {
        self.permit.why = why;
    }

    /// Splits off the process, for putting it back into its place.
    pub(crate) fn into_parts(self) -> (Id, Unit<P>) {
        (self.permit.dissolve(), self.unit)
    }
}
