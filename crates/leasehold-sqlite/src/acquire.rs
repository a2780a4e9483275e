//! Acquire: one transaction that judges the lease, raises the counter and writes the claim.

use crate::{
    db::{Db, Keep, Verdict},
    error::{Failure, Fault},
    note,
    row::{COLUMNS, Row, next_turn, number},
    standing::{Judge, Standing},
    thread::Caller,
    witness,
};
use leasehold_core::{
    Acquire, Bid, Fence, Granted, Held, LeaseName, Moment, Predecessor, StoreErrorKind, TraceContext, Verb,
    bounds,
};
use rusqlite::Connection;
use std::sync::Arc;

/// Carries out a bid. Rules 1, 2, 4, 5, 6.
pub(crate) fn acquire(db: &mut Db, bid: &Bid, caller: &Caller<Acquire>) -> Acquire {
    let site = db.site.clone();
    match decide(db, bid, caller) {
        Ok(answer) => answer,
        Err(Failure { fault, perhaps_done }) => {
            let error = fault.told(&site, Verb::Acquire, Some(&bid.name));
            if perhaps_done { Acquire::Unknown(error) } else { Acquire::Refused(error) }
        }
    }
}

fn decide(db: &mut Db, bid: &Bid, caller: &Caller<Acquire>) -> Result<Acquire, Failure> {
    bounds::ttl(bid.ttl)?;
    // Most bids of a waiting crowd meet a living claim. They are answered from a snapshot, without the write lock
    // for which the holder's renewals would have to queue.
    if let Some(held) = db.read(|conn, site, now| {
        let mut judge = Judge::new(site, now);
        let standing = judge.standing(&bid.name, Row::find(conn, &bid.name)?)?;
        Ok(obstacle(&standing, bid, &judge))
    })? {
        return Ok(Acquire::Held(held));
    }
    let witness = if bid.crash_witness { Some(db.site.witness()?) } else { None };
    let witness: Option<Arc<str>> = witness.map(|witness| witness.name().into());
    let mut crashed = None;
    let answer = db.write(Keep::ThroughPowerLoss, |tx, site, now| {
        let mut judge = Judge::new(site, now);
        let mut standing = judge.standing(&bid.name, Row::find(tx, &bid.name)?)?;
        if let Some(held) = obstacle(&standing, bid, &judge) {
            return Ok(Verdict::Unchanged(Acquire::Held(held)));
        }
        if let Some(granted) = repeat(tx, &standing, bid, now)? {
            return Ok(Verdict::Changed(Acquire::Granted(granted)));
        }
        if standing.spent.contains(&Some(bid.attempt)) {
            return Err(StoreErrorKind::SpentAttempt.into());
        }
        let Some(fence) = Fence::after(standing.counter, bid.floor) else {
            let highest = standing.counter.max(bid.floor).unwrap_or(Fence::MAX);
            return Err(StoreErrorKind::FenceExhausted(highest).into());
        };
        let turn = next_turn(tx)?;
        if let Some(witness) = standing.crashed.take() {
            let all_ended = end_the_others(tx, &mut judge, &witness, &bid.name, turn)?;
            crashed = all_ended.then_some(witness);
        }
        let inherited = note::give(tx, &bid.name, fence)?;
        let claim = standing.begin(bid, fence, now, site, witness);
        let predecessor = standing.past.clone();
        if let Some(row) = standing.row(turn) {
            row.save(tx)?;
        }
        if caller.is_gone() {
            // As if never asked: the claim would be held by nobody (invariant I7).
            return Err(Fault::CallerGone);
        }
        Ok(Verdict::Turned(Acquire::Granted(Granted { claim, remaining: bid.ttl, predecessor, inherited })))
    })?;
    if let Some(witness) = crashed {
        witness::bury(&db.site.place, &witness);
    }
    Ok(answer)
}

/// Who is in the way, unless it is this very attempt.
fn obstacle(standing: &Standing, bid: &Bid, judge: &Judge<'_>) -> Option<Held> {
    let is_own = standing.term.as_ref().is_some_and(|term| term.claim.attempt == bid.attempt);
    if is_own { None } else { standing.obstacle(&bid.replica, judge.now) }
}

/// The same attempt gets the same answer, and is extended as by a renewal.
fn repeat(conn: &Connection, standing: &Standing, bid: &Bid, now: Moment) -> Result<Option<Granted>, Fault> {
    let Some(term) = standing.term.as_ref().filter(|term| term.claim.attempt == bid.attempt) else {
        return Ok(None);
    };
    extend(conn, &bid.name, now.after(bid.ttl))?;
    Ok(Some(Granted {
        claim: term.claim.clone(),
        remaining: bid.ttl,
        predecessor: standing.past.clone(),
        inherited: note::given(conn, &bid.name, term.claim.fence)?,
    }))
}

/// Moves the end of the living claim, and nothing else.
pub(crate) fn extend(conn: &Connection, name: &LeaseName, until: Moment) -> Result<(), Fault> {
    let sql = "UPDATE lease SET until = ?2 WHERE name = ?1";
    conn.prepare_cached(sql)?.execute((name.as_str(), number(until.as_nanos())))?;
    Ok(())
}

/// Ends all other claims of a process that crashed, so that its witness can be removed. False if one of them cannot
/// be read: the witness is then still needed.
fn end_the_others(
    conn: &Connection,
    judge: &mut Judge<'_>,
    witness: &str,
    except: &LeaseName,
    turn: i64,
) -> Result<bool, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM lease WHERE witness = ?1 AND name <> ?2");
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query((witness, except.as_str()))?;
    let (mut ended, mut all_read) = (Vec::new(), true);
    while let Some(row) = rows.next()? {
        let judged = Row::parse(row).and_then(|row| judge.standing(&row.name.clone(), Some(row)));
        match judged {
            Ok(standing) => ended.push(standing),
            Err(_) => all_read = false,
        }
    }
    drop(rows);
    for mut standing in ended {
        // The verdict is that of the first row: the pulse is felt once.
        standing.end(&TraceContext::NONE, Predecessor::Crashed);
        if let Some(row) = standing.row(turn) {
            row.save(conn)?;
        }
    }
    Ok(all_read)
}
