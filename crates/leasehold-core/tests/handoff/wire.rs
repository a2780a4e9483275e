//! The bytes of a letter: whole, from older and newer peers, and damaged.

use super::common::{PROPOSE, fence, lease, letter, replica};
use leasehold_core::{
    Envelope, TraceContext,
    handoff::{
        HandoffId, Letter, Message, To,
        request::{self, News, Outcome, Request},
        wire::{MAX_BODY_BYTES, MAX_REMAINING, MAX_WHY_BYTES, Unreadable, open, seal},
    },
};
use proptest::prelude::*;
use std::time::Duration;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn envelope(kind: &str, body: &[u8]) -> Envelope {
    let kind = kind.into();
    Envelope { from: replica("a"), lease: lease(), kind, body: body.into(), trace: TraceContext::NONE }
}

fn all() -> Vec<Letter> {
    let why = "shutting down".into();
    let assumed = Message::Assumed { fence: fence(8) };
    let decline = Message::Decline { why };
    [PROPOSE, Message::Ready, decline, Message::Yours, assumed, Message::Abort]
        .into_iter()
        .map(|message| Letter { trace: TraceContext::parse(TRACE), ..letter(7, 7, message) })
        .collect()
}

#[test]
fn every_letter_arrives_as_it_was_sent_and_is_small() {
    for letter in all() {
        let sealed = seal(&letter, &replica("a"));
        assert!(sealed.body.len() < 1024, "{letter:?} takes {} bytes", sealed.body.len());
        assert_eq!(open(&sealed), Ok(letter));
    }
}

#[test]
fn an_old_peer_skips_what_a_newer_one_adds() {
    let body = br#"{"v":9,"min":1,"handoff":"00000000000000000000000000000007","fence":7,"remaining_ms":500,
        "colour":{"red":[1,2]}}"#;
    assert_eq!(open(&envelope("handoff.propose", body)), Ok(letter(7, 7, PROPOSE)));
}

#[test]
fn what_only_newer_peers_can_read_is_reported_and_ignored() {
    let newer = br#"{"v":9,"min":2,"entirely":"different"}"#;
    assert_eq!(open(&envelope("handoff.propose", newer)), Err(Unreadable::TooNew { min: 2 }));
    let sealed = seal(&all()[0], &replica("a"));
    assert_eq!(open(&envelope("handoff.ponder", &sealed.body)), Err(Unreadable::UnknownKind));
    assert_eq!(open(&envelope("gossip", &sealed.body)), Err(Unreadable::NotOurs));
}

#[test]
fn what_is_out_of_bounds_is_held_or_refused() {
    let huge = vec![b' '; 10 << 20];
    assert_eq!(open(&envelope("handoff.yours", &huge)), Err(Unreadable::TooLarge(10 << 20)));
    for (fence, remaining) in [("0", "1"), ("9007199254740992", "1"), ("-1", "1"), ("1", "-1"), ("1", "1e99")]
    {
        let body = format!(
            r#"{{"v":1,"min":1,"handoff":"00000000000000000000000000000007","fence":{fence},"remaining_ms":{remaining}}}"#
        );
        let opened = open(&envelope("handoff.yours", body.as_bytes()));
        assert!(matches!(opened, Err(Unreadable::Damaged(_))), "{body}: {opened:?}");
    }
    let endless = Letter { remaining: Duration::MAX, ..all().remove(0) };
    assert_eq!(open(&seal(&endless, &replica("a"))).map(|letter| letter.remaining), Ok(MAX_REMAINING));
    let why = "é".repeat(MAX_BODY_BYTES).into();
    let long = open(&seal(&letter(7, 7, Message::Decline { why }), &replica("a")));
    let Ok(Letter { message: Message::Decline { why }, .. }) = long else { panic!("{long:?}") };
    assert_eq!(why.len(), MAX_WHY_BYTES);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        kind in prop::sample::select(vec!["propose", "ready", "decline", "yours", "assumed", "abort", "x"]),
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let opened = open(&envelope(&format!("handoff.{kind}"), &body));
        prop_assert!(opened.is_err());
    }

    #[test]
    fn a_damaged_letter_is_an_error_or_another_letter_but_never_a_panic(
        which in 0..6_usize,
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let sealed = seal(&all()[which], &replica("a"));
        let mut body = sealed.body.to_vec();
        let at = at.index(body.len());
        body[at] = byte;
        let _ = open(&Envelope { body: body.clone().into(), ..sealed.clone() });
        body.truncate(cut.index(body.len()));
        let opened = open(&Envelope { body: body.into(), ..sealed });
        prop_assert!(opened.is_err());
    }
}

