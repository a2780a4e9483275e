//! The keeper: the worker's parent, for as long as the lock is held.

use crate::{
    renewer::Leash,
    term::{Scope, Term},
    worker::{Crew, Mustered},
};
use leasehold_core::{Lost, LostCause};
use leasehold_postgres::{SessionLock, SessionLost};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{interval, timeout},
};

/// How often the end of trust is carried over to the grant, and compared with the clock: timers stand still while the machine is
/// suspended, and trust does not (B03).
const TICK: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) enum KeeperMsg {
    /// The lock is lost.
    Gone(Arc<str>),
}

#[cfg(feature = "cluster")]
impl ractor::Message for KeeperMsg {}

pub(super) struct KeeperArgs {
    pub(super) lock: SessionLock,
    pub(super) scope: Arc<Scope>,
    pub(super) crew: Box<dyn Crew>,
    pub(super) app: Handle,
    pub(super) report: oneshot::Sender<Report>,
}

/// How it ended.
pub(super) struct Report {
    pub(super) lost: Option<SessionLost>,
}

pub(super) struct LockKeeper {
    // In the handler, not in the state: it is dropped with the actor's task, whatever ended it.
    leash: Leash,
}

impl LockKeeper {
    pub(super) const fn new(leash: Leash) -> Self {
        Self { leash }
    }
}

pub(super) struct Keeping {
    args: Option<KeeperArgs>,
    scope: Arc<Scope>,
}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for LockKeeper {
    type Msg = KeeperMsg;
    type State = Keeping;
    type Arguments = KeeperArgs;

    async fn pre_start(
        &self,
        me: ActorRef<KeeperMsg>,
        args: KeeperArgs,
    ) -> Result<Keeping, ActorProcessingErr> {
        let scope = args.scope.clone();
        scope.on_outranked(move |stale| drop(me.cast(KeeperMsg::Gone(stale.to_string().into()))));
        Ok(Keeping { args: Some(args), scope })
    }

    /// The worker is mustered here and not before: a `pre_start` has effects even if the spawn is refused.
    async fn post_start(&self, me: ActorRef<KeeperMsg>, s: &mut Keeping) -> Result<(), ActorProcessingErr> {
        let Some(KeeperArgs { lock, scope, crew, app, report }) = s.args.take() else { return Ok(()) };
        let Mustered { cell, join, tell: _ } =
            match crew.muster(Term::new(scope.clone()), me.get_cell(), &app) {
                Ok(mustered) => mustered,
                Err(error) => {
                    self.leash.put_on_nobody();
                    return Err(Box::new(error));
                }
            };
        self.leash.put_on(cell);
        let (end, ending) = watch::channel(false);
        let prover = app.spawn(prove(lock, scope.clone(), me.clone(), ending));
        // Outside of the tree that may be killed: somebody must stay who gives the lock back, and not too early.
        app.spawn(async move {
            if let Ok(Ok(worker)) = join.await {
                let _ = worker.await;
            }
            scope.join_tasks().await;
            let _ = end.send(true);
            let lost = give_back(prover).await;
            let _ = report.send(Report { lost });
            me.stop(None);
        });
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<KeeperMsg>,
        KeeperMsg::Gone(why): KeeperMsg,
        s: &mut Keeping,
    ) -> Result<(), ActorProcessingErr> {
        // First the checks, then the tasks, then the worker, by this actor's end (I5).
        let cause = LostCause::SessionEnded(why);
        s.scope.grant.end(cause.clone());
        s.scope.abort_tasks();
        let claim = s.scope.grant.claim();
        Err(Box::new(Lost { name: claim.name.clone(), fence: claim.fence, cause }))
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<KeeperMsg>,
        event: SupervisionEvent,
        _: &mut Keeping,
    ) -> Result<(), ActorProcessingErr> {
        // The joiner hears of the worker's end by itself. The state may own running things; it must not live on in here.
        drop(event);
        Ok(())
    }
}

/// Has the lock, and proves it until told to end. Returns it if it was held all the time.
async fn prove(
    lock: SessionLock,
    scope: Arc<Scope>,
    keeper: ActorRef<KeeperMsg>,
    mut ending: watch::Receiver<bool>,
) -> Result<SessionLock, SessionLost> {
    let _told_in_any_case = Untold(keeper.clone());
    let lost = {
        let mut losing = pin!(lock.lost());
        let mut ticks = interval(TICK);
        loop {
            tokio::select! {
                _ = ending.wait_for(|end| *end) => break None,
                lost = &mut losing => break Some(lost),
                _ = ticks.tick() => match lock.check() {
                    Ok(()) => scope.grant.extend(lock.trusted_until()),
                    Err(lost) => break Some(lost),
                },
            }
        }
    };
    let Some(lost) = lost else { return Ok(lock) };
    // For every check in this process at once, whatever the keeper is doing.
    scope.grant.end(LostCause::SessionEnded(lost.to_string().into()));
    let _ = keeper.cast(KeeperMsg::Gone(lost.to_string().into()));
    // The connection stays open while the worker may still run: it may be that the server has not given it up (I6).
    let _ = ending.wait_for(|end| *end).await;
    drop(lock);
    Err(lost)
}

/// Tells the keeper of the prover's own end, whatever it was: without proofs there is no work.
struct Untold(ActorRef<KeeperMsg>);

impl Drop for Untold {
    fn drop(&mut self) {
        // After the worker's end, or a loss that was told, it changes nothing any more.
        let _ = self.0.cast(KeeperMsg::Gone("nothing proves it any more".into()));
    }
}

/// More than a release may take.
const PARTING: Duration = Duration::from_secs(10);

async fn give_back(prover: JoinHandle<Result<SessionLock, SessionLost>>) -> Option<SessionLost> {
    match prover.await {
        Ok(Ok(lock)) => timeout(PARTING, lock.release()).await.ok().and_then(Result::err),
        Ok(Err(lost)) => Some(lost),
        // Its runtime is shutting down: the connection is closed with it.
        Err(_) => None,
    }
}
