//! Claims on rows of the user's own table: long work in short transactions.
//!
//! ```text
//!  claim 20  ── one statement, and no row stays locked ──┐
//!  work on them, for minutes, in no transaction           │  every third of the ttl: renew, all in one statement
//!  per row: BEGIN ── the result ── finish ── COMMIT       │  a claim that was taken over is refused, and the result rolled back
//!  a worker ends:  give back ◄── in order                 │
//!                  the ttl   ◄── killed or paused ────────┘  then others claim its rows, under the next fence
//! ```

mod error;
mod key;
mod table;

pub use error::ClaimError;
pub use key::RowKey;
pub use table::ClaimTable;

use crate::fenced::number;
use leasehold_core::{BootClock, Clock, Fence, Moment, ReplicaId, Stale};
use std::time::Duration;
use tokio_postgres::{
    GenericClient,
    types::{ToSql, Type},
};

/// The longest ttl of a row claim.
pub const MAX_CLAIM_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// A row that is this worker's for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a claimed row is nobody else's until it is finished, given back, or expired"]
pub struct RowClaim<K> {
    /// The row.
    pub key: K,
    /// The fence of this claim: one more than that of the claim before on the same row.
    pub fence: Fence,
    /// The claim before expired: its worker was killed, or is paused, and may have done a part of the work.
    pub reclaimed: bool,
    /// Until when it may be trusted, on [`BootClock`]; counted from the sending of the claim or its last renewal.
    pub trusted_until: Moment,
}

impl<K> RowClaim<K> {
    /// For how long the claim may still be trusted without a renewal. Zero does not mean that it is lost: only
    /// [`finish`](ClaimTable::finish) says that.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.trusted_until.since(BootClock.now())
    }
}

/// What became of a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed<K> {
    /// Held, and trusted anew.
    pub kept: Vec<RowClaim<K>>,
    /// Taken over by others, finished, given back, or deleted. Stop working on them.
    pub lost: Vec<RowClaim<K>>,
}

impl<K: RowKey> ClaimTable<K> {
    /// Claims up to `at_most` rows that are ready and not claimed, or whose claim has expired, for `ttl` of the server's clock.
    ///
    /// Rows that others are claiming at this moment are skipped, not waited for. After a lost connection or a dropped future, rows
    /// may have been claimed for nobody: they are free after the ttl.
    ///
    /// # Errors
    /// [`ClaimError`]: a ttl out of range, or what the server said.
    pub async fn claim<C>(
        &self,
        client: &C,
        by: &ReplicaId,
        at_most: u32,
        ttl: Duration,
    ) -> Result<Vec<RowClaim<K>>, ClaimError>
    where
        C: GenericClient + Sync,
    {
        let sent = BootClock.now();
        let rows = client
            .query_typed(
                self.claim_sql(),
                &[
                    (&i64::from(at_most), Type::INT8),
                    (&by.as_str(), Type::TEXT),
                    (&millis(ttl)?, Type::FLOAT8),
                ],
            )
            .await?;
        let claim = |row: &tokio_postgres::Row| {
            let fence: i64 = row.try_get(1)?;
            let fence = u64::try_from(fence).ok().and_then(|number| Fence::new(number).ok());
            Ok(RowClaim {
                key: row.try_get(0)?,
                fence: fence.ok_or_else(|| ClaimError::FenceExhausted { table: self.table().to_owned() })?,
                reclaimed: row.try_get(2)?,
                trusted_until: trust(sent, ttl),
            })
        };
        rows.iter().map(claim).collect()
    }

