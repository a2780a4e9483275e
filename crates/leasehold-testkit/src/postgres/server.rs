//! A running server.

use super::{Certificates, Flavour, Postgres, WITHIN, flavour::Programs, unprivileged};
use crate::{
    process::Signal,
    server::{Server, StartError},
};
use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Its data, in its directory.
pub(super) const DATA: &str = "data";

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A running server. Dropping it ends it, with what it had in memory, and removes its directory.
#[derive(Debug)]
pub struct PostgresServer {
    server: Server,
    programs: Programs,
    flavour: Flavour,
    password: Option<String>,
    tls: bool,
}

impl PostgresServer {
    pub(super) fn new(server: Server, programs: Programs, made: &Postgres) -> Self {
        Self { server, programs, flavour: made.flavour, password: made.password.clone(), tls: made.tls }
    }

    /// The address of a store on it.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// The address of a store on it that is reached by way of a proxy or a pooler.
    #[must_use]
    pub fn url_at(&self, addr: SocketAddr) -> String {
        let login = self.password.as_ref().map(|password| format!(":{password}")).unwrap_or_default();
        if !self.tls {
            return format!("postgres://postgres{login}@{addr}/postgres");
        }
        let files = self.certificates();
        format!(
            "postgres://postgres{login}@localhost:{}/postgres?sslmode=verify-full&sslrootcert={}&sslcert={}&sslkey={}",
            addr.port(),
            files.ca.display(),
            files.client_cert.display(),
            files.client_key.display()
        )
    }

    /// The address of a store on it by its socket, which lies in [`Self::dir`] and asks for no password.
    #[must_use]
    pub fn socket_url(&self) -> String {
        let dir = self.dir().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{dir}:{}/postgres", self.addr().port())
    }

    /// Where it listens. A restart keeps it.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Its directory. A restart keeps it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.server.dir()
    }

    /// Its version.
    #[must_use]
    pub const fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Its version, as it says it, such as `15.14`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.programs.version
    }

    /// The certificates of its authority, if it was asked for TLS.
    #[must_use]
    pub fn certificates(&self) -> Certificates {
        Certificates::in_dir(self.dir())
    }

    /// Runs statements as the superuser on a connection of their own, and gives what they answer: a line a row, with
    /// `|` between columns.
    ///
    /// # Panics
    /// If one fails: then the test's picture of its server is wrong.
    #[track_caller]
    pub fn sql(&self, statements: &str) -> String {
        self.try_sql(statements).unwrap_or_else(|error| panic!("{statements}\non {}: {error}", self.addr()))
    }

    /// As [`Self::sql`], for a server that may be down, and for statements that it may refuse.
    ///
    /// # Errors
    /// What the server, or else the system, said.
    pub fn try_sql(&self, statements: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.program("psql"));
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1"]);
        psql.args(["--username=postgres", "--dbname=postgres", "--host"]).arg(self.dir());
        psql.arg(format!("--port={}", self.addr().port())).args(["--command", statements]);
        psql.env("PGCONNECT_TIMEOUT", "5").env("PGAPPNAME", "a test's own eyes").stdin(Stdio::null());
        let done = psql.output().map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).trim().to_owned());
        }
        Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
    }

    /// Ends every client's connection but the test's own, as an operator does; says how many it ended.
    ///
    /// # Panics
    /// If the server does not answer.
    #[track_caller]
    pub fn terminate_clients(&self) -> usize {
        let ended = self.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        ended.parse().expect("a number")
    }

    /// Makes a standby a primary, and waits until it takes writes.
    ///
    /// # Panics
    /// If it does not within a minute.
    pub fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote(true, 60)"), "t", "it is no standby, or cannot be promoted");
    }

    /// Waits until this standby has all that its primary has now.
    ///
    /// # Panics
    /// If it has not within half a minute.
    pub async fn catch_up_with(&self, primary: &Self) {
        let all = primary.sql("SELECT pg_current_wal_lsn()");
        for _ in 0..1_500 {
            if self.sql(&format!("SELECT pg_last_wal_replay_lsn() >= '{all}'")) == "t" {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("the standby never came to {all}");
    }

    /// Freezes it, backends and all: connections stay up, and nobody answers.
    pub fn pause(&self) {
        self.server.pause();
    }

    /// Lets it run on.
    pub fn resume(&self) {
        self.server.resume();
    }

    /// Kills it, as a crash would, and waits for its end.
    pub async fn kill(&mut self) {
        self.server.kill().await;
    }

    /// Has it end in order at once, whoever is connected, and waits for its end.
    pub async fn stop(&mut self) {
        self.end(Signal::INT).await;
    }

    /// Starts it again, on its port and with its data. A server that still runs is killed first.
    ///
    /// # Errors
    /// [`StartError`] says why it did not come back.
    pub async fn restart(&mut self) -> Result<(), StartError> {
        for _ in 0..100 {
            match self.server.restart().await {
                // A child of the one that was killed is still on its way out.
                Err(StartError::Ended { output, .. }) if output.contains("shared memory block") => {
                    tokio::time::sleep(LOOK).await;
                }
                done => return done,
            }
        }
        self.server.restart().await
    }

    async fn end(&mut self, signal: Signal) {
        let process = self.server.process();
        process.signal(signal);
        process.exit(WITHIN).await;
    }

    /// Of its System V memory, which one that was killed leaves behind, and of which a system has only so many.
    fn memory(&self) -> Option<String> {
        let left = fs::read_to_string(self.dir().join(DATA).join("postmaster.pid")).ok()?;
        Some(left.lines().nth(6)?.split_whitespace().nth(1)?.to_owned())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let memory = self.memory();
        self.server.process().kill();
        while self.server.process().is_running() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(id) = memory {
            let mut free = Command::new("ipcrm");
            let _ = unprivileged::run(free.args(["--shmem-id", &id]).stderr(Stdio::null())).status();
        }
    }
}
