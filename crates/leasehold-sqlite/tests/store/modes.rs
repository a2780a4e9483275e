//! Who may read and write the files.

use crate::support::{Part, beside, bid, home, lease, open, witnessed, won};
use leasehold_core::{FenceGate, LeaseStore, ResourceName, Severity};
use std::{os::unix::fs::PermissionsExt, path::Path};
use tokio::process::Command;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Uses everything that makes a file.
async fn all_files(path: &Path) -> Vec<(std::path::PathBuf, u32)> {
    let store = open(path);
    let claim = won(store.acquire(&witnessed("feed", "a")).await).claim;
    let held =
        store.hold_gate(&ResourceName::new("file").unwrap(), &lease("feed"), claim.fence).await.unwrap();
    let mut found = Vec::new();
    let mut dirs = vec![path.parent().unwrap().to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            found.push((entry.clone(), mode(&entry)));
            if entry.is_dir() {
                dirs.push(entry);
            }
        }
    }
    drop(held);
    found.sort();
    found
}

#[tokio::test]
async fn all_files_are_for_their_owner_alone() {
    let (dir, _) = home();
    let path = dir.path().join("state/app/leases.db");
    let files = all_files(&path).await;
    assert_eq!(
        (mode(path.parent().unwrap()), mode(path.parent().unwrap().parent().unwrap())),
        (0o700, 0o700)
    );
    for suffix in ["", "-wal", "-shm", "-wake", "-witness", "-gates"] {
        assert!(files.iter().any(|(file, _)| *file == beside(&path, suffix)), "{suffix}: {files:?}");
    }
    assert_eq!(files.len(), 8, "with one witness and one gate: {files:?}");
    for (file, mode) in files {
        assert_eq!(mode, if file.is_dir() { 0o700 } else { 0o600 }, "{file:?}");
    }
}

#[tokio::test]
async fn what_an_operator_shares_on_purpose_is_shared_whole() {
    let (dir, path) = home();
    drop(open(&path));
    set_mode(&path, 0o660);
    std::fs::remove_file(beside(&path, "-wake")).unwrap();
    let _ = dir;
    for (file, mode) in all_files(&path).await {
        assert_eq!(mode, if file.is_dir() { 0o770 } else { 0o660 }, "{file:?}");
    }
    let findings = open(&path).diagnose().await.unwrap();
    assert!(
        findings.iter().any(|f| f.code == "file-mode" && f.severity == Severity::Warning),
        "{findings:?}"
    );
}

/// Opens a store as somebody without rights over our files: as nobody if we are root, else as ourselves.
async fn opened_without_rights(program: &Path, path: &Path) -> String {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command.current_dir("/");
    Part::of(command, "open", path, "").says().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_the_right_to_it_is_denied_or_read_only() {
    let (dir, path) = home();
    set_mode(dir.path(), 0o755);
    won(open(&path).acquire(&bid("feed", "a")).await);
    let before = std::fs::read(&path).unwrap();
    // Where the others may find it; a link, since a file that is being written cannot be run.
    let (this, program) = (std::env::current_exe().unwrap(), dir.path().join("part"));
    std::fs::hard_link(&this, &program).or_else(|_| std::fs::copy(&this, &program).map(drop)).unwrap();
    for (file_mode, dir_mode, kind) in
        [(0o000, 0o777, "Denied"), (0o444, 0o777, "ReadOnly"), (0o666, 0o555, "Denied")]
    {
        for suffix in ["-wal", "-shm", "-wake"] {
            let _ = std::fs::remove_file(beside(&path, suffix));
        }
        let closed = dir.path().join("closed");
        std::fs::create_dir_all(&closed).unwrap();
        set_mode(&closed, 0o755);
        let moved = closed.join("leases.db");
        std::fs::copy(&path, &moved).unwrap();
        set_mode(&moved, file_mode);
        set_mode(&closed, dir_mode);
        let said = opened_without_rights(&program, &moved).await;
        assert!(said.starts_with(kind), "file {file_mode:o} in directory {dir_mode:o}: {said}");
        set_mode(&closed, 0o755);
        std::fs::remove_dir_all(&closed).unwrap();
    }
    assert!(std::fs::read(&path).unwrap() == before);
}

#[tokio::test]
async fn dangers_of_a_place_are_found() {
    let (dir, path) = home();
    let store = open(&path);
    let codes =
        |findings: Vec<leasehold_core::Finding>| findings.into_iter().map(|f| f.code).collect::<Vec<_>>();
    let at_first = codes(store.diagnose().await.unwrap());
    for code in ["hard-link", "open-directory", "file-mode", "wal-off", "corrupt", "damaged-rows"] {
        assert!(!at_first.contains(&code), "{at_first:?}");
    }
    std::fs::hard_link(&path, dir.path().join("another name")).unwrap();
    set_mode(dir.path(), 0o777);
    let found = codes(store.diagnose().await.unwrap());
    for code in ["hard-link", "open-directory"] {
        assert!(found.contains(&code), "{found:?}");
    }
    assert_eq!(found[0], "hard-link", "the worst comes first");
    set_mode(dir.path(), 0o700);
}
