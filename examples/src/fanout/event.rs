//! What flows: a numbered event, and the same event stamped with the fence that brought it.

use leasehold::Fence;
use serde::{Deserialize, Serialize};

/// One event of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number: 1, 2, 3 … without gaps.
    pub seq: u64,
    /// What it says.
    pub payload: String,
}

/// An event as a client gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// The fence of the leader whose delivery brought it to this replica.
    #[serde(with = "number")]
    pub fence: Fence,
    /// The number of the event.
    pub seq: u64,
    /// What it says.
    pub payload: String,
}

/// A fence travels as its plain number; one that is out of range does not parse.
pub mod number {
    use leasehold::Fence;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(missing_docs, clippy::missing_errors_doc, reason = "the two halves of serde's `with`")]
    pub fn serialize<S: Serializer>(fence: &Fence, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(fence.get())
    }

    #[allow(missing_docs, clippy::missing_errors_doc, reason = "the two halves of serde's `with`")]
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fence, D::Error> {
        Fence::new(u64::deserialize(from)?).map_err(D::Error::custom)
    }
}
