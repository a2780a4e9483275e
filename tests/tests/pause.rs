//! A holder that is paused, or blocks itself, past its lease: only the fence stops it (cases B01, B02, B07).

use leasehold_tests::{Deadline, Ledger, Order, Replica, Said, Site, What, on_every_store};
use std::{thread, time::Duration};

on_every_store!(
    a_holder_that_was_paused_past_its_lease_is_refused,
    a_holder_that_blocks_its_own_runtime_past_its_lease_is_refused,
    a_write_in_hand_over_a_pause_of_three_ttls_is_refused,
    a_paused_leader_loses_once_and_waits_in_line_again,
    a_holder_that_wakes_to_a_free_lease_begins_a_new_term,
);

const TTL: Duration = Duration::from_millis(300);
/// Of those who are not to lose their lease, however busy the machine.
const LONG: Duration = Duration::from_secs(30);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The seed of this project. A holds for 300 ms and is paused for 400 ms with its write in hand.
fn a_holder_that_was_paused_past_its_lease_is_refused(site: &Site) {
    let ledger = Ledger::open();
    let mut a = site.replica("a").ttl(TTL).ledger(&ledger).hold();
    assert_eq!(a.acquired().fence, 1);
    a.order(Order::InHand("by a".into()));
    a.wait("the write in hand", |said| matches!(said.what, What::InHand { .. }));
    let paused = PauseOf::begins(|| a.pause());

    let mut b = site.replica("b").ttl(LONG).ledger(&ledger).hold();
    let second = b.acquired();
    assert_eq!((second.fence, second.after), (2, ("expired".into(), Some(1))));
    b.order(Order::Write("by b".into()));
    b.wrote("by b");
    let of_b = site.look().record;

    paused.lasts(ms(400));
    a.order(Order::Go);
    a.resume();
    let refused = a.wait("the refusal", |said| matches!(said.what, What::Stale { .. }));
    assert_eq!(refused.what, What::Stale { text: "by a".into(), presented: 1, highest: 2 });

    // A's release is sent, for its worker has ended, and hurts nobody (case B68).
    let end = a.wait("its end", |said| matches!(said.what, What::Finished { .. }));
    let What::Finished { lost, release } = end.what else { unreachable!() };
    assert!(lost.is_some(), "A is told that its last steps were not covered");
    assert_eq!(release.as_deref(), Some("not-holder"));
    assert!(site.look().record.same_standing(&of_b), "A's release changed B's lease");
    b.order(Order::Write("by b, later".into()));
    b.wrote("by b, later");
    assert_eq!(b.count(|what| matches!(what, What::Lost { .. })), 0);
    // I1.
    assert_eq!(ledger.lines(), [(2, "by b".into()), (2, "by b, later".into())]);
}

/// The same without a signal: no renewal can be sent while the only thread is blocked.
fn a_holder_that_blocks_its_own_runtime_past_its_lease_is_refused(site: &Site) {
    let ledger = Ledger::open();
    let mut a = site.replica("a").ttl(TTL).ledger(&ledger).on_one_thread().hold();
    assert_eq!(a.acquired().fence, 1);
    a.order(Order::InHand("by a".into()));
    a.wait("the write in hand", |said| matches!(said.what, What::InHand { .. }));
    let blocked = PauseOf::begins(|| {});

    let mut b = site.replica("b").ttl(LONG).ledger(&ledger).hold();
    assert_eq!(b.acquired().fence, 2);
    b.order(Order::Write("by b".into()));
    b.wrote("by b");
    let of_b = site.look().record;

    blocked.lasts(ms(400));
    a.order(Order::Go);
    a.wait("the refusal", |said| said.what == What::Stale { text: "by a".into(), presented: 1, highest: 2 });
    let end = a.wait("its end", |said| matches!(said.what, What::Finished { .. }));
    assert!(matches!(end.what, What::Finished { lost: Some(_), release: Some(r) } if r == "not-holder"));
    assert!(site.look().record.same_standing(&of_b), "A's release changed B's lease");
    b.order(Order::Write("by b, later".into()));
    b.wrote("by b, later");
    assert_eq!(ledger.lines(), [(2, "by b".into()), (2, "by b, later".into())]);
}

