//! Workers that fail, hang, return at once, never end, or are told something.

use super::stage::{Log, MS, SECOND, Stage, TRUST, TTL, assert_at, leads, rests, until};
use leasehold::{
    BoxError, ConfigError, ElectError, Happening, HoldError, LostCause, Notice, Position, Predecessor,
    Stopped, Term, Worker, WorkerOutcome,
};
use leasehold_core::Verb;
use leasehold_testkit::Fault;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// B83: work that fails at once on every replica is given to each of them ever less often; nobody spins.
#[tokio::test(start_paused = true)]
async fn work_that_fails_at_once_everywhere_makes_leadership_rest() {
    type Work = fn(Term) -> std::pin::Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;
    let ways: [(&str, Work); 4] = [
        ("panics", |_| Box::pin(async { panic!("planned: the work panics") })),
        ("panics before its future", |_| panic!("planned: the closure panics")),
        ("fails", |_| Box::pin(async { Err("planned".into()) })),
        ("returns at once", |_| Box::pin(async { Ok(()) })),
    ];
    for (way, work) in ways {
        let stage = Stage::new();
        let mut logs = Vec::new();
        let mut elections = Vec::new();
        for id in ["a", "b", "c"] {
            let (node, log) = stage.told(id).await;
            elections.push(node.election("l").lead(work).await.unwrap());
            logs.push(log);
        }
        sleep(60 * SECOND).await;
        for log in &logs {
            // One after another: 1, 2, 4, 8, 16 and 32 seconds, each at least half of it.
            let terms = log.count("acquired");
            assert!((3..=8).contains(&terms), "{way}: {terms} terms in a minute");
            assert_eq!(log.count("lost"), 0, "{way}: given back, not lost");
            let ended = log.first(|what| {
                matches!(what, Happening::WorkerEnded { outcome } if match way {
                    "returns at once" => *outcome == WorkerOutcome::Finished,
                    _ => matches!(outcome, WorkerOutcome::Failed(text) if text.contains("planned")),
                })
            });
            assert!(ended.is_some(), "{way}: {:?}", log.all());
        }
        let Position::Resting { last } = elections[0].position().borrow().clone() else {
            panic!("{way}: {:?}", elections[0].position())
        };
        assert!(last.is_some(), "{way}: the reason is known");
    }
}

/// B83: the panic of a one-off work is its caller's to know, and costs nobody the lease.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_work_is_told_and_the_lease_released() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let held = node.lease("l").hold(|_| async { panic!("planned: {}", 42) }).await.map(|held| held.output);
    let Err::<(), _>(HoldError::Panicked { message, .. }) = held else { panic!("{held:?}") };
    assert!(message.contains("planned: 42"), "{message}");
    let next =
        node.lease("l").try_once().hold(|term| async move { term.predecessor().clone() }).await.unwrap();
    assert!(matches!(next.output, Predecessor::Released(_)));
}

/// An actor as a worker, told what to do, and noting what it is told.
struct Clockwork {
    term: Term,
    habits: Habits,
    notes: Notes,
}

#[derive(Clone, Copy, PartialEq)]
enum Habits {
    /// Does as it is told.
    Obeys,
    /// Ignores every notice.
    Deaf,
    /// Fails in `pre_start`.
    FailsToStart,
    /// Never gets through its `pre_start`.
    HangsInStart,
}

type Notes = Arc<Mutex<Vec<String>>>;

enum Tick {
    Told(Notice),
}

#[cfg(feature = "cluster")]
impl ractor::Message for Tick {}

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Clockwork {
    type Msg = Tick;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Tick>, (): ()) -> Result<(), ActorProcessingErr> {
        match self.habits {
            Habits::FailsToStart => Err("planned: it does not start".into()),
            Habits::HangsInStart => pending().await,
            Habits::Obeys | Habits::Deaf => Ok(()),
        }
    }

    async fn handle(
        &self,
        me: ActorRef<Tick>,
        Tick::Told(notice): Tick,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let note = format!("{notice:?}");
        self.notes.lock().unwrap().push(note);
        if self.habits == Habits::Deaf {
            return Ok(());
        }
        match notice {
            Notice::Quiesce { done, .. } => {
                assert!(self.term.check().is_ok());
                let _ = done.send(Some(format!("left by {}", self.term.fence()).into_bytes()));
                me.stop(None);
            }
            Notice::Pulse(pulse) => pulse.beat(),
            _ => {}
        }
        Ok(())
    }
}

