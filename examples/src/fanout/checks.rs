//! What was promised, and whether it was kept.

use super::{
    chronicle::{Entry, What},
    event::Event,
    handoffs::Handed,
    journal::{JournalError, Told},
    ledger::Ledger,
    report::Report,
    timeline::{End, Timeline},
};
use serde::Serialize;

/// Everything that was seen.
#[derive(Debug)]
pub struct Evidence {
    /// Who led when.
    pub timeline: Timeline,
    /// All that happened, by time.
    pub entries: Vec<Entry>,
    /// What the client of each replica got.
    pub ledgers: Vec<(String, Ledger)>,
    /// What each gate wrote down, or why it cannot be read.
    pub journals: Vec<(String, Result<Told, JournalError>)>,
    /// What the feed emitted.
    pub emitted: Vec<Event>,
    /// How many handoffs were asked for.
    pub asked: u32,
    /// What came of them.
    pub handoffs: Vec<Handed>,
    /// What should have happened and did not.
    pub missed: Vec<String>,
}

/// A promise, and whether it was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The promise.
    pub promise: &'static str,
    /// Whether it was kept.
    pub kept: bool,
    /// By what one sees it.
    pub seen: String,
}

impl Check {
    /// A check that fails if there is anything to say against it.
    fn unless(promise: &'static str, against: &[String], seen: impl FnOnce() -> String) -> Self {
        match against {
            [] => Self { promise, kept: true, seen: seen() },
            [first] => Self { promise, kept: false, seen: first.clone() },
            [first, ..] => {
                Self { promise, kept: false, seen: format!("{first}, and {} more", against.len() - 1) }
            }
        }
    }
}

impl Evidence {
    /// Judges all promises.
    #[must_use]
    pub fn judge(&mut self) -> Vec<Check> {
        for (_, ledger) in &mut self.ledgers {
            ledger.compare(&self.emitted);
        }
        let mut checks = vec![
            self.every_event_once_and_in_order(),
            self.fences_rise_with_the_terms(),
            self.terms_do_not_overlap(),
            self.no_gate_went_back(),
            self.the_woken_leader_was_refused(),
            self.nothing_else_went_wrong(),
        ];
        checks.extend((self.asked > 0).then(|| self.every_handoff_came_about()));
        checks
    }

    fn every_handoff_came_about(&self) -> Check {
        let failed = self.handoffs.iter().filter(|handed| !handed.done);
        let mut against: Vec<_> = failed.map(|h| format!("{} was asked: {}", h.from, h.what)).collect();
        let done = self.handoffs.iter().filter(|handed| handed.done).count();
        if against.is_empty() && done < self.asked as usize {
            against.push(format!("only {done} of {} were begun", self.asked));
        }
        Check::unless("every handoff that was asked for came about", &against, || {
            format!("{done} handoffs in a row, while the feed ran")
        })
    }

    fn every_event_once_and_in_order(&self) -> Check {
        let breaches: Vec<String> = self
            .ledgers
            .iter()
            .flat_map(|(of, ledger)| ledger.breaches.iter().map(move |b| format!("the client of {of}: {b}")))
            .chain(self.emitted.is_empty().then(|| "the feed emitted nothing".to_owned()))
            .collect();
        Check::unless(
            "every client saw every event once, in order, fences never going back",
            &breaches,
            || format!("{} clients × {} events", self.ledgers.len(), self.emitted.len()),
        )
    }

    /// I2.
    fn fences_rise_with_the_terms(&self) -> Check {
        let terms = &self.timeline.terms;
        let against: Vec<String> = terms
            .windows(2)
            .filter(|pair| pair[1].fence <= pair[0].fence)
            .map(|pair| {
                format!("fence {} of {} came after fence {}", pair[1].fence, pair[1].replica, pair[0].fence)
            })
            // A kill and a freeze make three; with fewer there is nothing to compare.
            .chain(
                (terms.len() < 3).then(|| format!("there were {} terms, and should be three", terms.len())),
            )
            .collect();
        Check::unless("each term has a higher fence than the one before", &against, || {
            let fences: Vec<_> = terms.iter().map(|t| t.fence.to_string()).collect();
            match &fences[..] {
                [first, second, .., last] if fences.len() > 8 => {
                    format!("{first} < {second} < … < {last}, {} terms", fences.len())
                }
                few => few.join(" < "),
            }
        })
    }

    /// I3 as the world sees it: the work of a term begins after that of the term before was over. A process that was
    /// not scheduled past its lease, signal or no signal, is excused: it cannot know, and its gates do.
    fn terms_do_not_overlap(&self) -> Check {
        let terms = &self.timeline.terms;
        let against: Vec<String> = terms
            .windows(2)
            .filter(|pair| pair[1].began < pair[0].ended && pair[0].end != End::Lost)
            .map(|pair| format!("{} began to lead before {} had ended", pair[1].replica, pair[0].replica))
            .collect();
        Check::unless(
            "never two at work: a leader began only after the one before had stopped",
            &against,
            || format!("{} terms", terms.len()),
        )
    }

