//! Values that we did not write, or that were spoilt: an error that names the row, and nothing is overwritten.

use crate::support::{LONG, bid, corrupt, home, lease, open, raw, refused, replica, until, won};
use leasehold_core::{
    Admit, AttemptId, Candidacy, Fence, FenceGate, Force, LeaseStore, Note, Parting, Release, Renew, Renewal,
    ResourceName, Roster, Scope, StoreErrorKind,
};
use leasehold_sqlite::{Config, SqliteStore};
use std::{path::Path, time::Duration};

/// Lets values of any type in, as a damaged page does. SQLite itself would refuse them.
fn without_types(path: &Path) -> rusqlite::Connection {
    let conn = raw(path);
    conn.execute_batch(
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')'); \
         PRAGMA writable_schema = RESET;",
    )
    .unwrap();
    conn
}

fn dump(path: &Path, table: &str) -> Vec<String> {
    let conn = raw(path);
    let mut select = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = select.column_count();
    let rows = select.query_map((), |row| {
        Ok((0..columns).map(|n| format!("{:?}", row.get_ref(n).unwrap())).collect::<Vec<_>>().join("|"))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn every_kind_of_damage_is_named_and_nothing_is_overwritten() {
    for (spoil, problem) in [
        ("counter = 0", "no fence"),
        ("counter = -1", "no fence"),
        ("counter = 9007199254740992", "no fence"),
        ("counter = 'seven'", "Text, not a fence"),
        ("counter = NULL", "is missing"),
        ("turn = 1.5", "Real, not a whole number"),
        ("replica = CAST(x'ff00' AS TEXT)", "no UTF-8"),
        ("replica = ''", "no name"),
        ("replica = x'6161'", "Blob, not text"),
        ("replica = NULL", "belongs to a value that is missing"),
        ("attempt = x'0011'", "2 bytes instead of 16"),
        ("attempt = 'text'", "Text, not bytes"),
        ("boot = NULL", "is missing"),
        ("until = -5", "no moment"),
        ("until = 9223372036854775807", "more than any lease lasts"),
        ("until = NULL", "not a whole number"),
        ("witness = '../../etc/passwd'", "no name of a witness"),
        ("heir = 'b'", "heir_boot is missing"),
        ("heir_until = 5", "belongs to a value that is missing"),
        ("fate = 'abducted', past_fence = 1, past_replica = 'x'", "is no fate"),
        ("fate = 'released'", "past_fence is missing"),
        ("fate = 'forced', past_fence = 1, past_replica = 'x'", "forced_by is missing"),
        ("forced_why = 'because'", "belongs to a value that is missing"),
    ] {
        let (_dir, path) = home();
        let store = open(&path);
        let claim = won(store.acquire(&bid("feed", "a")).await).claim;
        let sound = won(store.acquire(&bid("sound", "a")).await).claim;
        // NULL where none may be needs more than untyped columns.
        let conn = without_types(&path);
        conn.execute_batch(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER NOT NULL', 'INTEGER'); \
             PRAGMA writable_schema = RESET;",
        )
        .unwrap();
        conn.execute_batch(&format!("UPDATE lease SET {spoil} WHERE name = 'feed'")).unwrap();
        let before = dump(&path, "lease");

        let errors = [
            refused(store.acquire(&bid("feed", "b")).await),
            match store.renew(&[Renewal { claim: claim.clone(), ttl: LONG }]).await.remove(0) {
                Renew::Refused(error) => error,
                other => panic!("{spoil}: {other:?}"),
            },
            match store.release(&claim, &Parting::default()).await {
                Release::Refused(error) => error,
                other => panic!("{spoil}: {other:?}"),
            },
            match store.force_release(&lease("feed"), &replica("ops"), "").await {
                Force::Refused(error) => error,
                other => panic!("{spoil}: {other:?}"),
            },
            store.inspect(&lease("feed")).await.unwrap_err(),
        ];
        for error in &errors {
            let (key, told) = corrupt(error);
            assert_eq!(key, "table lease, row \"feed\"", "{spoil}");
            assert!(told.contains(problem), "{spoil}: {told}");
            assert_eq!(error.lease(), Some(&lease("feed")));
        }
        // A gate has no use for the clock, which alone says that an `until` is absurd.
        if !problem.contains("more than any lease lasts") {
            let file = ResourceName::new("file").unwrap();
            match store.admit(&file, &lease("feed"), Fence::FIRST).await {
                Admit::Refused(error) => {
                    assert_eq!(corrupt(&error).0, "table lease, row \"feed\"", "{spoil}");
                }
                other => panic!("{spoil}: {other:?}"),
            }
        }
        assert_eq!(dump(&path, "lease"), before, "{spoil}: it was touched");
        let renewed = store.renew(&[Renewal { claim: sound.clone(), ttl: LONG }]).await;
        assert!(matches!(renewed[..], [Renew::Renewed { .. }]), "{spoil}: {renewed:?}");
        let findings = store.diagnose().await.unwrap();
        assert!(findings.iter().any(|f| f.code == "damaged-rows" && f.text.contains("feed")), "{findings:?}");
    }
}

/// B57: nothing that somebody writes blocks all leases, or blocks one for ever without a word.
#[tokio::test]
async fn an_absurd_turn_does_not_stop_the_others() {
    let (_dir, path) = home();
    let store = open(&path);
    won(store.acquire(&bid("feed", "a")).await);
    raw(&path).execute_batch("UPDATE lease SET turn = 9223372036854775807").unwrap();
    let config = Config::new(&path).with_safety_poll(Duration::from_secs(60)).unwrap();
    let other = SqliteStore::with(&config).unwrap();
    let mut watch = other.watch(Scope::All).await.unwrap();
    let claim = won(store.acquire(&bid("sound", "a")).await).claim;
    until(&mut watch, |record| record.claim() == Some(&claim)).await;
    assert_eq!(store.release(&claim, &Parting::default()).await, Release::Released);
}

#[tokio::test]
async fn a_row_whose_name_cannot_be_read_is_listed_as_damage() {
    let (_dir, path) = home();
    let store = open(&path);
    won(store.acquire(&bid("sound", "a")).await);
    raw(&path)
        .execute_batch(
            "INSERT INTO lease (name, counter, turn) VALUES (CAST(x'ff41' AS TEXT), 1, 1), (char(10), 1, 1), ('', 1, 1)",
        )
        .unwrap();
    let listed = store.list("").await.unwrap();
    let (sound, damaged): (Vec<_>, Vec<_>) = listed.into_iter().partition(Result::is_ok);
    assert_eq!(sound.len(), 1);
    assert_eq!(damaged.len(), 3);
    for error in damaged {
        let (key, _) = corrupt(&error.unwrap_err());
        assert!(key.starts_with("table lease, row "), "{key}");
    }
}

#[tokio::test]
async fn damaged_notes_candidates_and_marks_are_named_too() {
    let (_dir, path) = home();
    let store = open(&path);
    let claim = won(store.acquire(&bid("feed", "a")).await).claim;
    let note = Some(Note::new(claim.fence, *b"note").unwrap());
    assert_eq!(store.release(&claim, &Parting { note, ..Parting::default() }).await, Release::Released);
    let wish = Candidacy { name: lease("feed"), replica: replica("c"), id: AttemptId::random(), priority: 0 };
    store.announce(&wish, LONG).await.unwrap();
    let file = ResourceName::new("file").unwrap();
    assert_eq!(store.admit(&file, &lease("feed"), Fence::FIRST).await, Admit::Accepted);
    raw(&path)
        .execute_batch(
            "UPDATE note SET bytes = zeroblob(300000); UPDATE candidate SET priority = 5000000000; \
             UPDATE gate SET highest = -1",
        )
        .unwrap();
    let (key, problem) = corrupt(&refused(store.acquire(&bid("feed", "b")).await));
    assert_eq!((&*key, &*problem), ("table note, row \"feed\"", "bytes has 300000 bytes, 262144 at most"));
    let (key, problem) = corrupt(&store.candidates(&lease("feed")).await.unwrap_err());
    assert_eq!((&*key, &*problem), ("table candidate, row 1", "priority is out of range"));
    match store.admit(&file, &lease("feed"), Fence::FIRST).await {
        Admit::Refused(error) => assert_eq!(corrupt(&error).0, "table gate, row \"file\""),
        other => panic!("a mark that cannot be read lets nobody in: {other:?}"),
    }
    // The lease itself is sound, and its counter did not move in vain.
    assert_eq!(store.inspect(&lease("feed")).await.unwrap().counter, Some(claim.fence));
}

#[tokio::test]
async fn a_damaged_page_is_an_error_and_not_an_empty_store() {
    let (_dir, path) = home();
    let store = open(&path);
    for n in 0..200 {
        won(store.acquire(&bid(&format!("lease {n:03} {}", "x".repeat(150)), "a")).await);
    }
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let size = bytes.len();
    assert!(size > 10 * 4096, "{size}");
    // All but the first pages, which hold the schema.
    bytes[3 * 4096..].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    let told = match SqliteStore::with(&Config::new(&path)) {
        Err(error) => error,
        Ok(store) => {
            let found = store.diagnose().await;
            if let Ok(findings) = &found {
                assert!(findings.iter().any(|finding| finding.code == "corrupt"), "{findings:?}");
            }
            store.list("").await.expect_err("the pages are gone")
        }
    };
    let (key, _) = corrupt(&told);
    assert!(key.ends_with("leases.db"), "{key}");
    assert_eq!(std::fs::read(&path).unwrap().len(), size, "nothing was repaired on its own");
}

/// Somebody's schema change is noticed at the door, by name.
#[tokio::test]
async fn a_missing_table_or_column_is_named_at_the_opening() {
    for (spoil, key, what) in [
        ("DROP TABLE gate", "table gate", "no such table"),
        ("ALTER TABLE lease RENAME COLUMN heir TO hair", "table lease", "heir"),
    ] {
        let (_dir, path) = home();
        drop(open(&path));
        raw(&path).execute_batch(spoil).unwrap();
        let error = SqliteStore::with(&Config::new(&path)).map(|_| ()).unwrap_err();
        let (found, problem) = corrupt(&error);
        assert_eq!(found, key);
        assert!(problem.contains(what), "{problem}");
    }
    // And one that comes while the store is open is an error too.
    let (_dir, path) = home();
    let store = open(&path);
    won(store.acquire(&bid("feed", "a")).await);
    raw(&path).execute_batch("DROP TABLE note").unwrap();
    let error = refused(store.acquire(&bid("other duty", "b")).await);
    assert!(matches!(error.kind(), StoreErrorKind::Corrupt { .. }), "{error}");
}
