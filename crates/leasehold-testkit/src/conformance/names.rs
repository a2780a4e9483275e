//! Rule 12: names are data.

use super::subject::{Subject, held, won};
use leasehold_core::{Claim, LeaseName};

/// Names that some store somewhere mistook for a path, a pattern, a tag, a statement or each other (B52, B54).
const ODD: &[&str] = &[
    " ",
    "/",
    "//a",
    "a/",
    "a",
    "/a",
    "../x",
    "file:///v",
    "é",
    "e\u{301}",
    "🦀",
    "%2F",
    "{tag}x",
    "{a}b",
    "a{b",
    "a{}b",
    "}{",
    "*",
    "?",
    "[a]",
    "%",
    "_",
    "\\",
    "SELECT;",
    "'; DROP TABLE leases; --",
    "\"",
    "`",
    "$1",
    ":name",
    "NULL",
    "null",
    "0",
    "1e3",
    "A",
    "a ",
    " a",
    "x",
    "x/",
    "x//",
    "x:l",
    "x:f",
    "ı",
    "I",
    "ß",
    "ss",
    "K",
    "\u{212a}",
    "\u{200b}",
    "\u{feff}a",
    "\u{202e}a",
    "\u{10ffff}",
    "CON",
    ".",
    "..",
    "~",
    "a\\0",
];

pub(super) async fn rule_12_odd_names_are_distinct_leases(s: Subject) {
    let s = s.unhurried();
    let long = "x".repeat(200);
    let almost = format!("{}y", "x".repeat(199));
    let wide = "🦀".repeat(50);
    let names: Vec<&str> = ODD.iter().copied().chain([&*long, &*almost, &*wide]).collect();
    all_at_once(&s, &names).await;
}

/// B53: names with equal CRC-32, and with equal `hashtext` on PostgreSQL 15.
pub(super) async fn rule_12_names_that_collide_in_weak_hashes_are_distinct(s: Subject) {
    let s = s.unhurried();
    all_at_once(&s, &["plumless", "buckeroo", "lease-55891", "lease-149086"]).await;
}

/// B59: `dev` once thought that it was the holder since the holder's name began with it.
pub(super) async fn rule_12_replicas_are_compared_exactly(s: Subject) {
    let s = s.unhurried();
    for holder in ["dev", "dev-server", "dev_", "Dev", "dev ", "'", "%"] {
        let granted = s.win("feed", holder).await;
        assert_eq!(granted.claim.replica.as_str(), holder);
        let told = held(s.other.acquire(&s.bid("feed", "dev")).await).by;
        assert_eq!(told.as_str(), holder);
        s.let_go(&granted.claim).await;
    }
}

pub(super) async fn rule_12_prefixes_hold_no_wildcards(s: Subject) {
    let s = s.unhurried();
    let names = ["a%b", "a_b", "aXb", "a*b", "A%b", "a\\%b", "é", "éa", "b"];
    for name in names {
        let _ = s.win(name, "a").await;
    }
    let prefixes = ["", "a", "a%", "a_", "a*", "a?", "a\\", "A", "é", "%", "*", "zz", "[ab]", "'"];
    for prefix in prefixes {
        let mut expected: Vec<_> = names.into_iter().filter(|name| name.starts_with(prefix)).collect();
        expected.sort_unstable();
        assert_eq!(listed(&s, prefix).await, expected, "prefix {prefix:?}");
    }
}

/// Holds all these leases together, each under its own name only.
async fn all_at_once(s: &Subject, names: &[&str]) {
    let mut claims: Vec<Claim> = Vec::new();
    for name in names {
        let granted = s.win(name, "a").await;
        assert_eq!(granted.claim.name.as_str(), *name);
        claims.push(granted.claim);
    }
    let mut expected: Vec<_> = names.iter().map(ToString::to_string).collect();
    expected.sort_unstable();
    assert_eq!(listed(s, "").await, expected, "every name comes back as it was given");
    // Each release frees its own lease and no other.
    for (n, claim) in claims.iter().enumerate() {
        s.let_go(claim).await;
        let next = won(s.other.acquire(&s.bid(claim.name.as_str(), "b")).await);
        assert!(next.claim.fence > claim.fence);
        if let Some(still) = claims.get(n + 1) {
            assert_eq!(s.record(still.name.as_str()).await.claim(), Some(still));
        }
    }
}

async fn listed(s: &Subject, prefix: &str) -> Vec<String> {
    let records = s.store.list(prefix).await.expect("list");
    let name = |record: Result<leasehold_core::LeaseRecord, _>| -> LeaseName { record.expect("sound").name };
    records.into_iter().map(|record| name(record).to_string()).collect()
}
