//! What a process knows of its own witness.

use crate::keys::Keys;
use leasehold_core::AttemptId;
use std::{
    ops::RangeInclusive,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// What the process knows of its own witness. Shared by those who make claims and the task that keeps it connected.
#[derive(Debug)]
pub(crate) struct Presence {
    nonce: String,
    channel: String,
    is_wanted: AtomicBool,
    // A std mutex: held to look and to set, never over an await.
    seen: Mutex<Seen>,
}

/// Where the servers have confirmed it, and nothing was heard to the contrary since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Seen {
    #[default]
    Nowhere,
    /// By the one server there is.
    Everywhere,
    /// By the primaries of these slots of a Cluster.
    At(Vec<RangeInclusive<u16>>),
}

impl Presence {
    pub(crate) fn new(keys: &Keys) -> Self {
        let nonce = AttemptId::random().to_hex();
        let channel = keys.witness(&nonce);
        Self { nonce, channel, is_wanted: AtomicBool::new(false), seen: Mutex::default() }
    }

    /// 128 random bits, of this process and store alone.
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::Release);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }

    /// Whether the server sees it that has this slot.
    pub(crate) fn is_seen(&self, slot: u16) -> bool {
        match &*self.seen() {
            Seen::Nowhere => false,
            Seen::Everywhere => true,
            Seen::At(slots) => slots.iter().any(|slots| slots.contains(&slot)),
        }
    }

    pub(crate) fn set_seen(&self, seen: Seen) {
        *self.seen() = seen;
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_is_seen_where_its_primary_was_connected_and_nowhere_else() {
        let presence = Presence::new(&Keys::new("p:"));
        assert!(!presence.is_seen(0));
        presence.set_seen(Seen::At(vec![0..=5, 10..=16_383]));
        assert_eq!(
            [0, 5, 6, 9, 10, 16_383].map(|slot| presence.is_seen(slot)),
            [true, true, false, false, true, true]
        );
        presence.set_seen(Seen::Everywhere);
        assert!(presence.is_seen(6));
    }
}
