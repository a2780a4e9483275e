//! A session lock on a pooled connection (cases B44 and B46): what the pools do is measured anew, and the book says the same.

use std::{path::Path, process::Command};

#[test]
fn the_book_says_what_pools_do_to_session_locks() {
    let run = Command::new(env!("CARGO_BIN_EXE_pools")).output().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() == 12 && rows.iter().any(|row| row.contains("held, by nobody")), "{said}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/semantics/postgres.md");
    let page = std::fs::read_to_string(page).unwrap();
    let missing: Vec<&&str> = rows.iter().filter(|row| !page.contains(**row)).collect();
    assert!(missing.is_empty(), "the book does not say\n{missing:#?}\nof\n{said}");
}
