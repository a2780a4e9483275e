//! A store with one lease, as the contract describes it.

/// One lease. Time is in ticks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) counter: u64,
    /// Who holds it, under which fence, and when it expires unless it is renewed until then.
    pub(super) holder: Option<(usize, u64)>,
    /// Set while nobody renews the claim.
    pub(super) expires: Option<u64>,
    pub(super) reserved: Option<(usize, u64)>,
    /// The fence under which the note was written.
    pub(super) note: Option<u64>,
}

impl Store {
    pub(super) fn held_by(replica: usize) -> Self {
        Self { counter: 1, holder: Some((replica, 1)), expires: None, reserved: None, note: None }
    }

    /// Expiry and the end of a reservation, by the store's clock.
    pub(super) fn tick(&mut self, now: u64, note_stays: bool) {
        if self.expires.is_some_and(|at| at <= now) {
            // A note that an expired term passed over is gone.
            (self.holder, self.expires) = (None, None);
            if !note_stays {
                self.note = None;
            }
        }
        if self.reserved.is_some_and(|(_, until)| until <= now) {
            self.reserved = None;
        }
    }

    /// Nobody renews this claim any more.
    pub(super) fn unrenewed(&mut self, replica: usize, fence: u64, expires: u64) {
        if self.holder == Some((replica, fence)) && self.expires.is_none() {
            self.expires = Some(expires);
        }
    }

    pub(super) fn grants(&self, replica: usize, heirs_only: bool) -> bool {
        let reserved_for_another = self.reserved.is_some_and(|(heir, _)| heir != replica);
        self.holder.is_none() && !(heirs_only && reserved_for_another)
    }

    /// The fence of the new term, and the note it inherits.
    pub(super) fn acquire(&mut self, replica: usize, note_stays: bool) -> (u64, Option<u64>) {
        self.counter += 1;
        (self.holder, self.reserved) = (Some((replica, self.counter)), None);
        let note = if note_stays { self.note } else { self.note.take() };
        (self.counter, note)
    }

    /// Conditional on the whole claim.
    pub(super) fn release(&mut self, replica: usize, fence: u64, heir: Option<(usize, u64)>) -> bool {
        let ours = self.holder == Some((replica, fence));
        if ours {
            (self.holder, self.expires, self.reserved) = (None, None, heir);
            self.note = Some(fence);
        }
        ours
    }
}
