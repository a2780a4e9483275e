//! The clerk's state: the calls under way.

use super::{
    Acquired, ClerkArgs, ClerkMsg,
    overdue::{End, Overdue},
    settle::{self, Absence},
};
use crate::{
    calls::{Calls, Fault, bounded},
    event::Events,
    reply::Reply,
    telemetry::Traces,
};
use leasehold_core::{
    Acquire, AttemptId, Bid, Claim, Clock, LeaseName, LeaseRecord, Parting, Release, Renew, Renewal,
    SharedStore, StoreError, Verb,
};
use ractor::ActorRef;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant};
use tracing::Instrument;

/// How many renewals go in one call.
const BATCH: usize = 512;

/// The calls under way.
pub(crate) struct Desk {
    me: ActorRef<ClerkMsg>,
    pub(super) store: SharedStore,
    clock: Arc<dyn Clock>,
    events: Events,
    traces: Traces,
    calls: Calls,
    bids: HashMap<AttemptId, Bidding>,
    due: Vec<Due>,
    closing: Vec<Reply<bool>>,
    /// Set if a release was still overdue when we were to close, and stayed it.
    unconfirmed: Arc<AtomicBool>,
    /// Told when the first wants us to close: searches are cut short, and what is overdue is repeated at once.
    hurry: watch::Sender<bool>,
}

/// A bid whose answer is awaited.
struct Bidding {
    bid: Bid,
    done: Option<Reply<Acquired>>,
}

struct Due {
    renewal: Renewal,
    within: Duration,
    done: Reply<Renew>,
}

impl Desk {
    pub(super) fn new(me: ActorRef<ClerkMsg>, args: ClerkArgs) -> Self {
        Self {
            me,
            store: args.store,
            clock: args.clock,
            events: args.events,
            traces: args.traces,
            calls: Calls::default(),
            bids: HashMap::new(),
            due: Vec::new(),
            closing: Vec::new(),
            unconfirmed: Arc::default(),
            hurry: watch::Sender::new(false),
        }
    }

    pub(super) fn acquire(&mut self, bid: Bid, within: Duration, done: Reply<Acquired>) {
        let (store, clock, me) = (self.store.clone(), self.clock.clone(), self.me.clone());
        let span = self.traces.acquire(&bid.name, &bid.replica, &bid.trace);
        let (traces, at_span) = (self.traces.clone(), span.clone());
        let mut sent_bid = bid.clone();
        let own = traces.of(&span);
        if own.traceparent().is_some() {
            // The record keeps the acquire's own context, so that a successor can link to it.
            sent_bid.trace = own;
        }
        self.bids.insert(bid.attempt, Bidding { bid, done: Some(done) });
        self.task(
            async move {
                let sent = clock.now();
                let answer = bounded(within, || store.acquire(&sent_bid)).await.unwrap_or_else(|fault| {
                    Acquire::Unknown(fault.error(Verb::Acquire, &*store).on(&sent_bid.name))
                });
                match &answer {
                    Acquire::Granted(granted) => {
                        at_span.record("outcome", "granted");
                        at_span.record("fence", granted.claim.fence.get());
                        at_span.record("predecessor", granted.predecessor.fate().as_str());
                        if let Some(ended) = granted.predecessor.ended() {
                            traces.link(&at_span, &ended.trace);
                        }
                    }
                    Acquire::Held(_) => drop(at_span.record("outcome", "held")),
                    Acquire::Refused(_) => drop(at_span.record("outcome", "refused")),
                    Acquire::Unknown(_) => drop(at_span.record("outcome", "unknown")),
                }
                let _ = me.cast(ClerkMsg::AcquireDone {
                    attempt: sent_bid.attempt,
                    acquired: Acquired { sent, answer, trace: sent_bid.trace },
                });
            }
            .instrument(span),
        );
    }

    pub(super) fn acquire_done(&mut self, attempt: AttemptId, acquired: Acquired) {
        let Some(bidding) = self.bids.remove(&attempt) else { return };
        match bidding.done {
            Some(done) => done.send(acquired),
            // Undone while it was under way. Held and Refused left nothing; the others may have.
            None => match acquired.answer {
                Acquire::Granted(_) => {
                    self.settle(bidding.bid.name, attempt, bidding.bid.ttl, Absence::Proves);
                }
                Acquire::Unknown(_) => {
                    let absence = Absence::MustLast(self.hurry.subscribe());
                    self.settle(bidding.bid.name, attempt, bidding.bid.ttl, absence);
                }
                Acquire::Held(_) | Acquire::Refused(_) => {}
            },
        }
    }

    pub(super) fn undo(&mut self, name: LeaseName, attempt: AttemptId, ttl: Duration) {
        let absence = match self.bids.get_mut(&attempt) {
            // It may be carried out yet: its answer, or its silence, has us look once more.
            Some(bidding) => {
                drop(bidding.done.take());
                Absence::Proves
            }
            None => Absence::MustLast(self.hurry.subscribe()),
        };
        // Now, too: the claim may stand already, and its answer may be long in coming.
        self.settle(name, attempt, ttl, absence);
    }

