//! The doors of gates: whoever goes away opens them again.

use crate::common::{PATIENCE, eventually, lease, open, win};
use leasehold_core::{FenceGate, ResourceName};
use leasehold_testkit::{
    faults::{Direction, Framing, Proxy},
    redis::{Redis, RedisServer},
};
use std::time::Duration;
use tokio::time::timeout;

const DOOR: &str = "leasehold:{job}:door:disk";

/// How long the door stays shut if nobody opens it, in ms; `None` if it is open.
fn shut(server: &RedisServer) -> Option<i64> {
    server.cli(&["PTTL", DOOR]).number().filter(|left| *left > 0)
}

/// Waits until the door is open, and says how much of its time was left when it was seen shut for the last time.
async fn opened(server: &RedisServer) -> i64 {
    let mut last = 0;
    eventually("it is opened", async || match shut(server) {
        Some(left) => {
            last = left;
            false
        }
        None => true,
    })
    .await;
    last
}

/// The request has shut the door, its answer is on the way, and whoever asked waits no more.
#[tokio::test]
async fn a_waiter_that_gives_up_while_its_request_is_on_the_way_gives_the_door_back() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let (store, other) = (open(&format!("redis://{}", proxy.addr())).await, open(&server.url()).await);
    let fence = win(&store, "job").await.claim.fence;
    let (disk, job) = (ResourceName::new("disk").unwrap(), lease("job"));
    proxy.delay(Direction::Down, Duration::from_millis(100));
    {
        let mut waiting = std::pin::pin!(store.hold_gate(&disk, &job, fence));
        let shut = eventually("it is shut", async || shut(&server).is_some());
        tokio::select! {
            biased;
            () = shut => {}
            answer = &mut waiting => panic!("the answer was to be on its way: {answer:?}"),
        }
    }
    assert!(opened(&server).await > 5_000, "long before its time");
    let next = timeout(PATIENCE, other.hold_gate(&disk, &job, fence)).await;
    drop(next.expect("an open gate").expect("its gate"));
    opened(&server).await;
}

/// The answer never comes, and the connection with it: the opening goes over another one.
#[tokio::test]
async fn a_door_that_was_shut_by_a_request_whose_answer_was_lost_is_given_back() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let store = open(&format!("redis://{}?response_timeout=300ms&timeout=300ms", proxy.addr())).await;
    let fence = win(&store, "job").await.claim.fence;
    let (disk, job) = (ResourceName::new("disk").unwrap(), lease("job"));
    // The script is known from here on: the second request is the one that shuts the door.
    drop(store.hold_gate(&disk, &job, fence).await.expect("an open gate"));
    opened(&server).await;
    let asked = proxy.commands();
    proxy.delay(Direction::Down, Duration::from_millis(100));
    {
        let mut waiting = std::pin::pin!(store.hold_gate(&disk, &job, fence));
        let swallowed = async {
            eventually("its second request", async || {
                if proxy.commands() == asked + 2 {
                    proxy.blackhole(Direction::Down);
                }
                shut(&server).is_some()
            })
            .await;
        };
        tokio::select! {
            biased;
            () = swallowed => {}
            answer = &mut waiting => panic!("the answer was swallowed: {answer:?}"),
        }
    }
    proxy.heal();
    proxy.reset();
    assert!(opened(&server).await > 2_000, "before its time");
}

/// The request is made again, and finds the door shut: by itself.
#[tokio::test]
async fn whoever_shut_the_door_by_a_request_whose_answer_was_lost_goes_through_it() {
    let server = Redis::new().start().await.unwrap();
    let proxy = Proxy::framed(server.addr(), Framing::Resp).await.unwrap();
    let store = open(&format!("redis://{}", proxy.addr())).await;
    let fence = win(&store, "job").await.claim.fence;
    proxy.lose_reply_to(1, DOOR);
    let (disk, job) = (ResourceName::new("disk").unwrap(), lease("job"));
    let held = timeout(PATIENCE, store.hold_gate(&disk, &job, fence)).await;
    let guard = held.expect("an answer").expect("its own gate");
    assert_eq!(proxy.broken(), 1);
    assert!(shut(&server).is_some());
    drop(guard);
    opened(&server).await;
}