    /// I1, from what the gates wrote down.
    fn no_gate_went_back(&self) -> Check {
        let against: Vec<String> =
            self.journals.iter().filter_map(|(_, j)| j.as_ref().err().map(ToString::to_string)).collect();
        Check::unless("no gate accepted a fence lower than one it had accepted", &against, || {
            format!("{} journals read again, line by line", self.journals.len())
        })
    }

    fn the_woken_leader_was_refused(&self) -> Check {
        let promise = "the leader that woke after its lease was refused by its fence";
        let frozen = self.timeline.terms.iter().find(|t| t.end == End::Frozen);
        let refusal =
            frozen.and_then(|term| self.timeline.refusals.iter().find(|r| r.presented == term.fence));
        match refusal {
            Some(r) => Check {
                promise,
                kept: r.presented < r.highest,
                seen: format!(
                    "{} presented {} to {}, which had met {}",
                    r.from, r.presented, r.gate, r.highest
                ),
            },
            None => Check {
                promise,
                kept: false,
                seen: "this run could not show it: no delivery of a woken leader reached a gate".to_owned(),
            },
        }
    }

    fn nothing_else_went_wrong(&self) -> Check {
        let trouble = self.entries.iter().filter_map(|e| match &e.what {
            What::Said(Report::Trouble { what }) => Some(format!("{}: {what}", e.who)),
            _ => None,
        });
        let against: Vec<String> = self.missed.iter().cloned().chain(trouble).collect();
        Check::unless(
            "every act took place, and every replica ended by itself when asked to",
            &against,
            || "a kill, a restart, a freeze past the lease, and SIGTERM to all".to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Stamp,
        fanout::{event::Stamped, timeline::tests::story},
    };

    fn evidence() -> Evidence {
        let timeline = story();
        let mut ledger = Ledger::default();
        let event = |seq| Event { seq, payload: "an event".to_owned() };
        for seq in 1..=3 {
            let Event { seq, payload } = event(seq);
            ledger.enter(Stamp(seq), Stamped { fence: timeline.terms[0].fence, seq, payload });
        }
        Evidence {
            timeline,
            entries: vec![],
            ledgers: vec![("r1".to_owned(), ledger)],
            journals: vec![("r1".to_owned(), Ok(Told::default()))],
            emitted: (1..=3).map(event).collect(),
            asked: 0,
            handoffs: vec![],
            missed: vec![],
        }
    }

    fn broken(mut evidence: Evidence) -> Vec<usize> {
        let checks = evidence.judge();
        checks.iter().enumerate().filter(|(_, c)| !c.kept).map(|(index, _)| index).collect()
    }

    #[test]
    fn each_promise_that_is_broken_is_found_and_no_other() {
        assert_eq!(broken(evidence()), [0; 0]);

        let mut lost = evidence();
        lost.emitted.push(Event { seq: 4, payload: String::new() });
        assert_eq!(broken(lost), [0]);

        let mut same_fence = evidence();
        same_fence.timeline.terms[1].fence = same_fence.timeline.terms[0].fence;
        same_fence.timeline.refusals[0].presented = same_fence.timeline.terms[0].fence;
        assert_eq!(broken(same_fence), [1]);

        let mut overlap = evidence();
        overlap.timeline.terms[1].began = Stamp(1);
        assert_eq!(broken(overlap), [2]);
        let mut starved = evidence();
        starved.timeline.terms[1].began = Stamp(1);
        starved.timeline.terms[0].end = End::Lost;
        assert_eq!(broken(starved), [0; 0]);

        let mut unreadable = evidence();
        unreadable.journals[0].1 = Told::audit("/no/such/journal".as_ref());
        assert_eq!(broken(unreadable), [3]);

        let mut no_refusal = evidence();
        no_refusal.timeline.refusals.clear();
        assert_eq!(broken(no_refusal), [4]);

        let handed = |done| Handed { from: "r1".to_owned(), done, what: "aborted".to_owned(), gap: None };
        let mut handed_over = evidence();
        (handed_over.asked, handed_over.handoffs) = (2, vec![handed(true), handed(true)]);
        assert_eq!(broken(handed_over), [0; 0]);
        let mut kept = evidence();
        (kept.asked, kept.handoffs) = (2, vec![handed(true), handed(false)]);
        assert_eq!(broken(kept), [6]);
        let mut few = evidence();
        (few.asked, few.handoffs) = (2, vec![handed(true)]);
        assert_eq!(broken(few), [6]);

        let mut missed = evidence();
        missed.missed.push("it did not happen".to_owned());
        assert_eq!(broken(missed), [5]);
    }

    #[test]
    fn a_run_without_events_proves_nothing() {
        let mut empty = evidence();
        empty.emitted.clear();
        empty.ledgers[0].1 = Ledger::default();
        assert_eq!(broken(empty), [0]);
    }
}