    /// Renews claims, all in one statement, for `ttl` from now.
    ///
    /// One that has expired and was not taken over since is renewed too: nobody else has worked on it.
    ///
    /// # Errors
    /// [`ClaimError`]: a ttl out of range, or what the server said. Then nobody knows which were renewed, and none counts as such.
    pub async fn renew<C>(
        &self,
        client: &C,
        claims: Vec<RowClaim<K>>,
        ttl: Duration,
    ) -> Result<Renewed<K>, ClaimError>
    where
        C: GenericClient + Sync,
    {
        let sent = BootClock.now();
        let millis = millis(ttl)?;
        let (keys, fences) = columns(&claims);
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&keys, K::ARRAY), (&fences, Type::INT8_ARRAY), (&millis, Type::FLOAT8)];
        let mut renewed = vec![false; claims.len()];
        for row in client.query_typed(self.renew_sql(), &params).await? {
            let at: i64 = row.try_get(0)?;
            if let Some(renewed) = usize::try_from(at - 1).ok().and_then(|at| renewed.get_mut(at)) {
                *renewed = true;
            }
        }
        let mut answer = Renewed { kept: Vec::new(), lost: Vec::new() };
        for (mut claim, renewed) in claims.into_iter().zip(renewed) {
            if renewed {
                claim.trusted_until = claim.trusted_until.max(trust(sent, ttl));
                answer.kept.push(claim);
            } else {
                answer.lost.push(claim);
            }
        }
        Ok(answer)
    }

    /// Ends a claim because its work is done, in the transaction that writes the result.
    ///
    /// # What is guaranteed
    /// Of all claims that a row ever had, one is finished: whoever lost it meanwhile is refused here, and its result is
    /// rolled back with the transaction. An expired claim that nobody took over can be finished.
    ///
    /// # What is not
    /// What the work did outside of this transaction is not undone. Give it a key made of the row and the fence.
    ///
    /// # Errors
    /// [`ClaimError`]: taken over by another, not claimed any more, or what the server said. Roll the transaction back.
    pub async fn finish<C>(&self, tx: &C, claim: &RowClaim<K>) -> Result<(), ClaimError>
    where
        C: GenericClient + Sync,
    {
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&claim.key, K::TYPE), (&number(claim.fence), Type::INT8)];
        if tx.execute_typed(self.finish_sql(), &params).await? > 0 {
            return Ok(());
        }
        let found = tx.query_typed(self.look_sql(), &[(&claim.key, K::TYPE)]).await?;
        let Some(row) = found.first() else { return Err(ClaimError::NoRow) };
        let highest: i64 = row.try_get(0)?;
        match u64::try_from(highest).ok().and_then(|number| Fence::new(number).ok()) {
            Some(highest) if claim.fence < highest => {
                Err(ClaimError::Stale(Stale { presented: claim.fence, highest }))
            }
            _ => Err(ClaimError::NotClaimed),
        }
    }

    /// Gives claims back undone: others may have them at once. Those that are not held any more are left alone. Says how many it
    /// gave back.
    ///
    /// # Errors
    /// [`ClaimError`] with what the server said; the claims then expire.
    pub async fn give_back<C>(&self, client: &C, claims: &[RowClaim<K>]) -> Result<u64, ClaimError>
    where
        C: GenericClient + Sync,
    {
        let (keys, fences) = columns(claims);
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&keys, K::ARRAY), (&fences, Type::INT8_ARRAY)];
        Ok(client.execute_typed(self.give_back_sql(), &params).await?)
    }
}

fn columns<K: RowKey>(claims: &[RowClaim<K>]) -> (Vec<K>, Vec<i64>) {
    claims.iter().map(|claim| (claim.key.clone(), number(claim.fence))).unzip()
}

/// A tenth is for clocks that run at different speeds.
fn trust(sent: Moment, ttl: Duration) -> Moment {
    sent.after(ttl - ttl / 10)
}

fn millis(ttl: Duration) -> Result<f64, ClaimError> {
    if (Duration::from_millis(1)..=MAX_CLAIM_TTL).contains(&ttl) {
        Ok(ttl.as_secs_f64() * 1e3)
    } else {
        Err(ClaimError::Ttl(ttl))
    }
}
