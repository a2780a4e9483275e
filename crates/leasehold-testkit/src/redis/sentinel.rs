//! A primary with replicas, and sentinels that watch over them.

use super::{Redis, RedisServer, Reply};
use crate::server::StartError;
use std::time::Duration;

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Servers and sentinels. Dropping it kills all of them.
#[derive(Debug)]
pub struct Sentinels {
    /// The servers; the first one began as the primary.
    pub servers: Vec<RedisServer>,
    /// Three sentinels.
    pub sentinels: Vec<RedisServer>,
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
        let primary = Redis::new().start().await?;
        let mut servers = vec![primary];
        for _ in 0..2 {
            servers.push(Redis::new().replica_of(&servers[0]).start().await?);
        }
        let addr = servers[0].addr();
        let name = Self::MASTER;
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            let mut sentinel = Redis::new()
                .config("sentinel", &format!("monitor {name} {} {} 2", addr.ip(), addr.port()))
                .config("sentinel", &format!("down-after-milliseconds {name} 500"))
                .config("sentinel", &format!("failover-timeout {name} 2000"));
            sentinel.sentinel = true;
            sentinels.push(sentinel.start().await?);
        }
        let all = Self { servers, sentinels };
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
        let hosts: Vec<String> = self.sentinels.iter().map(|sentinel| sentinel.addr().to_string()).collect();
        format!("redis+sentinel://{}/{}", hosts.join(","), Self::MASTER)
    }

    /// The place of the server that the sentinels name as the primary.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        let named = self.sentinels[0].cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::MASTER]).text();
        let named = named.replace('\n', ":");
        self.servers.iter().position(|server| server.addr().to_string() == named)
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
