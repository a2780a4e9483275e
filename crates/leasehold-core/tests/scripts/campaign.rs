//! Plays a [`Campaign`] of replica `me`.
//!
//! ```text
//! begin [for-ever|once] [until=5000] [ttl=3000] [stride=100] [floor=7] [seed=]
//! wake [at=]                                  at the moment last asked for, or another
//! granted fence=8 [remaining=]                the answers to the bid in flight
//! held by=b fence=7 remaining=1500 [reserved]
//! refused|unknown [error=]
//! sighted vacant | held by= fence= remaining= | reserved heir= remaining=   [counter=]
//! look-failed [error=] · ranked 3 · state
//! store refuses|hesitates [error=] until=     lets time pass with such a store
//! ```

use super::{
    command::{Command, MOST_STEPS, Mistake},
    show::{self, MS, ZERO, at, ms},
};
use leasehold_core::{
    AttemptId, Claim, Fence, Granted, Held, LeaseName, LeaseRecord, LeaseState, Moment, Predecessor,
    ReplicaId, Timing, Verb,
    campaign::{Action, Answer, Campaign, Defeat, Event, Obstacle, Patience, Wish},
};
use std::{fmt::Write, time::Duration};

#[derive(Default)]
pub(crate) struct Stage {
    campaign: Option<Campaign>,
    now: Moment,
    wake_at: Option<Moment>,
    // When the bid in flight was sent.
    bid: Option<Moment>,
    bids: usize,
    over: bool,
    out: String,
}

impl Stage {
    pub(crate) fn play(&mut self, mut command: Command) -> Result<String, Mistake> {
        match command.verb.as_str() {
            "begin" => self.begin(&mut command)?,
            "store" => self.store(&mut command)?,
            "state" => self.state()?,
            _ => {
                let event = self.event(&mut command)?;
                let due = if event == Event::Wake { self.wake_at } else { Some(self.now) };
                let now = command.at.or(due);
                self.step(now.ok_or("nothing to wake for")?, event)?;
            }
        }
        command.end()?;
        Ok(std::mem::take(&mut self.out))
    }

    fn event(&mut self, command: &mut Command) -> Result<Event, Mistake> {
        Ok(match command.verb.as_str() {
            "wake" => Event::Wake,
            "ranked" => {
                let rank = command.word().ok_or("ranked behind how many?")?;
                Event::Ranked(rank.parse().map_err(|e| format!("{rank}: {e}"))?)
            }
            "granted" => {
                let fence = Command::must("fence", command.fence("fence")?)?;
                let remaining = command.ms("remaining")?.unwrap_or(MS * 3000);
                let claim = claim(me(), fence);
                self.answer(Answer::Granted(Granted {
                    claim,
                    remaining,
                    predecessor: Predecessor::None,
                    inherited: None,
                }))?
            }
            "held" => {
                let by = Command::must("by", command.replica("by")?)?;
                let fence = Command::must("fence", command.fence("fence")?)?;
                let remaining = Command::must("remaining", command.ms("remaining")?)?;
                let reserved = command.word().is_some_and(|word| word == "reserved");
                self.answer(Answer::Held(Held { by, fence, remaining, reserved }))?
            }
            "refused" => {
                let error = command.error(Verb::Acquire)?;
                self.answer(Answer::Refused(error))?
            }
            "unknown" => {
                let error = command.error(Verb::Acquire)?;
                self.answer(Answer::Unknown(error))?
            }
            "sighted" => Event::Sighted(sighting(command)?),
            "look-failed" => Event::LookFailed(command.error(Verb::Inspect)?),
            _ => return Err("no such command".to_owned()),
        })
    }

    fn begin(&mut self, command: &mut Command) -> Result<(), Mistake> {
        let until = command.ms("until")?.map(|d| Patience::Until(ZERO.after(d)));
        let word = command.word();
        let patience = match (word.as_deref(), until) {
            (None, Some(until)) => until,
            (None | Some("for-ever"), None) => Patience::Forever,
            (Some("once"), None) => Patience::Try,
            other => return Err(format!("{other:?}: for-ever, once or until=…")),
        };
        let ttl = command.ms("ttl")?.unwrap_or(MS * 3000);
        let wish = Wish {
            me: me(),
            timing: Timing::new(ttl).map_err(|e| e.to_string())?,
            patience,
            stride: command.ms("stride")?.unwrap_or(MS * 100),
            floor: command.fence("floor")?,
            seed: command.value("seed")?.unwrap_or(7),
        };
        let (campaign, todo) = Campaign::begin(wish);
        *self = Self { campaign: Some(campaign), now: ZERO, ..Self::default() };
        self.perform(&todo);
        Ok(())
    }

    fn answer(&mut self, answer: Answer) -> Result<Event, Mistake> {
        let sent = self.bid.take().ok_or("no bid is in flight")?;
        Ok(Event::Answered { sent, answer })
    }

