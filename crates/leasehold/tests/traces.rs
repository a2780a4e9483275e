//! Trace contexts travel with bids, in records and with releases; nothing here knows an exporter.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use leasehold::{LeaseStore, MemoryStore, Node, Predecessor, Propagator, TokioClock, TraceContext};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tracing::{Instrument, Span, info_span};

/// Knows each span by its name and number, and remembers what it was asked to join.
#[derive(Debug, Default)]
struct Notebook {
    adopted: Mutex<Vec<(&'static str, TraceContext)>>,
    linked: Mutex<Vec<(&'static str, TraceContext)>>,
}

fn name(span: &Span) -> &'static str {
    span.metadata().map_or("none", |m| m.name())
}

impl Propagator for Notebook {
    fn inject(&self, span: &Span) -> TraceContext {
        span.id().map_or(TraceContext::NONE, |id| {
            TraceContext::parse(&format!("00-{:032x}-{:016x}-01", 7, id.into_u64()))
        })
    }

    fn adopt(&self, span: &Span, parent: &TraceContext) {
        self.adopted.lock().unwrap().push((name(span), parent.clone()));
    }

    fn link(&self, span: &Span, other: &TraceContext) {
        self.linked.lock().unwrap().push((name(span), other.clone()));
    }
}

async fn traced() -> (Node, MemoryStore, Arc<Notebook>) {
    let notebook = Arc::new(Notebook::default());
    let clock = Arc::new(TokioClock::new());
    let store = MemoryStore::new(clock.clone());
    let node = Node::builder(Arc::new(store.clone())).clock(clock).propagator(notebook.clone());
    (node.start().await.unwrap(), store, notebook)
}

#[tokio::test(start_paused = true)]
async fn a_term_is_found_from_the_call_that_asked_for_it_and_from_the_term_after_it() {
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry());
    let (node, store, notebook) = traced().await;

    let asked = info_span!("request");
    let asked_in = notebook.inject(&asked);
    let (term_trace, next) = async {
        let _ = node.lease("l").hold(|_| async {}).await.unwrap();
        let record = store.inspect(&"l".try_into().unwrap()).await.unwrap();
        let Predecessor::Released(ended) = record.predecessor else { panic!("it was released") };
        let next =
            node.lease("l").hold(|term| async move { term.predecessor().clone() }).await.unwrap().output;
        (ended.trace, next)
    }
    .instrument(asked)
    .await;

    assert!(term_trace.traceparent().is_some(), "the record carries the term's trace");
    assert_eq!(next.ended().unwrap().trace, term_trace, "and the next term is told");
    let adopted = notebook.adopted.lock().unwrap();
    assert_eq!(adopted[0], ("lease.acquire", asked_in), "the acquire belongs to the call that asked");
    assert!(adopted.iter().any(|(span, parent)| *span == "lease.release" && parent.traceparent().is_some()));
    let linked = notebook.linked.lock().unwrap();
    assert!(
        linked.contains(&("lease.acquire", term_trace)),
        "the next acquire links to the term before: {linked:?}"
    );
}

/// A loss has no message behind it, only a timer and a supervision edge: ractor carries no span over those.
#[tokio::test(start_paused = true)]
async fn a_loss_is_linked_to_the_acquire_of_its_term() {
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry());
    let (node, store, notebook) = traced().await;

    let asked = info_span!("request");
    let work = async {
        let forced = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (lease, by) = ("l".try_into().unwrap(), "operator".try_into().unwrap());
            drop(store.force_release(&lease, &by, "testing").await);
        };
        tokio::join!(node.lease("l").hold(|_| std::future::pending::<()>()), forced).0
    };
    assert!(work.instrument(asked).await.is_err());
    let record = store.inspect(&"l".try_into().unwrap()).await.unwrap();
    let linked = notebook.linked.lock().unwrap();
    let (_, to) =
        linked.iter().find(|(span, _)| *span == "lease.lost").expect("the loss is a span of its own");
    assert_eq!(*to, record.predecessor.ended().unwrap().trace, "linked to the acquire, as the record has it");
}