/// Case B01, as an election.
fn a_write_in_hand_over_a_pause_of_three_ttls_is_refused(site: &Site) {
    let ledger = Ledger::open();
    let mut a = site.replica("a").ttl(TTL).ledger(&ledger).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).ledger(&ledger).elect();
    b.campaigning();
    a.order(Order::InHand("late".into()));
    a.wait("the write in hand", |said| matches!(said.what, What::InHand { .. }));
    // This one waits for the worker behind the write in hand: a second unit of work.
    a.order(Order::Write("second unit".into()));
    let paused = PauseOf::begins(|| a.pause());

    let second = b.acquired().fence;
    assert!(second > first);
    b.order(Order::Write("by b".into()));
    b.wrote("by b");
    paused.lasts(3 * TTL);
    a.order(Order::Go);
    a.resume();

    a.wait("the refusal", |said| matches!(said.what, What::Stale { presented, .. } if presented == first));
    // Before or after the refusal, whatever came first when it woke.
    a.heard("the loss", |said| said.fence == Some(first) && matches!(said.what, What::StoodLost { .. }));
    // Into the line again, and no more: B renews.
    a.campaigning();
    assert!(a.is_alive());
    // B ends, and A leads under a third fence. Only now is the second unit of work begun.
    b.order(Order::Leave);
    let third = a.acquired();
    assert!(third.follows_in_order(second), "{third:?}");
    a.wrote("second unit");
    assert_eq!(ledger.lines(), [(second, "by b".into()), (third.fence, "second unit".into())]);
    assert!(b.exit().success());
}

/// Case B02: the loss comes once, on the channel that is documented for it, and as nothing else.
fn a_paused_leader_loses_once_and_waits_in_line_again(site: &Site) {
    let ledger = Ledger::open();
    let elect = |id: &str| site.replica(id).ttl(TTL).ledger(&ledger).writing_every(ms(10)).elect();
    let mut leader = elect("a");
    let first = leader.acquired().fence;
    let mut others = [elect("b"), elect("c")];
    others.iter_mut().for_each(Replica::campaigning);
    leader.wrote("line 3");

    let paused = PauseOf::begins(|| leader.pause());
    ledger.wait("the next term's first line", |entry| entry.fence > first);
    paused.lasts(3 * TTL);
    leader.resume();
    assert!(["expired", "not-holder", "stale"].contains(&leader.lost(first).as_str()));
    // A new campaign is the proof that the old term is over, worker and all.
    leader.campaigning();
    ledger.wait_behind(ledger.journal().len() + 20, "more lines", |entry| entry.fence > first);

    assert!(leader.is_alive());
    let of_first = |said: &&Said| said.fence == Some(first);
    let said = leader.said();
    let lost = said.iter().filter(of_first).filter(|said| matches!(said.what, What::Lost { .. })).count();
    let stood =
        said.iter().filter(of_first).filter(|said| matches!(said.what, What::StoodLost { .. })).count();
    assert_eq!((lost, stood), (1, 1));
    assert!(!leader.complaints().to_lowercase().contains("panic"), "{}", leader.complaints());
    let all = [&leader, &others[0], &others[1]];
    Deadline::patient().poll("exactly one leads", || {
        (all.iter().filter(|replica| replica.leads()).count() == 1).then_some(())
    });
    // And nothing of the old term was taken after the new one began (I1).
    let lines = ledger.lines();
    assert!(lines.is_sorted_by_key(|(fence, _)| *fence), "{lines:?}");
}

/// Case B07: a lease that is free again when its old holder wakes is not the old holder's.
fn a_holder_that_wakes_to_a_free_lease_begins_a_new_term(site: &Site) {
    let ledger = Ledger::open();
    let mut a = site.replica("a").ttl(TTL).ledger(&ledger).elect();
    let first = a.acquired().fence;
    a.order(Order::Write("by a".into()));
    a.wrote("by a");
    a.pause();
    let mut b = site.replica("b").ttl(TTL).ledger(&ledger).elect();
    let second = b.acquired().fence;
    b.order(Order::Write("by b".into()));
    b.wrote("by b");
    b.kill();
    site.look_until_vacant();

    a.resume();
    // In this order, as the waiting goes forward only.
    a.lost(first);
    let third = a.acquired();
    assert!(third.fence >= first + 2);
    assert_eq!(third.after, ("expired".into(), Some(second)));
    // A stamp of the first term, cached by code that does not know better.
    a.order(Order::WriteUnder(first, "cached".into()));
    a.wait("the refusal", |said| {
        said.what == What::Stale { text: "cached".into(), presented: first, highest: second }
    });
    a.order(Order::Write("by a again".into()));
    a.wrote("by a again");
    assert_eq!(a.count(|what| matches!(what, What::Lost { .. })), 1);
    let by = |fence, text: &str| (fence, text.to_owned());
    assert_eq!(ledger.lines(), [by(first, "by a"), by(second, "by b"), by(third.fence, "by a again")]);
}

/// A pause whose length is part of the scenario, and not a hope that something happens meanwhile.
struct PauseOf(leasehold::Moment);

impl PauseOf {
    fn begins(pause: impl FnOnce()) -> Self {
        pause();
        Self(leasehold::Clock::now(&leasehold::BootClock))
    }

    fn lasts(self, length: Duration) {
        let been = leasehold::Clock::now(&leasehold::BootClock).since(self.0);
        thread::sleep(length.saturating_sub(been));
    }
}
