//! Deliberately broken worlds. A simulation that cannot tell them from a sound one proves nothing.

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutant {
    /// The resource accepts every fence.
    FenceUnchecked,
    /// A replica counts its trust from the answer, not from the sending of its request.
    DeadlineFromReply,
    /// The store releases whatever claim the lease has.
    ReleaseByName,
    /// The store renews whatever claim the lease has.
    RenewByName,
    /// The store keeps its counter in the record, which ends with the claim.
    CounterInRecord,
    /// The store gives a lease again to whoever asks for it, as if every claim had expired.
    ExpiryUnchecked,
    /// The store grants an attempt again whose term has ended.
    SpentIsForgotten,
    /// A replica takes a bid without an answer for a success.
    UnknownIsSuccess,
    /// A replica releases its lease while its worker is still at work.
    ReleaseBeforeJoin,
    /// A replica that lost one round never bids again.
    OneShotCandidate,
}

impl Mutant {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::FenceUnchecked,
        Self::DeadlineFromReply,
        Self::ReleaseByName,
        Self::RenewByName,
        Self::CounterInRecord,
        Self::ExpiryUnchecked,
        Self::SpentIsForgotten,
        Self::UnknownIsSuccess,
        Self::ReleaseBeforeJoin,
        Self::OneShotCandidate,
    ];
}
