//! The record of what the actors of a test did and were told, in one order, and waits for an entry of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Long enough for any machine; under the paused clock it passes as soon as nothing else can run.
const DEADLINE: Duration = Duration::from_secs(60);

/// What was running. A message is known by the tag it was sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    PreStart,
    PostStart,
    Handle(u8),
    PostStop,
}

/// What a supervisor was told of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Started,
    /// `state` says whether the child's state came with the event.
    Terminated {
        state: bool,
        reason: Option<String>,
    },
    Failed(String),
}

impl Told {
    pub(super) fn terminated(state: bool, reason: &str) -> Self {
        Self::Terminated { state, reason: Some(reason.to_owned()) }
    }

    pub(super) fn failed(error: &str) -> Self {
        Self::Failed(error.to_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Began(Hook),
    /// The hook's future came to its end, be it with an error.
    Ended(Hook),
    /// The hook's future was dropped half-way, or unwound.
    Cut(Hook),
    Told(Told),
    StateDropped,
}

#[derive(Clone, Debug)]
struct Entry {
    who: &'static str,
    step: Step,
    /// The name of the thread it happened on.
    thread: String,
    /// The span it happened in.
    span: Option<tracing::Id>,
}

/// Shared by all actors of a test.
#[derive(Clone, Debug)]
pub(super) struct Journal(Arc<watch::Sender<Vec<Entry>>>);

impl Journal {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    pub(super) fn write(&self, who: &'static str, step: Step) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        let span = tracing::Span::current().id();
        self.0.send_modify(|entries| entries.push(Entry { who, step, thread, span }));
    }

    /// Everything `who` did and was told so far, in order.
    pub(super) fn of(&self, who: &str) -> Vec<Step> {
        self.0.borrow().iter().filter(|entry| entry.who == who).map(|entry| entry.step.clone()).collect()
    }

    pub(super) fn has(&self, who: &str, step: &Step) -> bool {
        self.0.borrow().iter().any(|entry| entry.who == who && entry.step == *step)
    }

    /// What `who` was told of its children so far, in order.
    pub(super) fn told(&self, who: &str) -> Vec<Told> {
        let told = |step| if let Step::Told(told) = step { Some(told) } else { None };
        self.of(who).into_iter().filter_map(told).collect()
    }

    /// The name of the thread on which `who` did `step`.
    pub(super) fn thread_of(&self, who: &str, step: &Step) -> String {
        self.the(who, step).thread
    }

    /// The span in which `who` did `step`, if it was in one.
    pub(super) fn span_of(&self, who: &str, step: &Step) -> Option<tracing::Id> {
        self.the(who, step).span
    }

    fn the(&self, who: &str, step: &Step) -> Entry {
        let entries = self.0.borrow();
        let found = entries.iter().find(|entry| entry.who == who && entry.step == *step);
        found.unwrap_or_else(|| panic!("{who} did not come to {step:?}")).clone()
    }

    /// Waits until `who` has done `step`; fails the test when that takes too long.
    pub(super) async fn until(&self, who: &str, step: Step) {
        let mut entries = self.0.subscribe();
        let written =
            |entries: &Vec<Entry>| entries.iter().any(|entry| entry.who == who && entry.step == step);
        match tokio::time::timeout(DEADLINE, entries.wait_for(written)).await {
            Ok(found) => drop(found.expect("the journal holds its own sender")),
            Err(_) => panic!("{who} did not come to {step:?}; the journal says {:#?}", self.0.borrow()),
        }
    }
}

/// Waits for what must come; fails the test when it takes too long.
pub(super) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("it did not come about before the deadline")
}
