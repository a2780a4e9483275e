//! A lease as it stands in Redis: words of `key=value` that people can read in `redis-cli`, too.
//!
//! Values are percent-encoded, so that none holds a space or a line break. Words that a reader does not know are
//! skipped: a later version may add some.
//!
//! ```text
//! claim   fence=12 attempt=5f… replica=web-1 [witness=CHANNEL]     while held
//!         heir=web-2 fence=12                                      while kept for an heir, after the term of fence 12
//! term    fence=12 since=1790000000000 attempt=5f… [note=11] [kept=1790000009000] trace=00-… replica=web-1
//! fate    released trace=00-… call=… [note=12]  |  handed-off trace=00-… call=… [note=12]  |  crashed
//!         |  forced by=… why=… call=…  |  expired  |  none  |  empty: it lives, or expired
//!         each but the empty one perhaps with undone=6a…, once or twice
//! past    FATE TERM, of the term before
//! note    bytes
//! ```
//! `call=…` in a fate: the request that ended the term, so that its repetition gets the same answer. `note=12` in a fate: the
//! note was written under fence 12, and waits for the next term. In a term: it was given to this one, and is kept for a
//! repetition of its acquire. `kept=…` in a term: it used up a reservation that would have stood until then. `undone=…` in a
//! fate: the attempts of grants after this term that were taken back; `none`, where there was no term before them.

use crate::error::Fault;
use leasehold_core::{
    AttemptId, Claim, Ended, Fence, LeaseName, LeaseRecord, LeaseState, Parting, Predecessor, ReplicaId,
    TraceContext,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Everything but what RFC 3986 calls unreserved.
const WORD: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as the value of a word.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, WORD).to_string()
}

/// The trace as the value of a word; empty for none.
pub(crate) fn trace_word(trace: &TraceContext) -> &str {
    trace.traceparent().unwrap_or_default()
}

/// A claim as its key holds it; behind it a witness may follow.
pub(crate) fn claim_words(claim: &Claim) -> String {
    format!(
        "fence={} attempt={} replica={}",
        claim.fence,
        claim.attempt.to_hex(),
        encode(claim.replica.as_str())
    )
}

/// The fate of a term that its holder ends.
pub(crate) fn parting_words(parting: &Parting) -> String {
    let fate = if parting.heir.is_some() { "handed-off" } else { "released" };
    let (trace, call) = (trace_word(&parting.trace), next_call());
    match &parting.note {
        Some(note) => format!("{fate} trace={trace} call={call:x} note={}", note.from()),
        None => format!("{fate} trace={trace} call={call:x}"),
    }
}

/// The fate of a term that somebody else ends.
pub(crate) fn forced_words(by: &ReplicaId, reason: &str) -> String {
    format!("forced by={} why={} call={:x}", encode(by.as_str()), encode(reason), next_call())
}

/// A number for a request, which no other one of any process has, as far as chance goes: within one term of one lease.
fn next_call() -> u64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let random = AttemptId::random();
        AtomicU64::new(
            random.as_bytes().iter().fold(0, |number, byte| number.rotate_left(8) ^ u64::from(*byte)),
        )
    });
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Reads values of one key, and names it when they are damaged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) key: &'a str,
}

