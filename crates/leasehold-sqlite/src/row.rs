//! A row of the table `lease`, read with suspicion: whatever does not fit what we write is damage, and stays as it is.

use crate::{error::Fault, field::Fields, witness};
use leasehold_core::{
    AttemptId, Claim, Ended, Fence, LeaseName, Moment, Predecessor, ReplicaId, TraceContext,
};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, named_params};
use std::sync::Arc;

/// The columns, in the order in which they are read.
pub(crate) const COLUMNS: &str = "name, counter, turn, replica, attempt, boot, since, until, trace, witness, \
     heir, heir_boot, heir_until, fate, past_fence, past_replica, past_attempt, older_attempt, past_trace, \
     forced_by, forced_why";

/// A lease as it is stored, before any clock was looked at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: LeaseName,
    pub(crate) counter: Fence,
    pub(crate) turn: i64,
    pub(crate) term: Option<Term>,
    pub(crate) heir: Option<Reservation>,
    pub(crate) past: Predecessor,
    /// The attempts of the last two terms that ended, the latest first.
    pub(crate) spent: [Option<AttemptId>; 2],
}

/// A claim with what is kept of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub(crate) claim: Claim,
    pub(crate) boot: Arc<str>,
    pub(crate) since: Moment,
    pub(crate) until: Moment,
    pub(crate) trace: TraceContext,
    pub(crate) witness: Option<Arc<str>>,
}

/// A vacancy that is kept for one replica.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reservation {
    pub(crate) heir: ReplicaId,
    pub(crate) boot: Arc<str>,
    pub(crate) until: Moment,
}

impl Row {
    /// Reads one lease; `None` if it was never held.
    pub(crate) fn find(conn: &Connection, name: &LeaseName) -> Result<Option<Self>, Fault> {
        let sql = format!("SELECT {COLUMNS} FROM lease WHERE name = ?1");
        let mut select = conn.prepare_cached(&sql)?;
        select.query_row([name.as_str()], |row| Ok(Self::parse(row))).optional()?.transpose()
    }

    /// Checks a row of [`COLUMNS`].
    pub(crate) fn parse(row: &SqlRow<'_>) -> Result<Self, Fault> {
        let fields = &Fields::of(row, "lease", "name");
        let name: LeaseName = fields.name("name")?;
        let counter = fields.fence("counter")?;
        let turn = fields.number("turn")?;
        let term = Term::parse(fields, &name, counter)?;
        let heir = Reservation::parse(fields)?;
        let past = parse_past(fields)?;
        let spent = if past == Predecessor::None {
            fields.nothing(["past_attempt", "older_attempt"])?;
            [None; 2]
        } else {
            [Some(fields.attempt("past_attempt")?), fields.maybe_attempt("older_attempt")?]
        };
        Ok(Self { name, counter, turn, term, heir, past, spent })
    }

    /// Writes the whole row, over the one that was read in the same transaction.
    pub(crate) fn save(&self, conn: &Connection) -> Result<(), Fault> {
        let term = self.term.as_ref();
        let heir = self.heir.as_ref();
        let ended = self.past.ended();
        let (by, why) = match &self.past {
            Predecessor::Forced { by, reason, .. } => (Some(by.as_str()), Some(&**reason)),
            _ => (None, None),
        };
        conn.prepare_cached(&format!(
            "INSERT OR REPLACE INTO lease ({COLUMNS}) VALUES (:name, :counter, :turn, :replica, :attempt, :boot, \
             :since, :until, :trace, :witness, :heir, :heir_boot, :heir_until, :fate, :past_fence, :past_replica, \
             :past_attempt, :older_attempt, :past_trace, :forced_by, :forced_why)"
        ))?
        .execute(named_params! {
            ":name": self.name.as_str(),
            ":counter": number(self.counter.get()),
            ":turn": self.turn,
            ":replica": term.map(|t| t.claim.replica.as_str()),
            ":attempt": term.map(|t| &t.claim.attempt.as_bytes()[..]),
            ":boot": term.map(|t| &*t.boot),
            ":since": term.map(|t| number(t.since.as_nanos())),
            ":until": term.map(|t| number(t.until.as_nanos())),
            ":trace": term.and_then(|t| t.trace.traceparent()),
            ":witness": term.and_then(|t| t.witness.as_deref()),
            ":heir": heir.map(|h| h.heir.as_str()),
            ":heir_boot": heir.map(|h| &*h.boot),
            ":heir_until": heir.map(|h| number(h.until.as_nanos())),
            ":fate": ended.map(|_| self.past.fate().as_str()),
            ":past_fence": ended.map(|e| number(e.fence.get())),
            ":past_replica": ended.map(|e| e.replica.as_str()),
            ":past_attempt": self.spent[0].as_ref().map(|attempt| &attempt.as_bytes()[..]),
            ":older_attempt": self.spent[1].as_ref().map(|attempt| &attempt.as_bytes()[..]),
            ":past_trace": ended.and_then(|e| e.trace.traceparent()),
            ":forced_by": by,
            ":forced_why": why,
        })?;
        Ok(())
    }
}

