//! Three primaries that share the slots.

use super::{Certificates, Redis, RedisServer, free_port};
use crate::server::StartError;
use std::time::Duration;
use tempfile::TempDir;

/// How many slots a Cluster has.
const SLOTS: u16 = 16_384;

/// A Cluster of three primaries without replicas. Dropping it kills all of them.
#[derive(Debug)]
pub struct Cluster {
    /// The primaries.
    pub nodes: Vec<RedisServer>,
    tls: Option<Tls>,
}

/// How its nodes are reached by TLS, which they use among themselves as well.
#[derive(Debug)]
struct Tls {
    dir: TempDir,
    ports: Vec<u16>,
}

impl Cluster {
    /// Starts one, and waits until it serves.
    ///
    /// # Errors
    /// [`StartError`] says what could not be started.
    ///
    /// # Panics
    /// If the nodes do not find each other within half a minute.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_with(None).await
    }

    /// Starts one that is encrypted, among its nodes and for those with a certificate of its authority. The plain ports
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
        let mut nodes = Vec::new();
        for _ in 0..3 {
            let mut node = Redis::new().cluster_node();
            if let Some(tls) = &mut tls {
                let port = free_port()?;
                tls.ports.push(port);
                node =
                    node.tls_beside(port, &Certificates::in_dir(tls.dir.path())).config("tls-cluster", "yes");
            }
            nodes.push(node.start().await?);
        }
        let bus = nodes[0].bus().unwrap_or_default().to_string();
        for (at, node) in nodes.iter().enumerate() {
            let epoch = (at + 1).to_string();
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            let (first, last) = Self::range(at);
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            let addr = nodes[0].addr();
            node.cli(&["CLUSTER", "MEET", &addr.ip().to_string(), &addr.port().to_string(), &bus]);
        }
        let cluster = Self { nodes, tls };
        cluster.until_it_serves().await;
        Ok(cluster)
    }

    fn range(at: usize) -> (u16, u16) {
        let third = SLOTS / 3;
        let first = third * u16::try_from(at).unwrap_or(0);
        (first, if at == 2 { SLOTS - 1 } else { first + third - 1 })
    }

    /// The address of a store on it.
    #[must_use]
    pub fn url(&self) -> String {
        if let Some(tls) = &self.tls {
            let hosts: Vec<String> = tls.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
            let query = Certificates::in_dir(tls.dir.path()).query();
            return format!("rediss+cluster://{}?{query}", hosts.join(","));
        }
        let hosts: Vec<String> = self.nodes.iter().map(|node| node.addr().to_string()).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The slot of a key.
    #[must_use]
    pub fn slot(&self, key: &str) -> u16 {
        let slot = self.nodes[0].cli(&["CLUSTER", "KEYSLOT", key]).number();
        slot.and_then(|slot| u16::try_from(slot).ok()).unwrap_or_default()
    }

    /// The place of the node that owns a slot at the beginning.
    #[must_use]
    pub fn owner(&self, slot: u16) -> usize {
        (0..3).find(|&at| (Self::range(at).0..=Self::range(at).1).contains(&slot)).unwrap_or(0)
    }

    /// Moves a slot with its keys to another node, while both serve.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        let id = |at: usize| self.nodes[at].cli(&["CLUSTER", "MYID"]).text();
        let (source, target) = (id(from), id(to));
        let text = slot.to_string();
        self.nodes[to].cli(&["CLUSTER", "SETSLOT", &text, "IMPORTING", &source]);
        self.nodes[from].cli(&["CLUSTER", "SETSLOT", &text, "MIGRATING", &target]);
        let addr = self.nodes[to].addr();
        loop {
            let keys = self.nodes[from].cli(&["CLUSTER", "GETKEYSINSLOT", &text, "100"]).text();
            if keys.is_empty() {
                break;
            }
            for key in keys.lines() {
                let (host, port) = (addr.ip().to_string(), addr.port().to_string());
                self.nodes[from].cli(&["MIGRATE", &host, &port, key, "0", "1000", "REPLACE"]);
            }
        }
        for at in [to, from] {
            self.nodes[at].cli(&["CLUSTER", "SETSLOT", &text, "NODE", &target]);
        }
    }

    async fn until_it_serves(&self) {
        for _ in 0..1_500 {
            let serves = |node: &RedisServer| {
                let info = node.cli(&["CLUSTER", "INFO"]).text();
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            };
            if self.nodes.iter().all(serves) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the nodes of the Cluster never found each other");
    }
}
