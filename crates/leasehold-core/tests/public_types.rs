//! What the words promise to whoever stores, sends or logs them.

use leasehold_core::{
    campaign::{self, Campaign, Patience, Wish},
    tenure::{self, Tenure},
    *,
};
use std::{error::Error, fmt::Debug, sync::Arc, time::Duration};

#[test]
fn everything_can_be_sent_and_shared() {
    fn check<T: Send + Sync + 'static>() {}
    check::<(Bid, Claim, AttemptId, Candidacy, Renewal, Parting, Note, Envelope, Inbox)>();
    check::<(Acquire, Renew, Release, Force, Admit, Granted, Held, NotHolder, Stale)>();
    check::<(LeaseRecord, LeaseState, Predecessor, Ended, Fate, TraceContext, Traits)>();
    check::<(Watch, WatchFeed, Sighting, Scope, Finding, GateGuard, SharedStore)>();
    check::<(Grant, Permit, Lost, LostCause, Standing, Fence, Moment, Timing)>();
    check::<(Campaign, campaign::Event, campaign::Action, Wish, campaign::Defeat)>();
    check::<(Tenure, tenure::Event, tenure::Action, backoff::Backoff)>();
    check::<(BootClock, TokioClock, ManualClock, Arc<dyn Clock>)>();
    // Boxed futures must be spawnable too.
    fn send<T: Send>() {}
    send::<BoxFuture<'static, Acquire>>();
}

#[test]
fn what_fails_is_an_error_that_can_be_passed_on() {
    fn check<T: Error + Send + Sync + 'static>() {}
    check::<StoreError>();
    check::<Lost>();
    check::<LostCause>();
    check::<Stale>();
    check::<TimingError>();
    check::<NameError>();
    check::<FenceRangeError>();
    check::<NoteTooLarge>();
    check::<EncodeError>();
    check::<UnreadableNote>();
    check::<campaign::Defeat>();
}

/// Every form in which a log could show these bytes.
fn forms(bytes: &[u8]) -> [String; 4] {
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let decimal = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    [String::from_utf8_lossy(bytes).into_owned(), hex.to_uppercase(), hex, decimal]
}

fn shows_none_of(thing: &dyn Debug, secret: &[u8]) {
    let pretty = format!("{thing:#?}");
    // The pretty form breaks lists over lines.
    let joined = pretty.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [format!("{thing:?}"), pretty, joined] {
        for form in forms(secret) {
            assert!(!text.contains(&form), "{text} shows {form}");
        }
    }
}

struct Sample {
    bid: Bid,
    claim: Claim,
    granted: Granted,
    record: LeaseRecord,
}

const SECRET: [u8; 16] = *b"sixteen letters!";
const NOTE: &[u8] = b"a note that no log must show";

fn sample() -> Sample {
    let attempt = AttemptId::from_bytes(SECRET);
    let bid = Bid {
        name: LeaseName::new("lease").expect("a valid name"),
        replica: ReplicaId::new("me").expect("a valid name"),
        attempt,
        ttl: Duration::from_secs(1),
        floor: None,
        crash_witness: false,
        trace: TraceContext::NONE,
    };
    let claim = bid.granted(Fence::FIRST);
    let note = Note::new(Fence::FIRST, NOTE).expect("short enough");
    let granted = Granted {
        claim: claim.clone(),
        remaining: Duration::from_secs(1),
        predecessor: Predecessor::None,
        inherited: Some(note),
    };
    let state = LeaseState::Held {
        claim: claim.clone(),
        remaining: Duration::from_secs(1),
        held_for: Duration::ZERO,
        crash_witness: false,
    };
    let record = LeaseRecord { state, ..LeaseRecord::unknown(bid.name.clone()) };
    Sample { bid, claim, granted, record }
}

/// Whoever knows an attempt id can renew and release its claim: a log shows enough of it to tell two apart, no more.
#[test]
fn an_attempt_id_is_never_shown_whole() {
    let Sample { bid, claim, granted, record } = sample();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let grant = Keeper::new(claim.clone(), Moment::ORIGIN, clock);
    let renewal = Renewal { claim: claim.clone(), ttl: Duration::from_secs(1) };
    let candidacy = Candidacy {
        name: claim.name.clone(),
        replica: claim.replica.clone(),
        id: claim.attempt,
        priority: 0,
    };
    let won = campaign::Action::Won { sent: Moment::ORIGIN, granted: granted.clone() };
    let answered = campaign::Event::Answered {
        sent: Moment::ORIGIN,
        answer: campaign::Answer::Granted(granted.clone()),
    };
    let things: [&dyn Debug; 12] = [
        &bid,
        &claim,
        &granted,
        &record,
        &claim.attempt,
        &grant,
        &renewal,
        &candidacy,
        &won,
        &answered,
        &Acquire::Granted(granted.clone()),
        &Sighting::State(record.clone()),
    ];
    for thing in things {
        shows_none_of(thing, &SECRET);
    }
    for text in [claim.to_string(), claim.attempt.to_string(), grant.check().unwrap_err().to_string()] {
        shows_none_of(&text, &SECRET);
    }
    // What is shown tells two attempts apart.
    assert_ne!(
        format!("{:?}", AttemptId::from_bytes([1; 16])),
        format!("{:?}", AttemptId::from_bytes([2; 16]))
    );
}

#[test]
fn a_note_and_a_letter_show_their_size_alone() {
    let granted = sample().granted;
    let note = granted.inherited.clone().unwrap();
    let parting = Parting { note: Some(note.clone()), ..Parting::default() };
    let envelope = Envelope {
        from: granted.claim.replica.clone(),
        lease: granted.claim.name.clone(),
        kind: "propose".into(),
        body: NOTE.into(),
        trace: TraceContext::NONE,
    };
    let things: [&dyn Debug; 5] = [&note, &granted, &parting, &Acquire::Granted(granted.clone()), &envelope];
    for thing in things {
        shows_none_of(thing, NOTE);
        assert!(format!("{thing:?}").contains(&format!("{} bytes", NOTE.len())), "{thing:?}");
    }
    assert_eq!(note.bytes(), NOTE, "kept, and given to whoever asks for it");
}

/// Machines are values: they can be kept, compared and replayed. They hold no secret of a claim.
#[test]
fn a_machine_is_a_value_and_the_same_story_gives_the_same_machine() {
    let timing = Timing::new(Duration::from_secs(3)).unwrap();
    let wish = || Wish {
        me: ReplicaId::new("me").expect("a valid name"),
        timing,
        patience: Patience::Forever,
        stride: Duration::from_millis(50),
        floor: None,
        seed: 9,
    };
    let story = |(mut machine, first): (Campaign, Vec<campaign::Action>)| {
        let error = StoreError::new(StoreErrorKind::Unreachable, Verb::Acquire, "memory:");
        let answer = campaign::Answer::Unknown(error);
        let told =
            machine.step(Moment::from_nanos(5), campaign::Event::Answered { sent: Moment::ORIGIN, answer });
        (machine, first, told)
    };
    assert_eq!(story(Campaign::begin(wish())), story(Campaign::begin(wish())));
    let begin = |seed| Tenure::begin(timing, Moment::ORIGIN, timing.ttl(), Moment::ORIGIN, seed);
    assert_eq!(begin(1), begin(1));
    assert_ne!(begin(1).0, begin(2).0, "seeds differ, and so do their delays");
}
