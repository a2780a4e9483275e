//! The run as it is told while it happens: a sentence for each thing worth one.

use super::{
    chronicle::{Entry, What},
    report::Report,
};
use crate::clock::{Brief, Stamp};
use anstyle::{AnsiColor, Color, Style};
use std::collections::HashSet;

/// Tells a run.
#[derive(Debug)]
pub struct Story {
    from: Stamp,
    colour: bool,
    // When the work of the last leader stopped, and of which replica that was.
    leader: Option<String>,
    vacant_since: Option<Stamp>,
    known: HashSet<String>,
    handovers: u32,
}

impl Story {
    /// A story that begins at `from`.
    #[must_use]
    pub fn begin(from: Stamp, colour: bool) -> Self {
        Self { from, colour, leader: None, vacant_since: None, known: HashSet::new(), handovers: 0 }
    }

    /// The line for an entry, if it is worth one.
    pub fn tell(&mut self, entry: &Entry) -> Option<String> {
        let (colour, text) = self.sentence(entry)?;
        let style = match colour {
            Some(colour) if self.colour => Style::new().fg_color(Some(Color::Ansi(colour))),
            _ => Style::new(),
        };
        let dim = if self.colour { Style::new().dimmed() } else { Style::new() };
        let at = (entry.at - self.from).as_secs_f64();
        Some(format!("{dim}{at:>9.3} s{dim:#}  {style}{:<3} {text}{style:#}", entry.who))
    }

    fn sentence(&mut self, Entry { at, who, what }: &Entry) -> Option<(Option<AnsiColor>, String)> {
        let (good, bad, odd) = (Some(AnsiColor::Green), Some(AnsiColor::Red), Some(AnsiColor::Yellow));
        let said = match what {
            What::Killed => {
                self.leader_stops(who, *at);
                return Some((bad, "is killed (SIGKILL)".to_owned()));
            }
            What::Stopped => {
                self.leader_stops(who, *at);
                return Some((odd, "is frozen (SIGSTOP) with that delivery in hand".to_owned()));
            }
            What::Continued => {
                return Some((odd, "wakes (SIGCONT) and goes on where it stood: it sends".to_owned()));
            }
            What::Started | What::Terminated | What::Exited { .. } => return None,
            What::Said(said) => said,
        };
        match said {
            Report::Listening { last, .. } => {
                let new = self.known.insert(who.clone());
                (!new).then(|| (None, format!("is back, with {last} events in its journal")))
            }
            Report::Leading { predecessor, .. } if predecessor == "handed-off" && self.is_old_news() => {
                self.leader = Some(who.clone());
                self.vacant_since = None;
                None
            }
            Report::Leading { fence, predecessor } => {
                let gap = match self.vacant_since.take() {
                    Some(since) => format!("; nobody led for {}", Brief(*at - since)),
                    None => String::new(),
                };
                let before = match predecessor.as_str() {
                    "none" => "the first term of this lease".to_owned(),
                    fate => format!("the term before: {fate}"),
                };
                self.leader = Some(who.clone());
                Some((good, format!("leads under fence {fence} ({before}{gap})")))
            }
            Report::Resumed { .. } if self.handovers > TOLD => None,
            Report::Resumed { from, .. } => Some((None, format!("reads the feed from event {from} on"))),
            Report::InHand { fence, to, seq, trusted_ms } => Some((
                odd,
                format!(
                    "has event {seq} for {to} in hand, under fence {fence}; its own check said yes, and is good \
                     for {trusted_ms} ms"
                ),
            )),
            Report::Refused { presented, highest, from, seq } => {
                Some((bad, format!("refuses event {seq} of {from}: fence {presented} is below {highest}")))
            }
            Report::Ended { fence, how, .. } => {
                self.leader_stops(who, *at);
                if self.handovers > TOLD {
                    return None;
                }
                Some((None, format!("leads no more under fence {fence}: {how}")))
            }
            Report::Trouble { what } => Some((bad, format!("is in trouble: {what}"))),
            Report::Raised { .. } | Report::TurnedAway { .. } => None,
        }
    }

    /// After the first few handoffs, only one in so many is told.
    fn is_old_news(&mut self) -> bool {
        self.handovers += 1;
        self.handovers > TOLD && !self.handovers.is_multiple_of(EACH)
    }

    fn leader_stops(&mut self, who: &str, at: Stamp) {
        if self.leader.as_deref() == Some(who) {
            self.leader = None;
            self.vacant_since = Some(at);
        }
    }
}

/// So many handoffs are told in full.
const TOLD: u32 = 3;
/// And then each of these.
const EACH: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Fence;

    #[test]
    fn a_takeover_is_told_with_what_went_before_and_how_long_nobody_led() {
        let mut story = Story::begin(Stamp(0), false);
        let mut tell = |ms: u64, who: &str, what| {
            story.tell(&Entry { at: Stamp(ms * 1_000), who: who.to_owned(), what })
        };
        let leading = |n, fate: &str| {
            What::Said(Report::Leading { fence: Fence::new(n).unwrap(), predecessor: fate.to_owned() })
        };
        assert_eq!(tell(10, "r1", What::Started), None);
        assert_eq!(
            tell(200, "r1", leading(1, "none")).unwrap(),
            "    0.200 s  r1  leads under fence 1 (the first term of this lease)"
        );
        assert_eq!(tell(4_000, "r1", What::Killed).unwrap(), "    4.000 s  r1  is killed (SIGKILL)");
        assert_eq!(
            tell(4_028, "r2", leading(2, "crashed")).unwrap(),
            "    4.028 s  r2  leads under fence 2 (the term before: crashed; nobody led for 28 ms)"
        );
    }
}
