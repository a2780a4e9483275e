//! What a store promises.

use std::time::Duration;

/// The promises of a store, stated by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traits {
    /// The kind of store, as a label: `memory`, `sqlite`, …
    pub kind: &'static str,
    /// The shortest ttl it can keep.
    pub min_ttl: Duration,
    /// The longest ttl it can keep.
    pub max_ttl: Duration,
    /// Who shares it.
    pub reach: Reach,
    /// What its contents survive.
    pub durability: Durability,
    /// Whether a failover of the store can lose a claim or the fence counter.
    pub failover_may_lose: bool,
    /// Whether it can see the end of a holder's process and end its claims at once.
    pub crash_witness: bool,
    /// How soon a waiting candidate usually hears of a release. The order of waiters is spread by this.
    pub wake_up: Duration,
}

/// Who shares a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// The tasks of one process.
    Process,
    /// The processes of one host.
    Host,
    /// Many hosts.
    Network,
}

/// What the contents of a store survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing: they end with the process.
    Process,
    /// The end of every process that uses it, but not of the server that keeps it: a restart of the server may forget
    /// them, the fence counters too.
    Server,
    /// A crash of every process that uses or keeps it, but perhaps not of the operating system: the last changes before a
    /// power loss may be missing.
    ProcessCrash,
    /// A crash of the operating system or a loss of power.
    PowerLoss,
}

impl Traits {
    /// Promises, with the library's bounds on the ttl, no witness, and a wake-up within 10 ms.
    #[must_use]
    pub const fn new(kind: &'static str, reach: Reach, durability: Durability) -> Self {
        Self {
            kind,
            min_ttl: crate::timing::MIN_TTL,
            max_ttl: crate::timing::MAX_TTL,
            reach,
            durability,
            failover_may_lose: false,
            crash_witness: false,
            wake_up: Duration::from_millis(10),
        }
    }
}
