//! What went wrong on the way to a store error: raw faults, and what they are called outside.

use leasehold_core::{LeaseName, StoreError, StoreErrorKind, Verb};
use std::{error::Error, fmt::Write, sync::Arc, time::Duration};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// For how long a request waits for a row that another transaction has locked. The layout says it to the server.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// A fault as it was met, before it is known for which verb and lease.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Fault {
    /// The client or the server said so.
    #[error("{}", told(.0))]
    Postgres(Arc<tokio_postgres::Error>),
    /// Nothing came within the time that a server has.
    #[error("no answer within {0:?}")]
    Silence(Duration),
    /// We say so.
    #[error(transparent)]
    Known(#[from] StoreErrorKind),
}

/// A fault, and whether the change it interrupted may nevertheless have been made.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// False: certainly nothing was changed.
    pub(crate) perhaps_done: bool,
}

/// Nothing was changed.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self { fault, perhaps_done: false }
    }
}

impl From<StoreErrorKind> for Failure {
    fn from(kind: StoreErrorKind) -> Self {
        Fault::Known(kind).into()
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(Arc::new(error))
    }
}

/// An error that answers a request. The server undoes a statement that it answers with an error. One that ends the
/// connection may come when the change was made already, and so may the end of the connection.
impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let refused =
            error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error));
        Self { perhaps_done: !refused, fault: error.into() }
    }
}

impl Failure {
    /// Nobody answered in time. The change may have been made.
    pub(crate) const fn silence(waited: Duration) -> Self {
        Self { fault: Fault::Silence(waited), perhaps_done: true }
    }

    /// Whether the server undid it only because another transaction was in the way.
    pub(crate) fn is_conflict(&self) -> bool {
        let code = self.fault.db().map(DbError::code);
        code.is_some_and(|code| {
            [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED].contains(&code)
        })
    }

    /// Whether the connection leads to a server that is gone, silent, or not in charge any more.
    pub(crate) fn is_end(&self) -> bool {
        match &self.fault {
            Fault::Known(_) => false,
            Fault::Silence(_) => true,
            Fault::Postgres(error) => error.as_db_error().is_none_or(|error| {
                error.parsed_severity() != Some(Severity::Error)
                    || *error.code() == SqlState::READ_ONLY_SQL_TRANSACTION
            }),
        }
    }
}

impl Fault {
    /// A value that we did not write or cannot read.
    pub(crate) fn damage(key: impl Into<Arc<str>>, problem: impl Into<Arc<str>>) -> Self {
        Self::Known(StoreErrorKind::Corrupt { key: key.into(), problem: problem.into() })
    }

    fn db(&self) -> Option<&DbError> {
        match self {
            Self::Postgres(error) => error.as_db_error(),
            Self::Silence(_) | Self::Known(_) => None,
        }
    }

    /// The fault as the outside knows it.
    pub(crate) fn told(self, store: &Arc<str>, verb: Verb, lease: Option<&LeaseName>) -> StoreError {
        let mut error = StoreError::new(self.kind(), verb, store.clone());
        if let Some(lease) = lease {
            error = error.on(lease);
        }
        match self {
            Self::Postgres(cause) => error.because(Quote(told(&cause))),
            Self::Known(_) | Self::Silence(_) => error,
        }
    }

    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Known(kind) => kind.clone(),
            Self::Silence(waited) => StoreErrorKind::TimedOut(*waited),
            Self::Postgres(error) => match error.as_db_error() {
                Some(error) => kind_of(error),
                None => kind_of_client(error),
            },
        }
    }
}

/// What the client or the server said, in one line; as a chain it would be told twice.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Quote(String);

/// The server's message and code, without its details: those may hold what somebody stored.
fn told(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let mut said = format!("{}: {} ({})", error.severity(), error.message(), error.code().code());
        if let Some(advice) = advice(error.code()) {
            let _ = write!(said, "; {advice}");
        }
        return said;
    }
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some of them quote their cause.
        if !said.ends_with(&text) {
            let _ = write!(said, ": {text}");
        }
        cause = error.source();
    }
    said
}

fn advice(code: &SqlState) -> Option<&'static str> {
    Some(match *code {
        SqlState::TOO_MANY_CONNECTIONS => {
            "raise max_connections, or lower connections= in the address, or put a pooler between"
        }
        SqlState::INVALID_PASSWORD => "check the user and the password",
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "check the user, whether it may log in, and pg_hba.conf"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "the user needs USAGE of the schema and EXECUTE of its functions: see `leasehold doctor --print-sql`"
        }
        SqlState::ADMIN_SHUTDOWN => "the server is shut down, or an operator ended the connection",
        SqlState::CANNOT_CONNECT_NOW => "the server starts or recovers",
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            "it is a standby, or default_transaction_read_only is on: name the primary, or all hosts"
        }
        _ => return None,
    })
}

fn kind_of(error: &DbError) -> StoreErrorKind {
    match *error.code() {
        SqlState::INSUFFICIENT_PRIVILEGE
        | SqlState::INVALID_PASSWORD
        | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => return StoreErrorKind::Denied,
        SqlState::READ_ONLY_SQL_TRANSACTION => return StoreErrorKind::ReadOnly,
        SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY => return StoreErrorKind::Full,
        SqlState::LOCK_NOT_AVAILABLE => return StoreErrorKind::Locked(LOCK_TIMEOUT),
        SqlState::INVALID_CATALOG_NAME => {
            return StoreErrorKind::Config(
                "there is no such database: create it, or name another one".into(),
            );
        }
        SqlState::INVALID_SCHEMA_NAME | SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_FUNCTION => {
            return not_laid_out();
        }
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
            return StoreErrorKind::Corrupt {
                key: "the database".into(),
                problem: "the server finds its own files damaged".into(),
            };
        }
        _ => {}
    }
    match error.code().code().get(..2) {
        // Connections; resources; an operator's doing.
        Some("08" | "53") => StoreErrorKind::Unreachable,
        Some("57") if *error.code() != SqlState::QUERY_CANCELED => StoreErrorKind::Unreachable,
        _ => StoreErrorKind::Other,
    }
}

/// The schema is not there, or not all of it.
pub(crate) fn not_laid_out() -> StoreErrorKind {
    StoreErrorKind::Config(
        "the store's schema is not laid out in this database: run `leasehold doctor --migrate`, or have somebody run what \
         `leasehold doctor --print-sql` prints"
            .into(),
    )
}

fn kind_of_client(error: &tokio_postgres::Error) -> StoreErrorKind {
    let said = error.to_string();
    let is_io = error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    // The client has no other name for a host that takes no writes.
    if said.contains("does not allow writes")
        || error.source().is_some_and(|cause| cause.to_string().contains("does not allow writes"))
    {
        return StoreErrorKind::ReadOnly;
    }
    if is_io
        || said.starts_with("error connecting")
        || said.starts_with("error communicating")
        || said.contains("TLS")
    {
        return StoreErrorKind::Unreachable;
    }
    if said.contains("password") || said.contains("authentication") {
        return StoreErrorKind::Denied;
    }
    StoreErrorKind::Other
}

impl Failure {
    pub(crate) const fn is_unwitnessed(&self) -> bool {
        matches!(self.fault, Fault::Known(StoreErrorKind::Unwitnessed))
    }
}