/// An election lives for months: what called for it is the cause of its first campaign only.
#[tokio::test(start_paused = true)]
async fn a_later_campaign_of_an_election_is_no_part_of_what_called_for_it() {
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry());
    let (node, store, notebook) = traced().await;

    let asked = info_span!("request");
    let asked_in = notebook.inject(&asked);
    let election = node.election("l").lead(|_| std::future::pending()).instrument(asked).await.unwrap();
    let mut position = election.position();
    let mut terms = Vec::new();
    for _ in 0..2 {
        position.wait_for(|position| matches!(position, leasehold::Position::Leading(_))).await.unwrap();
        election.step_down(Duration::ZERO, "testing");
        position.wait_for(|position| matches!(position, leasehold::Position::Resting { .. })).await.unwrap();
        let record = store.inspect(&"l".try_into().unwrap()).await.unwrap();
        terms.push(record.predecessor.ended().unwrap().trace.clone());
    }
    assert!(election.stop(Duration::ZERO).await == leasehold::Stopped::Clean);

    let adopted = notebook.adopted.lock().unwrap();
    let asking: Vec<_> = adopted.iter().filter(|(span, _)| *span == "lease.acquire").collect();
    assert_eq!(asking, [&("lease.acquire", asked_in)], "the second acquire has no parent");
    let linked = notebook.linked.lock().unwrap();
    assert!(linked.contains(&("lease.acquire", terms[0].clone())), "it links to the term before: {linked:?}");
}

/// A handoff is one trace over both replicas: asked, proposed, warmed up, quiesced, committed, acquired, assumed.
#[tokio::test(start_paused = true)]
async fn a_handoff_is_one_trace_over_both_replicas() {
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry());
    let clock = Arc::new(TokioClock::new());
    let store = MemoryStore::new(clock.clone());
    let books = [Arc::new(Notebook::default()), Arc::new(Notebook::default())];
    let mut elections = Vec::new();
    for (book, id) in books.iter().zip(["a", "b"]) {
        let node =
            Node::builder(Arc::new(store.clone())).replica(id).clock(clock.clone()).propagator(book.clone());
        let node = node.start().await.unwrap();
        let election = node.election("l").warm_up(|| async { Ok(()) }).lead(|term| async move {
            term.quiescing().await;
            Ok(())
        });
        elections.push(election.await.unwrap());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let asked = info_span!("request");
    let asked_in = books[0].inject(&asked);
    let handover = elections[0].hand_off(leasehold::To::Anyone, Duration::from_secs(10), "testing");
    let handover = handover.instrument(asked).await.unwrap();
    assert!(matches!(handover.ending, leasehold::Ending::Done { .. }), "{handover:?}");

    let adopted = |book: usize, span: &str| {
        let adopted = books[book].adopted.lock().unwrap();
        let parents: Vec<_> =
            adopted.iter().filter(|(name, _)| *name == span).map(|(_, p)| p.clone()).collect();
        parents
    };
    assert_eq!(adopted(0, "handoff"), std::slice::from_ref(&asked_in), "it belongs to the call that asked");
    let warmed = adopted(1, "handoff.warm_up");
    assert_eq!(warmed.len(), 1);
    assert_ne!(warmed[0], asked_in, "to the handoff, not to whoever asked");
    assert_eq!(adopted(1, "handoff.assume"), warmed, "both belong to the handoff");
    let released = adopted(0, "lease.release");
    assert_eq!(released.len(), 1);
    assert!(!released.contains(&asked_in) && !released.contains(&warmed[0]), "to its commit");
    let acquired = adopted(1, "lease.acquire");
    assert_eq!(acquired.len(), 1, "the bids before belong to nothing: {acquired:?}");
    assert_ne!(acquired[0], warmed[0], "to the assuming");
    // And the record says where the new term was acquired.
    let record = store.inspect(&"l".try_into().unwrap()).await.unwrap();
    assert!(record.predecessor.ended().unwrap().trace.traceparent().is_some());
}
