//! A write to a fenced actor, beside a bare ractor call.

use crate::table::{Table, median};
use leasehold::{BootClock, Clock, Fence, Node};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use std::time::Duration;

const ROUNDS: usize = 9;
const CALLS: u32 = 20_000;

/// The yardstick: an actor that adds one and answers.
struct Bare;

struct AddOne(RpcReplyPort<u64>);

impl Actor for Bare {
    type Msg = AddOne;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<AddOne>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<AddOne>,
        AddOne(port): AddOne,
        n: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        *n += 1;
        let _ = port.send(*n);
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn run(table: &mut Table) -> anyhow::Result<()> {
    let node = Node::connect("memory:").await?;
    let fenced = node.fenced("counter", "bench", 0_u64).await?;
    let (bare, _) = Actor::spawn(None, Bare, ()).await?;
    let (mut writes, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = BootClock.now();
        for _ in 0..CALLS {
            fenced
                .write(Fence::FIRST, |n| {
                    *n += 1;
                    *n
                })
                .await?;
        }
        writes.push(BootClock.now().since(start));
        let start = BootClock.now();
        for _ in 0..CALLS {
            bare.call(AddOne, None).await?;
        }
        calls.push(BootClock.now().since(start));
    }
    let each = |rounds: &mut [Duration]| median(rounds).as_secs_f64() * 1e6 / f64::from(CALLS);
    let (write, call) = (each(&mut writes), each(&mut calls));
    table.row(
        "`Fenced::write()`, one after another",
        format!("{write:.2} µs"),
        format!("a bare ractor call: {call:.2} µs ({:.2}×)", write / call),
        "at most 3× a bare call",
        ROUNDS * CALLS as usize,
    );
    bare.stop(None);
    let _ = node.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
