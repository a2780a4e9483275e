//! A PgBouncer in front of a server.

use super::{PostgresServer, WITHIN, unprivileged};
use crate::server::{Ready, Recipe, Server, StartError};
use std::{ffi::OsString, fmt, fs, net::SocketAddr, path::Path, sync::Arc};

/// How long a client keeps its server connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// As long as it is connected.
    Session,
    /// For one transaction.
    Transaction,
    /// For one statement.
    Statement,
}

impl fmt::Display for PoolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        })
    }
}

/// What a pooler is to be like.
#[derive(Debug, Clone)]
pub struct PgBouncer {
    mode: PoolMode,
    lines: Vec<String>,
}

impl PgBouncer {
    /// One for everybody on this host, with as many as twenty server connections.
    #[must_use]
    pub const fn new(mode: PoolMode) -> Self {
        Self { mode, lines: Vec::new() }
    }

    /// A setting, such as `default_pool_size` and `1`.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name} = {value}"));
        self
    }

    /// Starts it in front of a server that asks for no password, and waits until it takes connections.
    ///
    /// # Errors
    /// [`StartError`] says why there is none.
    pub async fn in_front_of(self, server: &PostgresServer) -> Result<PgBouncerServer, StartError> {
        let upstream = server.addr();
        let recipe = Recipe {
            // Debian puts it among the programs of root, which are not on everybody's path.
            program: ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
                .into_iter()
                .find(|program| Path::new(program).is_file())
                .unwrap_or("pgbouncer")
                .into(),
            ready: Ready::ErrorLine("process up"),
            env: Vec::new(),
            user: unprivileged::user(),
            within: WITHIN,
            args: Arc::new(move |dir, port| self.args(upstream, dir, port)),
        };
        Ok(PgBouncerServer { server: Server::start(recipe).await? })
    }

    fn args(&self, upstream: SocketAddr, dir: &Path, port: u16) -> Vec<OsString> {
        let path = dir.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host={} port={} user=postgres\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\nadmin_users = postgres\n\
             ignore_startup_parameters = extra_float_digits\npool_mode = {}\n{}\n",
            upstream.ip(),
            upstream.port(),
            self.mode,
            self.lines.join("\n")
        );
        // A test that cannot prepare its pooler has failed.
        fs::write(&path, text).expect("the pooler's directory takes its configuration");
        unprivileged::give(&path, 0o600).expect("a file that we just wrote");
        vec![path.into_os_string()]
    }
}

/// A running pooler. Dropping it kills it and removes its directory.
#[derive(Debug)]
pub struct PgBouncerServer {
    server: Server,
}

impl PgBouncerServer {
    /// The address of a store behind it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.addr())
    }

    /// Where it listens. A restart keeps it.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Kills it, as a crash would, and waits for its end.
    pub async fn kill(&mut self) {
        self.server.kill().await;
    }

    /// Starts it again, on its port. One that still runs is killed first.
    ///
    /// # Errors
    /// [`StartError`] says why it did not come back.
    pub async fn restart(&mut self) -> Result<(), StartError> {
        self.server.restart().await
    }
}
