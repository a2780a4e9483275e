//! `elect`: campaign for ever, run a command whenever leading, end on a signal.

use super::{attendants, duty, timing};
use crate::{
    attend::Passing,
    child::Lend,
    cli::{Common, Elect, Holding},
    closing,
    duty::{Done, Duty},
    exit::Exit,
    say,
    session::{Session, store_failed},
    signals::{self, Signals},
};
use leasehold::{BoxError, Defeat, Election, LeaseState, Node, Position, Standing, Term};
use rustix::process::Signal;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

/// What the command's grace leaves of the time in which a term must end: for KILL and for reaping.
const REAPING: Duration = Duration::from_secs(2);

/// Why an election ends.
enum Verdict {
    /// A signal asks for it, or ended the command.
    Signal,
    /// The command can never be started.
    Hopeless(Exit),
    /// It was not elected in the time to wait.
    NotElected,
    /// The store can never be used like this.
    Defeated(Defeat),
}

pub(super) async fn elect(elect: Elect, common: Common) -> Result<Exit, Exit> {
    let Elect { holding, command } = elect;
    let timing = timing(&holding)?;
    let (reaper, mut signals) = attendants()?;
    let session = Session::open(common).await?;
    let node = session.node().await?;
    // TERM and INT are ours to answer: the lease is given up in good order. The terminal stays with us until the
    // command asks for it, so that Ctrl-C reaches us.
    let habits = (Passing::AllButEnds, Lend::OnRequest);
    let duty = duty(&holding, &timing, command, &session, &reaper, habits)?;
    let grace = duty.grace;

    let working = Arc::new(AtomicBool::new(false));
    let (tell, mut told) = mpsc::unbounded_channel();
    let lead = {
        let working = working.clone();
        move |term: Term| lead(duty.clone(), term, working.clone(), tell.clone())
    };
    let builder = node
        .election(&holding.name)
        .ttl(timing.ttl())
        .grace(timing.grace())
        .crash_witness(holding.crash_witness)
        .priority(holding.priority);
    let mut election = match builder.lead(lead).await {
        Ok(election) => election,
        Err(error) => {
            say::note(&error);
            return Err(Exit::Usage);
        }
    };

    let mut position = election.position();
    let elected = elected_in_time(&holding, &session, &node, election.position());
    tokio::pin!(elected);
    let mut waiting = true;
    let verdict = loop {
        tokio::select! {
            biased;
            Some(verdict) = told.recv() => break verdict,
            signal = signals.next() => match signal {
                Signal::INT | Signal::TERM => break Verdict::Signal,
                _ if working.load(Ordering::Relaxed) => {}
                Signal::TSTP => signals::pause(),
                signal if signals::asks_to_end(signal) => break Verdict::Signal,
                _ => {}
            },
            Ok(()) = position.changed() => {
                if let Position::Failed(defeat) = &*position.borrow_and_update() {
                    break Verdict::Defeated(defeat.clone());
                }
            }
            in_time = &mut elected, if waiting => {
                waiting = false;
                if !in_time {
                    break Verdict::NotElected;
                }
            }
        }
    };
    let lost = step_out(&mut election, &node, grace).await;
    reaper.settle().await;
    let exit = match verdict {
        Verdict::Hopeless(exit) => exit,
        Verdict::Defeated(Defeat::Store(error)) => store_failed(&error),
        Verdict::NotElected | Verdict::Defeated(_) => Exit::NotAcquired(holding.conflict_exit_code),
        Verdict::Signal if lost => Exit::Lost(holding.lost_exit_code),
        Verdict::Signal => Exit::Done,
    };
    session.finish();
    Ok(exit)
}

/// One term.
async fn lead(
    duty: Duty,
    term: Term,
    working: Arc<AtomicBool>,
    tell: mpsc::UnboundedSender<Verdict>,
) -> Result<(), BoxError> {
    let mut signals = Signals::listen()?;
    let _working = Working::begin(working);
    match duty.perform(&term, &mut signals).await {
        Done::Exited { on_request: true, .. } | Done::Signalled(_) => {
            tell.send(Verdict::Signal).ok();
        }
        Done::Exited { status, .. } if status.code() != 0 => {
            say::note(format_args!(
                "lease {}: the command ended with status {}; after a pause, another term is sought",
                term.name(),
                status.code()
            ));
            return Err(format!("the command ended with status {}", status.code()).into());
        }
        Done::Exited { .. } | Done::Ended(_) => {}
        Done::GaveUp(failure) => return Err(failure.to_string().into()),
        Done::NotStarted(exit) => {
            tell.send(Verdict::Hopeless(exit)).ok();
        }
    }
    Ok(())
}

/// Says that there is a command to which signals go, also if the term is cut short.
struct Working(Arc<AtomicBool>);

impl Working {
    fn begin(working: Arc<AtomicBool>) -> Self {
        working.store(true, Ordering::Relaxed);
        Self(working)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Whether the first election came within the time to wait; for ever pending without such a time.
async fn elected_in_time(
    holding: &Holding,
    session: &Session,
    node: &Node,
    mut position: tokio::sync::watch::Receiver<Position>,
) -> bool {
    let elected = async {
        // Ends with an error only if the election is over, which is told elsewhere.
        position.wait_for(|position| matches!(position, Position::Leading(_))).await.is_ok()
    };
    let too_late = async {
        match holding.wait {
            Some(at_most) => sleep(at_most).await,
            None if holding.try_once => held_by_another(holding, session, node).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        _ = elected => true,
        () = too_late => false,
    }
}

/// Ends when another replica is seen to hold the lease.
async fn held_by_another(holding: &Holding, session: &Session, node: &Node) {
    loop {
        // After the first bid, which a vacant lease answers with a yes; then again until there is an answer.
        sleep(Duration::from_millis(50)).await;
        match session.store.inspect(&holding.name).await.map(|record| record.state) {
            Ok(LeaseState::Held { claim, .. }) if claim.replica != *node.replica() => return,
            Ok(LeaseState::Reserved { heir, .. }) if heir != *node.replica() => return,
            _ => {}
        }
    }
}

/// Gives the lease up in good order. Whether it was lost before that was done.
async fn step_out(election: &mut Election, node: &Node, grace: Duration) -> bool {
    let term = election.leading();
    // Ends the election like every member of the node; its standings stay readable.
    let _ = node.shutdown(grace + REAPING + closing::WITHIN).await;
    let lost = async {
        while let Some(stood) = election.standings().next().await {
            // The stream begins with the first term.
            if let Standing::Lost { cause } = &stood.standing
                && Some(stood.fence) == term
            {
                return !cause.is_voluntary();
            }
        }
        false
    };
    timeout(closing::WITHIN, lost).await.unwrap_or(false)
}
