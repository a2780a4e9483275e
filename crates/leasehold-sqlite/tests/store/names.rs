//! Names and paths are data.

use crate::support::{bid, lease, open, won};
use leasehold_core::{Admit, Fence, FenceGate, LeaseStore, ResourceName};
use leasehold_sqlite::SqliteStore;
use std::sync::Arc;

#[tokio::test]
async fn odd_paths_are_ordinary_and_one_file_is_one_store() {
    let dir = tempfile::tempdir().unwrap();
    for name in
        ["a b.db", "a?x=1&y#z", "ünï 🦀", "%41.db", ":memory:.db", "quote'\"", "file:x", "-wal", "semi;colon"]
    {
        let path = dir.path().join(name);
        let store = open(&path);
        let fence = won(store.acquire(&bid("feed", name)).await).claim.fence;
        assert_eq!(fence, Fence::FIRST, "{name}: it is a file of its own");
        assert!(path.is_file(), "{name}");
        assert_eq!(store.address(), format!("sqlite:{}", path.canonicalize().unwrap().display()));
    }
    // By other ways to the same file, and by its address.
    let path = dir.path().join("a b.db");
    std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let address = format!("sqlite://{}/a%20b.db?busy_timeout=500ms", dir.path().display());
    for same in [
        open(&dir.path().join("link")),
        open(&dir.path().join("sub/../a b.db")),
        SqliteStore::open(&address).unwrap(),
    ] {
        let record = same.inspect(&lease("feed")).await.unwrap();
        assert_eq!(record.counter, Some(Fence::FIRST));
        assert_eq!(same.address(), format!("sqlite:{}", path.canonicalize().unwrap().display()));
    }
}

#[tokio::test]
async fn gates_of_odd_resources_are_files_of_their_own() {
    let (_dir, path) = crate::support::home();
    let store = Arc::new(open(&path));
    let fence = won(store.acquire(&bid("feed", "a")).await).claim.fence;
    let longest = "é".repeat(100);
    let odd = [
        "Dev",
        "dev",
        "dev ",
        "../../x",
        "/",
        "a/b",
        "a%2Fb",
        "*",
        "'; DROP TABLE gate; --",
        "e\u{301}",
        "é",
        &longest,
    ];
    let mut held = Vec::new();
    for name in odd {
        // All at once: each finds its gate free.
        held.push(store.hold_gate(&ResourceName::new(name).unwrap(), &lease("feed"), fence).await.unwrap());
    }
    let files = std::fs::read_dir(crate::support::beside(&path, "-gates")).unwrap().count();
    assert_eq!(files, odd.len());
    for name in odd {
        let again = store.admit(&ResourceName::new(name).unwrap(), &lease("feed"), fence).await;
        assert_eq!(again, Admit::Accepted, "{name}");
    }
}
