//! What a holder tells its parent: one JSON object a line on its standard output.

use crate::clock::Stamp;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    io::{self, Write},
};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it happened.
    pub at: Stamp,
    /// What happened.
    #[serde(flatten)]
    pub said: Said,
}

/// What happened to a holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Said {
    /// It wants the lease.
    Waits,
    /// It holds the lease.
    Holds {
        /// Its token.
        token: u64,
        /// How the term before ended: `none`, `expired` …
        before: String,
    },
    /// It looked at its lease, was told that it may write, and is about to.
    InHand {
        /// For how long the look is good, in ms.
        trusted_ms: u64,
    },
    /// It wrote, or tried to.
    Wrote {
        /// The token that it presented.
        token: u64,
        /// What the document answered.
        answer: Answer,
    },
    /// Its work under the lease has ended.
    WorkEnded {
        /// Why.
        why: String,
    },
    /// It released its claim.
    Released {
        /// Whether the store ended the claim; if not, the claim was over already.
        own: bool,
        /// Who holds the lease instead, and under which token.
        holder: Option<(String, u64)>,
    },
    /// It could not go on.
    Failed {
        /// Why.
        why: String,
    },
}

/// What the document answers to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Written.
    Accepted,
    /// Not written, for a higher token was accepted before.
    Refused {
        /// The token that was presented.
        presented: u64,
        /// The highest token accepted.
        current: u64,
    },
}

/// Says it to the parent. A parent that is gone is no error here: a holder without a parent ends by itself.
pub fn say(said: Said) {
    let line = Line { at: Stamp::now(), said };
    let Ok(mut text) = serde_json::to_vec(&line) else { return };
    text.push(b'\n');
    let mut out = io::stdout().lock();
    let _ = out.write_all(&text).and_then(|()| out.flush());
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waits => f.write_str("wants the lease"),
            Self::Holds { token, before } if before == "none" => write!(f, "holds the lease, token {token}"),
            Self::Holds { token, before } => {
                write!(f, "holds the lease, token {token} (the term before: {before})")
            }
            Self::InHand { trusted_ms } => {
                write!(f, "looks: the lease is good for {trusted_ms} ms more. It is about to write …")
            }
            Self::Wrote { token, answer: Answer::Accepted } => {
                write!(f, "writes with token {token}: accepted")
            }
            Self::Wrote { answer: Answer::Refused { presented, current }, .. } => {
                write!(f, "writes with token {presented}: refused, current is {current}")
            }
            Self::WorkEnded { why } => write!(f, "learns that its work is over: {why}"),
            Self::Released { own: true, .. } => f.write_str("releases the lease"),
            Self::Released { own: false, holder: Some((replica, token)) } => {
                write!(f, "releases, too late: no longer the holder; {replica} holds it under token {token}")
            }
            Self::Released { own: false, holder: None } => {
                f.write_str("releases, too late: no longer the holder, and nobody is")
            }
            Self::Failed { why } => write!(f, "cannot go on: {why}"),
        }
    }
}
