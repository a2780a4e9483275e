//! Real Redis and Valkey servers: one, behind sentinels, or as a Cluster.
//!
//! ```no_run
//! # async fn test() -> Result<(), leasehold_testkit::server::StartError> {
//! use leasehold_testkit::redis::Redis;
//!
//! let mut server = Redis::new().appendonly("always").start().await?;
//! let store_address = server.url();
//! server.cli(&["CONFIG", "SET", "maxmemory", "3mb"]);
//! server.kill().await;
//! server.restart().await?;
//! # Ok(())
//! # }
//! ```

mod cluster;
mod flavour;
mod resp;
mod sentinel;

pub use crate::certificates::Certificates;
pub use cluster::Cluster;
pub use flavour::Flavour;
pub use resp::Reply;
pub use sentinel::Sentinels;

use crate::server::{Ready, Recipe, Server, StartError, free_port};
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How long a server may take to begin and to end.
const WITHIN: Duration = Duration::from_secs(20);

/// What a server is to be like.
#[derive(Debug, Clone, Default)]
pub struct Redis {
    flavour: Flavour,
    lines: Vec<String>,
    password: Option<String>,
    socket: bool,
    tls: bool,
    sentinel: bool,
    cluster: bool,
}

impl Redis {
    /// One that keeps nothing on disk, for everybody on this host.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another kind or version.
    #[must_use]
    pub const fn flavour(mut self, flavour: Flavour) -> Self {
        self.flavour = flavour;
        self
    }

    /// A line of its configuration, such as `maxmemory` and `3mb`.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name} {value}"));
        self
    }

    /// An append-only file, written `always` or `everysec`.
    #[must_use]
    pub fn appendonly(self, sync: &str) -> Self {
        self.config("appendonly", "yes").config("appendfsync", sync)
    }

    /// A password for everybody.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.config("requirepass", password)
    }

    /// Also on a socket, at [`RedisServer::socket`].
    #[must_use]
    pub const fn socket(mut self) -> Self {
        self.socket = true;
        self
    }

    /// Encrypted, and only for those with a certificate of its authority: see [`RedisServer::certificates`].
    #[must_use]
    pub const fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Encrypted on a port of its own beside the plain one, with certificates that it shares with others.
    pub(super) fn tls_beside(mut self, port: u16, files: &Certificates) -> Self {
        for (name, value) in files.lines() {
            self = self.config(name, &value);
        }
        self.config("tls-port", &port.to_string())
    }

    /// A replica of another one.
    #[must_use]
    pub fn replica_of(self, primary: &RedisServer) -> Self {
        self.config("replicaof", &format!("{} {}", primary.addr().ip(), primary.addr().port()))
    }

    /// A node for a Cluster, which knows no other yet. Its bus has a free port, see [`RedisServer::bus`].
    #[must_use]
    pub fn cluster_node(mut self) -> Self {
        self.cluster = true;
        self.config("cluster-enabled", "yes")
            .config("cluster-node-timeout", "1000")
            .config("cluster-require-full-coverage", "no")
    }

    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// [`StartError`] says why there is none.
    pub async fn start(self) -> Result<RedisServer, StartError> {
        let (socket, tls, password) = (self.socket, self.tls, self.password.clone());
        let recipe = Recipe {
            program: self.flavour.program(),
            ready: Ready::Line(if self.sentinel { "+monitor" } else { "Ready to accept connections" }),
            env: Vec::new(),
            user: None,
            within: WITHIN,
            args: Arc::new(move |dir, port| self.args(dir, port)),
        };
        let server = Server::start(recipe).await?;
        Ok(RedisServer { server, socket, tls, password })
    }

    /// The configuration is written once: what the server or a test changes in it later outlives a restart.
    fn args(&self, dir: &Path, port: u16) -> Vec<std::ffi::OsString> {
        let path = dir.join("redis.conf");
        if !path.exists() {
            let text = self.text(dir, port);
            // A test that cannot prepare its server has failed.
            fs::write(&path, text).expect("the server's directory takes its configuration");
        }
        let mut args = vec![path.into_os_string()];
        if self.sentinel {
            args.push("--sentinel".into());
        }
        args
    }

    fn text(&self, dir: &Path, port: u16) -> String {
        let mut lines = vec![
            format!("dir {}", dir.display()),
            "bind 127.0.0.1".to_owned(),
            "protected-mode no".to_owned(),
            "daemonize no".to_owned(),
        ];
        if !self.sentinel {
            lines.push("save \"\"".to_owned());
            if self.flavour.knows_debug_setting() {
                lines.push("enable-debug-command yes".to_owned());
            }
        }
        if self.tls {
            let files = Certificates::in_dir(dir);
            files.make();
            lines.extend(["port 0".to_owned(), format!("tls-port {port}")]);
            lines.extend(files.lines().map(|(name, value)| format!("{name} {value}")));
        } else {
            lines.push(format!("port {port}"));
        }
        if self.cluster {
            // The usual one is ten thousand above the other, which may be above the highest there is. With none a server
            // takes the usual one, and ends if it cannot: then it is started anew.
            lines.push(format!("cluster-port {}", free_port().unwrap_or(0)));
        }
        if self.socket {
            lines.push(format!("unixsocket {}", dir.join("redis.sock").display()));
        }
        lines.extend(self.lines.iter().cloned());
        lines.join("\n") + "\n"
    }
}

