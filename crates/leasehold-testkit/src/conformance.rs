//! The contract of a store as tests: one for each promise of [`leasehold_core::store`].
//!
//! For a store of your own, write a function that gives a fresh, empty store, and name it to
//! [`conformance!`](crate::conformance!). Each case becomes a `#[test]` of its own, so a failure names the rule that was broken:
//!
//! ```
//! use leasehold_core::{ManualClock, MemoryStore};
//! use leasehold_testkit::conformance::Subject;
//! use std::sync::Arc;
//!
//! async fn fresh() -> Subject {
//!     let clock = ManualClock::default();
//!     let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//!     let crashing = store.clone();
//!     Subject::new(store.clone(), store, clock).crashed_by(move |replica| {
//!         let store = crashing.clone();
//!         Box::pin(async move { drop(store.crash(&replica)) })
//!     })
//! }
//!
//! leasehold_testkit::conformance!(fresh);
//! # fn main() {}
//! ```
//!
//! * The second handle of [`Subject::new`] should be a connection of its own. If your client reads any clock, give
//!   the second one a clock that is hours off: it must make no difference (rule 11).
//! * Give a store on a real server [`RealTime`], and one with a clock seam a
//!   [`ManualClock`](leasehold_core::ManualClock).
//! * [`Subject::damaged_by`] says how to damage a record (rule 8), [`Subject::crashed_by`] how to end a holder's process.
//!
//! What the suite cannot see: what the store's contents survive, and what happens when its server fails. Test that
//! with the real server and the [`faults`](crate::faults).

#[macro_use]
mod cases;
mod acquire;
mod damage;
mod dropped;
mod gate;
mod handoff;
mod holding;
mod letters;
mod listing;
mod names;
mod passing;
mod predecessor;
mod promises;
mod roster;
mod subject;
mod ttl;
mod watching;

pub use passing::{Passing, RealTime};
pub use subject::{Subject, lease, replica, won};

use futures_util::future::LocalBoxFuture;
use std::time::Duration;

/// How long one case may take. Far above what any needs: it turns a hang into a failure.
const DEADLINE: Duration = Duration::from_secs(60);

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// Which behaviour it demands; names of rules begin with `rule_`.
    pub name: &'static str,
    // Not `Send`: a case runs on the thread of its test, only what it spawns moves.
    run: fn(Subject) -> LocalBoxFuture<'static, ()>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! registry {
    ($($group:ident::$case:ident)*) => {
        /// Every case, in the order of the rules.
        pub const CASES: &[Case] = &[$(Case {
            name: stringify!($case),
            run: |subject| Box::pin($group::$case(subject)),
        }),*];
    };
}

__leasehold_cases!([registry]);

/// Runs one case on a runtime of its own. What [`conformance!`](crate::conformance!) calls.
///
/// # Panics
/// If the store breaks the case's rule, or needs longer than a minute.
pub fn run<F: Future<Output = Subject>>(name: &str, build: impl FnOnce() -> F) {
    let case = CASES.iter().find(|case| case.name == name).expect("a case of this suite");
    // Two workers, so that concurrent requests are really concurrent.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let subject = build().await;
        let timed = tokio::time::timeout(DEADLINE, (case.run)(subject)).await;
        timed.unwrap_or_else(|_| panic!("{name} did not end within {DEADLINE:?}"));
    });
}