impl Reader<'_> {
    pub(crate) fn damage(self, problem: impl Into<String>) -> Fault {
        Fault::damage(self.key, problem.into())
    }

    pub(crate) fn utf8(self, bytes: &[u8]) -> Result<&str, Fault> {
        std::str::from_utf8(bytes).map_err(|_| self.damage("it is not UTF-8"))
    }

    pub(crate) fn fence(self, text: &str) -> Result<Fence, Fault> {
        let number = text.parse().map_err(|_| self.damage(format!("{text:?} is no fence")))?;
        Fence::new(number).map_err(|error| self.damage(error.to_string()))
    }

    /// A counter that may be missing.
    pub(crate) fn counter(self, text: &str) -> Result<Option<Fence>, Fault> {
        if text.is_empty() { Ok(None) } else { self.fence(text).map(Some) }
    }

    pub(crate) fn replica(self, word: &str) -> Result<ReplicaId, Fault> {
        let text = self.decoded(word)?;
        ReplicaId::new(text).map_err(|error| self.damage(error.to_string()))
    }

    pub(crate) fn decoded(self, word: &str) -> Result<String, Fault> {
        let text = percent_decode_str(word).decode_utf8().map_err(|_| self.damage("a word is not UTF-8"))?;
        Ok(text.into_owned())
    }

    fn millis(self, text: &str) -> Result<u64, Fault> {
        text.parse().map_err(|_| self.damage(format!("{text:?} is no time in milliseconds")))
    }

    fn word<'t>(self, words: &'t str, name: &str) -> Result<&'t str, Fault> {
        optional(words, name).ok_or_else(|| self.damage(format!("it has no {name}")))
    }

    fn attempt(self, words: &str) -> Result<AttemptId, Fault> {
        let hex = self.word(words, "attempt")?;
        AttemptId::from_hex(hex).ok_or_else(|| self.damage("its attempt id is damaged"))
    }

    fn ended(self, words: &str) -> Result<Ended, Fault> {
        // The trace of the release comes first; the one of the acquire stands in for a missing one.
        let trace = all(words, "trace").find(|trace| !trace.is_empty()).unwrap_or_default();
        Ok(Ended {
            fence: self.fence(self.word(words, "fence")?)?,
            replica: self.replica(self.word(words, "replica")?)?,
            trace: TraceContext::parse(trace),
        })
    }

    /// How a term ended, from `FATE TERM`; nothing means that there was none.
    pub(crate) fn predecessor(self, past: &str) -> Result<Predecessor, Fault> {
        let Some(fate) = past.split(' ').next().filter(|fate| !fate.is_empty()) else {
            return Ok(Predecessor::None);
        };
        if fate == "none" {
            return Ok(Predecessor::None);
        }
        let ended = self.ended(past)?;
        Ok(match fate {
            "released" => Predecessor::Released(ended),
            "handed-off" => Predecessor::HandedOff(ended),
            "expired" => Predecessor::Expired(ended),
            "crashed" => Predecessor::Crashed(ended),
            "forced" => Predecessor::Forced {
                ended,
                by: self.replica(self.word(past, "by")?)?,
                reason: self.decoded(self.word(past, "why")?)?.into(),
            },
            other => return Err(self.damage(format!("{other:?} is no way for a term to end"))),
        })
    }

    /// A lease, from the seven lines of `scripts/inspect.lua`.
    pub(crate) fn record(self, name: &LeaseName, state: &[u8]) -> Result<LeaseRecord, Fault> {
        let mut lines = self.utf8(state)?.split('\n');
        let mut line = || lines.next().ok_or_else(|| self.damage("its state is cut short"));
        let (claim, left, counter) = (line()?, line()?, line()?);
        let (term, fate, past, now) = (line()?, line()?, line()?, line()?);
        let last = optional(term, "fence").unwrap_or_default();
        // A counter may have been lost or set back: the last term remembers its own.
        let mut counter = self.counter(counter)?.max(self.counter(last)?);
        let ended = || match (term, fate) {
            ("", _) => Ok(Predecessor::None),
            (term, "") => self.predecessor(&format!("expired {term}")),
            (term, fate) => self.predecessor(&format!("{fate} {term}")),
        };
        let remaining = || match left.parse::<i64>() {
            Ok(left) => u64::try_from(left)
                .map(Duration::from_millis)
                .map_err(|_| self.damage("its claim has no expiry")),
            Err(_) => Err(self.damage(format!("{left:?} is no time to live"))),
        };
        let (state, predecessor) = if claim.is_empty() {
            if left != "-2" {
                return Err(self.damage("its claim is empty"));
            }
            (LeaseState::Vacant, ended()?)
        } else if let Some(heir) = optional(claim, "heir") {
            // As the term, if that was lost, too.
            counter = counter.max(Some(self.fence(self.word(claim, "fence")?)?));
            (LeaseState::Reserved { heir: self.replica(heir)?, remaining: remaining()? }, ended()?)
        } else {
            let fence = self.fence(self.word(claim, "fence")?)?;
            counter = counter.max(Some(fence));
            let since = optional(term, "since").unwrap_or("0");
            let held_for = match (self.millis(now)?, self.millis(since)?) {
                (_, 0) => 0,
                (now, since) => now.saturating_sub(since),
            };
            let held = LeaseState::Held {
                claim: Claim {
                    name: name.clone(),
                    replica: self.replica(self.word(claim, "replica")?)?,
                    attempt: self.attempt(claim)?,
                    fence,
                },
                remaining: remaining()?,
                held_for: Duration::from_millis(held_for),
                crash_witness: optional(claim, "witness").is_some(),
            };
            (held, self.predecessor(past)?)
        };
        Ok(LeaseRecord { name: name.clone(), counter, state, predecessor })
    }
}

