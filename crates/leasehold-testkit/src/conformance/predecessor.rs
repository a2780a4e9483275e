//! Rule 6: acquire tells how the term before ended, and gives what it left.

use super::{
    acquire::trace,
    subject::{Subject, fence, lease, replica, won},
};
use leasehold_core::{
    Bid, Ended, Fate, Force, LeaseState, Note, Parting, Predecessor, Release, StoreErrorKind, TraceContext,
    note::MAX_NOTE_BYTES,
};

pub(super) async fn rule_06_the_first_term_has_no_predecessor(s: Subject) {
    let granted = s.win("feed", "a").await;
    assert_eq!((granted.predecessor, granted.inherited), (Predecessor::None, None));
}

pub(super) async fn rule_06_every_end_of_a_term_is_told_to_the_next(s: Subject) {
    let ended = |n, by: &str| Ended { fence: fence(n), replica: replica(by), trace: TraceContext::NONE };
    let first = s.win("feed", "a").await.claim;
    s.let_go(&first).await;
    assert_eq!(s.record("feed").await.predecessor, Predecessor::Released(ended(1, "a")));

    let second = s.win("feed", "b").await;
    assert_eq!(second.predecessor, Predecessor::Released(ended(1, "a")));
    s.outlive(s.ttl).await;
    assert_eq!(s.record("feed").await.predecessor.fate(), Fate::Expired, "the record tells it already");

    let third = s.win("feed", "c").await;
    assert_eq!(third.predecessor, Predecessor::Expired(ended(2, "b")));
    assert_eq!(s.record("feed").await.predecessor, third.predecessor, "and still does while it is held");
    let answer = s.other.force_release(&lease("feed"), &replica("ops"), "stuck, see ticket").await;
    assert_eq!(answer, Force::Forced { fence: fence(3), replica: replica("c") });
    let late = s.store.release(&third.claim, &Parting::default()).await;
    assert!(matches!(late, Release::NotHolder(_)), "a forced claim is over: {late:?}");

    let fourth = s.win("feed", "d").await;
    let (by, reason) = (replica("ops"), "stuck, see ticket".into());
    assert_eq!(fourth.predecessor, Predecessor::Forced { ended: ended(3, "c"), by, reason });
    let heir = Some((replica("e"), s.ttl));
    s.part(&fourth.claim, &Parting { heir, ..Parting::default() }).await;
    assert_eq!(s.win("feed", "e").await.predecessor, Predecessor::HandedOff(ended(4, "d")));
}

pub(super) async fn rule_06_a_witnessed_crash_is_told_to_the_next(s: Subject) {
    let s = s.unhurried();
    if !s.store.traits().crash_witness {
        return;
    }
    let crash = s.crash().expect("a store that promises a crash witness says how to crash a replica");
    let bid = Bid { crash_witness: true, ..s.bid("feed", "a") };
    let old = won(s.store.acquire(&bid).await).claim;
    let spared = s.win("other duty", "a").await.claim;
    let record = s.record("feed").await;
    assert!(matches!(record.state, LeaseState::Held { crash_witness: true, .. }), "{record:?}");
    crash(replica("a")).await;
    let granted = won(s.other.acquire(&s.bid("feed", "b")).await);
    assert_eq!((granted.predecessor.fate(), granted.predecessor.fence()), (Fate::Crashed, Some(old.fence)));
    assert!(granted.claim.fence > old.fence, "I2");
    assert_eq!(s.record("other duty").await.claim(), Some(&spared), "it did not ask for the witness");
}

/// Invariant I9.
pub(super) async fn rule_06_a_note_goes_to_the_very_next_term_only(s: Subject) {
    let s = s.unhurried();
    let first = s.win("feed", "a").await.claim;
    let note = Note::new(first.fence, *b"to the next").expect("small");
    s.part(&first, &Parting { note: Some(note.clone()), ..Parting::default() }).await;
    let second = s.win("feed", "b").await;
    assert_eq!(second.inherited, Some(note));
    s.let_go(&second.claim).await;
    assert_eq!(s.win("feed", "c").await.inherited, None);
    assert_eq!(s.win("other duty", "c").await.inherited, None, "notes belong to a lease");
}

pub(super) async fn rule_06_notes_of_every_size_arrive_as_they_were_given(s: Subject) {
    let s = s.unhurried();
    let mut claim = s.win("feed", "a").await.claim;
    for size in [0, 1, 255, 4096, MAX_NOTE_BYTES] {
        // Every byte value, NUL and invalid UTF-8 among them.
        let bytes: Vec<u8> = (0..size).map(|i| (i % 256) as u8 ^ 0xA5).collect();
        let note = Note::new(claim.fence, bytes).expect("within the limit");
        s.part(&claim, &Parting { note: Some(note.clone()), ..Parting::default() }).await;
        let next = won(s.other.acquire(&s.bid("feed", "b")).await);
        assert!(next.inherited == Some(note), "a note of {size} bytes became {:?}", next.inherited);
        claim = next.claim;
    }
}

/// Invariant I9: a term that took a note and was lost does not hand it on as if it were new.
pub(super) async fn rule_06_a_note_passed_over_by_an_expiry_is_gone(s: Subject) {
    let first = s.win("feed", "a").await.claim;
    let note = Note::new(first.fence, *b"once").expect("small");
    s.part(&first, &Parting { note: Some(note), ..Parting::default() }).await;
    let _ = s.win("feed", "b").await;
    s.outlive(s.ttl).await;
    assert_eq!(s.win("feed", "c").await.inherited, None);
}

pub(super) async fn rule_06_the_trace_of_the_last_step_is_kept(s: Subject) {
    let told = async |by: &str| won(s.store.acquire(&s.bid("feed", by)).await);
    let bid = Bid { trace: trace(1), ..s.bid("feed", "a") };
    let first = won(s.store.acquire(&bid).await).claim;
    s.part(&first, &Parting { trace: trace(2), ..Parting::default() }).await;
    let second = Bid { trace: trace(3), ..s.bid("feed", "b") };
    let granted = won(s.store.acquire(&second).await);
    assert_eq!(granted.predecessor.ended().map(|e| &e.trace), Some(&trace(2)), "released in it");
    s.outlive(s.ttl).await;
    let third = told("c").await;
    assert_eq!(third.predecessor.ended().map(|e| &e.trace), Some(&trace(3)), "a lost term's own");
}

pub(super) async fn rule_06_force_needs_somebody_and_a_short_reason(s: Subject) {
    let s = s.unhurried();
    let (feed, ops) = (lease("feed"), replica("ops"));
    assert_eq!(s.store.force_release(&feed, &ops, "never held").await, Force::Vacant);
    let claim = s.win("feed", "a").await.claim;
    let answer = s.store.force_release(&feed, &ops, &"x".repeat(1_001)).await;
    match answer {
        Force::Refused(error) => assert!(matches!(error.kind(), StoreErrorKind::Config(_)), "{error}"),
        other => panic!("a reason of 1,001 bytes was to be refused: {other:?}"),
    }
    assert_eq!(s.record("feed").await.claim(), Some(&claim), "refused means that nothing was changed");
    let reason = "é".repeat(500);
    assert!(matches!(s.store.force_release(&feed, &ops, &reason).await, Force::Forced { .. }));
    assert_eq!(s.store.force_release(&feed, &ops, "again").await, Force::Vacant);
    match s.win("feed", "b").await.predecessor {
        Predecessor::Forced { reason: told, .. } => assert_eq!(*told, *reason, "the second changed nothing"),
        other => panic!("{other:?}"),
    }
}
