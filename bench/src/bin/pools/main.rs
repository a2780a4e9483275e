//! What becomes of a session lock of PostgreSQL that was taken on a pooled connection and not given back.
//!
//! `pg_advisory_lock` belongs to the server's session, a borrower of a pool only has it for a while. This program takes
//! such a lock on a connection of each pool, returns the connection with the lock on it, and looks; against a real server.
//! It prints a table, which `docs/semantics/postgres.md` keeps.
//!
//! | file | what it holds |
//! |---|---|
//! | `trial` | the questions that each pool is asked |
//! | `direct` | a connection of our own, by which we look |
//! | `deadpool`, `bb8`, `sqlx`, `pgbouncer` | the pools |
//! | `versions` | what was measured |

mod bb8;
mod deadpool;
mod direct;
mod pgbouncer;
mod sqlx;
mod trial;
mod versions;

use leasehold_testkit::postgres::Postgres;
use trial::Finding;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Postgres::new().start().await?;
    let eyes = direct::Session::open(&server.url()).await?;
    let mut findings = Vec::new();
    findings.extend(deadpool::findings(&server.url(), &eyes).await?);
    findings.extend(bb8::findings(&server.url(), &eyes).await?);
    findings.extend(sqlx::findings(&server.url(), &eyes).await?);
    findings.extend(pgbouncer::findings(&server, &eyes).await?);
    println!(
        "| pool | its way | lock after the return | who comes next and tries it | when it is free |\n|---|---|---|---|---|"
    );
    for Finding { pool, way, after, next, freed } in findings {
        println!("| {pool} | {way} | {after} | {next} | {freed} |");
    }
    println!("\n{}", versions::line(server.version())?);
    Ok(())
}
