//! The play in three acts: a leader is killed, another is frozen past its lease, and the feed ends; before that, if it is
//! asked for, leaders hand over to each other.

use super::{
    args::Args,
    checks::Evidence,
    chronicle::{Chronicle, Entry, Missed, What},
    client::Client,
    directory::Directory,
    feed::Feed,
    handoffs::{Asker, Handed},
    journal::Told,
    report::Report,
    stage::{Player, Stage},
    ticker::{self, Ticker},
    timeline::Timeline,
    upstream,
};
use crate::{clock::Stamp, store};
use leasehold::BoxError;
use std::{collections::BTreeMap, io, path::Path, time::Duration};
use tokio::time::{sleep, sleep_until, timeout};

/// For what should take milliseconds, on a machine that is busy with something else.
const AMPLE: Duration = Duration::from_secs(20);
/// Until a killed replica is started again, as by a supervisor.
const AWAY: Duration = Duration::from_millis(1_500);

/// Plays it, and hands over what was seen since `from`. What did not happen is in the evidence, too.
///
/// # Errors
/// When the play cannot even begin: no store, no port, no process.
pub async fn play(
    mut args: Args,
    dir: &Path,
    chronicle: Chronicle,
    from: Stamp,
) -> Result<Evidence, BoxError> {
    let url = args.store.get_or_insert_with(|| format!("sqlite:{}", dir.join("leases.db").display()));
    // Only to see that it can be used: an error is easier to read here than from each replica.
    drop(store::open(url).await?);
    let retention = (args.ttl * 3 + Duration::from_secs(30)).as_millis() / ticker::EVERY.as_millis();
    let feed = Feed::new(usize::try_from(retention).unwrap_or(usize::MAX));
    let directory = Directory::default();
    let upstream = upstream::serve(feed.clone(), directory.clone()).await?;
    let stage = Stage { args, upstream, dir: dir.to_owned(), directory, chronicle: chronicle.clone() };

    let handoffs = Vec::new();
    let mut run = Run { players: BTreeMap::new(), stage, chronicle, feed, ticker: None, handoffs };
    for id in run.stage.args.ids() {
        run.players.insert(id.clone(), run.stage.start(&id)?);
    }
    let mut missed = Vec::new();
    let mut clients = Vec::new();
    match run.acts(&mut clients).await {
        Ok(()) => {}
        Err(Halt::Missed(what)) => missed.push(what.to_string()),
        Err(Halt::Stage(error)) => return Err(error.into()),
    }
    let emitted = match run.ticker.take() {
        Some(ticker) => ticker.stop().await,
        None => Vec::new(),
    };
    let patience = sleep(AMPLE);
    tokio::pin!(patience);
    for client in &clients {
        // Whoever still misses some of them then shows up in the ledgers.
        tokio::select! {
            () = client.reach(emitted.len() as u64) => {}
            () = &mut patience => break,
        }
    }
    let to = Stamp::now();
    let ledgers = clients.iter().map(|client| (client.of.clone(), client.ledger())).collect();
    // Clients leave first: a server that ends under them would look like a failure.
    drop(clients);
    run.curtain(&mut missed).await?;
    let journals = run
        .stage
        .args
        .ids()
        .into_iter()
        .map(|id| (Told::audit(&run.stage.journal(&id)), id))
        .map(|(t, id)| (id, t));
    let entries = run.chronicle.entries();
    Ok(Evidence {
        timeline: Timeline::read(&entries, from, to.max(last_end(&entries))),
        journals: journals.collect(),
        entries,
        ledgers,
        emitted,
        asked: run.stage.args.handoffs,
        handoffs: run.handoffs,
        missed,
    })
}

/// The run as it stands.
struct Run {
    players: BTreeMap<String, Player>,
    stage: Stage,
    chronicle: Chronicle,
    feed: Feed,
    ticker: Option<Ticker>,
    handoffs: Vec<Handed>,
}

