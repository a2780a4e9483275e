//! A Redis server of the example's own.

use leasehold::BoxError;
use std::{
    io::ErrorKind,
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// A server on a free port, that ends with this.
#[derive(Debug)]
pub struct OwnServer {
    port: u16,
    // Before its directory.
    _process: Child,
    _dir: TempDir,
}

impl OwnServer {
    /// Starts one, and waits until it takes connections.
    ///
    /// # Errors
    /// If `redis-server` is not installed, or does not come up.
    pub async fn start() -> Result<Self, BoxError> {
        // A port that is free now may be taken before the server has it: then another one is tried.
        for _ in 0..5 {
            if let Some(server) = Self::launch().await? {
                return Ok(server);
            }
        }
        Err("redis-server ends at once, or does not come up within 5 s: start it by hand to see why".into())
    }

    /// A server, or `None` if it did not come up on the port that was picked.
    async fn launch() -> Result<Option<Self>, BoxError> {
        let dir = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--appendonly", "yes"]);
        command.args(["--appendfsync", "always", "--save", "", "--dir"]).arg(dir.path());
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true).spawn();
        let mut process = started.map_err(|error| match error.kind() {
            ErrorKind::NotFound => BoxError::from(
                "redis-server is not installed: install it (on Debian: apt-get install redis-server), or name a server \
                 by --store redis://HOST:PORT",
            ),
            _ => error.into(),
        })?;
        for _ in 0..500 {
            let answers = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            if process.try_wait()?.is_some() {
                return Ok(None);
            }
            if answers {
                return Ok(Some(Self { port, _process: process, _dir: dir }));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(None)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}
