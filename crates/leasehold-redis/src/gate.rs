//! Fence checks kept in the store, and the door that keeps writers apart.
//!
//! The door is a key that expires: whoever holds it keeps it shut by asking again and again. A holder whose process
//! ended lets the next one in after [`SHUT`]; one that gives up opens it again. One that is *paused* for longer than that
//! is overtaken: what it writes when it wakes may then meet the writes of the next one, and only the fence tells them apart.

use crate::{
    error::{Failure, Fault},
    link::Link,
    reply::Reply,
    script::{Call, Script, script},
};
use leasehold_core::{
    Admit, AttemptId, Fence, GateGuard, LeaseName, ResourceName, Stale, StoreErrorKind, backoff::Backoff,
};
use redis::Value;
use std::time::Duration;
use tokio::{runtime::Handle, sync::oneshot, time::timeout};

static ADMIT: Script = script!("admit");
static DOOR: Script = script!("door");

/// For how long a door stays shut that nobody keeps shut any more.
const SHUT: Duration = Duration::from_secs(10);
/// The first and the longest pause of those who wait at a door.
const PAUSES: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(50));

pub(crate) async fn admit(
    link: &Link,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
) -> Result<Admit, Failure> {
    ask(link, resource, lease, fence, true).await
}

/// Waits for the door, then admits.
pub(crate) async fn hold(
    link: &Link,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
) -> Result<Result<GateGuard, Admit>, Failure> {
    // What was never issued gets no door, so that absurd requests leave nothing behind.
    match ask(link, resource, lease, fence, false).await? {
        Admit::Accepted => {}
        refusal => return Ok(Err(refusal)),
    }
    let door = Door {
        link: link.clone(),
        key: link.keys().door(lease, resource),
        owner: AttemptId::random().to_hex(),
    };
    let guard = door.shut().await?;
    // Only now: a higher fence may have come through while this one waited.
    match admit(link, resource, lease, fence).await? {
        Admit::Accepted => Ok(Ok(GateGuard::new(guard))),
        refusal => Ok(Err(refusal)),
    }
}

async fn ask(
    link: &Link,
    resource: &ResourceName,
    lease: &LeaseName,
    fence: Fence,
    remember: bool,
) -> Result<Admit, Failure> {
    let key = link.keys().gate(lease, resource);
    let call = Call::new(&ADMIT, &[&link.keys().claim(lease), &link.keys().fence(lease), &key])
        .arg(fence.to_string())
        .arg(u8::from(remember))
        .repeatable();
    let reply = Reply::new(link.call(&call).await?, key);
    let reader = reply.reader();
    match reply.word()? {
        "accepted" => Ok(Admit::Accepted),
        "stale" => Ok(Admit::Stale(Stale { presented: fence, highest: reader.fence(reply.text(1)?)? })),
        "never" => {
            let highest = reader.counter(reply.text(1)?)?;
            Err(StoreErrorKind::NeverIssued { fence, highest, resource: resource.clone() }.into())
        }
        other => Err(reader.damage(format!("unexpected answer {other:?}")).into()),
    }
}

/// A door, for one of those who want to go through.
#[derive(Clone)]
struct Door {
    link: Link,
    key: String,
    owner: String,
}

/// The door is shut behind us until this is dropped.
struct Shut(#[allow(dead_code, reason = "held for its drop")] oneshot::Sender<()>);

/// Somebody at the door. Whoever goes away without having come in may have shut it all the same, by a request that is on
/// its way or whose answer was lost: it is opened again behind him.
struct Waiting {
    door: Option<Door>,
    // The drop may come on a thread that knows no runtime.
    runtime: Handle,
}

impl Door {
    /// Waits until the door is open, and shuts it. Dropping the future gives the door back.
    async fn shut(self) -> Result<Shut, Failure> {
        let seed =
            self.owner.bytes().fold(0_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let mut pause = Backoff::new(PAUSES.0, PAUSES.1, seed);
        let set = redis::cmd("SET")
            .arg(&self.key)
            .arg(&self.owner)
            .arg("NX")
            .arg("PX")
            .arg(u64::try_from(SHUT.as_millis()).unwrap_or(u64::MAX))
            .to_owned();
        let mut waiting = Waiting { door: Some(self.clone()), runtime: Handle::current() };
        loop {
            match self.link.ask(&set).await? {
                Value::Nil => {}
                // Ours, by this request or by one whose answer was lost.
                _ => break,
            }
            if self.is_ours().await? {
                break;
            }
            tokio::time::sleep(pause.next_delay()).await;
        }
        waiting.door = None;
        let (guard, dropped) = oneshot::channel();
        tokio::spawn(self.keep(dropped));
        Ok(Shut(guard))
    }

    async fn is_ours(&self) -> Result<bool, Failure> {
        let owner = self.link.ask(redis::cmd("GET").arg(&self.key)).await?;
        Ok(owner == Value::BulkString(self.owner.clone().into_bytes()))
    }

    /// Keeps the door shut until the guard is dropped, then opens it.
    async fn keep(self, mut dropped: oneshot::Receiver<()>) {
        while timeout(SHUT / 4, &mut dropped).await.is_err() {
            match self.set(SHUT).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!(door = %self.key, "the gate was opened by somebody else, or by its time");
                }
                Err(failure) => {
                    tracing::warn!(door = %self.key, error = %failure.fault, "the gate may open by its time");
                }
            }
        }
        self.open().await;
    }

    /// Opens the door if it is ours, or says why not. It takes at most the time after which it is open anyway.
    async fn open(&self) -> bool {
        let mut pause = Backoff::new(PAUSES.1, PAUSES.1 * 10, 0);
        let opening = async {
            loop {
                match self.set(Duration::ZERO).await {
                    Ok(was_ours) => return was_ours,
                    Err(failure) => {
                        tracing::debug!(door = %self.key, error = %failure.fault, "the gate is not open yet");
                    }
                }
                tokio::time::sleep(pause.next_delay()).await;
            }
        };
        timeout(SHUT, opening).await.unwrap_or(false)
    }

    async fn set(&self, shut: Duration) -> Result<bool, Failure> {
        let millis = u64::try_from(shut.as_millis()).unwrap_or(u64::MAX);
        let call = Call::new(&DOOR, &[&self.key]).arg(&self.owner).arg(millis).repeatable();
        match self.link.call(&call).await? {
            Value::Int(done) => Ok(done == 1),
            _ => Err(Fault::damage(self.key.clone(), "the door answered no number").into()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(door) = self.door.take() else { return };
        self.runtime.spawn(async move {
            // A request that went over another connection may still be on its way: it is given as long as any is.
            if !door.open().await {
                tokio::time::sleep(door.link.config().response_timeout).await;
                door.open().await;
            }
        });
    }
}