    fn settle(&mut self, name: LeaseName, attempt: AttemptId, ttl: Duration, absence: Absence) {
        let store = self.store.clone();
        self.task(async move { settle::undo(&*store, &name, attempt, ttl, absence).await });
    }

    /// Whether a flush must be asked for.
    pub(super) fn gather(&mut self, renewal: Renewal, within: Duration, done: Reply<Renew>) -> bool {
        self.due.push(Due { renewal, within, done });
        self.due.len() == 1
    }

    pub(super) fn flush(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        while !due.is_empty() {
            let rest = due.split_off(due.len().min(BATCH));
            self.renew(due);
            due = rest;
        }
    }

    fn renew(&mut self, batch: Vec<Due>) {
        let store = self.store.clone();
        let span = self.traces.renew(batch.len());
        self.task(
            async move {
                // Each renewer gives up by itself at its own time; the call need not outlive the last of them.
                let within = batch.iter().map(|due| due.within).max().unwrap_or_default();
                let (renewals, done): (Vec<_>, Vec<_>) =
                    batch.into_iter().map(|due| (due.renewal, due.done)).unzip();
                let answers = bounded(within, || store.renew(&renewals)).await;
                let unknown = |fault: &Fault, at: usize| {
                    Renew::Unknown(fault.error(Verb::Renew, &*store).on(&renewals[at].claim.name))
                };
                match answers {
                    Ok(answers) => {
                        let mut answers = answers.into_iter();
                        for (at, done) in done.into_iter().enumerate() {
                            done.send(answers.next().unwrap_or_else(|| unknown(&Fault::Panicked, at)));
                        }
                    }
                    Err(fault) => {
                        done.into_iter().enumerate().for_each(|(at, done)| done.send(unknown(&fault, at)));
                    }
                }
            }
            .instrument(span),
        );
    }

    pub(super) fn release(
        &mut self,
        claim: Claim,
        mut parting: Parting,
        within: Duration,
        lives: Duration,
        done: Reply<Release>,
    ) {
        let until = Instant::now() + lives;
        let (store, events) = (self.store.clone(), self.events.clone());
        let (closing, unconfirmed) = (self.hurry.subscribe(), self.unconfirmed.clone());
        let span = self.traces.release(&claim, &parting.trace);
        let own = self.traces.of(&span);
        if own.traceparent().is_some() {
            parting.trace = own;
        }
        self.task(async move {
            let answer = settle::release(&*store, &claim, &parting, within).instrument(span.clone()).await;
            span.record(
                "outcome",
                match &answer {
                    Release::Released => "released",
                    Release::NotHolder(_) => "not-holder",
                    Release::Refused(_) => "refused",
                    Release::Unknown(_) => "unknown",
                },
            );
            // A span is sent when it ends, and what may follow takes up to a ttl.
            drop(span);
            let open = match &answer {
                Release::Unknown(error) | Release::Refused(error) => Some(error.clone()),
                Release::Released | Release::NotHolder(_) => None,
            };
            done.send(answer);
            let Some(error) = open else { return };
            let overdue = Overdue { claim, parting, error, until };
            let end = overdue.settle(&*store, &events, closing.clone()).await;
            if end != End::Over && *closing.borrow() {
                unconfirmed.store(true, Ordering::Relaxed);
            }
        });
    }

    pub(super) fn look(
        &mut self,
        name: LeaseName,
        within: Duration,
        done: Reply<Result<LeaseRecord, StoreError>>,
    ) {
        let store = self.store.clone();
        self.task(async move {
            let looked = bounded(within, || store.inspect(&name)).await;
            done.send(looked.unwrap_or_else(|fault| Err(fault.error(Verb::Inspect, &*store).on(&name))));
        });
    }

    fn task(&mut self, call: impl Future<Output = ()> + Send + 'static) {
        // Their number needs no bound of its own: a lease has one bid, one renewal or one release under way, and each
        // ends by its caller's time.
        let me = self.me.clone();
        self.calls.start(call, move || drop(me.cast(ClerkMsg::TaskEnded)));
    }

    pub(super) fn task_ended(&mut self) {
        self.calls.one_ended();
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.calls.are_over() && self.bids.is_empty() && self.due.is_empty() {
            let settled = !self.unconfirmed.load(Ordering::Relaxed);
            self.closing.drain(..).for_each(|done| done.send(settled));
        }
    }

    pub(super) fn close(&mut self, done: Reply<bool>) {
        self.closing.push(done);
        self.hurry.send_replace(true);
        self.tidy();
    }

    pub(super) fn abort(&mut self) {
        self.calls.abort();
    }
}
