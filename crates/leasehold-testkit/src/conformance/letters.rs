//! Mail: best effort, at most once, bounded.

use super::{
    acquire::trace,
    subject::{Subject, lease, replica},
};
use leasehold_core::{
    Envelope, Inbox, StoreErrorKind,
    mail::{MAX_LETTER_AGE, MAX_LETTER_BYTES, MAX_LETTERS},
};
use std::collections::BTreeSet;

pub(super) async fn a_letter_arrives_whole_wherever_it_was_posted(s: Subject) {
    let me = replica("reader 🦀 '%_*{}");
    let mut inbox = s.store.inbox(&me).await.expect("inbox");
    for (n, store) in [&s.store, &s.other].into_iter().enumerate() {
        for size in [0, 1, MAX_LETTER_BYTES] {
            let body: Vec<u8> = (0..size).map(|i| (i % 256) as u8).collect();
            let sent = Envelope { body: body.into(), trace: trace(n as u8), ..letter("propose") };
            store.post(&me, &sent).await.expect("post");
            assert!(next(&s, &mut inbox).await == sent, "a letter of {size} bytes was changed on its way");
        }
    }
}

pub(super) async fn a_letter_waits_for_its_reader(s: Subject) {
    let me = replica("reader");
    let sent: BTreeSet<_> = ["one", "two", "three"].into_iter().collect();
    for kind in &sent {
        s.store.post(&me, &letter(kind)).await.expect("post");
    }
    let mut inbox = s.other.inbox(&me).await.expect("inbox");
    let mut read = BTreeSet::new();
    for _ in &sent {
        read.insert(next(&s, &mut inbox).await.kind.to_string());
    }
    assert_eq!(read, sent.into_iter().map(ToOwned::to_owned).collect());
}

pub(super) async fn a_letter_is_read_once_and_by_its_addressee(s: Subject) {
    let (me, other, near) = (replica("reader"), replica("other"), replica("reader "));
    let mut theirs = s.other.inbox(&other).await.expect("inbox");
    let mut nearly = s.other.inbox(&near).await.expect("inbox");
    s.store.post(&me, &letter("mine")).await.expect("post");
    let mut inbox = s.store.inbox(&me).await.expect("inbox");
    assert_eq!(&*next(&s, &mut inbox).await.kind, "mine");
    drop(inbox);
    let mut again = s.store.inbox(&me).await.expect("inbox");
    // A later letter is the first one that each of them sees: there was nothing before it.
    for (to, inbox) in [(&me, &mut again), (&other, &mut theirs), (&near, &mut nearly)] {
        s.store.post(to, &letter("later")).await.expect("post");
        assert_eq!(&*next(&s, inbox).await.kind, "later");
    }
}

pub(super) async fn a_body_above_the_limit_is_refused(s: Subject) {
    let me = replica("reader");
    let mut inbox = s.store.inbox(&me).await.expect("inbox");
    let large = Envelope { body: vec![0; MAX_LETTER_BYTES + 1].into(), ..letter("too large") };
    let error = s.store.post(&me, &large).await.expect_err("a body above the limit");
    assert!(matches!(error.kind(), StoreErrorKind::Config(_)), "{error}");
    s.store.post(&me, &letter("small")).await.expect("post");
    assert_eq!(&*next(&s, &mut inbox).await.kind, "small", "what was refused was not sent");
}

pub(super) async fn a_pile_of_letters_is_bounded_and_keeps_the_newest(s: Subject) {
    let me = replica("reader");
    let posted = MAX_LETTERS + 20;
    for n in 0..posted {
        s.store.post(&me, &letter(&n.to_string())).await.expect("post");
    }
    let mut inbox = s.store.inbox(&me).await.expect("inbox");
    let newest = (posted - 1).to_string();
    let mut read = Vec::new();
    loop {
        read.push(next(&s, &mut inbox).await.kind);
        if *read[read.len() - 1] == *newest {
            break;
        }
    }
    assert!(read.len() <= MAX_LETTERS, "{} letters were kept", read.len());
    assert!(!read.iter().any(|kind| **kind == *"0"), "the oldest makes room");
}

pub(super) async fn an_old_letter_is_gone(s: Subject) {
    if s.is_real() {
        println!("nothing grew old: on a real clock that would take {MAX_LETTER_AGE:?}");
        return;
    }
    let me = replica("reader");
    s.store.post(&me, &letter("old")).await.expect("post");
    s.pass(MAX_LETTER_AGE).await;
    s.store.post(&me, &letter("new")).await.expect("post");
    let mut inbox = s.other.inbox(&me).await.expect("inbox");
    assert_eq!(&*next(&s, &mut inbox).await.kind, "new");
}

fn letter(kind: &str) -> Envelope {
    Envelope {
        from: replica("sender"),
        lease: lease("feed"),
        kind: kind.into(),
        body: (*b"body").into(),
        trace: trace(9),
    }
}

async fn next(s: &Subject, inbox: &mut Inbox) -> Envelope {
    let letter = tokio::time::timeout(s.patience, inbox.next()).await;
    letter.expect("no letter came in time").expect("the inbox is open as long as its store")
}
