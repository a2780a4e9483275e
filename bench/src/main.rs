//! What leasehold costs, measured beside something else in the same run.
//!
//! `cargo xtask bench` runs it and keeps the table in `docs/performance.md`. No test asserts any of these numbers: a
//! busy machine is not a bug. Every row has a yardstick from the same run where there is one, so that a ratio survives
//! a change of machine.
//!
//! | file | what it measures |
//! |---|---|
//! | `check` | a grant's check, beside one reading of the clock |
//! | `fenced` | a write to a fenced actor, beside a bare ractor call |
//! | `takeover` | how long nobody leads, after a release, a kill and an expiry; beside a polling coordinator |
//! | `idle` | what a waiting candidate writes |
//! | `memory` | what a held lease weighs |
//! | `pairs` | acquire and release on Redis, beside bare commands and two other libraries |
//! | `renewals` | ten thousand renewals on Redis, together and one by one |
//! | `postgres` | pairs, transactions and renewals on PostgreSQL, beside bare statements and sqlx |
//! | `waiters` | what a thousand candidates ask of a Redis server |
//! | `table` | the rows, and the page they make |

mod check;
mod fenced;
mod idle;
mod memory;
mod pairs;
mod postgres;
mod renewals;
mod table;
mod takeover;
mod waiters;

use anyhow::bail;
use table::Table;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => print!("{}", measure()?.markdown()),
        ["--keep", path] => {
            let page = measure()?.markdown();
            print!("{page}");
            std::fs::write(path, page)?;
        }
        ["--only", part] => print!("{}", measure_only(part)?.markdown()),
        // The parts that need a process of their own.
        ["holder", rest @ ..] => takeover::holder(rest)?,
        ["memory", what] => memory::child(what)?,
        _ => bail!("usage: leasehold-bench [--keep FILE | --only PART]"),
    }
    Ok(())
}

/// One part, for whoever works on it.
fn measure_only(part: &str) -> anyhow::Result<Table> {
    let mut table = Table::default();
    match part {
        "check" => check::run(&mut table),
        "fenced" => fenced::run(&mut table)?,
        "memory" => memory::run(&mut table)?,
        "idle" => idle::run(&mut table)?,
        "takeover" => takeover::run(&mut table)?,
        "pairs" => pairs::run(&mut table)?,
        "renewals" => renewals::run(&mut table)?,
        "waiters" => waiters::run(&mut table)?,
        "postgres" => postgres::run(&mut table)?,
        _ => bail!("there is no part {part}"),
    }
    Ok(table)
}

fn measure() -> anyhow::Result<Table> {
    let mut table = Table::default();
    check::run(&mut table);
    fenced::run(&mut table)?;
    memory::run(&mut table)?;
    idle::run(&mut table)?;
    takeover::run(&mut table)?;
    pairs::run(&mut table)?;
    renewals::run(&mut table)?;
    waiters::run(&mut table)?;
    postgres::run(&mut table)?;
    Ok(table)
}
