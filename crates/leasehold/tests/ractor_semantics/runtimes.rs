//! Trees that span tokio runtimes: a worker runs on its caller's runtime, its renewer perhaps on another.

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::act::{Act, blocking, fail, forever, nothing};
use super::journal::Hook::{PostStart, PostStop, PreStart};
use super::journal::Step::{Began, Cut, Ended};
use super::journal::{Hook, Journal, Step, Told, soon};
use super::player::{Cue, Player};
use super::script::Script;

/// A runtime of its own, whose one thread bears its name.
struct Apart(Option<Runtime>);

impl Apart {
    fn new(name: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build();
        Self(Some(runtime.expect("the machine has room for a thread")))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("taken only by the drop")
    }

    async fn spawn(&self, script: Script, parent: &Player) -> Player {
        let parent = parent.actor.get_cell();
        let spawning = self.runtime().spawn(script.try_spawn_under(parent));
        soon(spawning).await.expect("no abort").expect("it starts")
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // A runtime must not be waited for inside another.
        self.0.take().expect("taken only here").shutdown_background();
    }
}

/// I5 across runtimes: a worker is on the runtime of whoever asked for the lease, and links, events and kills do not
/// care.
#[tokio::test]
async fn links_events_and_kills_cross_runtimes() {
    let journal = Journal::new();
    let apart = Apart::new("apart");
    let renewer = Script::new("renewer", &journal).spawn().await;

    let mut failing = apart.spawn(Script::new("failing", &journal), &renewer).await;
    failing.cue(1, fail());
    failing.joined().await;
    journal.until("renewer", Step::Told(Told::failed("failed"))).await;

    let mut worker = apart.spawn(Script::new("worker", &journal), &renewer).await;
    worker.busy(&journal, "worker", 1, forever()).await;
    assert_eq!(journal.thread_of("worker", &Began(Hook::Handle(1))), "apart");
    renewer.actor.kill();
    worker.joined().await;
    assert!(journal.has("worker", &Cut(Hook::Handle(1))));
    assert!(!journal.has("worker", &Began(PostStop)));
}

/// How a renewer puts a worker on its caller's runtime without waiting: all of the worker, from `pre_start` on, runs
/// on the runtime that was entered when it was spawned.
#[tokio::test]
async fn an_entered_runtime_gets_the_whole_actor() {
    let journal = Journal::new();
    let apart = Apart::new("apart");
    let renewer = Script::new("renewer", &journal).spawn().await;
    let worker = {
        let _entered = apart.runtime().handle().enter();
        Script::new("worker", &journal).spawn_instantly_under(&renewer)
    };
    worker.actor.cast(Cue(1, nothing())).expect("an unstarted actor takes messages");
    let join = soon(worker.start).await.expect("no abort").expect("it starts");
    journal.until("worker", Ended(Hook::Handle(1))).await;
    worker.actor.stop(None);
    soon(join).await.expect("no abort");

    for hook in [PreStart, PostStart, Hook::Handle(1), PostStop] {
        assert_eq!(journal.thread_of("worker", &Began(hook)), "apart", "{hook:?}");
    }
}

/// A runtime that is shut down takes its actors along, and their supervisor elsewhere is told. A caller that drops
/// its runtime thus ends its worker, and the lease holder can let go.
#[tokio::test]
async fn the_shutdown_of_a_runtime_is_told_to_supervisors_on_another() {
    let journal = Journal::new();
    let apart = Apart::new("apart");
    let renewer = Script::new("renewer", &journal).spawn().await;
    let worker = apart.spawn(Script::new("worker", &journal), &renewer).await;
    worker.busy(&journal, "worker", 1, forever()).await;

    drop(apart);
    journal.until("renewer", Step::Told(Told::terminated(false, "actor_task_cancelled"))).await;
    soon(worker.actor.wait(None)).await.expect("it waits without a deadline of its own");
    assert!(journal.has("worker", &Cut(Hook::Handle(1))));
}

/// Wakes `renewer` by a message and blocks its thread in the same breath.
async fn wake_and_block(journal: &Journal, renewer: &Player, worker: &Player) -> std::sync::mpsc::Sender<()> {
    let (unblock, block) = blocking();
    let (blocks, blocked) = oneshot::channel();
    let supervisor = renewer.actor.clone();
    let act = Act::new(move |me| async move {
        supervisor.cast(Cue(2, nothing()))?;
        let _ = blocks.send(());
        block.begin(me).await
    });
    worker.busy(journal, "worker", 1, act).await;
    soon(blocked).await.expect("the worker is about to block");
    unblock
}

/// Returns once this multi-threaded runtime has nothing left to do.
async fn all_threads_parked() {
    let metrics = Handle::current().metrics();
    // An odd count means parked.
    while (0..metrics.num_workers()).any(|thread| metrics.worker_park_unpark_count(thread).is_multiple_of(2))
    {
        tokio::task::yield_now().await;
    }
}

/// A worker that wakes its renewer (by a message, a reply, or merely by starting) and then blocks its thread takes the
/// renewer along: tokio keeps the task that was woken last for the thread that woke it and lets no other thread take
/// it, however idle. Renewals stop until the worker awaits. The term is not trusted beyond its deadline (I4's check at
/// the point of use), but the lease is lost for nothing; hence the next test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_blocks_can_hold_up_a_renewer_on_its_runtime() {
    let journal = Journal::new();
    let renewer = Script::new("renewer", &journal).spawn().await;
    let worker = Script::new("worker", &journal).spawn_under(&renewer).await;
    let bystander = Script::new("bystander", &journal).spawn().await;
    for player in [&worker, &renewer, &bystander] {
        player.settle().await;
    }
    // A renewer that still ran on the other thread would be woken there.
    soon(all_threads_parked()).await;

    let unblock = wake_and_block(&journal, &renewer, &worker).await;
    for _ in 0..1000 {
        bystander.settle().await;
    }
    assert!(!journal.has("renewer", &Began(Hook::Handle(2))), "there was a thread for a thousand others");

    drop(unblock);
    journal.until("renewer", Ended(Hook::Handle(2))).await;
}

/// On a runtime of its own a renewer is not held up by a worker, whatever that does to its thread.
#[tokio::test]
async fn a_worker_that_blocks_does_not_hold_up_a_renewer_on_another_runtime() {
    let journal = Journal::new();
    let apart = Apart::new("apart");
    let renewer = Script::new("renewer", &journal).spawn().await;
    let worker = apart.spawn(Script::new("worker", &journal), &renewer).await;
    worker.settle().await;

    let unblock = wake_and_block(&journal, &renewer, &worker).await;
    journal.until("renewer", Ended(Hook::Handle(2))).await;
    assert!(!journal.has("worker", &Ended(Hook::Handle(1))));
    drop(unblock);
}