/// The witness channel of a state, if its claim has one.
pub(crate) fn witness_of(state: &[u8]) -> Option<&str> {
    let claim = std::str::from_utf8(state).ok()?.split('\n').next()?;
    optional(claim, "witness")
}

/// The value of the first word of a name.
pub(crate) fn optional<'t>(words: &'t str, name: &str) -> Option<&'t str> {
    all(words, name).next()
}

fn all<'t>(words: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    words.split(' ').filter_map(move |word| word.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: Reader<'_> = Reader { key: "k" };
    const ATTEMPT: &str = "000102030405060708090a0b0c0d0e0f";

    fn name() -> LeaseName {
        LeaseName::new("job").unwrap()
    }

    fn held() -> String {
        format!(
            "fence=12 attempt={ATTEMPT} replica=web%201 later=x\n900\n12\nfence=12 since=1000 attempt={ATTEMPT} \
             trace= replica=web%201\n\nforced by=ann why=stuck%0Anow fence=11 since=1 attempt={ATTEMPT} trace= \
             replica=b\n1500"
        )
    }

    #[test]
    fn a_held_lease_is_read_with_its_predecessor_and_unknown_words_are_skipped() {
        let record = READER.record(&name(), held().as_bytes()).unwrap();
        let LeaseState::Held { claim, remaining, held_for, crash_witness } = &record.state else {
            panic!("{record:?}")
        };
        assert_eq!(claim_words(claim), format!("fence=12 attempt={ATTEMPT} replica=web%201"));
        assert_eq!((remaining.as_millis(), held_for.as_millis(), *crash_witness), (900, 500, false));
        let Predecessor::Forced { ended, by, reason } = &record.predecessor else { panic!("{record:?}") };
        assert_eq!((ended.fence.get(), by.as_str(), &**reason), (11, "ann", "stuck\nnow"));
    }

    #[test]
    fn a_vacancy_tells_how_the_last_term_ended() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let term = format!("fence=3 since=1 attempt={ATTEMPT} trace={trace} replica=a");
        for (fate, expected) in [("", "expired"), ("released trace=", "released"), ("crashed", "crashed")] {
            let state = format!("\n-2\n3\n{term}\n{fate}\n\n5");
            let record = READER.record(&name(), state.as_bytes()).unwrap();
            assert_eq!(record.state, LeaseState::Vacant);
            assert_eq!(record.predecessor.fate().as_str(), expected);
            let ended = record.predecessor.ended().unwrap();
            assert_eq!(ended.trace.traceparent(), Some(trace), "of the acquire, as the release had none");
        }
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_read_or_refused_without_a_panic() {
        let state = held().into_bytes();
        for cut in 0..state.len() {
            READER.record(&name(), &state[..cut]).ok();
            for byte in [0, b' ', b'\n', b'%', b'9', 0xff] {
                let mut damaged = state.clone();
                damaged[cut] = byte;
                READER.record(&name(), &damaged).ok();
            }
        }
        for damaged in
            ["", "x", "fence=0 attempt= replica=\n1\n1\n\n\n\n1", "\n-2\n9007199254740992\n\n\n\n1"]
        {
            assert!(READER.record(&name(), damaged.as_bytes()).is_err(), "{damaged:?}");
        }
    }
}
