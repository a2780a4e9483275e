//! Looking at leases without changing them.

use crate::{
    db::Db,
    error::Fault,
    row::{COLUMNS, Row, TURNS_END},
    site::Site,
    standing::Judge,
};
use leasehold_core::{LeaseName, LeaseRecord, Moment, StoreError, Verb};
use rusqlite::{Connection, Params, types::ValueRef};

/// What one row shows: a record, or its damage and, if it can be read, its name.
pub(crate) type Seen = Result<LeaseRecord, (Option<LeaseName>, Fault)>;

/// The state of one lease.
pub(crate) fn one(
    conn: &Connection,
    site: &Site,
    now: Moment,
    name: &LeaseName,
) -> Result<LeaseRecord, Fault> {
    Ok(Judge::new(site, now).standing(name, Row::find(conn, name)?)?.record(now))
}

/// The leases that a condition selects, in its order, until `wanted` says no to a name's bytes.
pub(crate) fn many(
    conn: &Connection,
    site: &Site,
    now: Moment,
    condition: &str,
    params: impl Params,
    wanted: impl Fn(&[u8]) -> bool,
) -> Result<(Vec<Seen>, i64), Fault> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM lease {condition}"))?;
    let mut rows = select.query(params)?;
    let mut judge = Judge::new(site, now);
    let (mut seen, mut last_turn) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let bytes = match row.get_ref("name")? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
            _ => &[],
        };
        if !wanted(bytes) {
            break;
        }
        if let ValueRef::Integer(turn @ ..TURNS_END) = row.get_ref("turn")? {
            last_turn = last_turn.max(turn);
        }
        let named = || std::str::from_utf8(bytes).ok().and_then(|text| LeaseName::new(text).ok());
        let judged = Row::parse(row).and_then(|row| judge.standing(&row.name.clone(), Some(row)));
        seen.push(judged.map(|standing| standing.record(now)).map_err(|fault| (named(), fault)));
    }
    Ok((seen, last_turn))
}

/// The leases whose names begin with `prefix`, byte by byte, by name.
pub(crate) fn list(db: &mut Db, prefix: &str) -> Result<Vec<Result<LeaseRecord, StoreError>>, StoreError> {
    let site = db.site.clone();
    let read = db.read(|conn, site, now| {
        // Names are ordered by their bytes, so those with the prefix stand together.
        many(conn, site, now, "WHERE name >= ?1 ORDER BY name", [prefix], |name| {
            name.starts_with(prefix.as_bytes())
        })
    });
    let told = |seen: Seen| seen.map_err(|(name, fault)| fault.told(&site, Verb::List, name.as_ref()));
    match read {
        Ok((seen, _)) => Ok(seen.into_iter().map(told).collect()),
        Err(fault) => Err(fault.told(&site, Verb::List, None)),
    }
}
