use super::*;

fn fence(n: u64) -> Fence {
    Fence::new(n).unwrap()
}

const fn at(ms: u64) -> Stamp {
    Stamp(ms * 1_000)
}

fn said(ms: u64, who: &str, report: Report) -> Entry {
    Entry { at: at(ms), who: who.to_owned(), what: What::Said(report) }
}

fn done(ms: u64, who: &str, what: What) -> Entry {
    Entry { at: at(ms), who: who.to_owned(), what }
}

fn leading(ms: u64, who: &str, n: u64, predecessor: &str) -> Entry {
    said(ms, who, Report::Leading { fence: fence(n), predecessor: predecessor.to_owned() })
}

/// Twelve seconds: r1 leads and is killed, r2 leads and is frozen, r3 leads to the end.
pub(in crate::fanout) fn story() -> Timeline {
    let up = |ms, who: &str| said(ms, who, Report::Listening { addr: ([127, 0, 0, 1], 1).into(), last: 0 });
    let refused = Report::Refused { presented: fence(2), highest: fence(3), from: "r2".to_owned(), seq: 800 };
    let entries = [
        up(0, "r1"),
        up(0, "r2"),
        up(0, "r3"),
        leading(200, "r1", 1, "none"),
        done(4_000, "r1", What::Killed),
        done(4_010, "r1", What::Exited { status: "signal: 9 (SIGKILL)".to_owned(), clean: false }),
        leading(4_028, "r2", 2, "crashed"),
        up(5_500, "r1"),
        done(8_000, "r2", What::Stopped),
        leading(9_000, "r3", 3, "expired"),
        done(9_500, "r2", What::Continued),
        said(9_501, "r1", refused),
        said(9_502, "r2", Report::Ended { fence: fence(2), how: "lost".to_owned(), lost: true }),
        said(12_000, "r3", Report::Ended { fence: fence(3), how: "released".to_owned(), lost: false }),
    ];
    Timeline::read(&entries, at(0), at(12_100))
}

#[test]
fn terms_end_when_their_work_stopped_whatever_the_process_says_later() {
    let story = story();
    let terms: Vec<_> =
        story.terms.iter().map(|t| (t.replica.as_str(), t.fence.get(), t.began, t.ended, t.end)).collect();
    assert_eq!(
        terms,
        [
            ("r1", 1, at(200), at(4_000), End::Killed),
            ("r2", 2, at(4_028), at(8_000), End::Frozen),
            ("r3", 3, at(9_000), at(12_000), End::Ended),
        ]
    );
    let gaps: Vec<u128> = story.gaps().map(|(_, _, gap)| gap.as_millis()).collect();
    assert_eq!(gaps, [28, 1_000]);
    assert_eq!(story.refusals.len(), 1);
}

#[test]
fn a_row_knows_when_its_process_served_and_when_it_was_frozen() {
    let story = story();
    let (r1, r2) = (&story.rows[0], &story.rows[1]);
    assert_eq!(r1.up, [Span { from: at(0), to: at(4_000) }, Span { from: at(5_500), to: at(12_100) }]);
    assert_eq!(r2.frozen, [Span { from: at(8_000), to: at(9_500) }]);
    assert!(story.term_at("r2", at(5_000)).is_some() && story.term_at("r2", at(8_500)).is_none());
}
