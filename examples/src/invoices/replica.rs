//! A replica: waits for the lease, and bills every customer that has no invoice.

use super::{LEASE, RESOURCE};
use crate::{cast::say, database, hold::Hold, process::obey};
use leasehold::{BoxError, Fence, LeaseName, Node, ResourceName, Term};
use leasehold_postgres::{FencedError, fenced};
use serde::{Deserialize, Serialize};
use std::{process::ExitCode, sync::Arc, time::Duration};
use tokio::{signal::unix::SignalKind, sync::Mutex};
use tokio_postgres::Client;

/// What a replica is told on its command line.
#[derive(Debug, Clone, clap::Args)]
#[group(requires_all = ["replica", "database", "lease_ttl"])]
pub struct Part {
    /// Its id.
    #[arg(long, hide = true, required = false)]
    pub replica: String,
    /// The database: of the leases, and of the invoices.
    #[arg(long, hide = true, required = false)]
    pub database: String,
    /// How long its lease lives without renewal.
    #[arg(long, hide = true, required = false, value_parser = humantime::parse_duration)]
    pub lease_ttl: Duration,
}

/// What a replica says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Said {
    /// It runs.
    Runs {
        /// Under this fence.
        fence: u64,
        /// How many customers it is going to bill.
        customers: usize,
        /// How the run before ended.
        before: String,
    },
    /// It has looked at its lease, and stands still before it writes.
    InHand {
        /// Whom it is about to bill.
        customer: i64,
    },
    /// An invoice was written.
    Billed {
        /// To whom.
        customer: i64,
    },
    /// An invoice was refused, and rolled back.
    Refused {
        /// The fence that was presented.
        presented: u64,
        /// The highest that the invoices have seen.
        highest: u64,
    },
    /// All customers are billed.
    Finished,
    /// It could not go on.
    Failed {
        /// Why.
        why: String,
    },
}

/// Runs once, and ends on SIGTERM.
pub async fn live(part: Part) -> ExitCode {
    let hold = Arc::new(Hold::default());
    obey(hold.clone());
    match act(part, hold).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&Said::Failed { why: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

async fn act(part: Part, hold: Arc<Hold>) -> Result<(), BoxError> {
    let mut told_to_end = tokio::signal::unix::signal(SignalKind::terminate())?;
    let node =
        Node::builder(leasehold::connect(&part.database).await?).replica(&*part.replica).start().await?;
    let client = Arc::new(Mutex::new(database::connect(&part.database).await?));
    let run = node.lease(LEASE).ttl(part.lease_ttl).hold(move |term| run(term, client, hold));
    match run.await {
        Ok(finished) => finished.output?,
        // Another replica goes on where this one was.
        Err(lost @ leasehold::HoldError::Lost(_)) => say(&Said::Failed { why: lost.to_string() }),
        Err(error) => return Err(error.into()),
    }
    told_to_end.recv().await;
    let _ = node.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

async fn run(term: Term, client: Arc<Mutex<Client>>, hold: Arc<Hold>) -> Result<(), BoxError> {
    let due = "SELECT id FROM invoices_example.customer WHERE id NOT IN (SELECT customer FROM invoices_example.invoice) \
               ORDER BY id";
    let due: Vec<i64> = client.lock().await.query(due, &[]).await?.iter().map(|row| row.get(0)).collect();
    let before = term.predecessor().fate().to_string();
    say(&Said::Runs { fence: term.fence().get(), customers: due.len(), before });
    for customer in due {
        // The clock is compared here. Whatever happens between this line and the server is the fence's business.
        let permit = term.check()?;
        hold.pass(|| say(&Said::InHand { customer }));
        // A task of its own: the transaction that is in hand is ended, one way or the other, even if the term ends meanwhile.
        let billed = tokio::spawn(bill(client.clone(), permit.fence(), customer)).await?;
        match billed {
            Ok(()) => {}
            Err(FencedError::Stale(stale)) => {
                term.outranked(stale);
                return Err(stale.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    say(&Said::Finished);
    Ok(())
}

/// One transaction: the check of the fence, and the invoice.
async fn bill(client: Arc<Mutex<Client>>, fence: Fence, customer: i64) -> Result<(), FencedError> {
    // Constants, and good names.
    let (Ok(resource), Ok(lease)) = (ResourceName::new(RESOURCE), LeaseName::new(LEASE)) else {
        return Ok(());
    };
    let mut client = client.lock().await;
    let tx = client.transaction().await?;
    let accepted = fenced(&tx, &resource, &lease, fence).await;
    if let Err(FencedError::Stale(stale)) = &accepted {
        say(&Said::Refused { presented: stale.presented.get(), highest: stale.highest.get() });
    }
    accepted?;
    let insert = "INSERT INTO invoices_example.invoice VALUES ($1, $2)";
    tx.execute(insert, &[&customer, &fence.get().cast_signed()]).await?;
    tx.commit().await?;
    say(&Said::Billed { customer });
    Ok(())
}
