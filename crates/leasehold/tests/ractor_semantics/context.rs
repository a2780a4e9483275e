//! Which handlers run inside the sender's span. Where none does, our messages carry a `TraceContext`.

use std::time::Duration;

use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Id, Instrument, Level, Span, info_span};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;

use super::act::{Act, fail, nothing};
use super::journal::Hook::{Handle, PostStart, PostStop, PreStart};
use super::journal::Step::{Began, Ended};
use super::journal::{Journal, Step, Told};
use super::player::{Cue, Player};
use super::script::Script;

/// Keeps our spans and drops ractor's own, as we advise. Good for this thread, on which the whole test runs.
fn only_our_spans() -> DefaultGuard {
    let filter = Targets::new().with_default(Level::INFO).with_target("ractor", LevelFilter::OFF);
    tracing::subscriber::set_default(tracing_subscriber::registry().with(filter))
}

/// A span of ours. Its target has to be said, because a filter for `ractor` goes for `ractor_semantics` as well.
fn span(name: &'static str) -> Span {
    let span = info_span!(target: "leasehold", "ours", name);
    assert!(!span.is_disabled());
    span
}

/// Has `player` do `act` on a message sent inside a new span, and returns the span.
async fn cue_in_span(journal: &Journal, who: &str, player: &Player, act: Act) -> Id {
    let span = span("sender");
    span.in_scope(|| player.cue(1, act));
    journal.until(who, Ended(Handle(1))).await;
    span.id().expect("the span is enabled")
}

/// A message that is cast is handled in its sender's span: traces run through our actors without our doing.
#[tokio::test(start_paused = true)]
async fn a_cast_is_handled_in_the_senders_span() {
    let _guard = only_our_spans();
    let journal = Journal::new();
    let actor = Script::new("actor", &journal).spawn().await;
    let span = cue_in_span(&journal, "actor", &actor, nothing()).await;
    assert_eq!(journal.span_of("actor", &Began(Handle(1))), Some(span));

    // And no longer than that message.
    actor.cue(2, nothing());
    journal.until("actor", Ended(Handle(2))).await;
    assert_eq!(journal.span_of("actor", &Began(Handle(2))), None);
}

/// Over several actors, too: what a handler casts on is in the first sender's span.
#[tokio::test(start_paused = true)]
async fn a_span_is_passed_on_from_actor_to_actor() {
    let _guard = only_our_spans();
    let journal = Journal::new();
    let second = Script::new("second", &journal).spawn().await;
    let first = Script::new("first", &journal).spawn().await;
    let next = second.actor.clone();
    let pass_on = Act::new(|_| async move { Ok(next.cast(Cue(2, nothing()))?) });
    let span = cue_in_span(&journal, "first", &first, pass_on).await;
    journal.until("second", Ended(Handle(2))).await;
    assert_eq!(journal.span_of("second", &Began(Handle(2))), Some(span));
}

/// A timer's message is in no span, not even when its timer was set in one. So a renewal that is due carries its
/// context in the message.
#[tokio::test(start_paused = true)]
async fn a_timers_message_is_in_no_span() {
    let _guard = only_our_spans();
    let journal = Journal::new();
    let actor = Script::new("actor", &journal).spawn().await;
    let arm = Act::new(|me| async move {
        me.send_after(Duration::from_secs(1), || Cue(2, nothing()));
        Ok(())
    });
    cue_in_span(&journal, "actor", &actor, arm).await;
    journal.until("actor", Ended(Handle(2))).await;
    assert_eq!(journal.span_of("actor", &Began(Handle(2))), None);
}

/// Nor is what a supervisor is told, although the child failed inside a span. The path of a loss, the one worth most
/// to see, is traced only by what the grant and the messages carry.
#[tokio::test(start_paused = true)]
async fn a_supervision_event_is_in_no_span() {
    let _guard = only_our_spans();
    let journal = Journal::new();
    let parent = Script::new("parent", &journal).spawn().await;
    let child = Script::new("child", &journal).spawn_under(&parent).await;
    let span = cue_in_span(&journal, "child", &child, fail()).await;
    assert_eq!(journal.span_of("child", &Began(Handle(1))), Some(span));
    let failed = Step::Told(Told::failed("failed"));
    journal.until("parent", failed.clone()).await;
    assert_eq!(journal.span_of("parent", &failed), None);
}

/// `pre_start` is in the span of whoever awaits it; the hooks after it are in none, and neither is a `post_stop`
/// whose stop was asked for in one. A worker gets its context as an argument.
#[tokio::test(start_paused = true)]
async fn of_the_hooks_only_an_awaited_pre_start_is_in_a_span() {
    let _guard = only_our_spans();
    let journal = Journal::new();
    let span = span("spawner");
    let mut awaited = Script::new("awaited", &journal).spawn().instrument(span.clone()).await;
    assert_eq!(journal.span_of("awaited", &Began(PreStart)), span.id());
    awaited.settle().await;
    span.in_scope(|| awaited.actor.stop(None));
    awaited.joined().await;
    assert_eq!(journal.span_of("awaited", &Began(PostStart)), None);
    assert_eq!(journal.span_of("awaited", &Began(PostStop)), None);

    let parent = Script::new("parent", &journal).spawn().await;
    let instant = span.in_scope(|| Script::new("instant", &journal).spawn_instantly_under(&parent));
    journal.until("instant", Began(PreStart)).await;
    assert_eq!(journal.span_of("instant", &Began(PreStart)), None);
    instant.actor.kill();
}

/// Where ractor's own spans are kept, what is sent outside of a span hangs below the one that ractor holds open for an
/// actor's whole life, which a collector sees only when the actor ends. Hence our advice to filter them out.
#[tokio::test(start_paused = true)]
async fn ractors_own_span_adopts_what_is_sent_outside_of_one() {
    // As long as a process has only one dispatcher, the first thread to come to a span decides for all whether it is
    // enabled, with what that thread has for a default. A second one keeps the other tests of this process out of it.
    let _second = Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
    let journal = Journal::new();
    let actor = Script::new("actor", &journal).spawn().await;
    for tag in [1, 2] {
        actor.cue(tag, nothing());
        journal.until("actor", Ended(Handle(tag))).await;
    }
    let life = journal.span_of("actor", &Began(PostStart));
    assert!(life.is_some());
    for tag in [1, 2] {
        assert_eq!(journal.span_of("actor", &Began(Handle(tag))), life);
    }
}
