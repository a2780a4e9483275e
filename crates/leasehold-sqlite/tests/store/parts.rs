//! The parts that other tests play in processes of their own. A line that begins with `@` is for the test.

use crate::support::{LONG, bid, lease, open, raw, until, witnessed, won};
use leasehold_core::{
    Acquire, Bid, FenceGate, LeaseStore, Renew, Renewal, ResourceName, Scope, StoreErrorKind,
};
use leasehold_sqlite::{Config, SqliteStore};
use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

#[test]
#[ignore = "a part of other tests, which play it in a process of its own"]
fn play() {
    let role = std::env::var("LEASEHOLD_PART").expect("this is no test: other tests start it");
    let path = PathBuf::from(std::env::var_os("LEASEHOLD_PART_FILE").unwrap());
    let words = std::env::var("LEASEHOLD_PART_WORDS").unwrap();
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match &*role {
            "hold" => hold(&path, &words).await,
            "wait" => wait(&path, words[0], words[1]).await,
            "contend" => contend(&path, words[0], words[1]).await,
            "lock" => lock(&path),
            "gate" => gate(&path, words[0]).await,
            "open" => say(&opened(&path)),
            "fill" => fill(&path).await,
            "freeze" => freeze(&path),
            "come and go" => {
                crate::lifetime::come_and_go(&path).await;
                say("no thread is left");
            }
            "listen" => {
                crate::lifetime::listen(&path).await;
                say("it listens to nothing");
            }
            "churn" => churn(&path, words[0]).await,
            "remaining" => remaining(&path, words[0]).await,
            other => panic!("there is no part {other}"),
        }
    });
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n@{word}").unwrap();
    out.flush().unwrap();
}

/// Until the test closes our standard input, or is gone.
fn stay() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Holds leases with a witness, with a child process if one is wanted.
async fn hold(path: &Path, names: &[&str]) {
    let store = open(path);
    for name in names.iter().filter(|name| **name != "+child") {
        let granted = won(store.acquire(&witnessed(name, "holder")).await);
        say(&format!("granted {}", granted.claim.fence));
    }
    if names.contains(&"+child") {
        // It outlives us, and must not keep our lock. Its streams are its own, or the test would wait for it.
        let mut sleep = std::process::Command::new("sleep");
        let null = || std::process::Stdio::null();
        let mut child = sleep.arg("60").stdin(null()).stdout(null()).stderr(null()).spawn().unwrap();
        say(&format!("child {}", child.id()));
        stay();
        drop(child.wait());
    }
    stay();
}

/// Waits for a lease without polling, takes it when it is free, and says how the term before ended.
async fn wait(path: &Path, name: &str, by: &str) {
    let store = open(path);
    let mut watch = store.watch(Scope::Names(vec![lease(name)])).await.unwrap();
    if store.diagnose().await.unwrap().iter().any(|finding| finding.code == "no-events") {
        say("no-events");
    }
    let wanted = bid(name, by);
    match store.acquire(&wanted).await {
        Acquire::Held(_) => say("waiting"),
        other => panic!("it was to be held: {other:?}"),
    }
    loop {
        until(&mut watch, |record| record.claim().is_none()).await;
        if let Acquire::Granted(granted) = store.acquire(&wanted).await {
            say(&format!("granted {} {}", granted.claim.fence, granted.predecessor.fate()));
            return stay();
        }
    }
}

/// Takes and releases one lease a number of times, against others who do the same, and says its fences.
async fn contend(path: &Path, name: &str, times: &str) {
    let store = open(path);
    let mut watch = store.watch(Scope::Names(vec![lease(name)])).await.unwrap();
    let mut fences = Vec::new();
    while fences.len() < times.parse().unwrap() {
        match store.acquire(&bid(name, "one and the same")).await {
            Acquire::Granted(granted) => {
                fences.push(granted.claim.fence.to_string());
                let renewed = store.renew(&[Renewal { claim: granted.claim.clone(), ttl: LONG }]).await;
                assert!(matches!(renewed[..], [Renew::Renewed { .. }]), "{renewed:?}");
                crate::support::let_go(&store, &granted.claim).await;
            }
            Acquire::Held(_) => drop(until(&mut watch, |record| record.claim().is_none()).await),
            Acquire::Refused(error) if matches!(error.kind(), StoreErrorKind::Locked(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    say(&fences.join(","));
}

/// Takes and releases one lease as fast as it can, and says each fence once it is answered.
async fn churn(path: &Path, name: &str) {
    let store = open(path);
    loop {
        match store.acquire(&Bid { ttl: Duration::from_millis(50), ..witnessed(name, "churner") }).await {
            Acquire::Granted(granted) => {
                say(&granted.claim.fence.to_string());
                crate::support::let_go(&store, &granted.claim).await;
            }
            Acquire::Held(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// How long somebody else's claim still lasts, by this process's clock, which may be in a time namespace.
async fn remaining(path: &Path, name: &str) {
    let record = open(path).inspect(&lease(name)).await.unwrap();
    say(&format!("{} {}", leasehold_sqlite::HostClock::new().is_shifted(), record.remaining().as_secs()));
}

/// Keeps the file locked, as a careless backup does.
fn lock(path: &Path) {
    let conn = raw(path);
    conn.execute_batch("BEGIN EXCLUSIVE").unwrap();
    say("locked");
    stay();
}

async fn gate(path: &Path, fence: &str) {
    let store = open(path);
    let fence = fence.parse::<u64>().unwrap().try_into().unwrap();
    let guard = store.hold_gate(&ResourceName::new("file").unwrap(), &lease("feed"), fence).await.unwrap();
    say("held");
    stay();
    drop(guard);
}

fn opened(path: &Path) -> String {
    match SqliteStore::with(&Config::new(path)) {
        Ok(_) => "opened".into(),
        Err(error) => format!("{:?}: {error}", error.kind()),
    }
}

/// Fills the disk under a store, and frees it again.
async fn fill(path: &Path) {
    let store = open(path);
    let claim = won(store.acquire(&bid("feed", "a")).await).claim;
    let filler = path.with_file_name("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
    drop(file);
    // The log may have a page or two to go.
    let mut told = None;
    for n in 0..50 {
        match store.acquire(&bid(&format!("{n} {}", "x".repeat(150)), "a")).await {
            Acquire::Granted(_) => {}
            Acquire::Refused(error) | Acquire::Unknown(error) => {
                told = Some(error);
                break;
            }
            Acquire::Held(held) => panic!("{held:?}"),
        }
    }
    let error = told.expect("a full disk takes no more leases");
    assert_eq!(*error.kind(), StoreErrorKind::Full, "{error}");
    say(&error.to_string());
    // Reading goes on, and the lease is still held.
    assert_eq!(store.inspect(&lease("feed")).await.unwrap().claim(), Some(&claim));
    std::fs::remove_file(filler).unwrap();
    let renewed = store.renew(&[Renewal { claim: claim.clone(), ttl: LONG }]).await;
    assert!(matches!(renewed[..], [Renew::Renewed { .. }]), "{renewed:?}");
    let next = won(store.acquire(&Bid { ttl: Duration::from_secs(60), ..bid("after", "a") }).await);
    say(&format!("granted {}", next.claim.fence));
}

/// Makes the disk under a store read-only, and opens the store again.
fn freeze(path: &Path) {
    drop(open(path));
    let dir = path.parent().unwrap();
    let frozen = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(dir).status().unwrap();
    assert!(frozen.success());
    say(&opened(path));
    std::fs::remove_file(path).expect_err("it is frozen");
    say(&opened(&dir.join("another/leases.db")));
}