/// A running server. Dropping it kills it and removes its directory.
#[derive(Debug)]
pub struct RedisServer {
    server: Server,
    socket: bool,
    tls: bool,
    password: Option<String>,
}

impl RedisServer {
    /// The address of a store on it.
    #[must_use]
    pub fn url(&self) -> String {
        let login = self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default();
        if !self.tls {
            return format!("redis://{login}{}", self.addr());
        }
        format!("rediss://{login}localhost:{}?{}", self.addr().port(), self.certificates().query())
    }

    /// Where it listens. A restart keeps it.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The port of its bus, if it is a node of a Cluster.
    #[must_use]
    pub fn bus(&self) -> Option<u16> {
        let port = self.cli(&["CONFIG", "GET", "cluster-port"]).field("cluster-port")?;
        port.parse().ok()
    }

    /// Its directory. A restart keeps it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.server.dir()
    }

    /// Its socket, if it was asked for one.
    #[must_use]
    pub fn socket(&self) -> Option<PathBuf> {
        self.socket.then(|| self.dir().join("redis.sock"))
    }

    /// The certificates of its authority, if it was asked for TLS.
    #[must_use]
    pub fn certificates(&self) -> Certificates {
        Certificates::in_dir(self.dir())
    }

    /// Runs a command on a connection of its own, and waits for the answer.
    ///
    /// # Panics
    /// If there is no answer, or if it is an error: then the test's picture of its server is wrong.
    #[track_caller]
    pub fn cli(&self, words: &[&str]) -> Reply {
        match self.try_cli(words) {
            Ok(Reply::Error(error)) => panic!("{words:?} on {}: {error}", self.addr()),
            Ok(reply) => reply,
            Err(error) => panic!("{words:?} on {}: {error}", self.addr()),
        }
    }

    /// As [`Self::cli`], for a server that may be down, and for commands that it may refuse.
    ///
    /// # Errors
    /// If there is no answer within two seconds.
    pub fn try_cli(&self, words: &[&str]) -> std::io::Result<Reply> {
        resp::ask(self.addr(), self.password.as_deref(), words)
    }

    /// Freezes it: connections stay up, and nobody answers.
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

    /// Asks it to end in order, and waits for its end.
    pub async fn stop(&mut self) {
        self.server.stop().await;
    }

    /// Starts it again, on its port and in its directory. A server that still runs is killed first.
    ///
    /// # Errors
    /// [`StartError`] says why it did not come back.
    pub async fn restart(&mut self) -> Result<(), StartError> {
        self.server.restart().await
    }
}