    /// Lets time pass: wakes when asked to, answers each bid at once.
    fn store(&mut self, command: &mut Command) -> Result<(), Mistake> {
        let manner = command.word().ok_or("store refuses or hesitates?")?;
        let until = ZERO.after(Command::must("until", command.ms("until")?)?);
        let error = command.error(Verb::Acquire)?;
        let answer = match manner.as_str() {
            "refuses" => Answer::Refused(error),
            "hesitates" => Answer::Unknown(error),
            _ => return Err(format!("{manner}: a store refuses or hesitates")),
        };
        for steps in 0.. {
            if self.over {
                break;
            }
            if steps == MOST_STEPS {
                return Err("a hot loop".to_owned());
            }
            if let Some(sent) = self.bid.take() {
                self.step(self.now, Event::Answered { sent, answer: answer.clone() })?;
                continue;
            }
            match self.wake_at {
                Some(wake) if wake <= until => self.step(wake.max(self.now), Event::Wake)?,
                _ => break,
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<(), Mistake> {
        let campaign = self.campaign.as_ref().ok_or("no campaign has begun")?;
        let floor = campaign.floor().map_or_else(|| "none".to_owned(), |f| f.to_string());
        let attempt = if campaign.is_unsettled() { "unsettled" } else { "settled" };
        let _ = writeln!(self.out, "        floor {floor}, the last attempt is {attempt}");
        Ok(())
    }

    fn step(&mut self, now: Moment, event: Event) -> Result<(), Mistake> {
        if now < self.now {
            return Err(format!("time never runs back from {} to {}", at(self.now), at(now)));
        }
        self.now = now;
        let todo = self.campaign.as_mut().ok_or("no campaign has begun")?.step(now, event);
        self.perform(&todo);
        Ok(())
    }

    fn perform(&mut self, todo: &[Action]) {
        let mut lines = Vec::new();
        for action in todo {
            lines.push(match action {
                Action::Bid { fresh, floor } => {
                    self.bid = Some(self.now);
                    self.bids += usize::from(*fresh);
                    let floor = floor.map_or_else(String::new, |f| format!(", above fence {f}"));
                    if *fresh {
                        format!("bid with new attempt {}{floor}", self.bids)
                    } else {
                        format!("bid again with attempt {}{floor}", self.bids)
                    }
                }
                Action::Look => "look at the lease".to_owned(),
                Action::Enlist => "enter the roster".to_owned(),
                Action::WakeAt(moment) => {
                    self.wake_at = Some(*moment);
                    format!("wake at {}", at(*moment))
                }
                Action::Won { sent, granted } => {
                    self.over = true;
                    format!("WON under fence {}, asked for at {}", granted.claim.fence, at(*sent))
                }
                Action::Undo => format!("undo attempt {}", self.bids),
                Action::GiveUp(defeat) => {
                    self.over = true;
                    format!("GIVES UP: {}", show_defeat(defeat))
                }
            });
        }
        show::step(self.now, &lines, &mut self.out);
    }
}

fn me() -> ReplicaId {
    ReplicaId::new("me").expect("a valid name")
}

fn claim(replica: ReplicaId, fence: Fence) -> Claim {
    let name = LeaseName::new("lease").expect("a valid name");
    Claim { name, replica, attempt: AttemptId::from_bytes([7; 16]), fence }
}

fn sighting(command: &mut Command) -> Result<LeaseRecord, Mistake> {
    let kind = command.word().ok_or("sighted vacant, held or reserved?")?;
    let fence = command.fence("fence")?;
    let remaining = command.ms("remaining")?;
    let state = match kind.as_str() {
        "vacant" => LeaseState::Vacant,
        "held" => LeaseState::Held {
            claim: claim(Command::must("by", command.replica("by")?)?, Command::must("fence", fence)?),
            remaining: Command::must("remaining", remaining)?,
            held_for: Duration::ZERO,
            crash_witness: false,
        },
        "reserved" => LeaseState::Reserved {
            heir: Command::must("heir", command.replica("heir")?)?,
            remaining: Command::must("remaining", remaining)?,
        },
        _ => return Err(format!("{kind}: a lease is vacant, held or reserved")),
    };
    let counter = command.fence("counter")?.or(fence);
    Ok(LeaseRecord { counter, state, ..LeaseRecord::unknown(claim(me(), Fence::FIRST).name) })
}

fn show_defeat(defeat: &Defeat) -> String {
    match defeat {
        Defeat::Busy(held) => format!("busy, {}", show_held(held)),
        Defeat::TimedOut { last: None } => "out of time, nothing was heard".to_owned(),
        Defeat::TimedOut { last: Some(Obstacle::Held(held)) } => format!("out of time, {}", show_held(held)),
        Defeat::TimedOut { last: Some(Obstacle::Store(e)) } => format!("out of time, {}", show::error(e)),
        Defeat::TimedOut { last: Some(Obstacle::Late { took }) } => {
            format!("out of time, the yes took {}", ms(*took))
        }
        Defeat::Store(e) => format!("the store: {}", show::error(e)),
        other => other.to_string(),
    }
}

fn show_held(held: &Held) -> String {
    let how = if held.reserved { "reserved for" } else { "held by" };
    format!("{how} {} under fence {} for {}", held.by, held.fence, ms(held.remaining))
}