/// No turn of ours comes near it. One above was written by somebody else, and does not count: it would be the last.
pub(crate) const TURNS_END: i64 = 1 << 52;

/// The turn of the last change.
pub(crate) fn last_turn(conn: &Connection) -> Result<i64, Fault> {
    let sql = "SELECT coalesce(max(turn), 0) FROM lease WHERE turn < ?1";
    Ok(conn.prepare_cached(sql)?.query_row([TURNS_END], |row| row.get(0))?)
}

/// The turn of the next change.
pub(crate) fn next_turn(conn: &Connection) -> Result<i64, Fault> {
    Ok(last_turn(conn)? + 1)
}

impl Term {
    fn parse(fields: &Fields<'_>, name: &LeaseName, counter: Fence) -> Result<Option<Self>, Fault> {
        let Some(replica) = fields.maybe_name("replica")? else {
            fields.nothing(["attempt", "boot", "since", "until", "trace", "witness"])?;
            return Ok(None);
        };
        let attempt = fields.attempt("attempt")?;
        let boot = fields.text("boot")?;
        let since = fields.moment("since")?;
        let until = fields.moment("until")?;
        let trace = fields.trace("trace")?;
        let witness = fields.maybe_text("witness")?;
        if witness.as_deref().is_some_and(|name| !witness::is_name(name)) {
            return Err(fields.damage("witness", "is no name of a witness"));
        }
        let claim = Claim { name: name.clone(), replica, attempt, fence: counter };
        Ok(Some(Self { claim, boot, since, until, trace, witness }))
    }
}

impl Reservation {
    fn parse(fields: &Fields<'_>) -> Result<Option<Self>, Fault> {
        let Some(heir) = fields.maybe_name("heir")? else {
            fields.nothing(["heir_boot", "heir_until"])?;
            return Ok(None);
        };
        let boot = fields.text("heir_boot")?;
        let until = fields.moment("heir_until")?;
        Ok(Some(Self { heir, boot, until }))
    }
}

fn parse_past(fields: &Fields<'_>) -> Result<Predecessor, Fault> {
    let Some(fate) = fields.maybe_text("fate")? else {
        fields.nothing(["past_fence", "past_replica", "past_trace", "forced_by", "forced_why"])?;
        return Ok(Predecessor::None);
    };
    let ended = Ended {
        fence: fields.fence("past_fence")?,
        replica: fields.name("past_replica")?,
        trace: fields.trace("past_trace")?,
    };
    if &*fate == "forced" {
        let by = fields.name("forced_by")?;
        return Ok(Predecessor::Forced { ended, by, reason: fields.text("forced_why")? });
    }
    fields.nothing(["forced_by", "forced_why"])?;
    match &*fate {
        "released" => Ok(Predecessor::Released(ended)),
        "handed-off" => Ok(Predecessor::HandedOff(ended)),
        "expired" => Ok(Predecessor::Expired(ended)),
        "crashed" => Ok(Predecessor::Crashed(ended)),
        _ => Err(fields.damage("fate", "is no fate")),
    }
}

/// SQLite's integers are signed. Fences end at 2^53, and a boot clock does not reach 2^63 within 292 years.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