impl Worker for Clockwork {
    fn notice(notice: Notice) -> Tick {
        Tick::Told(notice)
    }
}

fn clockwork(habits: Habits, notes: &Notes) -> impl Fn(Term) -> (Clockwork, ()) + Send + Sync + 'static {
    let notes = notes.clone();
    move |term| (Clockwork { term, habits, notes: notes.clone() }, ())
}

/// I9: the note of a term is given to the very next term, and to no other.
#[tokio::test(start_paused = true)]
async fn a_worker_leaves_a_note_for_the_very_next_term_only() {
    let stage = Stage::new();
    let (a, b) = (stage.node("a").await, stage.node("b").await);
    let notes = [Notes::default(), Notes::default()];
    let first = a.election("l").run(clockwork(Habits::Obeys, &notes[0])).await.unwrap();
    leads(&first).await;
    let second = b.election("l").run(clockwork(Habits::Obeys, &notes[1])).await.unwrap();
    sleep(SECOND).await;
    first.step_down(5 * SECOND, "testing");
    leads(&second).await;
    until("it was told", || !notes[1].lock().unwrap().is_empty()).await;
    assert_eq!(*notes[0].lock().unwrap(), ["Quiesce within 5s"]);
    assert_eq!(*notes[1].lock().unwrap(), ["Inherited Note(9 bytes from #1)"]);
    // Its own term is forced to end, so it leaves nothing; what it inherited is not given on.
    stage.force("l").await;
    let third = stage.node("c").await;
    let inherited =
        third.lease("l").hold(|term| async move { term.inherited().cloned() }).await.unwrap().output;
    assert_eq!(inherited, None);
}

#[tokio::test(start_paused = true)]
async fn a_future_leaves_its_note_in_its_term() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let work = |term: Term| async move {
        term.leave_note(*b"first").unwrap();
        term.leave_note(*b"second").unwrap();
        assert!(term.leave_note(vec![0; 256 * 1024 + 1]).is_err(), "and the one before stands");
    };
    let left = node.lease("l").hold(work).await.unwrap();
    let read = |term: Term| async move { term.inherited().map(|note| (note.from(), note.bytes().to_vec())) };
    let next = node.lease("l").hold(read).await.unwrap();
    assert_eq!(next.output, Some((left.fence, b"second".to_vec())));
    assert_eq!(node.lease("l").hold(read).await.unwrap().output, None);
}

/// A worker that ignores what it is told is killed at the end of its time, and its lease is released after that.
#[tokio::test(start_paused = true)]
async fn a_worker_that_ignores_quiesce_is_killed_at_the_end_of_its_time() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let notes = Notes::default();
    let election = node.election("l").run(clockwork(Habits::Deaf, &notes)).await.unwrap();
    leads(&election).await;
    let begun = Instant::now();
    election.step_down(3 * SECOND, "testing");
    assert_eq!(rests(&election).await, Some(WorkerOutcome::Killed));
    assert_at(Instant::now(), begun + 3 * SECOND);
    assert_eq!(log.names(), ["campaigning", "acquired", "quiescing", "worker-ended", "released"]);
    assert_eq!(*notes.lock().unwrap(), ["Quiesce within 3s"]);
}

/// Told once a trouble, while there is time to act.
#[tokio::test(start_paused = true)]
async fn a_worker_is_told_of_jeopardy_and_given_its_last_call() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let notes = Notes::default();
    let election = node.election("l").grace(2 * SECOND).run(clockwork(Habits::Obeys, &notes)).await.unwrap();
    let begun = Instant::now();
    leads(&election).await;
    stage.faults.always(Verb::Renew, Fault::LoseRequest);
    assert_eq!(rests(&election).await, Some(WorkerOutcome::Finished));
    assert_at(Instant::now(), begun + TRUST - 2 * SECOND);
    let told = notes.lock().unwrap().clone();
    assert!(told.len() == 2 && told[0].starts_with("Jeopardy until"), "{told:?}");
    assert!(told[1].starts_with("Quiesce within"), "{told:?}");
    assert_eq!(
        log.names(),
        ["campaigning", "acquired", "jeopardy", "lost", "quiescing", "worker-ended", "released"]
    );
}