fn requests() -> [Request; 2] {
    [To::Anyone, To::Replica(replica("b"))].map(|to| Request {
        id: HandoffId::from_u128(7),
        lease: lease(),
        to,
        within: Duration::from_secs(30),
        reason: "a deploy".into(),
        trace: TraceContext::parse(TRACE),
    })
}

fn news(step: &str) -> News {
    News {
        handoff: HandoffId::from_u128(7).to_string(),
        step: step.into(),
        to: Some("b".into()),
        why: None,
        fence: Some(8),
        elapsed_ms: 3,
        gap_us: Some(1500),
    }
}

#[test]
fn a_request_and_its_news_are_read_as_they_were_written() {
    for request in requests() {
        let sealed = request::seal(&request, &replica("cli"));
        assert_eq!(request::open(&sealed), Ok(request));
        assert_eq!(open(&sealed), Err(Unreadable::UnknownKind), "no letter between incumbent and successor");
    }
    for (step, outcome) in [
        ("proposed", None),
        ("done", Some(Outcome::Done)),
        ("aborted", Some(Outcome::Aborted)),
        ("refused", Some(Outcome::Aborted)),
        ("vacated", Some(Outcome::Released)),
        ("a step of a newer program", None),
    ] {
        let sealed = request::seal_news(&news(step), &lease(), &replica("a"), &TraceContext::NONE);
        let opened = request::open_news(&sealed).unwrap();
        assert_eq!((opened.outcome(), &opened), (outcome, &news(step)));
    }
}

#[test]
fn a_request_that_cannot_be_read_is_told_why() {
    let ask = |body: &str| request::open(&envelope(request::ASK, body.as_bytes()));
    let id = "0".repeat(31) + "7";
    assert_eq!(request::open(&envelope(request::NEWS, b"{}")), Err(Unreadable::NotOurs));
    assert_eq!(ask(r#"{"v":9,"min":9,"petition":1}"#), Err(Unreadable::TooNew { min: 9 }));
    for damaged in [
        "",
        "{}",
        r#"{"v":1,"min":1}"#,
        r#"{"v":1,"min":1,"handoff":"x","within_ms":1,"reason":""}"#,
        &format!(r#"{{"v":1,"min":1,"handoff":"{id}","to":"","within_ms":1,"reason":""}}"#),
        &format!(r#"{{"v":1,"min":1,"handoff":"{id}","within_ms":-1,"reason":""}}"#),
    ] {
        assert!(matches!(ask(damaged), Err(Unreadable::Damaged(_))), "{damaged}");
    }
    let large = "x".repeat(10 * 1024 * 1024);
    assert!(matches!(ask(&large), Err(Unreadable::TooLarge(_))));
    let zero = News { fence: Some(0), ..news("done") };
    let sealed = request::seal_news(&zero, &lease(), &replica("a"), &TraceContext::NONE);
    assert!(matches!(request::open_news(&sealed), Err(Unreadable::Damaged(_))));
    let long = Request { reason: "ü".repeat(MAX_WHY_BYTES).into(), ..requests()[0].clone() };
    let opened = request::open(&request::seal(&long, &replica("a"))).unwrap();
    assert_eq!(opened.reason.len(), MAX_WHY_BYTES);
}
