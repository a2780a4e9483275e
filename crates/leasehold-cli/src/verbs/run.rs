//! `run`: hold the lease while a command runs, then end with its status.

use super::{attendants, duty, timing};
use crate::{
    attend::Passing,
    child::Lend,
    cli::{Common, Run},
    closing,
    duty::Done,
    exit::Exit,
    say,
    session::Session,
    signals::{self, Signals},
};
use leasehold::{Defeat, Finished, HoldError, LeaseName, LeaseState, Obstacle, Release};
use rustix::process::Signal;
use std::{
    future::Future,
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub(super) async fn run(run: Run, common: Common) -> Result<Exit, Exit> {
    let Run { holding, command } = run;
    let timing = timing(&holding)?;
    // Both listen from the beginning, so that no signal falls between waiting and working.
    let (reaper, mut signals) = attendants()?;
    let mut passed_on = Signals::listen().map_err(|_| Exit::Internal)?;
    let session = Session::open(common).await?;
    let node = session.node().await?;
    let duty = duty(&holding, &timing, command, &session, &reaper, (Passing::All, Lend::AtOnce))?;

    let lease = node
        .lease(&holding.name)
        .ttl(timing.ttl())
        .grace(timing.grace())
        .crash_witness(holding.crash_witness)
        .priority(holding.priority);
    let lease = match (holding.try_once, holding.wait) {
        (true, _) => lease.try_once(),
        (false, Some(at_most)) => lease.wait(at_most),
        (false, None) => lease,
    };
    let working = Arc::new(AtomicBool::new(false));
    let begun = working.clone();
    let held = lease.hold(move |term| async move {
        begun.store(true, Ordering::Relaxed);
        duty.perform(&term, &mut passed_on).await
    });
    let held = until_asked_to_end(held, &mut signals, &working, patience(&session, &holding.name)).await;
    // Gives back what a broken-off campaign may have got. What it cannot do in time, expires.
    closing::close(&node, &holding.name).await;
    reaper.settle().await;
    let exit = match held {
        Ok(held) => concluded(&holding, held),
        Err(signal) => Exit::Signalled(signal.as_raw()),
    };
    session.finish();
    Ok(exit)
}

/// Waits for the lease and the work under it. As long as there is no work, a signal that asks to end ends the waiting;
/// afterwards signals are the work's.
async fn until_asked_to_end<T>(
    held: impl Future<Output = T>,
    signals: &mut Signals,
    working: &AtomicBool,
    patience: impl Future<Output = ()>,
) -> Result<T, Signal> {
    let mut held = Box::pin(held);
    tokio::pin!(patience);
    let mut patient = true;
    loop {
        tokio::select! {
            biased;
            held = &mut held => return Ok(held),
            signal = signals.next() => match signal {
                _ if working.load(Ordering::Relaxed) => {}
                Signal::TSTP => signals::pause(),
                signal if signals::asks_to_end(signal) => return Err(signal),
                _ => {}
            },
            () = &mut patience, if patient && !working.load(Ordering::Relaxed) => patient = false,
        }
    }
}

/// Tells a person at a terminal what the program is waiting for, after a while.
async fn patience(session: &Session, name: &LeaseName) {
    tokio::time::sleep(Duration::from_secs(2)).await;
    if !std::io::stderr().is_terminal() {
        return;
    }
    let Ok(record) = session.store.inspect(name).await else { return };
    if let LeaseState::Held { claim, .. } = record.state {
        say::note(format_args!(
            "waiting for lease {name}, which replica {} holds under fence {}",
            claim.replica, claim.fence
        ));
    }
}

fn concluded(holding: &crate::cli::Holding, held: Result<Finished<Done>, HoldError>) -> Exit {
    let (name, lost) = (&holding.name, Exit::Lost(holding.lost_exit_code));
    let finished = match held {
        Ok(finished) => finished,
        Err(error) => return failed(holding, &error),
    };
    if let Some(cause) = finished.lost {
        say::note(format_args!(
            "lease {name} was lost before the command had ended: {cause}; what it did last may not have been covered"
        ));
        return lost;
    }
    if let Some(Release::Refused(error) | Release::Unknown(error)) = &finished.release {
        say::note(format_args!("the release was not confirmed, the lease may have to expire: {error}"));
    }
    match finished.output {
        // Only a node that is shut down asks a run to end, and then this one is.
        Done::Exited { status, .. } | Done::Ended(status) => Exit::Child(status),
        Done::GaveUp(_) => lost,
        Done::NotStarted(exit) => exit,
        Done::Signalled(signal) => Exit::Signalled(signal.as_raw()),
    }
}

fn failed(holding: &crate::cli::Holding, error: &HoldError) -> Exit {
    let not_acquired = Exit::NotAcquired(holding.conflict_exit_code);
    let exit = match error {
        HoldError::Config(_) => Exit::Usage,
        HoldError::NotAcquired { defeat: Defeat::Busy(_), .. } => {
            // The usual answer to all but one of the hosts that run the same job: no reason for a letter from cron.
            if std::io::stderr().is_terminal() {
                say::note(error);
            } else {
                tracing::info!("{error}");
            }
            return not_acquired;
        }
        HoldError::NotAcquired { defeat, .. } => match defeat {
            Defeat::TimedOut { last: Some(Obstacle::Held(_)) } => not_acquired,
            _ => Exit::Unreachable,
        },
        HoldError::Lost(lost) => {
            let cause = &lost.cause;
            say::note(format_args!("lease {} was lost: {cause}; the command was killed", lost.name));
            return Exit::Lost(holding.lost_exit_code);
        }
        _ => Exit::Internal,
    };
    say::note(error);
    exit
}
