//! Where a store is and how patient it is, from an address or from code.

mod address;
mod secret;

pub(crate) use secret::Secret;

use leasehold_core::StoreErrorKind;
use std::{fmt, path::Path, sync::Arc, time::Duration};

/// The longest prefix of keys, in bytes.
pub const MAX_PREFIX_BYTES: usize = 100;
/// The longest time to connect, to wait for an answer, or for replicas.
pub const MAX_PATIENCE: Duration = Duration::from_secs(60);

/// The settings of a store.
#[derive(Clone)]
pub struct Config {
    pub(crate) target: Target,
    pub(crate) login: Login,
    pub(crate) tls: Option<Tls>,
    pub(crate) database: i64,
    pub(crate) resp3: bool,
    pub(crate) prefix: Arc<str>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) wait: Option<Wait>,
    pub(crate) witness_poll: Duration,
}

/// Which servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// One, by host and port.
    Server(Node),
    /// One, by the path of its socket.
    Socket(Arc<str>),
    /// Whichever the sentinels name.
    Sentinel { sentinels: Vec<Node>, master: String, login: Login },
    /// All that belong together with these.
    Cluster(Vec<Node>),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Who we are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
}

/// How the other side is known, and how we are: PEM texts.
#[derive(Clone, Default)]
pub(crate) struct Tls {
    /// Authorities besides those of the system.
    pub(crate) ca: Option<Vec<u8>>,
    /// Our certificate and its key.
    pub(crate) client: Option<(Vec<u8>, Secret)>,
}

/// A wait for replicas behind each acquire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) replicas: u32,
    pub(crate) timeout: Duration,
}

impl Config {
    /// The schemes of the addresses that [`Self::parse`] reads.
    pub const SCHEMES: &[&str] = &[
        "redis",
        "rediss",
        "redis+unix",
        "redis+sentinel",
        "rediss+sentinel",
        "redis+cluster",
        "rediss+cluster",
        "valkey",
        "valkeys",
        "valkey+unix",
        "valkey+sentinel",
        "valkeys+sentinel",
        "valkey+cluster",
        "valkeys+cluster",
        "unix",
    ];

    /// Reads an address; see [the crate](crate#addresses).
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] for an unknown scheme or parameter, a value out of its range, and a file or variable
    /// that is named and cannot be read. No error shows a password.
    pub fn parse(address: &str) -> Result<Self, StoreErrorKind> {
        address::parse(address)
    }

    pub(crate) fn at(target: Target) -> Self {
        Self {
            target,
            login: Login::default(),
            tls: None,
            database: 0,
            resp3: false,
            prefix: "leasehold:".into(),
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            wait: None,
            witness_poll: Duration::from_millis(10),
        }
    }

    /// Another beginning of all keys and channels: 1 to [`MAX_PREFIX_BYTES`] bytes without braces and control
    /// characters. Default `leasehold:`. Stores with different prefixes share nothing, but none may begin like another
    /// goes on.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] for any other.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, StoreErrorKind> {
        let fits = (1..=MAX_PREFIX_BYTES).contains(&prefix.len());
        if !fits || prefix.chars().any(|c| matches!(c, '{' | '}') || c.is_control()) {
            return refuse(format!(
                "a prefix has 1 to {MAX_PREFIX_BYTES} bytes, no braces and no control characters; {prefix:?} does not do"
            ));
        }
        Ok(Self { prefix: prefix.into(), ..self })
    }

    /// How long a connection may take to be made, 1 ms to [`MAX_PATIENCE`]. Default 1 s.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_connect_timeout(self, connect_timeout: Duration) -> Result<Self, StoreErrorKind> {
        Ok(Self { connect_timeout: patience("timeout", connect_timeout)?, ..self })
    }

    /// How long a server may take to answer, 1 ms to [`MAX_PATIENCE`], before its connection is given up. Default 1 s.
    /// Callers have deadlines of their own, and stop waiting at those.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_response_timeout(self, response_timeout: Duration) -> Result<Self, StoreErrorKind> {
        Ok(Self { response_timeout: patience("response_timeout", response_timeout)?, ..self })
    }

    /// Grants count only when so many replicas have them, within `timeout` (1 ms to [`MAX_PATIENCE`]). It narrows the
    /// gap in which a failover loses a claim or a fence, and does not close it: see `docs/semantics/redis.md`.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] for no replicas and out of that range.
    pub fn with_wait(self, replicas: u32, timeout: Duration) -> Result<Self, StoreErrorKind> {
        if replicas == 0 {
            return refuse("to wait for 0 replicas is not to wait: leave it out".into());
        }
        Ok(Self { wait: Some(Wait { replicas, timeout: patience("wait_timeout", timeout)? }), ..self })
    }

    /// How often the server is asked whether the witnesses of watched holders are still connected, 1 ms to
    /// [`MAX_PATIENCE`]. Default 10 ms: one small request for all of them, and none while no lease that is watched is
    /// held under a witness. Processes that watch the same lease share the asking: each of many asks more seldom.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`] out of that range.
    pub fn with_witness_poll(self, witness_poll: Duration) -> Result<Self, StoreErrorKind> {
        Ok(Self { witness_poll: patience("witness_poll", witness_poll)?, ..self })
    }

    /// The address as errors and spans show it: no user, no password, no parameters.
    pub(crate) fn address(&self) -> Arc<str> {
        let s = if self.tls.is_some() { "s" } else { "" };
        let list = |nodes: &[Node]| nodes.iter().map(Node::to_string).collect::<Vec<_>>().join(",");
        let database = self.database;
        match &self.target {
            Target::Server(node) => format!("redis{s}://{node}/{database}"),
            Target::Socket(path) => format!("redis+unix://{path}?db={database}"),
            Target::Sentinel { sentinels, master, .. } => {
                format!("redis{s}+sentinel://{}/{master}/{database}", list(sentinels))
            }
            Target::Cluster(nodes) => format!("redis{s}+cluster://{}", list(nodes)),
        }
        .into()
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("address", &self.address())
            .field("user", &self.login.user)
            .field("prefix", &self.prefix)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

fn refuse<T>(problem: String) -> Result<T, StoreErrorKind> {
    Err(StoreErrorKind::Config(problem.into()))
}

fn patience(what: &str, value: Duration) -> Result<Duration, StoreErrorKind> {
    if (Duration::from_millis(1)..=MAX_PATIENCE).contains(&value) {
        return Ok(value);
    }
    refuse(format!("{what}={value:?} is out of range: 1ms to {MAX_PATIENCE:?}"))
}

/// What a file holds that the address names.
fn file(key: &str, path: &str) -> Result<Vec<u8>, StoreErrorKind> {
    std::fs::read(Path::new(path)).or_else(|error| refuse(format!("{key}={path} cannot be read: {error}")))
}
