//! What can happen to a store that is a file: no rights, no room, out of reach, removed under a holder.

use leasehold_tests::{Backend, Order, Replica, Site, What};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

const TTL: Duration = Duration::from_millis(600);

fn site() -> Site {
    Site::new(Backend::Sqlite, env!("CARGO_BIN_EXE_replica"))
}

/// It says what is wrong, with what, and what to do; and it ends with a failure.
fn fails_saying(replica: &mut Replica, problem: &str) {
    let status = replica.exit();
    let failed = replica.heard("a reason", |said| matches!(said.what, What::Failed { .. }));
    let What::Failed { error } = failed.what else { unreachable!() };
    assert!(error.contains(problem), "{error}");
    assert!(error.contains("leases.db"), "it names the store: {error}");
    assert!(!replica.complaints().contains("panicked"), "{}", replica.complaints());
    assert_eq!(status.code(), Some(1));
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file of this test");
}

#[test]
fn a_directory_that_may_not_be_written_is_named_with_the_reason() {
    let site = site();
    fs::create_dir(site.store_dir()).unwrap();
    set_mode(&site.store_dir(), 0o555);
    let mut replica = site.replica("a").unprivileged(site.dir()).elect();
    fails_saying(&mut replica, "denied access; check the credentials and permissions");
    // Nothing was left there.
    assert_eq!(fs::read_dir(site.store_dir()).unwrap().count(), 0);
}

#[test]
fn a_store_that_may_only_be_read_is_named_with_the_reason() {
    let site = site();
    let mut owner = site.replica("owner").elect();
    let fence = owner.acquired().fence;
    owner.order(Order::Leave);
    owner.exit();
    for file in fs::read_dir(site.store_dir()).unwrap() {
        let file = file.unwrap();
        set_mode(&file.path(), if file.file_type().unwrap().is_dir() { 0o555 } else { 0o444 });
    }
    set_mode(&site.store_dir(), 0o555);
    let mut replica = site.replica("a").unprivileged(site.dir()).elect();
    fails_saying(&mut replica, "read-only; make it writable");
    set_mode(&site.store_dir(), 0o755);
    let database = site.store_dir().join("leases.db");
    set_mode(&database, 0o644);
    assert_eq!(site.look().record.counter.map(|fence| fence.get()), Some(fence), "nothing was changed");
}

#[test]
#[cfg(target_os = "linux")] // The disk is filled through the dynamic loader.
fn a_disk_that_is_full_at_the_start_is_named_with_the_reason() {
    let site = site();
    let disk = site.full_disk("disk");
    disk.set(true);
    let mut replica = site.replica("a").on(&disk).elect();
    fails_saying(&mut replica, "full; free some space");
    // And what it left behind hinders nobody.
    disk.set(false);
    let mut replica = site.replica("a").on(&disk).elect();
    assert_eq!(replica.acquired().fence, 1);
}

/// Without room there is no renewal; the holder says so while it still holds, and ends by its deadline (I4).
#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_under_a_holder_costs_it_the_lease_and_no_more() {
    let site = site();
    let disk = site.full_disk("disk");
    let mut a = site.replica("a").ttl(TTL).on(&disk).sampled().elect();
    let first = a.acquired().fence;
    disk.set(true);
    let jeopardy = a.wait("the jeopardy", |said| matches!(said.what, What::Jeopardy { .. }));
    let What::Jeopardy { detail, .. } = jeopardy.what else { unreachable!() };
    assert!(detail.contains("full; free some space"), "{detail}");
    assert_eq!(a.lost(first), "expired");
    trust_ended_in_time(&a, first);
    a.campaigning();
    disk.set(false);
    // Its own claim of then has expired; it is another term.
    assert_eq!(a.acquired().after, ("expired".into(), Some(first)));
    assert!(a.is_alive());
}

#[test]
fn a_store_out_of_reach_is_lost_by_the_deadline_and_found_again() {
    let site = site();
    let mut a = site.replica("a").ttl(TTL).sampled().elect();
    let first = a.acquired().fence;
    let away = site.dir().join("away");
    fs::rename(site.store_dir(), &away).unwrap();
    a.wait("the jeopardy", |said| matches!(said.what, What::Jeopardy { .. }));
    assert_eq!(a.lost(first), "expired");
    trust_ended_in_time(&a, first);
    a.campaigning();
    fs::rename(&away, site.store_dir()).unwrap();
    assert_eq!(a.acquired().after, ("expired".into(), Some(first)));
}

/// Case B69: nothing waits for ever for a store that does not answer, and nobody claims what it did not confirm.
#[test]
fn a_shutdown_ends_although_the_store_is_out_of_reach() {
    let site = site();
    let mut holder = site.replica("holder").ttl(Duration::from_secs(30)).elect();
    let fence = holder.acquired().fence;
    let mut waiter = site.replica("waiter").ttl(Duration::from_secs(30)).elect();
    waiter.campaigning();
    let away = site.dir().join("away");
    fs::rename(site.store_dir(), &away).unwrap();
    for replica in [&mut holder, &mut waiter] {
        replica.terminate();
        assert!(replica.exit().success());
    }
    let stopped = |replica: &Replica, how: &str| {
        replica.heard("its end", |said| said.what == What::Stopped { how: how.into() });
    };
    stopped(&holder, "unconfirmed");
    stopped(&waiter, "clean");
    holder.heard("the worker's end", |said| said.what == What::Ended);
    fs::rename(&away, site.store_dir()).unwrap();
    assert_eq!(site.look().fence(), fence, "it was not released, and was not said to be");
}

/// The store lost everything, its counter too. Whoever bids remembers (I2).
#[test]
fn a_store_removed_under_a_holder_is_known_lost_and_fences_go_on_growing() {
    let site = site();
    for round in 1..=3 {
        let mut before = site.replica(&format!("before-{round}")).elect();
        before.acquired();
        before.order(Order::Leave);
        before.exit();
    }
    let mut a = site.replica("a").ttl(TTL).sampled().elect();
    let first = a.acquired().fence;
    assert_eq!(first, 4);
    let mut b = site.replica("b").ttl(TTL).elect();
    b.campaigning();
    a.wait("a renewal", |said| matches!(said.what, What::Renewed { .. }));
    for file in fs::read_dir(site.store_dir()).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            fs::remove_file(file.path()).unwrap();
        }
    }
    assert_eq!(a.lost(first), "not-holder");
    trust_ended_in_time(&a, first);
    // One of the two, and later the other.
    let second = site.look_until("a new term", |glance| glance.fence() != 0).fence();
    assert!(second > first, "fence {second} after {first}");
    for replica in [&mut a, &mut b] {
        replica.terminate();
        assert!(replica.exit().success());
    }
    let mut c = site.replica("c").ttl(TTL).elect();
    assert!(c.acquired().fence > second);
}

/// I4: no instant of trust after the deadline that the last renewal gave.
fn trust_ended_in_time(replica: &Replica, fence: u64) {
    let trusted = replica.heard("the end of trust", |said| {
        said.fence == Some(fence) && matches!(said.what, What::TrustedUntil { .. })
    });
    let What::TrustedUntil { last } = trusted.what else { unreachable!() };
    let until = replica.said().into_iter().filter(|said| said.fence == Some(fence)).filter_map(|said| {
        match said.what {
            What::Acquired { trusted_ns: left, .. } | What::Renewed { remaining_ns: left } => {
                Some(said.at + left)
            }
            _ => None,
        }
    });
    let until = until.max().expect("a term begins with some trust");
    assert!(last > 0 && last <= until, "trusted at {last}, but only until {until}");
}
