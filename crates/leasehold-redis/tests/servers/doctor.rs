//! What the servers say of themselves.

use crate::common::open;
use leasehold_core::{Durability, Finding, LeaseStore, Severity};
use leasehold_testkit::redis::{Cluster, Redis};

async fn survives(address: &str) -> Durability {
    open(address).await.traits().durability
}

/// A promise is as strong as the settings are, and no stronger where they are not known.
#[tokio::test]
async fn a_store_promises_what_its_server_keeps() {
    for (server, expected) in [
        (Redis::new(), Durability::Server),
        (Redis::new().config("save", "60 1"), Durability::Server),
        (Redis::new().appendonly("everysec"), Durability::ProcessCrash),
        (Redis::new().appendonly("always"), Durability::PowerLoss),
    ] {
        let server = server.start().await.unwrap();
        assert_eq!(survives(&server.url()).await, expected);
        server.cli(&["ACL", "SETUSER", "default", "-config"]);
        assert_eq!(survives(&server.url()).await, Durability::Server, "nobody may look");
    }
    let cluster = Cluster::start().await.unwrap();
    for (at, expected) in
        [Durability::Server, Durability::Server, Durability::ProcessCrash].into_iter().enumerate()
    {
        cluster.nodes[at].cli(&["CONFIG", "SET", "appendonly", "yes"]);
        assert_eq!(survives(&cluster.url()).await, expected, "the weakest counts");
    }
}

/// Whichever it is: a lease is as safe as the one server that has its slot.
#[tokio::test]
async fn what_endangers_one_server_of_a_cluster_is_found_and_named() {
    let mut cluster = Cluster::start().await.unwrap();
    let store = open(&cluster.url()).await;
    let about = |findings: &[Finding], code: &str| -> Vec<String> {
        let meant = findings.iter().filter(|finding| finding.code == code);
        meant.map(|finding| finding.text.split(": ").next().unwrap().to_owned()).collect()
    };
    for at in 0..3 {
        let addr = cluster.nodes[at].addr().to_string();
        cluster.nodes[at].cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        assert_eq!(about(&store.diagnose().await.unwrap(), "eviction"), [addr]);
        cluster.nodes[at].cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    }
    assert_eq!(about(&store.diagnose().await.unwrap(), "no-persistence").len(), 3, "each for itself");
    let down = cluster.nodes[2].addr().to_string();
    cluster.nodes[2].kill().await;
    let findings = store.diagnose().await.unwrap();
    assert_eq!(about(&findings, "unreachable"), [down]);
    assert_eq!(findings[0].severity, Severity::Danger, "{findings:?}");
    assert_eq!(about(&findings, "no-persistence").len(), 2, "the others were asked all the same");
}
