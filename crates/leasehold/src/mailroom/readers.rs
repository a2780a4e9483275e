//! Who reads the letters about which lease.

use leasehold_core::{Envelope, LeaseName};
use std::{collections::HashMap, fmt};

/// Gives one reader its letters.
pub(crate) struct Slot(Box<dyn Fn(Envelope) + Send>);

impl Slot {
    pub(crate) fn new(put: impl Fn(Envelope) + Send + 'static) -> Self {
        Self(Box::new(put))
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}

/// Who reads the letters about which lease: usually one election for a lease, but nothing forbids two.
#[derive(Debug, Default)]
pub(super) struct Readers(HashMap<LeaseName, Vec<(u64, Slot)>>);

impl Readers {
    pub(super) fn add(&mut self, name: LeaseName, id: u64, slot: Slot) {
        self.0.entry(name).or_default().push((id, slot));
    }

    pub(super) fn remove(&mut self, name: &LeaseName, id: u64) {
        if let Some(slots) = self.0.get_mut(name) {
            slots.retain(|(reader, _)| *reader != id);
            if slots.is_empty() {
                self.0.remove(name);
            }
        }
    }

    /// Whether anybody reads it.
    pub(super) fn deliver(&self, letter: &Envelope) -> bool {
        let slots = self.0.get(&letter.lease).map(Vec::as_slice).unwrap_or_default();
        slots.iter().for_each(|(_, slot)| (slot.0)(letter.clone()));
        !slots.is_empty()
    }
}
