//! Listing: complete, ordered, and the same story as a look at each.

use super::subject::{Subject, replica};
use leasehold_core::{LeaseState, Parting};

pub(super) async fn a_list_is_ordered_and_complete(s: Subject) {
    let s = s.unhurried();
    assert_eq!(s.store.list("").await.expect("list"), []);
    let held = s.win("c held", "a").await.claim;
    let released = s.win("a released", "a").await.claim;
    s.let_go(&released).await;
    let reserved = s.win("b reserved", "a").await.claim;
    s.part(&reserved, &Parting { heir: Some((replica("h"), s.ttl)), ..Parting::default() }).await;

    let listed = s.other.list("").await.expect("list");
    let listed: Vec<_> = listed.into_iter().map(|record| record.expect("sound")).collect();
    let names: Vec<_> = listed.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["a released", "b reserved", "c held"]);
    assert_eq!(listed[0].state, LeaseState::Vacant);
    assert!(matches!(&listed[1].state, LeaseState::Reserved { heir, .. } if *heir == replica("h")));
    assert_eq!(listed[2].claim(), Some(&held));
    for record in &listed {
        assert!(s.record(record.name.as_str()).await.same_standing(record));
    }
}
