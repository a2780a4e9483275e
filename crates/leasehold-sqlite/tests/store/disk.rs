//! Full and read-only disks, with a disk of our own in a mount namespace.

use crate::support::{Part, home};
use leasehold_core::StoreErrorKind;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_said_to_be_full_and_works_again_when_there_is_room() {
    let (dir, _) = home();
    let mut part = Part::start_on_small_disk("fill", dir.path(), 512, "");
    let error = part.says().await;
    assert!(error.contains(&StoreErrorKind::Full.to_string()), "{error}");
    let after = part.says().await;
    assert!(after.starts_with("granted"), "{after}");
    part.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_disk_is_said_to_be_read_only() {
    let (dir, _) = home();
    let mut part = Part::start_on_small_disk("freeze", dir.path(), 2048, "");
    for _ in 0..2 {
        let error = part.says().await;
        assert!(error.starts_with("ReadOnly: connect on sqlite:"), "{error}");
    }
    part.end().await;
}
