//! A store that cannot be told that the lease is let go: whoever is next leads as soon as it can be, not after the ttl
//! (case B40; rule 3, I6, I7).

use leasehold_tests::{Backend, Casting, Order, Site, What};
use std::{fs, time::Duration};

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(90);

fn site(backend: Backend) -> Site {
    Site::new(backend, env!("CARGO_BIN_EXE_replica"))
}

/// Holds, and lets go while the store is `cut`. The holder hears of it, with `answer`; the next one leads once it is `healed`.
fn is_followed_before_its_ttl(site: &Site, a: Casting, cut: impl Fn(), answer: &str, heal: impl Fn()) {
    let mut a = a.ttl(LONG).hold();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).elect();
    b.campaigning();
    let expiry = site.look().expires_from();
    cut();
    a.order(Order::Finish);
    let finished = a.wait("the store's answer", |said| matches!(said.what, What::Finished { .. }));
    let What::Finished { lost: None, release: Some(told) } = finished.what else { panic!("{finished:?}") };
    assert!(told.starts_with(answer), "{told}");
    let renewals = |what: &What| matches!(what, What::Renewed { .. });
    let (released, renewed) = (a.count(|what| *what == What::Released), a.count(renewals));
    assert_eq!(released, 0);
    heal();
    let second = b.acquired();
    assert_eq!(second.after, ("released".into(), Some(first)));
    assert!(second.at < expiry, "the ttl was waited for");
    a.wait("the late release", |said| said.what == What::Released && said.fence == Some(first));
    assert_eq!(a.count(renewals), renewed, "what is let go is not renewed");
    // And the late one has harmed nobody.
    assert_eq!(site.look().fence(), second.fence);
    assert!(a.is_alive());
    a.order(Order::Leave);
    a.wait("an orderly end", |said| said.what == What::Stopped { how: "clean".into() });
}

#[test]
fn a_file_that_is_away_is_told_when_it_is_back() {
    let site = site(Backend::Sqlite);
    let away = site.dir().join("away");
    let cut = || fs::rename(site.store_dir(), &away).unwrap();
    let heal = || fs::rename(&away, site.store_dir()).unwrap();
    is_followed_before_its_ttl(&site, site.replica("a"), cut, "unknown", heal);
}

#[test]
#[cfg(target_os = "linux")] // The disk is filled through the dynamic loader.
fn a_full_disk_is_told_when_there_is_room() {
    let site = site(Backend::Sqlite);
    let disk = site.full_disk("disk");
    let a = site.replica("a").on(&disk);
    is_followed_before_its_ttl(&site, a, || disk.set(true), "unknown", || disk.set(false));
}

#[test]
fn a_redis_server_that_was_frozen_is_told_when_it_thaws() {
    let site = site(Backend::Redis);
    let cut = || site.on_redis(|server| server.pause());
    let heal = || site.on_redis(|server| server.resume());
    is_followed_before_its_ttl(&site, site.replica("a"), cut, "unknown", heal);
}

/// B40 as it was reported: the server takes no writes, for its replicas are gone.
#[test]
fn a_redis_server_that_took_no_writes_is_told_when_it_does() {
    let site = site(Backend::Redis);
    let set = |n| drop(site.on_redis(|server| server.cli(&["CONFIG", "SET", "min-replicas-to-write", n])));
    is_followed_before_its_ttl(&site, site.replica("a"), || set("1"), "refused", || set("0"));
}

#[test]
fn a_postgresql_server_that_was_frozen_is_told_when_it_thaws() {
    let site = site(Backend::Postgres);
    let cut = || site.on_postgres(|server| server.pause());
    let heal = || site.on_postgres(|server| server.resume());
    is_followed_before_its_ttl(&site, site.replica("a"), cut, "unknown", heal);
}

/// A process that ends while its store is away goes on asking until its time is over, and knows what came of it.
#[test]
fn a_shutdown_waits_for_a_store_that_comes_back() {
    let site = site(Backend::Redis);
    let mut a = site.replica("a").ttl(LONG).elect();
    let first = a.acquired().fence;
    let mut b = site.replica("b").ttl(LONG).elect();
    b.campaigning();
    let expiry = site.look().expires_from();
    site.on_redis(|server| server.pause());
    a.terminate();
    a.wait("the worker's end", |said| matches!(said.what, What::WorkerEnded { .. }));
    assert!(a.is_alive());
    site.on_redis(|server| server.resume());
    a.wait("an orderly end", |said| said.what == What::Stopped { how: "clean".into() });
    let second = b.acquired();
    assert!(second.follows_in_order(first), "{second:?}");
    assert!(second.at < expiry, "the ttl was waited for");
}
