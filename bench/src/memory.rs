//! What a held lease weighs: holder, renewer and worker together.

use crate::table::Table;
use anyhow::{Context as _, bail};
use leasehold::{AttemptId, Bid, LeaseStore, MemoryStore, Node, TraceContext};
use std::{process::Command, sync::Arc, time::Duration};
use tokio::sync::Semaphore;

const LEASES: usize = 10_000;

pub(crate) fn run(table: &mut Table) -> anyhow::Result<()> {
    let held = in_child("held")?;
    let bare = in_child("bare")?;
    let kb = |bytes: u64| bytes as f64 / LEASES as f64 / 1024.0;
    table.row(
        format!("memory of a held lease (resident, {LEASES} at once, renewals going on)"),
        format!("{:.1} KB", kb(held.saturating_sub(bare))),
        format!(
            "the same records in the memory store without actors: {:.1} KB, not counted on the left",
            kb(bare)
        ),
        "at most 30 KB",
        LEASES,
    );
    Ok(())
}

/// A process of its own, so that nothing measured before is in it.
fn in_child(what: &str) -> anyhow::Result<u64> {
    let output = Command::new(std::env::current_exe()?).args(["memory", what]).output()?;
    if !output.status.success() {
        bail!("measuring memory failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout)?.trim().parse().context("the child printed no number")
}

#[tokio::main]
pub(crate) async fn child(what: &str) -> anyhow::Result<()> {
    let store = MemoryStore::default();
    let ttl = Duration::from_secs(10);
    let before = resident()?;
    match what {
        "bare" => {
            for n in 0..LEASES {
                let bid = Bid {
                    name: format!("lease {n}").try_into()?,
                    replica: "bench".try_into()?,
                    attempt: AttemptId::random(),
                    ttl,
                    floor: None,
                    crash_witness: false,
                    trace: TraceContext::NONE,
                };
                let _ = store.acquire(&bid).await;
            }
            println!("{}", resident()?.saturating_sub(before));
        }
        _ => {
            let node = Node::builder(Arc::new(store)).replica("bench").start().await?;
            // A few at a time: the campaigns of ten thousand at once would leave their memory in the heap.
            let seats = Arc::new(Semaphore::new(64));
            for n in 0..LEASES {
                let (node, seat) = (node.clone(), seats.clone().acquire_owned().await?);
                tokio::spawn(async move {
                    let held = node.lease(format!("lease {n}")).ttl(ttl).hold(move |_| async move {
                        drop(seat);
                        std::future::pending::<()>().await;
                    });
                    drop(held.await);
                });
            }
            let _all = seats.acquire_many(64).await?;
            // Past two rounds of renewals, so that what a renewal needs is counted too.
            tokio::time::sleep(ttl).await;
            println!("{}", resident()?.saturating_sub(before));
        }
    }
    // Ten thousand orderly ends prove nothing here.
    std::process::exit(0);
}

fn resident() -> anyhow::Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").context("resident memory is read from /proc")?;
    let pages: u64 = statm.split(' ').nth(1).context("statm has a second field")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}
