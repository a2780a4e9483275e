//! `release --force`: end somebody's claim.

use crate::{
    cli::{Common, Release},
    events::Event,
    exit::Exit,
    say,
    session::{Session, store_failed},
};
use leasehold::Force;

pub(super) async fn release(release: Release, common: Common) -> Result<Exit, Exit> {
    let session = Session::open(common).await?;
    let Release { name, reason, .. } = release;
    let forced =
        session.ask(async { Ok(session.store.force_release(&name, &session.replica, &reason).await) });
    let exit = match forced.await? {
        Force::Forced { fence, replica } => {
            let by = session.replica.to_string();
            session.events.put(&name, Some(fence), &Event::Forced { by, reason });
            say::out(&format!("lease {name}: the term of replica {replica} under fence {fence} was ended\n"))
                .ok();
            Exit::Done
        }
        // What was wanted holds already.
        Force::Vacant => {
            say::out(&format!("lease {name}: nobody holds it\n")).ok();
            Exit::Done
        }
        Force::Refused(error) => store_failed(&error),
        Force::Unknown(error) => {
            say::note(format_args!(
                "lease {name}: it is not known whether the claim was ended, look at its status"
            ));
            store_failed(&error)
        }
    };
    session.finish();
    Ok(exit)
}
