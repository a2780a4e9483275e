//! Plays a [`Tenure`].
//!
//! ```text
//! begin ttl=3000 [renew= margin= grace=] [pulse-within=] sent=0 [remaining=] at=40
//! wake [at=]                      at the moment last asked for, or another
//! renewed|failed|not-holder [#2]  the answer to an attempt, by default the latest
//! pulse [of=] · outranked by=9     the worker moved, at that moment; a resource has seen a higher fence
//! doubted                         something was seen that casts doubt on the claim
//! store answers|fails|hangs [after=] until=     lets time pass with such a store
//! ```

use super::{
    command::{Command, MOST_STEPS, Mistake},
    show::{self, MS, ZERO, at, ms},
};
use leasehold_core::{
    Fence, Moment, NotHolder, Stale, Timing, Verb,
    tenure::{Action, Answer, Event, Tenure},
};

#[derive(Default)]
pub(crate) struct Stage {
    tenure: Option<Tenure>,
    now: Moment,
    wake_at: Option<Moment>,
    // When each attempt was sent.
    attempts: Vec<Moment>,
    unanswered: Vec<usize>,
    out: String,
}

impl Stage {
    pub(crate) fn play(&mut self, mut command: Command) -> Result<String, Mistake> {
        match command.verb.as_str() {
            "begin" => self.begin(&mut command)?,
            "store" => self.store(&mut command)?,
            verb => {
                let event = match verb {
                    "wake" => Event::Wake,
                    "pulse" => {
                        let seen = command.ms("of")?.map(|d| ZERO.after(d)).or(command.at);
                        Event::Pulse(seen.unwrap_or(self.now))
                    }
                    "outranked" => {
                        let highest = Command::must("by", command.fence("by")?)?;
                        Event::Outranked(Stale { presented: Fence::FIRST, highest })
                    }
                    "doubted" => Event::Doubted,
                    "renewed" => {
                        let remaining = command.ms("remaining")?.unwrap_or(MS * 3000);
                        self.answer(&mut command, Answer::Renewed { remaining })?
                    }
                    "failed" => {
                        let error = command.error(Verb::Renew)?;
                        self.answer(&mut command, Answer::Failed(error))?
                    }
                    "not-holder" => {
                        let highest = command.fence("fence")?;
                        let holder = command.replica("by")?.zip(highest);
                        self.answer(&mut command, Answer::NotHolder(NotHolder { holder, highest }))?
                    }
                    _ => return Err("no such command".to_owned()),
                };
                let due = if event == Event::Wake { self.wake_at } else { Some(self.now) };
                let now = command.at.or(due);
                self.step(now.ok_or("nothing to wake for")?, event)?;
            }
        }
        command.end()?;
        Ok(std::mem::take(&mut self.out))
    }

    fn begin(&mut self, command: &mut Command) -> Result<(), Mistake> {
        *self = Self::default();
        let mut timing = Timing::new(command.ms("ttl")?.unwrap_or(MS * 3000)).map_err(|e| e.to_string())?;
        if let Some(margin) = command.ms("margin")? {
            timing = timing.with_margin(margin).map_err(|e| e.to_string())?;
        }
        if let Some(renew) = command.ms("renew")? {
            timing = timing.with_renew_every(renew).map_err(|e| e.to_string())?;
        }
        if let Some(grace) = command.ms("grace")? {
            timing = timing.with_grace(grace).map_err(|e| e.to_string())?;
        }
        let sent = ZERO.after(command.ms("sent")?.unwrap_or_default());
        self.now = Command::must("at", command.at)?;
        let remaining = command.ms("remaining")?.unwrap_or_else(|| timing.ttl());
        let (mut tenure, todo) = Tenure::begin(timing, sent, remaining, self.now, 7);
        if let Some(silence) = command.ms("pulse-within")? {
            tenure = tenure.gated(silence);
        }
        self.tenure = Some(tenure);
        self.perform(&todo);
        Ok(())
    }

    fn answer(&mut self, command: &mut Command, answer: Answer) -> Result<Event, Mistake> {
        let number = command.attempt()?.unwrap_or(self.attempts.len());
        let sent = number.checked_sub(1).and_then(|i| self.attempts.get(i));
        self.unanswered.retain(|&i| i + 1 != number);
        Ok(Event::Answered { sent: *sent.ok_or_else(|| format!("no attempt #{number}"))?, answer })
    }

    /// Lets time pass: wakes when asked to, answers each attempt as told.
    fn store(&mut self, command: &mut Command) -> Result<(), Mistake> {
        let manner = command.word().ok_or("store answers, fails or hangs?")?;
        let after = command.ms("after")?.unwrap_or_default();
        let until = ZERO.after(Command::must("until", command.ms("until")?)?);
        let answer = match manner.as_str() {
            "answers" => Some(Answer::Renewed { remaining: MS * 3000 }),
            "fails" => Some(Answer::Failed(command.error(Verb::Renew)?)),
            "hangs" => None,
            _ => return Err(format!("{manner}: a store answers, fails or hangs")),
        };
        for steps in 0.. {
            if self.tenure.as_ref().ok_or("no term has begun")?.is_over() {
                break;
            }
            if steps == MOST_STEPS {
                return Err("a hot loop".to_owned());
            }
            let wake = self.wake_at.ok_or("a term that is not over asks to be woken")?;
            let due = self.unanswered.first().map(|&i| (self.attempts[i].after(after), i));
            let (now, event) = match (due, &answer) {
                (Some((due, i)), Some(answer)) if due <= wake => {
                    (due, Event::Answered { sent: self.attempts[i], answer: answer.clone() })
                }
                _ => (wake, Event::Wake),
            };
            if now > until {
                break;
            }
            if event != Event::Wake {
                self.unanswered.remove(0);
            }
            self.step(now.max(self.now), event)?;
        }
        if answer.is_none() {
            self.unanswered.clear();
        }
        Ok(())
    }

    fn step(&mut self, now: Moment, event: Event) -> Result<(), Mistake> {
        if now < self.now {
            return Err(format!("time never runs back from {} to {}", at(self.now), at(now)));
        }
        self.now = now;
        let todo = self.tenure.as_mut().ok_or("no term has begun")?.step(now, event);
        self.perform(&todo);
        Ok(())
    }

    fn perform(&mut self, todo: &[Action]) {
        let mut lines = Vec::new();
        for action in todo {
            lines.push(match action {
                Action::Renew { sent, give_up_after } => {
                    self.unanswered.push(self.attempts.len());
                    self.attempts.push(*sent);
                    format!("send renewal #{}, give it up after {}", self.attempts.len(), ms(*give_up_after))
                }
                Action::Extend(until) => format!("trusted until {}", at(*until)),
                Action::Announce(standing) => show::standing(standing),
                Action::LastCall { within } => {
                    format!("last call: the worker has {} left", ms(*within))
                }
                Action::Anomaly(odd) => {
                    format!("anomaly: asked for {}, and {} are left", ms(odd.asked), ms(odd.remaining))
                }
                Action::WakeAt(moment) => {
                    self.wake_at = Some(*moment);
                    format!("wake at {}", at(*moment))
                }
                Action::End(cause) => format!("THE END: {}", cause.as_str()),
            });
        }
        show::step(self.now, &lines, &mut self.out);
    }
}
