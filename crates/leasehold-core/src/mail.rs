//! Letters between replicas. They only speed things up: the record decides who holds.

use crate::{LeaseName, ReplicaId, TraceContext};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// The largest letter body, in bytes.
pub const MAX_LETTER_BYTES: usize = 64 * 1024;
/// How many letters an inbox keeps; the oldest is dropped for a newer one.
pub const MAX_LETTERS: usize = 256;
/// How long a letter waits for its reader.
pub const MAX_LETTER_AGE: Duration = Duration::from_secs(60);

/// One letter: best effort, at most once, in no promised order.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Who says to have sent it. Anyone with access to the store can write any name here.
    pub from: ReplicaId,
    /// The lease it is about.
    pub lease: LeaseName,
    /// What the body is; a reader ignores kinds it does not know.
    pub kind: Arc<str>,
    /// At most [`MAX_LETTER_BYTES`].
    pub body: Arc<[u8]>,
    /// The trace it belongs to.
    pub trace: TraceContext,
}

/// Shows the size of the body, not its contents.
impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Envelope({} from {} about {}, {} bytes)",
            self.kind,
            self.from,
            self.lease,
            self.body.len()
        )
    }
}

/// The letters for one replica, as they come. Dropping it closes the inbox.
#[derive(Debug)]
pub struct Inbox {
    letters: mpsc::Receiver<Envelope>,
}

impl Inbox {
    /// An inbox, and where its store puts the letters. The store drops what does not fit.
    #[must_use]
    pub fn open() -> (mpsc::Sender<Envelope>, Self) {
        let (slot, letters) = mpsc::channel(MAX_LETTERS);
        (slot, Self { letters })
    }

    /// The next letter; `None` once the store is closed. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Envelope> {
        self.letters.recv().await
    }
}
