//! A replica's stream as a fenced resource: it accepts what the highest fence delivers, each event once.

use super::{
    event::{Event, Stamped},
    journal::{Journal, JournalError},
};
use leasehold::Fence;
use std::{io, path::Path};

/// The gate and the stream behind it.
#[derive(Debug)]
pub struct Gate {
    journal: Journal,
    highest: Option<Fence>,
    // All events: number n is at n − 1. A service that runs for months would drop what its slowest client has.
    events: Vec<Stamped>,
}

/// The answer to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The fence is at least as high as every one before. The deliverer goes on after `last`, whatever it sent:
    /// events that the replica had already were skipped, and events after a gap were not taken.
    Accepted {
        /// The last event of the stream now.
        last: u64,
        /// How many of the delivered events were new.
        applied: u64,
        /// Whether the fence was higher than every one before.
        raised: bool,
    },
    /// The fence is lower than one that was accepted before: nothing was taken (invariant I1).
    Stale {
        /// The fence of the delivery.
        presented: Fence,
        /// The highest accepted.
        highest: Fence,
    },
}

impl Gate {
    /// The gate with the journal at `path`, as it was when its process ended.
    ///
    /// # Errors
    /// When the journal cannot be used.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let (journal, told) = Journal::open(path)?;
        Ok(Self { journal, highest: told.highest, events: told.events })
    }

    /// Judges and takes a delivery. One without events only asks where the stream is, and raises the mark: after it,
    /// no earlier leader gets through.
    ///
    /// # Errors
    /// When the journal cannot be written: nothing was acknowledged, and the process should end, for what is in the
    /// file is not known.
    pub fn deliver(&mut self, fence: Fence, delivery: Vec<Event>) -> io::Result<Verdict> {
        if let Some(highest) = self.highest.filter(|highest| fence < *highest) {
            return Ok(Verdict::Stale { presented: fence, highest });
        }
        let raised = self.highest != Some(fence);
        if raised {
            // The mark is kept before anything is taken under it: a restart must not let the old leader in.
            self.journal.raise(fence)?;
            self.highest = Some(fence);
        }
        let mut fresh: Vec<Stamped> = Vec::new();
        for Event { seq, payload } in delivery {
            let next = self.last() + fresh.len() as u64 + 1;
            if seq == next {
                fresh.push(Stamped { fence, seq, payload });
            } else if seq > next {
                break;
            }
        }
        self.journal.append(&fresh)?;
        let applied = fresh.len() as u64;
        self.events.append(&mut fresh);
        Ok(Verdict::Accepted { last: self.last(), applied, raised })
    }

    /// The last event of the stream; 0 before the first.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.events.len() as u64
    }

    /// At most `limit` events after `seq`.
    #[must_use]
    pub fn after(&self, seq: u64, limit: usize) -> &[Stamped] {
        let from = usize::try_from(seq).map_or(self.events.len(), |n| n.min(self.events.len()));
        let to = from.saturating_add(limit).min(self.events.len());
        &self.events[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(n: u64) -> Fence {
        Fence::new(n).unwrap()
    }

    fn events(numbers: impl IntoIterator<Item = u64>) -> Vec<Event> {
        numbers.into_iter().map(|seq| Event { seq, payload: format!("event {seq}") }).collect()
    }

    fn accepted(last: u64, applied: u64, raised: bool) -> Verdict {
        Verdict::Accepted { last, applied, raised }
    }

    #[test]
    fn a_lower_fence_is_refused_and_leaves_no_trace() {
        // I1.
        let dir = tempfile::tempdir().unwrap();
        let mut gate = Gate::open(&dir.path().join("j")).unwrap();
        assert_eq!(gate.deliver(fence(2), events(1..=3)).unwrap(), accepted(3, 3, true));
        let stale = Verdict::Stale { presented: fence(1), highest: fence(2) };
        assert_eq!(gate.deliver(fence(1), events(4..=5)).unwrap(), stale);
        assert_eq!(gate.last(), 3);
        assert_eq!(gate.deliver(fence(2), events(4..=4)).unwrap(), accepted(4, 1, false));
    }

    #[test]
    fn an_empty_delivery_of_a_new_leader_shuts_the_old_one_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut gate = Gate::open(&dir.path().join("j")).unwrap();
        assert_eq!(gate.deliver(fence(1), events(1..=2)).unwrap(), accepted(2, 2, true));
        assert_eq!(gate.deliver(fence(3), vec![]).unwrap(), accepted(2, 0, true));
        assert!(matches!(gate.deliver(fence(1), events(3..=3)).unwrap(), Verdict::Stale { .. }));
    }

    #[test]
    fn what_was_delivered_before_is_skipped_and_what_comes_too_early_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let mut gate = Gate::open(&dir.path().join("j")).unwrap();
        assert_eq!(gate.deliver(fence(1), events(1..=5)).unwrap(), accepted(5, 5, true));
        assert_eq!(gate.deliver(fence(2), events(3..=7)).unwrap(), accepted(7, 2, true));
        assert_eq!(gate.deliver(fence(2), events(9..=9)).unwrap(), accepted(7, 0, false));
        let fences: Vec<u64> = gate.after(3, 99).iter().map(|e| e.fence.get()).collect();
        assert_eq!(fences, [1, 1, 2, 2], "an event keeps the fence that brought it first");
    }

    #[test]
    fn a_restarted_gate_still_refuses_the_old_leader() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let mut gate = Gate::open(&path).unwrap();
        assert_eq!(gate.deliver(fence(1), events(1..=2)).unwrap(), accepted(2, 2, true));
        assert_eq!(gate.deliver(fence(9), vec![]).unwrap(), accepted(2, 0, true));
        drop(gate);
        let mut gate = Gate::open(&path).unwrap();
        let stale = Verdict::Stale { presented: fence(8), highest: fence(9) };
        assert_eq!(gate.deliver(fence(8), events(3..=3)).unwrap(), stale);
        assert_eq!(gate.after(0, 1)[0].payload, "event 1");
        assert_eq!(gate.after(2, 5), []);
        assert_eq!(gate.after(u64::MAX, 5), []);
    }
}
