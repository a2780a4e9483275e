//! The processes A and B. Both do the same; only what happens to them differs.

use super::{
    document::put_line,
    said::{Answer, Said, say},
};
use crate::{hold::Hold, process::obey};
use leasehold::{BoxError, HoldError, Node, Parting, Permit, Release, Term};
use std::{
    net::SocketAddr,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use tokio::{signal::unix::SignalKind, sync::oneshot, time::sleep};

/// What a holder is told on its command line.
#[derive(Debug, Clone, clap::Args)]
#[group(requires_all = ["holder", "lease", "document", "ttl"])]
pub struct Part {
    /// Its replica id.
    #[arg(long, hide = true, required = false)]
    pub holder: String,
    /// The lease.
    #[arg(long, hide = true, required = false)]
    pub lease: String,
    /// Where the document is.
    #[arg(long, hide = true, required = false)]
    pub document: SocketAddr,
    /// How long its lease lives without renewal.
    #[arg(long, hide = true, required = false, value_parser = humantime::parse_duration)]
    pub ttl: Duration,
    /// For how long it blocks its runtime when it is asked to stand still.
    #[arg(long, hide = true, default_value = "0s", value_parser = humantime::parse_duration)]
    pub block: Duration,
}

/// Holds the lease until SIGTERM, or until it is lost; then releases it, whether or not it is still its own.
pub async fn live(store: &str, part: Part) -> ExitCode {
    match act(store, part).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(Said::Failed { why: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

async fn act(store: &str, part: Part) -> Result<(), BoxError> {
    let hold = Arc::new(Hold::default());
    obey(Arc::clone(&hold));
    let mut told_to_end = tokio::signal::unix::signal(SignalKind::terminate())?;
    let node = Node::builder(leasehold::connect(store).await?).replica(part.holder.as_str()).start().await?;

    say(Said::Waits);
    let claim = Arc::new(Mutex::new(None));
    let (wrote, written) = oneshot::channel();
    let held = node.lease(part.lease.as_str()).ttl(part.ttl).hold({
        let (claim, part) = (Arc::clone(&claim), part.clone());
        move |term| async move {
            *claim.lock().unwrap_or_else(PoisonError::into_inner) = Some(term.grant().claim().clone());
            tokio::select! {
                worked = work(term, part, hold, wrote) => worked,
                _ = told_to_end.recv() => Ok(()),
            }
        }
    });
    let why = match held.await {
        Ok(finished) => match (finished.output, finished.lost) {
            (Err(error), _) => error.to_string(),
            (Ok(()), Some(cause)) => cause.to_string(),
            (Ok(()), None) => {
                let own = matches!(finished.release, Some(Release::Released));
                say(Said::Released { own, holder: None });
                return Ok(());
            }
        },
        Err(HoldError::Lost(lost)) => lost.cause.to_string(),
        Err(error) => return Err(error.into()),
    };
    // The write that was in hand: it was sent, and its answer is worth waiting for.
    let _ = written.await;
    say(Said::WorkEnded { why });

    let Some(claim) = claim.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return Err("lost before it was held".into());
    };
    match node.store().release(&claim, &Parting::default()).await {
        Release::Released => say(Said::Released { own: true, holder: None }),
        Release::NotHolder(now) => {
            let holder = now.holder.map(|(replica, fence)| (replica.to_string(), fence.get()));
            say(Said::Released { own: false, holder });
        }
        Release::Refused(error) | Release::Unknown(error) => return Err(error.into()),
    }
    Ok(())
}

/// Writes once, and again when it is asked to, standing still between its look at the lease and the write.
async fn work(term: Term, part: Part, hold: Arc<Hold>, wrote: oneshot::Sender<()>) -> Result<(), BoxError> {
    say(Said::Holds { token: term.fence().get(), before: term.predecessor().fate().to_string() });
    write(part.clone(), term.check()?).await?;
    let mut wrote = Some(wrote);
    loop {
        sleep(Duration::from_millis(10)).await;
        let permit = term.check()?;
        let stood = hold.pass(|| {
            say(Said::InHand { trusted_ms: u64::try_from(term.remaining().as_millis()).unwrap_or(u64::MAX) });
            // Blocks the thread that everything of this process runs on, renewals included.
            thread::sleep(part.block);
        });
        if stood {
            // In a task of its own: what is sent cannot be called back when the work is ended, so it is better to
            // learn what became of it.
            let (part, wrote) = (part.clone(), wrote.take());
            let sending = tokio::spawn(async move {
                if let Err(error) = write(part, permit).await {
                    say(Said::Failed { why: error.to_string() });
                }
                drop(wrote);
            });
            sending.await?;
        }
    }
}

async fn write(part: Part, permit: Permit) -> reqwest::Result<Answer> {
    let answer = put_line(part.document, permit, &part.holder).await?;
    say(Said::Wrote { token: permit.fence().get(), answer });
    Ok(answer)
}
