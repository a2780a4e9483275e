//! A lock for a session: held for as long as one connection lives, which belongs to the lock alone.
//!
//! ```text
//!  connect ─ pinned? ─ lock ─ fence ──── proof ──── proof ──── proof ──── unlock, close
//!             no: a pooler, refused       every third of `silence`, each bounded by the trust that is left
//!                                         the connection's end, or no proof in time: lost
//! ```

mod error;
mod open;
mod wanted;

pub use error::{NotLocked, SessionLost};
pub use wanted::{MAX_SILENCE, MIN_SILENCE, WantedLock};

use crate::key::Key;
use leasehold_core::{BootClock, Clock, Fence, Moment};
use open::Opened;
use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;

/// Longer than any server needs to unlock and say goodbye; it frees the lock anyway when the connection is closed.
const PARTING: Duration = Duration::from_secs(5);

/// Which session answers, and whether it holds the lock.
const PROOF: &str = "SELECT pg_backend_pid(), EXISTS (
  SELECT FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND pid = pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = $1 AND objid = $2 AND objsubid = $3)";

/// An advisory lock that is held by a session of its own.
///
/// It has no ttl: it is held until [`release`](Self::release), until this is dropped, or until the connection or the process
/// ends. A process that is killed frees it in milliseconds; one that is paused keeps it, for as long as it is paused.
///
/// # What is guaranteed
/// * One holder, as the server sees it. The connection is never pooled, never in a transaction, and is used for nothing else; a
///   lock is one session, so it is never taken twice over by the same one.
/// * The holder learns of the loss: at once if the connection ends, otherwise by the proofs that [`lost`](Self::lost) or
///   [`prove`](Self::prove) asks for. [`check`](Self::check) compares the clock at the call, as a grant does.
/// * A host that vanishes without a word is given up by the server after [`silence`](WantedLock::silence), and not
///   before; whoever vanished has stopped trusting the lock by then. (By TCP. A server that does not support the settings for
///   that, such as one on Windows, waits for its system's two hours.)
/// * [`fence`](Self::fence) is higher than that of every session that held the lock before.
/// * There is no second connection in the place of the first: what is lost stays lost.
///
/// # What is not
/// * Between an end that the server decides (a restart, `pg_terminate_backend`) and its notice here, both the old holder and
///   a new one may run: for the time that a packet takes, or, if the network is cut at the same time, for `silence`. Present
///   the fence with each write.
/// * After a failover the new primary knows nothing of the old one's locks.
pub struct SessionLock {
    opened: Opened,
    key: Key,
    fence: Fence,
    silence: Duration,
    // Nanoseconds on the boot clock.
    trusted_until: AtomicU64,
}

impl SessionLock {
    /// The lock.
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// The fence of this holding: the server's transaction number at its beginning, which only grows, and is forced to
    /// disk before the lock is used. After a restore into a *new* cluster it may be lower than before.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    /// The server's process that holds the lock, as `pg_stat_activity` and `pg_locks` show it.
    #[must_use]
    pub const fn backend(&self) -> i32 {
        self.opened.backend
    }

    /// How long the server waits for a host that says nothing.
    #[must_use]
    pub const fn silence(&self) -> Duration {
        self.silence
    }

    /// Until when the lock may be trusted without another proof, on [`BootClock`].
    #[must_use]
    pub fn trusted_until(&self) -> Moment {
        Moment::from_nanos(self.trusted_until.load(Ordering::Acquire))
    }

    /// Whether the lock may be trusted now: compares the clock at the call.
    ///
    /// # Errors
    /// [`SessionLost`] if the connection has ended, or the last proof is too long ago.
    pub fn check(&self) -> Result<(), SessionLost> {
        if let Some(why) = self.opened.ended() {
            return Err(SessionLost::Ended { key: self.key.clone(), why });
        }
        if BootClock.now() < self.trusted_until() { Ok(()) } else { Err(self.silent()) }
    }

    /// Asks the server whether this session still holds the lock, in the time that it may still be trusted; and from then on
    /// trusts it anew, counted from the question.
    ///
    /// # Errors
    /// [`SessionLost`]. The lock is not to be used any more: drop it.
    pub async fn prove(&self) -> Result<Moment, SessionLost> {
        let sent = BootClock.now();
        let left = self.trusted_until().since(sent);
        tokio::select! {
            // First: a question that is asked on a closed connection fails too, with less to tell.
            biased;
            why = self.opened.end() => Err(SessionLost::Ended { key: self.key.clone(), why }),
            proof = timeout(left, self.ask()) => {
                proof.map_err(|_| self.silent())??;
                let until = trust(sent, self.silence);
                self.trusted_until.fetch_max(until.as_nanos(), Ordering::AcqRel);
                Ok(self.trusted_until())
            }
        }
    }

    async fn ask(&self) -> Result<(), SessionLost> {
        let (class, object, kind) = self.key.in_pg_locks();
        let read = async {
            let rows = self
                .opened
                .client
                .query_typed(PROOF, &[(&class, Type::OID), (&object, Type::OID), (&kind, Type::INT2)])
                .await?;
            let row =
                rows.first().map(|row| Ok::<_, tokio_postgres::Error>((row.try_get(0)?, row.try_get(1)?)));
            row.transpose()
        };
        let (backend, held): (i32, bool) = match read.await {
            Ok(answer) => answer.unwrap_or_default(),
            // Its driver says why.
            Err(error) if error.is_closed() => {
                let why = self.opened.end().await;
                return Err(SessionLost::Ended { key: self.key.clone(), why });
            }
            Err(source) => return Err(SessionLost::Failed { key: self.key.clone(), source }),
        };
        if backend != self.opened.backend {
            return Err(SessionLost::Pooled { key: self.key.clone() });
        }
        if held { Ok(()) } else { Err(SessionLost::Unlocked { key: self.key.clone() }) }
    }

    /// Resolves when the lock is lost, and says why. It asks for a proof every third of [`silence`](Self::silence) while it is
    /// polled.
    pub async fn lost(&self) -> SessionLost {
        loop {
            tokio::select! {
                why = self.opened.end() => return SessionLost::Ended { key: self.key.clone(), why },
                () = sleep(self.silence / 3) => {}
            }
            if let Err(lost) = self.prove().await {
                return lost;
            }
        }
    }

    /// Unlocks, and closes the connection. When it returns `Ok`, the next one has the lock, or can have it.
    ///
    /// # Errors
    /// [`SessionLost`] if it was not held any more, or if the server did not confirm: it frees the lock when it
    /// notices that the connection is closed.
    pub async fn release(self) -> Result<(), SessionLost> {
        let unlock = format!("SELECT pg_advisory_unlock({})", self.key.args());
        let asked = timeout(PARTING, self.opened.client.query_typed(&unlock, &[])).await;
        let rows = asked.map_err(|_| self.silent())?;
        let rows = rows.map_err(|source| SessionLost::Failed { key: self.key.clone(), source })?;
        let unlocked = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or(false);
        if unlocked { Ok(()) } else { Err(SessionLost::Unlocked { key: self.key.clone() }) }
    }

    fn silent(&self) -> SessionLost {
        SessionLost::Silent { key: self.key.clone(), silence: self.silence }
    }
}

/// The server waits for `silence` from the last thing it heard, at the earliest when `sent` was. A tenth is for clocks that run
/// at different speeds.
fn trust(sent: Moment, silence: Duration) -> Moment {
    sent.after(silence - silence / 10)
}

impl fmt::Debug for SessionLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionLock({}, fence {}, backend {})", self.key, self.fence, self.backend())
    }
}
