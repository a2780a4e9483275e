//! What can happen to one request.

use leasehold_core::StoreErrorKind;
use std::time::Duration;

/// What happens to one request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing.
    None,
    /// The request reaches the store this much later.
    Slow(Duration),
    /// The store carries it out at once, and its answer comes this much later.
    Late(Duration),
    /// The request is lost on its way: never carried out, and its outcome is unknown to the caller.
    LoseRequest,
    /// The store carries it out, and the answer is lost: its outcome is unknown to the caller.
    LoseReply,
    /// The outcome is unknown to the caller at once, and the store carries the request out this much later: one that was
    /// stuck on its way for longer than anybody waits. Only acquire, renew and release straggle; the requests of other
    /// verbs are lost.
    Straggle(Duration),
    /// The request is lost, and nobody ever answers.
    Hang,
    /// The store carries it out, and nobody ever answers.
    HangAfter,
    /// The store refuses: certainly nothing was changed.
    Error(StoreErrorKind),
    /// The store's client panics before it sends anything.
    Panic,
    /// The store carries it out, and what it says is left is so many times what is left: a clock that runs at another
    /// rate, or was set. Only acquire and renew tell what is left; other verbs are not touched.
    Skew(f64),
    /// A watch or an inbox opens as usual, and never shows anything. Other verbs are not touched.
    Deaf,
}
