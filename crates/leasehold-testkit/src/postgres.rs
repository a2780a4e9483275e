//! Real PostgreSQL servers: one, with hot standbys, or behind a PgBouncer.
//!
//! ```no_run
//! # async fn test() -> Result<(), leasehold_testkit::server::StartError> {
//! use leasehold_testkit::postgres::Postgres;
//!
//! let mut server = Postgres::new().config("max_connections", "20").start().await?;
//! let store_address = server.url();
//! assert_eq!(server.sql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"), "1");
//! server.kill().await;
//! server.restart().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//! * [`Postgres`] is what a server is to be like, [`PostgresServer`] is one that runs.
//! * [`Flavour`]: which versions there are, and where.
//! * [`PgBouncer`]: a pooler in front of one.
//! * [`framing`]: what a proxy needs to count commands.

mod bouncer;
mod flavour;
mod framing;
mod home;
mod server;
mod unprivileged;

pub use crate::certificates::Certificates;
pub use bouncer::{PgBouncer, PgBouncerServer, PoolMode};
pub use flavour::Flavour;
pub use framing::framing;
pub use server::PostgresServer;

use crate::server::{Ready, Recipe, Server, StartError};
use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How long a server may take to begin and to end.
const WITHIN: Duration = Duration::from_secs(30);

/// What a server is to be like.
///
/// It does not force its writes to the disk: what a server has written outlives its own end, by SIGKILL too, as the
/// system keeps it. Only a crash of the whole machine would lose it, which no test can stage. [`Self::fsync`] makes
/// commits cost what they cost in production.
#[derive(Debug, Clone, Default)]
pub struct Postgres {
    flavour: Flavour,
    lines: Vec<String>,
    hba: Vec<String>,
    password: Option<String>,
    tls: bool,
    primary: Option<Primary>,
}

/// Where a standby finds its primary: by the socket, to which no password and no certificate is asked for.
#[derive(Debug, Clone)]
struct Primary {
    dir: PathBuf,
    port: u16,
}

impl Postgres {
    /// One for everybody on this host, whose superuser and database are both called `postgres`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another version.
    #[must_use]
    pub const fn flavour(mut self, flavour: Flavour) -> Self {
        self.flavour = flavour;
        self
    }

    /// A setting, such as `max_connections` and `20`.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name} = '{}'", value.replace('\'', "''")));
        self
    }

    /// Every commit is forced to the disk, as in production.
    #[must_use]
    pub fn fsync(self) -> Self {
        self.config("fsync", "on").config("full_page_writes", "on")
    }

    /// A password for whoever comes by TCP.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Encrypted, and by TCP only for those with a certificate of its authority: see [`PostgresServer::certificates`].
    #[must_use]
    pub const fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// A line of `pg_hba.conf` in front of the others, such as `host all app 127.0.0.1/32 reject`.
    #[must_use]
    pub fn hba(mut self, line: &str) -> Self {
        self.hba.push(line.to_owned());
        self
    }

    /// A hot standby of a server that runs: it answers what only reads, until [`PostgresServer::promote`].
    #[must_use]
    pub fn standby_of(mut self, primary: &PostgresServer) -> Self {
        self.primary = Some(Primary { dir: primary.dir().to_owned(), port: primary.addr().port() });
        self.flavour = primary.flavour();
        self
    }

    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// [`StartError`] says why there is none.
    ///
    /// # Panics
    /// If the password cannot be set.
    pub async fn start(self) -> Result<PostgresServer, StartError> {
        let programs = flavour::Programs::of(self.flavour)?;
        let made = self.clone();
        let cluster = programs.clone();
        let recipe = Recipe {
            program: programs.program("postgres"),
            // The same for a standby, which is ready for connections that only read.
            ready: Ready::ErrorLine("database system is ready to accept"),
            env: Vec::new(),
            user: unprivileged::user(),
            within: WITHIN,
            args: Arc::new(move |dir, port| made.args(&cluster, dir, port)),
        };
        let server = Server::start(recipe).await?;
        let server = PostgresServer::new(server, programs, &self);
        if let Some(password) = self.password.as_deref().filter(|_| self.primary.is_none()) {
            server.sql(&format!("ALTER ROLE postgres PASSWORD '{}'", password.replace('\'', "''")));
        }
        Ok(server)
    }

    /// The data are made once: what the server or a test changes in them outlives a restart.
    fn args(&self, programs: &flavour::Programs, dir: &Path, port: u16) -> Vec<OsString> {
        let data = dir.join(server::DATA);
        if !data.exists() {
            // A test that cannot prepare its server has failed.
            self.make(programs, dir, &data).unwrap_or_else(|error| panic!("{}: {error}", data.display()));
        }
        vec!["-D".into(), data.into_os_string(), "-p".into(), port.to_string().into()]
    }

    fn make(&self, programs: &flavour::Programs, dir: &Path, data: &Path) -> io::Result<()> {
        match &self.primary {
            Some(Primary { dir, port }) => programs.copy_of_running(dir, *port, data)?,
            None => home::new(programs, data)?,
        }
        let mut lines = vec![
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("unix_socket_directories = '{}'", dir.display()),
            "fsync = off".to_owned(),
            "full_page_writes = off".to_owned(),
            "shared_buffers = 16MB".to_owned(),
            // Nothing is left in /dev/shm by a server that was killed.
            "dynamic_shared_memory_type = mmap".to_owned(),
        ];
        if self.tls {
            let files = Certificates::in_dir(dir);
            files.make();
            unprivileged::give(&files.server_key, 0o600)?;
            // Clients of this very program refuse a key that others can read.
            unprivileged::set_mode(&files.client_key, 0o600)?;
            lines.extend([
                "ssl = on".to_owned(),
                format!("ssl_cert_file = '{}'", files.server_cert.display()),
                format!("ssl_key_file = '{}'", files.server_key.display()),
                format!("ssl_ca_file = '{}'", files.ca.display()),
            ]);
        }
        lines.extend(self.lines.iter().cloned());
        home::append(&data.join("postgresql.conf"), &lines)?;
        home::replace(&data.join("pg_hba.conf"), &self.access())
    }

    /// Who may come. By the socket: whoever can reach the server's directory.
    fn access(&self) -> Vec<String> {
        let kind = if self.tls { "hostssl" } else { "host" };
        let method = if self.password.is_some() { "scram-sha-256" } else { "trust" };
        let certificate = if self.tls { " clientcert=verify-ca" } else { "" };
        let mut lines = self.hba.clone();
        lines.push("local all,replication all trust".to_owned());
        for databases in ["all", "replication"] {
            lines.push(format!("{kind} {databases} all 127.0.0.1/32 {method}{certificate}"));
        }
        lines
    }
}
