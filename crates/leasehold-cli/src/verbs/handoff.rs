//! `handoff`: ask whoever leads to hand over, and tell how it goes.
//!
//! Letters only speed things up, here too: if no answer comes, the record says who leads.

use crate::{
    cli::{Common, Handoff},
    config,
    exit::Exit,
    say,
    session::Session,
};
use leasehold::{
    Claim, HandoffId, Inbox, LeaseRecord, LeaseState, ReplicaId, TraceContext,
    leasehold_core::handoff::{
        Plan, To,
        request::{self, News, Outcome, Request},
    },
};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// From one look at the record to the next, while no news comes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// No news for so long, and the request is sent again: a letter may have been lost.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// What a leader may take longer than it means to.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn handoff(handoff: Handoff, common: Common) -> Result<Exit, Exit> {
    let session = Session::open(common).await?;
    let record = session.ask(session.store.inspect(&handoff.name)).await?;
    let Some(claim) = record.claim().cloned() else {
        say::note(format_args!("lease {}: {}; there is nothing to hand over", handoff.name, whose(&record)));
        return Ok(Exit::Vacated);
    };
    // An inbox of our own: one that a running replica reads would lose half of the letters to it.
    let me = config::default_replica();
    let inbox = session.ask(session.store.inbox(&me)).await?;
    let request = Request {
        id: HandoffId::random(),
        lease: handoff.name.clone(),
        to: handoff.to.clone().map_or(To::Anyone, To::Replica),
        within: handoff.within,
        reason: handoff.reason.as_str().into(),
        trace: TraceContext::NONE,
    };
    let mut errand = Errand { session: &session, me, claim, request, json: handoff.json, last: None };
    errand.ask().await?;
    let exit = errand.follow(inbox).await?;
    session.finish();
    Ok(exit)
}

/// One request, and what is known of it.
struct Errand<'a> {
    session: &'a Session,
    me: ReplicaId,
    /// The claim of whoever was asked.
    claim: Claim,
    request: Request,
    json: bool,
    last: Option<News>,
}

impl Errand<'_> {
    async fn ask(&self) -> Result<(), Exit> {
        let letter = request::seal(&self.request, &self.me);
        self.session.ask(self.session.store.post(&self.claim.replica, &letter)).await
    }

    /// Tells the news until the last of them, or until the record says it all.
    async fn follow(&mut self, mut inbox: Inbox) -> Result<Exit, Exit> {
        let begun = Instant::now();
        let end = begun + Plan::default().longest(self.request.within) + PATIENCE;
        let mut asked = begun;
        loop {
            match timeout_at((Instant::now() + LOOK_EVERY).min(end), inbox.next()).await {
                Ok(Some(letter)) => {
                    let news = request::open_news(&letter).ok();
                    let ours = |news: &News| {
                        news.handoff == self.request.id.to_string() && self.last.as_ref() != Some(news)
                    };
                    if let Some(news) = news.filter(ours) {
                        self.tell(&news);
                        if let Some(outcome) = news.outcome() {
                            return Ok(exit(outcome));
                        }
                        self.last = Some(news);
                    }
                    continue;
                }
                // The store has closed it; the record is left.
                Ok(None) => tokio::time::sleep_until((Instant::now() + LOOK_EVERY).min(end)).await,
                Err(_) => {}
            }
            let record = self.session.ask(self.session.store.inspect(&self.request.lease)).await?;
            if let Some(exit) = self.decided(&record, Instant::now() >= end) {
                return Ok(exit);
            }
            if self.last.is_none() && asked.elapsed() >= ASK_AGAIN_AFTER {
                asked = Instant::now();
                self.ask().await?;
            }
        }
    }

    /// What the record says, where it says enough: somebody else leads, or the time is over.
    fn decided(&self, record: &LeaseRecord, over: bool) -> Option<Exit> {
        let same = record.claim() == Some(&self.claim);
        let taken = matches!(record.state, LeaseState::Held { .. }) && !same;
        if !taken && !over {
            return None;
        }
        let name = &self.request.lease;
        if taken {
            // News of it may be lost, or on their way still; the record is enough.
            say::note(format_args!("lease {name}: {}, as the record says", whose(record)));
            return Some(Exit::Done);
        }
        if same {
            let of = match &self.last {
                None => "it did not answer: it may be older than this program, paused, or cut off",
                Some(_) => "nothing more was heard of it",
            };
            say::note(format_args!("lease {name}: {}, as the record says; {of}", whose(record)));
            return Some(Exit::Aborted);
        }
        say::note(format_args!("lease {name}: {}, as the record says", whose(record)));
        Some(Exit::Vacated)
    }

    fn tell(&self, news: &News) {
        let line = if self.json {
            serde_json::to_string(news).unwrap_or_default()
        } else {
            format!("{:>7} ms  {}", news.elapsed_ms, self.words(news))
        };
        // Nobody reads it: the handoff goes on, and its status is told.
        say::out(&format!("{line}\n")).ok();
    }

    fn words(&self, news: &News) -> String {
        let to = news.to.as_deref().unwrap_or("?");
        let because = news.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let incumbent = &self.claim.replica;
        match news.step.as_str() {
            "asked" => format!("{incumbent} was asked to hand over {}", self.request.lease),
            "proposed" => format!("{to} was asked to take over"),
            "declined" => format!("{to} declined{because}"),
            "silent" => format!("{to} did not answer"),
            "ready" => format!("{to} is ready"),
            "quiescing" => format!("the worker of {incumbent} was asked to finish"),
            "resuming" => format!("the worker of {incumbent} goes on"),
            "joined" => format!("the worker of {incumbent} has ended"),
            "released" if news.to.is_some() => format!("released in favour of {to}"),
            "released" => "released to anyone".into(),
            "done" => {
                let fence = news.fence.map(|fence| format!(" under fence {fence}")).unwrap_or_default();
                let gap = news.gap_us.map(|us| format!("; nobody led for {} ms", us as f64 / 1000.0));
                format!("{to} leads{fence}{}", gap.unwrap_or_default())
            }
            "aborted" => format!("{incumbent} still leads{because}"),
            "refused" => format!("{incumbent} did not take it up{because}"),
            "vacated" => format!("{incumbent} leads no more{because}"),
            // A newer program's.
            step => format!("{step}{because}"),
        }
    }
}

const fn exit(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Done => Exit::Done,
        Outcome::Aborted => Exit::Aborted,
        Outcome::Released => Exit::Vacated,
    }
}

fn whose(record: &LeaseRecord) -> String {
    match &record.state {
        LeaseState::Held { claim, .. } => format!("{} leads under fence {}", claim.replica, claim.fence),
        LeaseState::Reserved { heir, .. } => format!("it is reserved for {heir}, who has not taken it yet"),
        LeaseState::Vacant => "nobody holds it".into(),
    }
}
