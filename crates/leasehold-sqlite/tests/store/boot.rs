//! Boots and clocks: what a restart of the host ends, and what it does not.

use crate::support::{Part, bid, home, lease, open, replica, won};
use leasehold_core::{
    Acquire, AttemptId, Candidacy, Envelope, Fate, LeaseState, LeaseStore, Mail, ManualClock, Moment,
    Parting, Release, Renew, Renewal, Roster, TraceContext,
};
use leasehold_sqlite::{Config, SqliteStore};
use std::{path::Path, sync::Arc, time::Duration};

fn in_boot(path: &Path, boot: &str, clock: &ManualClock) -> SqliteStore {
    SqliteStore::with(&Config::new(path).with_boot(boot).with_clock(Arc::new(clock.clone()))).unwrap()
}

/// The boot clock begins anew with each boot, so an old `until` may lie far ahead or far behind.
#[tokio::test]
async fn a_restart_of_the_host_ends_every_claim_and_no_counter() {
    for uptime in [Duration::from_secs(1), Duration::from_secs(1_000_000)] {
        let (_dir, path) = home();
        let before = in_boot(&path, "one", &ManualClock::starting_at(Moment::ORIGIN.after(uptime)));
        let first = won(before.acquire(&bid("feed", "a")).await).claim;
        assert!(matches!(before.release(&first, &Parting::default()).await, Release::Released));
        let claim = won(before.acquire(&bid("feed", "a")).await).claim;
        drop(before);

        let after =
            in_boot(&path, "two", &ManualClock::starting_at(Moment::ORIGIN.after(Duration::from_secs(60))));
        let seen = after.inspect(&lease("feed")).await.unwrap();
        assert_eq!((seen.state, seen.predecessor.fate()), (LeaseState::Vacant, Fate::Expired));
        let renewed = after.renew(&[Renewal { claim: claim.clone(), ttl: Duration::from_secs(10) }]).await;
        assert!(matches!(renewed[..], [Renew::NotHolder(_)]), "{renewed:?}");
        let granted = won(after.acquire(&bid("feed", "b")).await);
        assert_eq!((granted.claim.fence.get(), granted.predecessor.fate()), (3, Fate::Expired), "I2");
    }
}

#[tokio::test]
async fn a_restart_of_the_host_ends_reservations_candidacies_and_letters() {
    let (_dir, path) = home();
    let clock = ManualClock::starting_at(Moment::ORIGIN.after(Duration::from_secs(100)));
    let before = in_boot(&path, "one", &clock);
    let claim = won(before.acquire(&bid("feed", "a")).await).claim;
    let heir = Some((replica("heir"), Duration::from_secs(3600)));
    assert_eq!(before.release(&claim, &Parting { heir, ..Parting::default() }).await, Release::Released);
    let wish = Candidacy { name: lease("feed"), replica: replica("c"), id: AttemptId::random(), priority: 0 };
    before.announce(&wish, Duration::from_secs(3600)).await.unwrap();
    let letter = |kind: &str| Envelope {
        from: replica("a"),
        lease: lease("feed"),
        kind: kind.into(),
        body: (*b"").into(),
        trace: TraceContext::NONE,
    };
    before.post(&replica("me"), &letter("old")).await.unwrap();
    assert!(matches!(before.acquire(&bid("feed", "b")).await, Acquire::Held(_)));
    drop(before);

    let after = in_boot(&path, "two", &clock);
    assert_eq!(after.candidates(&lease("feed")).await.unwrap(), []);
    after.post(&replica("me"), &letter("new")).await.unwrap();
    assert_eq!(&*after.inbox(&replica("me")).await.unwrap().next().await.unwrap().kind, "new");
    let granted = won(after.acquire(&bid("feed", "b")).await);
    assert_eq!(granted.predecessor.fate(), Fate::HandedOff);
}

/// Two processes that were started by hand agree on clock and boot, though nobody told them.
#[tokio::test(flavor = "multi_thread")]
async fn all_processes_of_a_host_share_its_clock_and_its_boot() {
    let (_dir, path) = home();
    let mut holder = Part::start("hold", &path, "feed");
    holder.says().await;
    let store = open(&path);
    let record = store.inspect(&lease("feed")).await.unwrap();
    let LeaseState::Held { remaining, held_for, .. } = record.state else { panic!("{record:?}") };
    assert_eq!(remaining + held_for, crate::support::LONG, "both were counted by one clock");
    holder.end().await;
}

/// A process in a time namespace reads a boot clock that is days off; its store takes the difference off again.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_namespace_makes_no_difference() {
    let (_dir, path) = home();
    let store = open(&path);
    won(store.acquire(&bid("feed", "a")).await);
    let mut command = tokio::process::Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--time", "--boottime", "1000000", "--fork"]).arg(std::env::current_exe().unwrap());
    let said = Part::of(command, "remaining", &path, "feed").says().await;
    let seconds: u64 = said.strip_prefix("true ").expect("its clock is shifted").parse().unwrap();
    assert!((3000..=3600).contains(&seconds), "of an hour are left: {seconds} s");
}

/// Rule 11: a claim that lasts longer than anyone was promised comes from a clock that is not this host's.
#[tokio::test]
async fn a_claim_from_another_clock_of_the_same_boot_is_noticed() {
    let (_dir, path) = home();
    let ahead = ManualClock::starting_at(Moment::ORIGIN.after(Duration::from_hours(1000)));
    let behind = ManualClock::starting_at(Moment::ORIGIN.after(Duration::from_secs(1)));
    won(in_boot(&path, "one", &ahead).acquire(&bid("feed", "a")).await);
    let store = in_boot(&path, "one", &behind);
    let (key, problem) =
        crate::support::corrupt(&crate::support::refused(store.acquire(&bid("feed", "b")).await));
    assert!(key.contains("\"feed\"") && problem.contains("more than any lease lasts"), "{key}: {problem}");
}
