//! Taking the lock: at once if it is free, else behind those who wait already, for a bounded time.

use super::{LockError, TransactionLock};
use std::{convert::Infallible, time::Duration};
use tokio_postgres::{Error, Row, SimpleQueryMessage, Transaction, error::SqlState, types::FromSqlOwned};

impl TransactionLock {
    pub(super) async fn take(&self, tx: &Transaction<'_>) -> Result<(), LockError<Infallible>> {
        let kind = if self.shared { "_shared" } else { "" };
        let args = self.key.args();
        // A try does not overtake those who wait. As one message with its text, which is the shortest way there is.
        let tried = tx.simple_query(&format!("SELECT pg_try_advisory_xact_lock{kind}({args})")).await;
        let tried = tried.map_err(LockError::Postgres)?;
        let granted = |said: &SimpleQueryMessage| matches!(said, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"));
        if tried.iter().any(granted) {
            return Ok(());
        }
        let Some(wait) = self.wait else {
            return Err(LockError::Busy { key: self.key.clone(), waited: Duration::ZERO });
        };
        let wait_ms = wait.as_millis();
        // One message. The session's own lock_timeout is put back for the work; where the wait fails, the rollback does it.
        let wait_for_it = format!(
            "SELECT set_config('leasehold.lock_timeout', current_setting('lock_timeout'), true);
             SET LOCAL lock_timeout = {wait_ms};
             SELECT pg_advisory_xact_lock{kind}({args});
             SELECT set_config('lock_timeout', current_setting('leasehold.lock_timeout'), true)"
        );
        tx.batch_execute(&wait_for_it).await.map_err(|error| match error.code() {
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => {
                LockError::Busy { key: self.key.clone(), waited: wait }
            }
            _ => LockError::Postgres(error),
        })
    }
}

/// The first column of the first row.
pub(super) fn first<T: FromSqlOwned>(rows: &[Row]) -> Result<Option<T>, Error> {
    rows.first().map(|row| row.try_get(0)).transpose()
}
