//! A claim as a value: whoever holds a permit may have one process, and the place is free again when the permit is dropped.
//!
//! Nobody counts by hand. A path that returns early, or panics, gives the place back like any other.

use std::fmt;
use std::sync::Arc;

use super::Unit;
use super::places::{Id, Why};

/// Which places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Zygote,
    Worker,
}

/// A tool, as far as a permit knows it.
pub(crate) trait Owner: fmt::Debug + Send + Sync {
    /// Gives up a place that nobody holds any more.
    fn free(&self, kind: Kind, id: Id, why: Why);
}

/// A place that the holder may have a process in.
#[derive(Debug)]
pub(crate) struct Permit {
    owner: Option<Arc<dyn Owner>>,
    kind: Kind,
    id: Id,
    why: Why,
}

impl Permit {
    /// For the place `id`, which was claimed or emptied just now.
    pub(crate) fn new(owner: Arc<dyn Owner>, kind: Kind, id: Id) -> Self {
        Permit { owner: Some(owner), kind, id, why: Why::default() }
    }

    /// For a process that has no place: it ends with its only run.
    pub(crate) fn without_place() -> Self {
        Permit { owner: None, kind: Kind::Worker, id: Id::NONE, why: Why::default() }
    }

    pub(crate) fn id(&self) -> Id {
        self.id
    }

    /// The process goes back into the place.
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
    // Before the permit: fields are dropped in this order.
    pub unit: Unit<P>,
    permit: Permit,
}

impl<P> Held<P> {
    pub(crate) fn new(unit: Unit<P>, permit: Permit) -> Self {
        Held { unit, permit }
    }

    /// Ends it.
    pub(crate) fn retire(mut self, why: Why) {
        self.permit.why = why;
    }

    /// For the one who puts it back into its place.
    pub(crate) fn into_parts(self) -> (Id, Unit<P>) {
        (self.permit.dissolve(), self.unit)
    }
}
