//! What a lease tells its worker, and what the worker leaves.

use super::{
    clockwork::{Habits, Notes, Tick, clockwork},
    stage::{MS, SECOND, Stage, TRUST, TTL, assert_at, leads, rests, until},
};
use leasehold::{
    ConfigError, ElectError, Happening, HoldError, LostCause, NoteFault, Notice, Term, Worker, WorkerOutcome,
};
use leasehold_core::Verb;
use leasehold_testkit::Fault;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::time::Duration;
use tokio::time::{Instant, sleep};

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
    let _ = first.stop(SECOND).await;
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

/// A rolling upgrade, and one taken back: each program is told what it cannot read, and has it still.
#[tokio::test(start_paused = true)]
async fn a_note_has_a_version_and_an_unreadable_one_is_not_lost() {
    let stage = Stage::new();
    let node = stage.node("a").await;
    let leave = |term: Term| async move { term.leave_as(2, &("part", 3)) };
    node.lease("l").hold(leave).await.unwrap().output.unwrap();
    let read = |term: Term| async move {
        let old = term.inherited_as::<String>(1).unwrap_err();
        (old, term.inherited_as::<(String, u32)>(2), term.inherited().cloned())
    };
    let (old, new, raw) = node.lease("l").hold(read).await.unwrap().output;
    assert_eq!(new.unwrap(), Some(("part".to_owned(), 3)));
    assert_eq!(old.fault, NoteFault::Version { found: 2, wanted: 1 });
    assert_eq!(Some(old.note), raw);
    let none = |term: Term| async move { term.inherited_as::<String>(1) };
    assert_eq!(node.lease("l").hold(none).await.unwrap().output.unwrap(), None);
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

/// A worker in its last call has until the end of trust; whoever stops the election gives it less.
#[tokio::test(start_paused = true)]
async fn a_stop_shortens_a_last_call() {
    let stage = Stage::new();
    let (node, log) = stage.told("a").await;
    let notes = Notes::default();
    let election = node.election("l").grace(5 * SECOND).run(clockwork(Habits::Deaf, &notes)).await.unwrap();
    leads(&election).await;
    stage.faults.always(Verb::Renew, Fault::LoseRequest);
    until("its last call", || log.count("quiescing") == 1).await;
    let begun = Instant::now();
    let _ = election.stop(SECOND).await;
    assert_at(Instant::now(), begun + SECOND);
    assert_eq!(log.count("quiescing"), 1, "asked once");
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
    assert!(told.len() == 2 && told[0].starts_with("Jeopardy with"), "{told:?}");
    assert!(told[1].starts_with("Quiesce within"), "{told:?}");
    assert_eq!(
        log.names(),
        ["campaigning", "acquired", "jeopardy", "quiescing", "lost", "worker-ended", "released"]
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
    assert_eq!(held.lost, Some(LostCause::LastCall), "cut short, though never without its lease");
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