/// A future hears its last call, too.
#[tokio::test(start_paused = true)]
async fn a_future_is_asked_to_quiesce_one_grace_before_the_end_of_trust() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    stage.faults.always(Verb::Renew, Fault::LoseRequest);
    let begun = Instant::now();
    let work =
        move |term: Term| async move { (term.quiescing().await, Instant::now(), term.check().is_ok()) };
    let held = node.lease("l").grace(2 * SECOND).hold(work).await.unwrap();
    let (within, at, trusted) = held.output;
    assert_at(at, begun + TRUST - 2 * SECOND);
    assert!(within <= 2 * SECOND && within >= 2 * SECOND - 5 * MS && trusted);
    assert_eq!(held.lost, Some(LostCause::Expired), "it was going to be");
}

/// B87: a worker that cannot start gives its lease back, and another replica has its try.
#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_start_holds_nothing() {
    let stage = Stage::new();
    let (a, log) = stage.told("a").await;
    let b = stage.node("b").await;
    let failing = a.election("l").run(clockwork(Habits::FailsToStart, &Notes::default())).await.unwrap();
    let outcome = rests(&failing).await;
    assert!(
        matches!(&outcome, Some(WorkerOutcome::NotStarted(why)) if why.contains("planned")),
        "{outcome:?}"
    );
    let other = b.election("l").run(clockwork(Habits::Obeys, &Notes::default())).await.unwrap();
    timeout(TTL, leads(&other)).await.expect("another leads");
    sleep(60 * SECOND).await;
    assert!(log.count("acquired") <= 3, "{:?}", log.names());
    assert_eq!(stage.holder("l").await.as_deref(), Some("b"));
}

/// The same when the closure that makes the worker panics.
#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_be_made_holds_nothing() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let make = |_: Term| -> (Clockwork, ()) { panic!("planned: cannot be made") };
    let election = node.election("l").run(make).await.unwrap();
    let outcome = rests(&election).await;
    assert!(matches!(outcome, Some(WorkerOutcome::NotStarted(_))), "{outcome:?}");
    sleep(60 * SECOND).await;
    assert!(log.count("acquired") <= 8);
    assert_eq!(log.count("lost"), 0, "{:?}", log.names());
}

/// B87: a worker that hangs in its start is dropped there, by the loss and by a stop.
#[tokio::test(start_paused = true)]
async fn a_worker_that_hangs_in_its_start_is_dropped_there() {
    for lost in [true, false] {
        let stage = Stage::new();
        let (node, log) = stage.told("a").await;
        let election =
            node.election("l").run(clockwork(Habits::HangsInStart, &Notes::default())).await.unwrap();
        leads(&election).await;
        sleep(60 * SECOND).await;
        assert!(election.leading().is_some(), "a slow start holds up no renewal");
        if lost {
            stage.force("l").await;
            rests(&election).await;
        } else {
            assert!(election.stop(SECOND).await);
        }
        assert_eq!(log.count("overrun"), 0);
        assert_eq!(stage.holder("l").await, None);
    }
}

/// A panic in `Worker::notice` is not the renewer's, nor the holder's.
struct Clumsy;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Clumsy {
    type Msg = Tick;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Tick>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

impl Worker for Clumsy {
    fn notice(_: Notice) -> Tick {
        panic!("planned: knows no notice")
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_wrapping_of_a_notice_costs_only_the_notice() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let election = node.election("l").run(|_| (Clumsy, ())).await.unwrap();
    let fence = leads(&election).await;
    stage.faults.next(Verb::Renew, [Fault::LoseRequest]);
    sleep(60 * SECOND).await;
    assert_eq!(election.leading(), Some(fence), "jeopardy could not be told, and nothing else happened");
    assert_eq!(log.count("jeopardy"), 1);
    election.step_down(SECOND, "testing");
    assert_eq!(rests(&election).await, Some(WorkerOutcome::Killed));
    assert_eq!(log.count("released"), 1);
}

/// I6: everything that a term spawned is joined before its lease is released, and aborted at its loss.
#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_term_end_with_it_and_before_its_release() {
    for forced in [false, true] {
        let stage = Stage::new();
        let (node, log) = stage.told("a").await;
        let dropped = Arc::new(Mutex::new(Vec::new()));
        let work = {
            let dropped = dropped.clone();
            move |term: Term| async move {
                for _ in 0..100 {
                    let noting = Noting(dropped.clone());
                    let within = term.clone();
                    term.spawn(async move {
                        let _noting = noting;
                        loop {
                            sleep(7 * MS).await;
                            assert!(within.check().is_ok(), "no step of a task after the end");
                        }
                    });
                }
                sleep(if forced { 60 * SECOND } else { SECOND }).await;
                term
            }
        };
        let holding = tokio::spawn(async move { node.lease("l").hold(work).await });
        sleep(SECOND / 2).await;
        if forced {
            stage.force("l").await;
        }
        let held = holding.await.unwrap();
        let dropped = dropped.lock().unwrap().clone();
        assert_eq!(dropped.len(), 100);
        let ended = log.first(|what| matches!(what, Happening::WorkerEnded { .. })).unwrap();
        assert!(dropped.iter().all(|at| *at <= ended));
        match held {
            Ok(held) => {
                assert!(!forced);
                let late = Arc::new(Mutex::new(Vec::new()));
                let noting = Noting(late.clone());
                held.output.spawn(async move {
                    let _noting = noting;
                    pending::<()>().await;
                });
                assert_eq!(
                    late.lock().unwrap().len(),
                    1,
                    "a task for a term that is over is dropped unstarted"
                );
                assert_eq!(held.output.check().unwrap_err().cause, LostCause::Released);
            }
            Err(HoldError::Lost(_)) => assert!(forced),
            Err(error) => panic!("{error}"),
        }
    }
}

struct Noting(Arc<Mutex<Vec<Instant>>>);

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(Instant::now());
    }
}

