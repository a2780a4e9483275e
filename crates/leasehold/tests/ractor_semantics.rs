//! What ractor really does, where leasehold leans on it.
//!
//! leasehold's safety argument is a supervision tree, so a few dozen facts about how actors start, end and are told
//! of each other's end carry weight. ractor documents only some of them, and calls none a promise. Each is pinned
//! here by a test that says which rule of ours depends on it: an upgrade of ractor that changes one fails our build,
//! and the test's comment says what to think about before changing the expectation.
//!
//! | module | pins |
//! |---|---|
//! | `lifecycle` | every way an actor ends: what still runs, and what its supervisor is told |
//! | `startup` | what `kill`, `stop`, errors and aborts do to an actor that has not started yet |
//! | `tree` | a parent's end is its children's end, and who is exempt |
//! | `linking` | from which moment on a child belongs to its parent |
//! | `ordering` | which of kill, stop, supervision and messages comes first |
//! | `joining` | what "it has ended" means, and for whom |
//! | `ends` | what outlives an actor, and what does not end one |
//! | `mail` | what becomes of messages and calls when an actor ends or is busy |
//! | `time` | virtual time and timers |
//! | `runtimes` | trees that span tokio runtimes |
//! | `context` | which handlers run inside the sender's span |
//!
//! The rest is the stage: `script` is an actor that does in each hook what a test tells it, `act` the things it can
//! be told, `player` its handle, `journal` the record of what came of it.
//!
//! Most tests run on one thread under tokio's paused clock: their order of events is fixed, and a test that is stuck
//! ends at once, because the clock jumps to its deadline as soon as nothing else can run. "Never" is then a year of
//! that clock. The few that need a second thread wait for a journal entry, never for a while.

// The inline module makes the compiler look for the others in the folder of that name.
mod ractor_semantics {
    mod act;
    mod journal;
    mod player;
    mod script;

    mod context;
    mod ends;
    mod joining;
    mod lifecycle;
    mod linking;
    mod mail;
    mod ordering;
    mod runtimes;
    mod startup;
    mod time;
    mod tree;
}
