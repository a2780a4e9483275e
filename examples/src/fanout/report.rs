//! What a replica tells its parent: one JSON object a line on its standard output.

use super::event::number;
use crate::clock::Stamp;
use leasehold::Fence;
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Write},
    net::SocketAddr,
};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it happened.
    pub at: Stamp,
    /// What happened.
    #[serde(flatten)]
    pub report: Report,
}

/// What happened in a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Report {
    /// The replica serves, and its journal ends at `last`.
    Listening {
        /// Where.
        addr: SocketAddr,
        /// The last event in its journal.
        last: u64,
    },
    /// It was elected.
    Leading {
        /// The fence of its term.
        #[serde(with = "number")]
        fence: Fence,
        /// How the term before ended: `none`, `released`, `expired`, `crashed` …
        predecessor: String,
    },
    /// It read the replicas' positions and resumes the feed.
    Resumed {
        /// The fence of its term.
        #[serde(with = "number")]
        fence: Fence,
        /// The first event it reads.
        from: u64,
    },
    /// Its term is over, and its work has ended.
    Ended {
        /// The fence of the term.
        #[serde(with = "number")]
        fence: Fence,
        /// Why.
        how: String,
        /// Whether the lease was lost, rather than given up.
        lost: bool,
    },
    /// Its gate met a higher fence than ever before, and from now on refuses all lower ones.
    Raised {
        /// The new mark.
        #[serde(with = "number")]
        fence: Fence,
        /// The last event in its journal.
        last: u64,
    },
    /// Its gate refused a delivery.
    Refused {
        /// The fence of the delivery.
        #[serde(with = "number")]
        presented: Fence,
        /// The gate's mark.
        #[serde(with = "number")]
        highest: Fence,
        /// Who delivered.
        from: String,
        /// The first event of the delivery.
        seq: u64,
    },
    /// It was refused by another replica's gate.
    TurnedAway {
        /// Whose gate.
        to: String,
        /// The fence it presented.
        #[serde(with = "number")]
        presented: Fence,
        /// The gate's mark.
        #[serde(with = "number")]
        highest: Fence,
    },
    /// As asked, it stands still between its check and its write.
    InHand {
        /// The fence of its term.
        #[serde(with = "number")]
        fence: Fence,
        /// For whom the delivery is.
        to: String,
        /// Its first event.
        seq: u64,
        /// For how long its own check says it may be trusted, in ms.
        trusted_ms: u64,
    },
    /// Something that should not happen.
    Trouble {
        /// What.
        what: String,
    },
}

/// Writes a line. A parent that is gone is no error here: a replica without a parent ends by itself.
pub fn report(report: Report) {
    let line = Line { at: Stamp::now(), report };
    let Ok(mut text) = serde_json::to_vec(&line) else { return };
    text.push(b'\n');
    // In one piece, so that a process that is killed leaves no half line.
    let mut out = io::stdout().lock();
    let _ = out.write_all(&text).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_survives_its_json_form() {
        let fence = Fence::new(7).unwrap();
        let line =
            Line { at: Stamp(42), report: Report::Leading { fence, predecessor: "crashed".to_owned() } };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(text, r#"{"at":42,"event":"leading","fence":7,"predecessor":"crashed"}"#);
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}
