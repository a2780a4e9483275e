//! A primary with replicas, and sentinels that watch over them.

use super::{Certificates, Redis, RedisServer, Reply, free_port};
use crate::server::StartError;
use std::{net::SocketAddr, time::Duration};
use tempfile::TempDir;

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Servers and sentinels. Dropping it kills all of them.
#[derive(Debug)]
pub struct Sentinels {
    /// The servers; the first one began as the primary.
    pub servers: Vec<RedisServer>,
    /// Three sentinels.
    pub sentinels: Vec<RedisServer>,
    tls: Option<Tls>,
}

/// How they are reached by TLS, which they use among themselves as well.
#[derive(Debug)]
struct Tls {
    dir: TempDir,
    /// Of the servers, then of the sentinels.
    ports: Vec<u16>,
}

impl Tls {
    fn add(&mut self, recipe: Redis) -> std::io::Result<Redis> {
        let port = free_port()?;
        self.ports.push(port);
        Ok(recipe.tls_beside(port, &Certificates::in_dir(self.dir.path())).config("tls-replication", "yes"))
    }
}

impl Sentinels {
    /// The name by which the primary is known.
    pub const MASTER: &'static str = "main";

    /// Starts a primary with two replicas, and three sentinels that find it dead after half a second.
    ///
    /// # Errors
    /// [`StartError`] says what could not be started.
    ///
    /// # Panics
    /// If they do not find each other within half a minute.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_with(None).await
    }

    /// Starts the same, encrypted among themselves and for those with a certificate of their authority. The plain ports
    /// remain, for [`RedisServer::cli`].
    ///
    /// # Errors
    /// [`StartError`] says what could not be started.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn start_with_tls() -> Result<Self, StartError> {
        let dir = tempfile::tempdir()?;
        Certificates::in_dir(dir.path()).make();
        Self::start_with(Some(Tls { dir, ports: Vec::new() })).await
    }

    async fn start_with(mut tls: Option<Tls>) -> Result<Self, StartError> {
        let mut encrypted = |recipe: Redis| match &mut tls {
            Some(tls) => tls.add(recipe),
            None => Ok(recipe),
        };
        let mut servers = vec![encrypted(Redis::new())?.start().await?];
        let mut primary = servers[0].addr();
        for _ in 0..2 {
            let replica = encrypted(Redis::new())?;
            servers.push(replica.start().await?);
        }
        let name = Self::MASTER;
        let mut recipes = Vec::new();
        for _ in 0..3 {
            recipes.push(encrypted(Redis::new())?);
        }
        if let Some(port) = tls.as_ref().and_then(|tls| tls.ports.first()) {
            primary.set_port(*port);
        }
        for replica in &servers[1..] {
            replica.cli(&["REPLICAOF", &primary.ip().to_string(), &primary.port().to_string()]);
            // A restart is to find it so.
            replica.cli(&["CONFIG", "REWRITE"]);
        }
        let mut sentinels = Vec::new();
        for recipe in recipes {
            let mut sentinel = recipe
                .config("sentinel", &format!("monitor {name} {} {} 2", primary.ip(), primary.port()))
                .config("sentinel", &format!("down-after-milliseconds {name} 500"))
                .config("sentinel", &format!("failover-timeout {name} 2000"));
            sentinel.sentinel = true;
            sentinels.push(sentinel.start().await?);
        }
        let all = Self { servers, sentinels, tls };
        all.eventually("sentinels and replicas know each other", || {
            all.sentinels.iter().all(|sentinel| {
                let knows = |field| sentinel.cli(&["SENTINEL", "MASTER", name]).field(field);
                knows("num-slaves") == Some("2".into()) && knows("num-other-sentinels") == Some("2".into())
            })
        })
        .await;
        Ok(all)
    }

    /// The address of a store on them.
    #[must_use]
    pub fn url(&self) -> String {
        if let Some(tls) = &self.tls {
            let hosts: Vec<String> =
                tls.ports[self.servers.len()..].iter().map(|port| format!("127.0.0.1:{port}")).collect();
            let query = Certificates::in_dir(tls.dir.path()).query();
            return format!("rediss+sentinel://{}/{}?{query}", hosts.join(","), Self::MASTER);
        }
        let hosts: Vec<String> = self.sentinels.iter().map(|sentinel| sentinel.addr().to_string()).collect();
        format!("redis+sentinel://{}/{}", hosts.join(","), Self::MASTER)
    }

    /// The place of the server that the sentinels name as the primary.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        let named = self.sentinels[0].cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::MASTER]).text();
        let named = named.replace('\n', ":");
        (0..self.servers.len()).find(|&at| self.known_as(at).to_string() == named)
    }

    /// Where the others find a server.
    fn known_as(&self, at: usize) -> SocketAddr {
        let mut addr = self.servers[at].addr();
        if let Some(tls) = &self.tls {
            addr.set_port(tls.ports[at]);
        }
        addr
    }

    /// Has the sentinels make another one the primary, and waits until it is.
    ///
    /// # Panics
    /// If none is within half a minute.
    pub async fn fail_over(&self) {
        let before = self.primary();
        self.sentinels[0].cli(&["SENTINEL", "FAILOVER", Self::MASTER]);
        self.until_another_leads(before).await;
    }

    /// Waits until the sentinels name another primary than the one at `before`, and it takes writes.
    ///
    /// # Panics
    /// If they do not within half a minute.
    pub async fn until_another_leads(&self, before: Option<usize>) {
        self.eventually("another primary", || {
            let now = self.primary();
            now != before
                && now.is_some_and(|at| {
                    self.servers[at].try_cli(&["ROLE"]).is_ok_and(|role| role.text().starts_with("master"))
                })
        })
        .await;
    }

    async fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..1_500 {
            if holds() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("never: {what}");
    }
}

impl Reply {
    /// The value behind a name, in an answer that lists names and values.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let Self::Array(each) = self else { return None };
        let at = each.iter().position(|reply| reply.text() == name)?;
        Some(each.get(at + 1)?.text())
    }
}