/// A worker that never ends keeps its lease for as long as it is renewed.
#[tokio::test(start_paused = true)]
async fn a_worker_that_never_ends_leads_on() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let election =
        node.election("l").ttl(Duration::from_hours(1)).lead(|_| async { pending().await }).await.unwrap();
    let fence = leads(&election).await;
    sleep(Duration::from_hours(8)).await;
    assert_eq!(election.leading(), Some(fence));
    assert_eq!((log.count("acquired"), log.count("jeopardy")), (1, 0));
    assert_eq!(node.shutdown(SECOND).await, Stopped::Clean);
}

/// A pulse that is wanted within a time in which nobody looks for it would lose every healthy lease.
#[tokio::test(start_paused = true)]
async fn an_impossible_silence_is_refused_at_the_door() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    for max in [Duration::ZERO, MS, TTL / 3] {
        let refused = node.lease("l").max_silence(max).hold(|_| async {}).await;
        assert!(matches!(refused, Err(HoldError::Config(ConfigError::SilenceTooShort { .. }))), "{max:?}");
        let refused = node.election("l").max_silence(max).lead(|_| async { Ok(()) }).await;
        assert!(matches!(refused, Err(ElectError::Config(ConfigError::SilenceTooShort { .. }))), "{max:?}");
    }
    assert_eq!(stage.faults.count(Verb::Acquire), 0, "nothing was sent to the store");
}

/// A worker actor that answers the question for its pulse keeps its lease, one that does not loses it in bounded time.
#[tokio::test(start_paused = true)]
async fn an_actor_keeps_its_lease_by_answering_the_pulse() {
    for (habits, keeps) in [(Habits::Obeys, true), (Habits::Deaf, false)] {
        let stage = Stage::new();
        let (node, log) = stage.told("a").await;
        let notes = Notes::default();
        let silence = 4 * SECOND;
        let begun = Instant::now();
        let election = node.election("l").max_silence(silence).run(clockwork(habits, &notes)).await.unwrap();
        let fence = leads(&election).await;
        if keeps {
            sleep(120 * SECOND).await;
            assert_eq!((election.leading(), log.count("jeopardy")), (Some(fence), 0));
            assert!(notes.lock().unwrap().len() >= 12, "{:?}", notes.lock().unwrap());
        } else {
            rests(&election).await;
            assert!(begun.elapsed() <= silence + TTL + TTL / 3, "{:?}", begun.elapsed());
            let lost = log.first(|what| matches!(what, Happening::Lost { cause: LostCause::NoPulse }));
            assert!(lost.is_some(), "{:?}", log.all());
        }
    }
}

/// An observer's panic is its own.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_takes_nothing_down() {
    let stage = Stage::new();
    let log = Log::default();
    let node = leasehold::Node::builder(stage.store.clone())
        .replica("a")
        .clock(stage.clock.clone())
        .observe(|event| panic!("planned: the observer panics at {}", event.what.name()))
        .observe({
            let log = log.clone();
            move |event| log.write(event)
        });
    let node = node.start().await.unwrap();
    let held = node.lease("l").hold(|_| sleep(20 * SECOND)).await.unwrap();
    assert_eq!(held.lost, None);
    assert_eq!(log.names(), ["campaigning", "acquired", "worker-ended", "released"]);
}
