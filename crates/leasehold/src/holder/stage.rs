//! Where a term stands on its way from leading to over.

/// See the diagram of the [holder](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The worker works.
    Leading,
    /// The worker was asked to end.
    Quiescing,
    /// The worker's term is over, or its time is; it was killed.
    Joining,
    /// The worker has been joined, and the renewer was told to end.
    Ending,
    /// The store was asked to release.
    Releasing,
}