/// Why the play stopped.
#[derive(Debug, thiserror::Error)]
enum Halt {
    #[error(transparent)]
    Missed(#[from] Missed),
    #[error(transparent)]
    Stage(#[from] io::Error),
}

impl Run {
    async fn acts(&mut self, clients: &mut Vec<Client>) -> Result<(), Halt> {
        let ids = self.stage.args.ids();
        let all_up =
            |entries: &[Entry]| ids.iter().all(|id| entries.iter().any(|e| serves(e, id))).then_some(());
        self.chronicle.wait_for("all replicas to serve", AMPLE, all_up).await?;
        clients.extend(ids.iter().map(|id| Client::connect(id, self.stage.directory.clone())));

        let begin = tokio::time::Instant::now();
        let length = Duration::from_secs(self.stage.args.seconds.into());
        self.ticker = Some(Ticker::start(self.feed.clone()));
        sleep_until(begin + length / 3).await;
        self.kill_the_leader().await?;
        sleep_until(begin + length * 3 / 5).await;
        self.freeze_the_leader().await?;
        self.hand_over().await?;
        sleep_until(begin + length).await;
        Ok(())
    }

    /// Act one: SIGKILL. Somebody takes over, and the killed one comes back as an ordinary replica.
    async fn kill_the_leader(&mut self) -> Result<(), Halt> {
        let (leader, fence) = self.leader().await?;
        let Some(player) = self.players.remove(&leader) else { return Err(gone(&leader)) };
        player.kill().await?;
        let patience = AMPLE + self.stage.args.ttl * 2;
        self.chronicle.wait_for("a successor of the killed leader", patience, above(fence)).await?;
        sleep(AWAY.min(self.stage.args.ttl * 2)).await;
        let player = self.stage.start(&leader)?;
        self.players.insert(leader.clone(), player);
        let back =
            |entries: &[Entry]| (entries.iter().filter(|e| serves(e, &leader)).count() > 1).then_some(());
        self.chronicle.wait_for("the killed replica to serve again", AMPLE, back).await?;
        Ok(())
    }

    /// Act two: SIGSTOP between the check and the write, past the lease, and SIGCONT.
    async fn freeze_the_leader(&mut self) -> Result<(), Halt> {
        let (leader, fence, to) = self.catch_a_delivery().await?;
        let Some(player) = self.players.get_mut(&leader) else { return Err(gone(&leader)) };
        player.freeze().await?;

        // The gate that the delivery is for must have met the new fence, or there is nothing to refuse it by.
        let ttl = self.stage.args.ttl;
        let met = |entries: &[Entry]| {
            let raised = |e: &&Entry| {
                e.who == to
                    && matches!(e.what, What::Said(Report::Raised { fence: new, .. }) if new.get() > fence)
            };
            entries.iter().find(raised).map(|_| ())
        };
        let overslept = sleep(ttl * 3 / 2);
        let patience = AMPLE + ttl * 3;
        self.chronicle.wait_for("a successor of the frozen leader", patience, above(fence)).await?;
        self.chronicle.wait_for("the successor to reach the gate", patience, met).await?;
        overslept.await;
        if let Some(player) = self.players.get(&leader) {
            player.thaw()?;
        }
        let refused = |entries: &[Entry]| {
            let of_it = |e: &&Entry| matches!(e.what, What::Said(Report::Refused { presented, .. }) if presented.get() == fence);
            entries.iter().find(of_it).map(|_| ())
        };
        self.chronicle.wait_for("a refusal of the woken leader's delivery", AMPLE, refused).await?;
        Ok(())
    }

    /// Between the acts: each leader in turn is asked to hand over, and the feed runs on.
    async fn hand_over(&mut self) -> Result<(), Halt> {
        let (count, url) = (self.stage.args.handoffs, self.stage.args.store.clone().unwrap_or_default());
        if count == 0 {
            return Ok(());
        }
        let mut asker = Asker::open(&url).await.map_err(io::Error::other)?;
        for _ in 0..count {
            let (leader, fence) = self.leader().await?;
            let handed = asker.ask(&leader, AMPLE).await.map_err(io::Error::other)?;
            let done = handed.done;
            self.handoffs.push(handed);
            if !done {
                break;
            }
            self.chronicle.wait_for("whoever was handed to", AMPLE, above(fence)).await?;
        }
        Ok(())
    }

    /// A leader that stands still with a delivery in hand: who, its fence, and for whom the delivery is.
    async fn catch_a_delivery(&mut self) -> Result<(String, u64, String), Halt> {
        loop {
            let (leader, fence) = self.leader().await?;
            let Some(player) = self.players.get_mut(&leader) else { return Err(gone(&leader)) };
            player.hold_next_delivery().await?;
            let caught = |entries: &[Entry]| {
                let in_hand = entries.iter().find_map(|e| match &e.what {
                    What::Said(Report::InHand { fence: of, to, .. }) if of.get() == fence => Some(to.clone()),
                    _ => None,
                });
                // On a busy machine the leadership may just then go elsewhere: then another one is to be caught.
                in_hand.map(Some).or_else(|| above(fence)(entries).map(|()| None))
            };
            if let Some(to) =
                self.chronicle.wait_for("a delivery in the leader's hand", AMPLE, caught).await?
            {
                return Ok((leader, fence, to));
            }
            player.release().await?;
        }
    }

    /// Who leads, once it is at work.
    async fn leader(&self) -> Result<(String, u64), Missed> {
        self.chronicle.wait_for("a leader at work", AMPLE + self.stage.args.ttl * 2, at_work).await
    }

    /// The end: all replicas are asked to leave, the leader last, so that nobody is elected on the way out.
    async fn curtain(&mut self, missed: &mut Vec<String>) -> io::Result<()> {
        let leader = at_work(&self.chronicle.entries()).map(|(leader, _)| leader);
        let (last, first): (Vec<_>, Vec<_>) = std::mem::take(&mut self.players)
            .into_values()
            .partition(|player| Some(&player.id) == leader.as_ref());
        for group in [first, last] {
            let leaving = group.into_iter().map(|player| async {
                let id = player.id.clone();
                // One that is still frozen, since an act broke off, could not hear the SIGTERM.
                let _ = player.wake();
                match timeout(AMPLE, player.terminate()).await {
                    Ok(Ok(status)) if status.success() => None,
                    Ok(Ok(status)) => Some(format!("{id} did not end well after SIGTERM: {status}")),
                    Ok(Err(error)) => Some(format!("{id} could not be ended: {error}")),
                    Err(_) => Some(format!("{id} did not end within {AMPLE:?} of SIGTERM")),
                }
            });
            missed.extend(futures_util::future::join_all(leaving).await.into_iter().flatten());
        }
        Ok(())
    }
}

fn gone(leader: &str) -> Halt {
    Halt::Stage(io::Error::other(format!("{leader} leads, but there is no such process")))
}

fn serves(entry: &Entry, id: &str) -> bool {
    entry.who == id && matches!(entry.what, What::Said(Report::Listening { .. }))
}

/// The leader of the highest fence that resumed the feed and has not ended.
fn at_work(entries: &[Entry]) -> Option<(String, u64)> {
    let of = |entry: &Entry| match entry.what {
        What::Said(Report::Resumed { fence, .. }) => Some((entry.who.clone(), fence.get())),
        _ => None,
    };
    let (leader, fence) = entries.iter().filter_map(of).max_by_key(|(_, fence)| *fence)?;
    let ended = |e: &Entry| matches!(e.what, What::Said(Report::Ended { fence: f, .. }) if f.get() == fence);
    (!entries.iter().any(ended)).then_some((leader, fence))
}

fn above(fence: u64) -> impl Fn(&[Entry]) -> Option<()> {
    move |entries| {
        let higher =
            |e: &&Entry| matches!(e.what, What::Said(Report::Leading { fence: f, .. }) if f.get() > fence);
        entries.iter().find(higher).map(|_| ())
    }
}

fn last_end(entries: &[Entry]) -> Stamp {
    let ended = |e: &&Entry| matches!(e.what, What::Said(Report::Ended { .. }));
    entries.iter().rev().find(ended).map_or_else(Stamp::default, |e| e.at)
}
