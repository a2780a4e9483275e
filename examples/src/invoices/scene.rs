//! What is done to the replicas, and what is expected of the invoices.

use super::{TABLES, replica::Said};
use crate::{cast::Cast, database};
use leasehold::BoxError;
use leasehold_postgres::{Config, migrate};
use std::{
    io::{Write as _, stdout},
    time::Duration,
};

/// What to play.
#[derive(Debug)]
pub struct Plan {
    /// The database.
    pub store: String,
    /// How many customers.
    pub customers: u32,
    /// Of the lease.
    pub ttl: Duration,
    /// One object at the end instead of lines.
    pub json: bool,
}

/// Plays it.
///
/// # Errors
/// If anything differs from what is expected.
pub async fn play(plan: Plan) -> Result<(), BoxError> {
    let client = database::connect(&plan.store).await?;
    migrate(&Config::parse(&plan.store)?).await?;
    client.batch_execute(TABLES).await?;
    let insert = "INSERT INTO invoices_example.customer SELECT generate_series(1, $1::bigint)";
    client.execute(insert, &[&i64::from(plan.customers)]).await?;

    let mut cast = Cast::new(plan.json);
    let ttl = format!("{}ms", plan.ttl.as_millis());
    for name in ["A", "B"] {
        cast.start(name, &["--replica", name, "--database", &plan.store, "--lease-ttl", &ttl])?;
    }
    // Whoever runs first stands still at its first invoice.
    for at in [0, 1] {
        cast.process(at)?.hold().await?;
    }
    let (first, one) = cast
        .until("a run", |at, said| match said {
            Said::Runs { fence, .. } => Some((at, fence)),
            _ => None,
        })
        .await?;
    let name = cast.name(first).to_owned();
    cast.tell(&format!("{name} runs under fence {one}, for {} customers", plan.customers));
    let customer = cast
        .until("the run to stand before an invoice", |at, said| match said {
            Said::InHand { customer } if at == first => Some(customer),
            _ => None,
        })
        .await?;
    cast.process(1 - first)?.go().await?;
    cast.process(first)?.freeze().await?;
    cast.tell(&format!(
        "{name} has looked at its lease, is about to bill customer {customer}, and is frozen (SIGSTOP)"
    ));
    let (second, two, rest, before) = cast
        .until("another run", |at, said| match said {
            Said::Runs { fence, customers, before } if at != first => Some((at, fence, customers, before)),
            _ => None,
        })
        .await?;
    let other = cast.name(second).to_owned();
    cast.tell(&format!("{other} runs under fence {two}, for the other {rest}; the run before {before}"));
    cast.until("the invoice", |at, said| {
        (at == second && matches!(said, Said::Billed { customer: billed } if billed == customer))
            .then_some(())
    })
    .await?;
    cast.process(first)?.thaw()?;
    cast.process(first)?.go().await?;
    let answer = cast.until("the late invoice's answer", |at, said| match said {
        Said::Refused { presented, highest } if at == first => Some(Some((presented, highest))),
        Said::Billed { .. } if at == first => Some(None),
        _ => None,
    });
    let Some((presented, highest)) = answer.await? else {
        return Err(format!("the late invoice for customer {customer} was accepted").into());
    };
    cast.tell(&format!(
        "{name} is resumed, and its invoice under fence {presented} is refused: they have seen {highest}"
    ));

    let count = "SELECT count(*), count(DISTINCT customer) FROM invoices_example.invoice";
    let (invoices, billed) = loop {
        let row = client.query_one(count, &[]).await?;
        let (invoices, billed): (i64, i64) = (row.get(0), row.get(1));
        if billed >= i64::from(plan.customers) {
            break (invoices, billed);
        }
        cast.until("the rest", |_, said| matches!(said, Said::Billed { .. } | Said::Finished).then_some(()))
            .await?;
    };
    cast.end().await?;
    client.batch_execute("DROP SCHEMA invoices_example CASCADE").await?;
    if invoices != billed || presented != one || highest != two {
        return Err(format!(
            "{invoices} invoices for {billed} customers; {presented} was refused for {highest}"
        )
        .into());
    }
    let text = if plan.json {
        let refused = serde_json::json!({ "presented": presented, "highest": highest });
        serde_json::json!({ "ok": true, "invoices": invoices, "customers": billed, "refused": refused })
            .to_string()
    } else {
        format!("\n{invoices} invoices for {billed} customers: one each; the late one was refused")
    };
    let _ = writeln!(stdout(), "{text}");
    Ok(())
}
