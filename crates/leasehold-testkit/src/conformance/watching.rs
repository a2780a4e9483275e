//! Rule 7: a watch shows states, vacancy too.

use super::subject::{Subject, lease, replica, won};
use crate::stepper::Stepper;
use leasehold_core::{Fate, Force, LeaseRecord, LeaseState, NameSet, Parting, Scope, Sighting, Watch};

pub(super) async fn rule_07_the_present_states_come_first(s: Subject) {
    let s = s.unhurried();
    let claim = s.win("held", "a").await.claim;
    let gone = s.win("released", "a").await.claim;
    s.let_go(&gone).await;
    let mut watch = s.other.watch(Scope::All).await.expect("watch");
    let mut seen = [next(&s, &mut watch).await, next(&s, &mut watch).await];
    seen.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(seen[0].claim(), Some(&claim));
    assert_eq!((seen[1].claim(), seen[1].counter), (None, Some(gone.fence)));
}

/// Through the other handle, as another process would see it.
pub(super) async fn rule_07_every_change_is_told_vacancy_too(s: Subject) {
    let s = s.unhurried();
    let mut watch = s.other.watch(Scope::All).await.expect("watch");
    let first = s.win("feed", "a").await.claim;
    until(&s, &mut watch, |seen| seen.claim() == Some(&first)).await;
    s.let_go(&first).await;
    let vacant = until(&s, &mut watch, |seen| seen.state == LeaseState::Vacant).await;
    assert_eq!((vacant.counter, vacant.predecessor.fate()), (Some(first.fence), Fate::Released));

    let second = s.win("feed", "b").await.claim;
    until(&s, &mut watch, |seen| seen.claim() == Some(&second)).await;
    let heir = replica("c");
    s.part(&second, &Parting { heir: Some((heir.clone(), s.ttl)), ..Parting::default() }).await;
    let for_heir =
        |seen: &LeaseRecord| matches!(&seen.state, LeaseState::Reserved { heir: told, .. } if *told == heir);
    until(&s, &mut watch, for_heir).await;

    let third = won(s.store.acquire(&s.bid("feed", "c")).await).claim;
    until(&s, &mut watch, |seen| seen.claim() == Some(&third)).await;
    let answer = s.store.force_release(&lease("feed"), &replica("ops"), "test").await;
    assert!(matches!(answer, Force::Forced { .. }), "{answer:?}");
    until(&s, &mut watch, |seen| seen.predecessor.fate() == Fate::Forced && seen.claim().is_none()).await;
}

pub(super) async fn rule_07_a_watch_sees_its_names_only(s: Subject) {
    let s = s.unhurried();
    let _ = s.win("feed/2", "a").await;
    let mut watch = s.other.watch(Scope::Names(vec![lease("feed"), lease("other")])).await.expect("watch");
    let _ = s.win("feed/", "a").await;
    let _ = s.win("Feed", "a").await;
    let wanted = s.win("feed", "a").await.claim;
    let seen = next(&s, &mut watch).await;
    assert_eq!(seen.claim(), Some(&wanted), "the first thing seen, since nothing else was to be");
    // It works for a name that did not exist when the watch began, and for more than one.
    let other = s.win("other", "a").await.claim;
    until(&s, &mut watch, |seen| seen.claim() == Some(&other)).await;
}

pub(super) async fn rule_07_a_live_watch_follows_names_that_come_and_go(s: Subject) {
    let s = s.unhurried();
    let names = NameSet::default();
    let mut watch = s.other.watch(Scope::Live(names.clone())).await.expect("watch");
    for name in ["one", "two"] {
        let claim = s.win(name, "a").await.claim;
        names.insert(lease(name));
        let answer = s.store.force_release(&lease(name), &replica("ops"), "test").await;
        assert!(matches!(answer, Force::Forced { .. }), "{answer:?}");
        let over = |seen: &LeaseRecord| seen.name == lease(name) && seen.claim().is_none();
        let seen = until(&s, &mut watch, over).await;
        assert_eq!((seen.counter, seen.predecessor.fate()), (Some(claim.fence), Fate::Forced));
    }
    // Nothing of a name that is there no more, once another was followed that came after it had gone.
    names.remove(&lease("one"));
    names.insert(lease("three"));
    let third = s.win("three", "a").await.claim;
    until(&s, &mut watch, |seen| seen.claim() == Some(&third)).await;
    let _ = s.win("one", "b").await;
    let (stranger, wanted) = (s.win("four", "b").await.claim, s.win("two", "b").await.claim);
    let seen = until(&s, &mut watch, |seen| seen.name != lease("three")).await;
    assert_eq!(seen.claim(), Some(&wanted), "and not {stranger}");
}

pub(super) async fn rule_07_a_dropped_wait_loses_nothing(s: Subject) {
    let s = s.unhurried();
    let mut watch = s.store.watch(Scope::Names(vec![lease("feed")])).await.expect("watch");
    for n in 0..4 {
        // The wait is dropped while there is nothing to see, as a `select!` would drop it.
        assert!(Stepper::allowing(1).run(watch.next()).await.is_none());
        let claim = s.win("feed", &format!("replica {n}")).await.claim;
        until(&s, &mut watch, |seen| seen.claim() == Some(&claim)).await;
        s.let_go(&claim).await;
        until(&s, &mut watch, |seen| seen.claim().is_none()).await;
    }
    drop(watch);
    let _ = s.win("feed", "after").await;
}

async fn next(s: &Subject, watch: &mut Watch) -> LeaseRecord {
    until(s, watch, |_| true).await
}

/// The first state for which `wanted` holds. States on the way may be coalesced, so they are not counted.
async fn until(s: &Subject, watch: &mut Watch, wanted: impl Fn(&LeaseRecord) -> bool) -> LeaseRecord {
    let mut last = None;
    let search = async {
        loop {
            match watch.next().await.expect("the watch goes on as long as its store") {
                Sighting::State(record) if wanted(&record) => return record,
                Sighting::State(record) => last = Some(record),
                Sighting::Trouble(error) => panic!("the store has trouble: {error}"),
            }
        }
    };
    match tokio::time::timeout(s.patience, search).await {
        Ok(record) => record,
        Err(_) => panic!("the state was not seen within {:?}; the last one seen was {last:?}", s.patience),
    }
}
