//! Who led, from when to when, under which fence: the chronicle as a reader wants it.

use super::{
    chronicle::{Entry, What},
    report::Report,
};
use crate::clock::Stamp;
use leasehold::Fence;
use serde::Serialize;
use std::time::Duration;

/// The terms of a run in the order of their fences, and what happened to each replica.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// When the run began.
    pub from: Stamp,
    /// When it ended.
    pub to: Stamp,
    /// The terms, in the order in which they began.
    pub terms: Vec<Term>,
    /// One row a replica, in the order in which they were started.
    pub rows: Vec<Row>,
    /// Deliveries that gates refused.
    pub refusals: Vec<Refused>,
}

/// A term as the world saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Who led.
    pub replica: String,
    /// Under which fence.
    pub fence: Fence,
    /// How the term before had ended, as the store told it.
    pub predecessor: String,
    /// When its work began.
    pub began: Stamp,
    /// When its work stopped: by itself, by SIGKILL, or by SIGSTOP.
    pub ended: Stamp,
    /// What stopped it.
    pub end: End,
}

/// What stopped the work of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It ended by itself, as it was asked to.
    Ended,
    /// It lost the lease: its process was not scheduled for so long, or the store did not answer.
    Lost,
    /// SIGKILL.
    Killed,
    /// SIGSTOP. The process does not know, and goes on where it stood when it wakes.
    Frozen,
    /// It went on until the end of what was seen.
    Running,
}

/// The life of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Its id.
    pub replica: String,
    /// When a process of it served.
    pub up: Vec<Span>,
    /// When that process was frozen.
    pub frozen: Vec<Span>,
}

/// From when to when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// From, inclusive.
    pub from: Stamp,
    /// To, exclusive.
    pub to: Stamp,
}

/// A delivery that a gate refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// When.
    #[serde(skip)]
    pub at: Stamp,
    /// Whose gate.
    pub gate: String,
    /// Who delivered.
    pub from: String,
    /// The first event of the delivery.
    pub seq: u64,
    /// The fence of the delivery.
    #[serde(with = "super::event::number")]
    pub presented: Fence,
    /// The highest fence that the gate had accepted.
    #[serde(with = "super::event::number")]
    pub highest: Fence,
}

impl Span {
    /// Whether the moment lies in it.
    #[must_use]
    pub fn holds(&self, at: Stamp) -> bool {
        self.from <= at && at < self.to
    }
}

impl Timeline {
    /// Reads the chronicle, whose entries are sorted by time, up to `to`.
    #[must_use]
    pub fn read(entries: &[Entry], from: Stamp, to: Stamp) -> Self {
        let mut timeline = Self { from, to, ..Self::default() };
        for entry in entries {
            timeline.take(entry);
        }
        for term in timeline.terms.iter_mut().filter(|t| t.end == End::Running) {
            term.ended = to;
        }
        for span in timeline.rows.iter_mut().flat_map(|row| row.up.iter_mut().chain(&mut row.frozen)) {
            span.to = span.to.min(to);
        }
        timeline
    }

    /// How long nobody led between each term and the next: zero where the next began first.
    pub fn gaps(&self) -> impl Iterator<Item = (&Term, &Term, Duration)> {
        self.terms.windows(2).map(|pair| (&pair[0], &pair[1], pair[1].began - pair[0].ended))
    }

    /// The term of `replica` at a moment.
    #[must_use]
    pub fn term_at(&self, replica: &str, at: Stamp) -> Option<&Term> {
        self.terms.iter().find(|t| t.replica == replica && t.began <= at && at < t.ended)
    }

    fn take(&mut self, Entry { at, who, what }: &Entry) {
        let at = *at;
        match what {
            What::Said(Report::Listening { .. }) => {
                self.row(who).up.push(Span { from: at, to: Stamp(u64::MAX) });
            }
            What::Said(Report::Leading { fence, predecessor }) => self.terms.push(Term {
                replica: who.clone(),
                fence: *fence,
                predecessor: predecessor.clone(),
                began: at,
                ended: at,
                end: End::Running,
            }),
            What::Said(Report::Ended { fence, lost, .. }) => {
                let own = |t: &&mut Term| t.replica == *who && t.fence == *fence && t.end == End::Running;
                if let Some(term) = self.terms.iter_mut().find(own) {
                    (term.ended, term.end) = (at, if *lost { End::Lost } else { End::Ended });
                }
            }
            What::Said(Report::Refused { presented, highest, from, seq }) => self.refusals.push(Refused {
                at,
                gate: who.clone(),
                from: from.clone(),
                seq: *seq,
                presented: *presented,
                highest: *highest,
            }),
            What::Killed => {
                self.stop(who, at, End::Killed);
                close(&mut self.row(who).up, at);
            }
            What::Stopped => {
                self.stop(who, at, End::Frozen);
                self.row(who).frozen.push(Span { from: at, to: Stamp(u64::MAX) });
            }
            What::Continued => close(&mut self.row(who).frozen, at),
            What::Exited { .. } => {
                close(&mut self.row(who).up, at);
                self.stop(who, at, End::Ended);
            }
            // Its row stands where it was started, whoever serves first.
            What::Started => {
                self.row(who);
            }
            What::Terminated | What::Said(_) => {}
        }
    }

    /// Ends the term that `who` has, if any.
    fn stop(&mut self, who: &str, at: Stamp, end: End) {
        if let Some(term) = self.terms.iter_mut().find(|t| t.replica == who && t.end == End::Running) {
            (term.ended, term.end) = (at, end);
        }
    }

    fn row(&mut self, replica: &str) -> &mut Row {
        let index = self.rows.iter().position(|row| row.replica == replica).unwrap_or_else(|| {
            self.rows.push(Row { replica: replica.to_owned(), ..Row::default() });
            self.rows.len() - 1
        });
        &mut self.rows[index]
    }
}

/// Ends the span that is open, if one is.
fn close(spans: &mut [Span], at: Stamp) {
    if let Some(open) = spans.last_mut().filter(|span| span.to == Stamp(u64::MAX)) {
        open.to = at;
    }
}

#[cfg(test)]
pub(super) mod tests;
