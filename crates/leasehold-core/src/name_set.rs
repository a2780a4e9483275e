//! Names that come and go while they are watched.

use crate::LeaseName;
use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A set of names that may change while it is watched. Clones are the same set.
#[derive(Clone, Default)]
pub struct NameSet(Arc<Mutex<Names>>);

#[derive(Default)]
struct Names {
    present: HashSet<LeaseName>,
    changes: u64,
}

impl NameSet {
    /// Adds a name; false if it was there.
    pub fn insert(&self, name: LeaseName) -> bool {
        let mut names = self.names();
        let is_new = names.present.insert(name);
        names.changes += u64::from(is_new);
        is_new
    }

    /// Takes a name out; false if it was not there.
    pub fn remove(&self, name: &LeaseName) -> bool {
        let mut names = self.names();
        let was_there = names.present.remove(name);
        names.changes += u64::from(was_there);
        was_there
    }

    /// Whether a name is in it now.
    #[must_use]
    pub fn contains(&self, name: &LeaseName) -> bool {
        self.names().present.contains(name)
    }

    /// How often it has changed: a store that has seen this many changes has nothing to follow.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.names().changes
    }

    /// The names that are in it now, in no order.
    #[must_use]
    pub fn to_vec(&self) -> Vec<LeaseName> {
        self.names().present.iter().cloned().collect()
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // A panic cannot come between the change and its count.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same set, not one with the same names: those may differ by the time that anyone acts on it.
impl PartialEq for NameSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for NameSet {}

impl fmt::Debug for NameSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameSet of {}", self.names().present.len())
    }
}
