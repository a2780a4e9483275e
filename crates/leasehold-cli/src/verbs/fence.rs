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
use std::{convert::Infallible, future::pending, time::Duration};

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
    let gate = tokio::select! {
        biased;
        // The queue may be long, and is no failure of the store: it is waited in for as long as nobody says otherwise.
        gate = session.store.hold_gate(&check.resource, &check.lease, check.token) => gate,
        signal = signals.next_end() => return Exit::Signalled(signal.as_raw()),
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
