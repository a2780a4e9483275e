//! Rule 5: a release may name an heir and a window.

use super::{
    acquire::trace,
    subject::{Subject, held, replica, won},
};
use leasehold_core::{Claim, Fate, LeaseState, Note, Parting, Release};
use std::time::Duration;

pub(super) async fn rule_05_until_the_window_ends_only_the_heir_is_granted(s: Subject) {
    let s = s.unhurried();
    let old = s.win("feed", "a").await.claim;
    let note = Note::new(old.fence, *b"half done").expect("small");
    let parting = Parting { heir: Some((replica("b"), s.ttl)), note: Some(note.clone()), trace: trace(5) };
    s.part(&old, &parting).await;

    let record = s.record("feed").await;
    match &record.state {
        LeaseState::Reserved { heir, remaining } => {
            assert_eq!(*heir, replica("b"));
            assert!(!remaining.is_zero() && *remaining <= s.ttl, "{remaining:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((record.counter, record.predecessor.fate()), (Some(old.fence), Fate::HandedOff));

    for outsider in ["c", "a"] {
        let refused = held(s.other.acquire(&s.bid("feed", outsider)).await);
        assert_eq!((refused.by, refused.fence, refused.reserved), (replica("b"), old.fence, true));
        assert!(!refused.remaining.is_zero() && refused.remaining <= s.ttl);
    }

    let granted = won(s.other.acquire(&s.bid("feed", "b")).await);
    assert!(granted.claim.fence > old.fence, "I2");
    assert_eq!(granted.inherited, Some(note));
    let ended = granted.predecessor.ended().expect("there was a term");
    assert_eq!(
        (granted.predecessor.fate(), ended.fence, &ended.replica),
        (Fate::HandedOff, old.fence, &old.replica)
    );
    assert_eq!(ended.trace, trace(5));
    assert_eq!(held(s.store.acquire(&s.bid("feed", "c")).await).fence, granted.claim.fence);
}

/// Invariant I8: an heir that never comes does not keep the lease for ever.
pub(super) async fn rule_05_after_the_window_anyone_is_granted(s: Subject) {
    let old = s.win("feed", "a").await.claim;
    let note = Note::new(old.fence, *b"half done").expect("small");
    let parting =
        Parting { heir: Some((replica("b"), s.ttl)), note: Some(note.clone()), ..Parting::default() };
    s.part(&old, &parting).await;
    s.outlive(s.ttl).await;
    assert_eq!(s.record("feed").await.state, LeaseState::Vacant);
    let granted = won(s.other.acquire(&s.bid("feed", "c")).await);
    assert_eq!((granted.predecessor.fate(), granted.inherited), (Fate::HandedOff, Some(note)));
}

/// B59.
pub(super) async fn rule_05_an_heir_is_known_by_its_exact_name(s: Subject) {
    let s = s.unhurried();
    let old = s.win("feed", "a").await.claim;
    let heir = replica("dev");
    s.part(&old, &Parting { heir: Some((heir, s.ttl)), ..Parting::default() }).await;
    for near in ["dev-server", "dev_", "Dev", "dev ", "de"] {
        assert!(held(s.store.acquire(&s.bid("feed", near)).await).reserved, "{near:?}");
    }
    let _ = won(s.store.acquire(&s.bid("feed", "dev")).await);
}

pub(super) async fn rule_05_a_repeated_release_does_not_disturb_the_reservation(s: Subject) {
    let s = s.unhurried();
    let old: Claim = s.win("feed", "a").await.claim;
    let note = Note::new(old.fence, *b"kept").expect("small");
    let heir = Some((replica("b"), s.ttl));
    s.part(&old, &Parting { heir, note: Some(note.clone()), ..Parting::default() }).await;
    // Its reply was lost, say, and somebody asks again, with less to leave.
    let late = Parting { heir: Some((replica("c"), Duration::from_secs(60))), ..Parting::default() };
    for parting in [Parting::default(), late] {
        let answer = s.store.release(&old, &parting).await;
        assert!(matches!(answer, Release::NotHolder(_)), "{answer:?}");
    }
    assert_eq!(won(s.store.acquire(&s.bid("feed", "b")).await).inherited, Some(note));
}
