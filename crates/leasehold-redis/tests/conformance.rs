//! The contract of a store, over a real server that is seen through two connections of two users.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test panics by design, in its helpers too")]

use leasehold_core::{BoxFuture, LeaseName, ReplicaId};
use leasehold_redis::RedisStore;
use leasehold_testkit::{
    conformance::{RealTime, Subject},
    redis::{Flavour, Redis, RedisServer},
};
use std::sync::Arc;

mod system {
    use super::*;

    leasehold_testkit::conformance!(fresh);

    async fn fresh() -> Subject {
        subject(Flavour::System, "").await
    }
}

mod redis_6_2 {
    use super::*;

    leasehold_testkit::conformance!(fresh);

    async fn fresh() -> Subject {
        subject(Flavour::Redis62, "").await
    }
}

mod redis_8_2 {
    use super::*;

    leasehold_testkit::conformance!(fresh);

    async fn fresh() -> Subject {
        subject(Flavour::Redis82, "").await
    }
}

mod valkey_by_resp3 {
    use super::*;

    leasehold_testkit::conformance!(fresh);

    async fn fresh() -> Subject {
        subject(Flavour::Valkey, "?protocol=resp3").await
    }
}

async fn subject(flavour: Flavour, parameters: &str) -> Subject {
    let server = Arc::new(Redis::new().flavour(flavour).start().await.unwrap());
    let mut stores = Vec::new();
    for user in ["one", "two"] {
        server.cli(&["ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all"]);
        let address = format!("redis://{user}:secret@{}{parameters}", server.addr());
        stores.push(Arc::new(RedisStore::open(&address).await.unwrap()));
    }
    let (other, store) = (stores.pop().unwrap(), stores.pop().unwrap());
    let (damaged, crashed) = (server.clone(), server.clone());
    Subject::new(store, other, RealTime)
        .damaged_by(move |name| damage(damaged.clone(), name))
        .crashed_by(move |_: ReplicaId| crash(crashed.clone()))
        .keeping(server)
}

/// What no program of ours would write.
fn damage(server: Arc<RedisServer>, name: LeaseName) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let key = format!("leasehold:{{{name}}}:claim");
        assert_eq!(server.cli(&["SET", &key, "fence=-1", "XX", "KEEPTTL"]).text(), "OK", "it was there");
    })
}

/// What the operating system does when it ends a process: the server finds the subscription closed. The store of the
/// first user may not come back with another one, as a process that has ended does not.
fn crash(server: Arc<RedisServer>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let channels = || server.cli(&["PUBSUB", "CHANNELS", "leasehold:witness:*"]).text();
        assert_ne!(channels(), "");
        server.cli(&["ACL", "SETUSER", "one", "resetchannels", "&leasehold:{*"]);
        while !channels().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
}
