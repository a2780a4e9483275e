//! `fence check`: accept or refuse a token for a resource.

use super::attendants;
use crate::{
    attend::{Passing, attend},
    child::{Child, Lend, Order, Reaper, Terminal},
    cli::{Common, FenceCheck},
    events::Event,
    exit::Exit,
    say,
    session::{Session, store_failed},
    signals::Signals,
};
use leasehold::Admit;
use std::{convert::Infallible, future::pending, io::IsTerminal, pin::pin, time::Duration};

/// Time for a gate that is free: a store asks a few times within it.
const AT_ONCE: Duration = Duration::from_millis(250);
/// How long what a command leaves behind may take to follow it.
const GRACE: Duration = Duration::from_secs(2);

pub(super) async fn check(check: FenceCheck, common: Common) -> Result<Exit, Exit> {
    let (reaper, mut signals) = attendants()?;
    let session = Session::open(common).await?;
    let exit = match Order::of_words(check.command.iter().cloned()) {
        None => admit(&check, &session).await?,
        Some(order) => {
            // The same lease goes on in the command.
            let order = order
                .inheriting()
                .with("LEASEHOLD_NAME", check.lease.as_str())
                .with("LEASEHOLD_FENCE", check.token.to_string())
                .with("LEASEHOLD_REPLICA", session.replica.as_str())
                .with("LEASEHOLD_STORE", &*session.url);
            behind_gate(&check, &session, &order, &reaper, &mut signals).await
        }
    };
    session.finish();
    Ok(exit)
}

/// Tells a person at a terminal what the program is waiting for, after a while.
async fn patience(check: &FenceCheck) {
    tokio::time::sleep(Duration::from_secs(2)).await;
    if std::io::stderr().is_terminal() {
        say::note(format_args!(
            "waiting for the gate of resource {}, which another command holds",
            check.resource
        ));
    }
}

async fn admit(check: &FenceCheck, session: &Session) -> Result<Exit, Exit> {
    let asked = async { Ok(session.store.admit(&check.resource, &check.lease, check.token).await) };
    Ok(match session.ask(asked).await? {
        Admit::Accepted => Exit::Done,
        refusal => refused(check, session, &refusal),
    })
}

/// Runs the command while nobody else is let through the gate.
async fn behind_gate(
    check: &FenceCheck,
    session: &Session,
    order: &Order,
    reaper: &Reaper,
    signals: &mut Signals,
) -> Exit {
    // The queue may be long, and is no failure of the store: it is waited in for as long as nobody says otherwise.
    let at_most = if check.try_once { Some(AT_ONCE) } else { check.wait };
    let too_late = async {
        match at_most {
            Some(at_most) => tokio::time::sleep(at_most).await,
            None => pending().await,
        }
    };
    let gate = {
        let gate = session.store.hold_gate(&check.resource, &check.lease, check.token);
        tokio::pin!(gate, too_late);
        let mut patience = pin!(patience(check));
        let mut patient = true;
        loop {
            tokio::select! {
                biased;
                gate = &mut gate => break gate,
                signal = signals.next_end() => return Exit::Signalled(signal.as_raw()),
                () = &mut too_late => {
                    say::note(format_args!("the gate of resource {} is held by another command", check.resource));
                    return Exit::NotAcquired(check.conflict_exit_code);
                }
                () = &mut patience, if patient => patient = false,
            }
        }
    };
    let _open_at_the_end = match gate {
        Ok(guard) => guard,
        Err(refusal) => return refused(check, session, &refusal),
    };
    if let Some(signal) = signals.pending_end() {
        return Exit::Signalled(signal.as_raw());
    }
    let mut child = match Child::spawn(reaper, order, Terminal::of_this_process(Lend::AtOnce)) {
        Ok(child) => child,
        Err(error) => {
            say::note(&error);
            return error.exit();
        }
    };
    // Nothing but the command itself ends it: whoever holds a higher fence waits at the gate.
    let never = pending::<(Duration, Infallible)>();
    let attended = attend(&mut child, signals, Passing::All, GRACE, || true, never).await;
    Exit::Child(attended.ended.status)
}

fn refused(check: &FenceCheck, session: &Session, refusal: &Admit) -> Exit {
    match refusal {
        Admit::Stale(stale) => {
            let (presented, highest) = (stale.presented.get(), stale.highest.get());
            let resource = check.resource.to_string();
            let event = Event::StaleRefused { resource, presented, highest };
            session.events.put(&check.lease, Some(stale.presented), &event);
            say::note(format_args!("resource {}: {stale}", check.resource));
            Exit::Stale
        }
        Admit::Refused(error) | Admit::Unknown(error) => store_failed(error),
        Admit::Accepted => Exit::Done,
    }
}
