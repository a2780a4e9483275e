//! The command under a term of a lease: what `run` and `elect` have in common.

mod pulse;

pub(crate) use pulse::PulseFailure;

use crate::{
    attend::{Attended, Passing, attend},
    child::{Child, ChildStatus, Lend, Order, Reaper, Terminal},
    events::{Event, Events},
    exit::Exit,
    notes::Notes,
    say,
    signals::Signals,
};
use leasehold::Term;
use rustix::process::Signal;
use std::{ffi::OsString, time::Duration};

/// What is to be done under a lease, and how.
#[derive(Debug, Clone)]
pub(crate) struct Duty {
    pub(crate) command: Order,
    /// The store, for the command's environment.
    pub(crate) url: String,
    pub(crate) grace: Duration,
    /// The shell command that says whether the command is well.
    pub(crate) pulse: Option<OsString>,
    pub(crate) pulse_every: Duration,
    pub(crate) passing: Passing,
    pub(crate) lend: Lend,
    pub(crate) reaper: Reaper,
    pub(crate) events: Events,
}

/// How a duty ended. Nothing of the command is left.
#[derive(Debug)]
pub(crate) enum Done {
    /// The command exited by itself.
    Exited {
        status: ChildStatus,
        /// Whether a signal to us, or Ctrl-C at its terminal, is what ended it.
        on_request: bool,
    },
    /// We ended it, since the lease is to be given up.
    Ended(ChildStatus),
    /// We ended it, since its pulse failed.
    GaveUp(PulseFailure),
    /// It could not be started; why was said.
    NotStarted(Exit),
    /// We were asked to end before it was started.
    Signalled(Signal),
}

/// Why a command was ended.
enum Why {
    Quiesce,
    Pulse(PulseFailure),
}

impl Duty {
    /// Runs the command for as long as the term allows.
    ///
    /// Dropping the future kills the command's group and blocks until it is gone.
    pub(crate) async fn perform(&self, term: &Term, signals: &mut Signals) -> Done {
        if let Some(signal) = signals.pending_end() {
            return Done::Signalled(signal);
        }
        let notes = Notes::open(term)
            .inspect_err(|error| tracing::warn!(%error, "there is no place for notes; none is taken or left"))
            .ok();
        let trust = term.grant().clone();
        let command =
            self.under(term, notes.as_ref(), self.command.clone()).trusted_until(trust.trusted_until());
        let mut child = match Child::spawn(&self.reaper, &command, Terminal::of_this_process(self.lend)) {
            Ok(child) => child,
            Err(error) => {
                say::note(&error);
                return Done::NotStarted(error.exit());
            }
        };
        let may_go_on = || term.check().is_ok();
        let must_end = async {
            tokio::select! {
                within = term.quiescing() => (share(self.grace, within), Why::Quiesce),
                failure = self.watch_pulse(term) => {
                    say::note(format_args!("lease {}: {failure}; it is given up", term.name()));
                    let (by, reason) = ("pulse".to_owned(), failure.to_string());
                    self.events.put(term.name(), Some(term.fence()), &Event::Quiescing { by, reason });
                    (self.grace, Why::Pulse(failure))
                }
            }
        };
        // Beside all of the care, and so until nothing of the command is left.
        let telling = child.keep_trusted(move || trust.trusted_until());
        let Attended { ended, why, passed } = tokio::select! {
            biased;
            attended = attend(&mut child, signals, self.passing, self.grace, may_go_on, must_end) => attended,
            never = telling => match never {},
        };
        self.events.note_status(ended.status);
        if let Some(notes) = notes {
            notes.hand_on(term);
        }
        if term.check().is_err() {
            // The lease was lost, however the command ended: it may have been its guard that ended it, while we were
            // paused. Whoever holds the term finds the same, and drops us.
            return std::future::pending().await;
        }
        match why {
            Some(Why::Pulse(failure)) => Done::GaveUp(failure),
            Some(Why::Quiesce) => Done::Ended(ended.status),
            None => Done::Exited {
                status: ended.status,
                on_request: by_request(ended.status, passed, child.had_terminal()),
            },
        }
    }

    /// An order with the environment of the term.
    fn under(&self, term: &Term, notes: Option<&Notes>, order: Order) -> Order {
        let order = order
            .with("LEASEHOLD_NAME", term.name().as_str())
            .with("LEASEHOLD_FENCE", term.fence().to_string())
            .with("LEASEHOLD_REPLICA", term.replica().as_str())
            .with("LEASEHOLD_STORE", &*self.url)
            .with("LEASEHOLD_PREDECESSOR", term.predecessor().fate().as_str());
        match notes {
            None => order,
            Some(notes) => {
                let order = order.with("LEASEHOLD_NOTE_OUT", notes.outgoing());
                match notes.incoming() {
                    Some(path) => order.with("LEASEHOLD_NOTE_IN", path),
                    None => order,
                }
            }
        }
    }
}

/// How much of the time in which a duty must end is the command's: a tenth is kept for KILL and for reaping, so that
/// nothing is left when the time is over (I6).
fn share(grace: Duration, within: Duration) -> Duration {
    grace.min(within.saturating_sub(within / 10))
}

/// Whether the signal that ended a command is one that somebody sent to it through us, or from its terminal.
fn by_request(status: ChildStatus, passed: Option<Signal>, had_terminal: bool) -> bool {
    let ChildStatus::Signalled(number) = status else { return false };
    let from_terminal = [Signal::INT, Signal::QUIT, Signal::HUP].map(Signal::as_raw).contains(&number);
    passed.is_some_and(|signal| signal.as_raw() == number) || (had_terminal && from_terminal)
}
