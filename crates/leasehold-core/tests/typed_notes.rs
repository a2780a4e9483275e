//! Typed notes: what is read, what is refused, and that what is refused is kept.

use leasehold_core::{EncodeError, Fence, Note, NoteFault, note::MAX_NOTE_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Progress {
    part: u32,
    names: Vec<String>,
}

fn fence() -> Fence {
    Fence::new(7).expect("7 is in range")
}

fn progress() -> Progress {
    Progress { part: 3, names: vec!["ä \" \\ \u{1f980}".to_owned(), String::new()] }
}

#[test]
fn a_value_comes_back_as_it_was_left() {
    let note = Note::encode(fence(), 2, &progress()).unwrap();
    assert_eq!((note.from(), note.version()), (fence(), Some(2)));
    assert_eq!(note.decode::<Progress>(2).unwrap(), progress());
}

/// What is in a store is read by the programs of other releases: its form is a contract.
#[test]
fn the_form_in_a_store_is_fixed() {
    let note = Note::encode(fence(), 2, &(7, "part")).unwrap();
    assert_eq!(note.bytes(), br#"{"leasehold-note":2,"body":[7,"part"]}"#);
}

#[test]
fn another_version_is_told_and_kept() {
    let note = Note::encode(fence(), 2, &progress()).unwrap();
    let error = note.decode::<Progress>(1).unwrap_err();
    assert_eq!(error.fault, NoteFault::Version { found: 2, wanted: 1 });
    assert_eq!(error.note, note, "nothing of it is lost");
    assert_eq!(
        error.to_string(),
        format!(
            "the note left under fence 7 ({} bytes) cannot be read: it has schema version 2, and version 1 was asked for",
            note.bytes().len()
        )
    );
}

/// JSON of a program's own is no envelope, however alike: a list of two numbers fits a struct of two fields.
#[test]
fn plain_bytes_and_damage_are_told_and_kept() {
    let whole = Note::encode(fence(), 2, &progress()).unwrap();
    let cut = &whole.bytes()[..whole.bytes().len() - 1];
    let plain: [&[u8]; 6] =
        [b"", b"done up to part 3", b"[2, 5]", br#"{"version":2,"body":5}"#, b"\xff\xfe", cut];
    for bytes in plain {
        let note = Note::new(fence(), bytes).unwrap();
        assert_eq!(note.version(), None, "{bytes:?}");
        let error = note.decode::<u32>(2).unwrap_err();
        assert_eq!((error.fault, error.note.bytes()), (NoteFault::Untyped, bytes));
    }
}

#[test]
fn a_value_of_another_type_is_told_without_being_shown() {
    let note = Note::encode(fence(), 2, "a secret of the worker").unwrap();
    let error = note.decode::<Progress>(2).unwrap_err();
    assert!(matches!(error.fault, NoteFault::Body { version: 2, line: 1, .. }), "{error:?}");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("secret"), "{text}");
    }
}

/// A program that is older than a new field with a default reads on, and so does a newer one.
#[test]
fn fields_may_come_and_go_within_a_version() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Wider {
        part: u32,
        names: Vec<String>,
        #[serde(default)]
        region: Option<String>,
    }
    let old = Note::encode(fence(), 2, &progress()).unwrap();
    let new = old.decode::<Wider>(2).unwrap();
    assert_eq!(new.region, None);
    let new = Note::encode(fence(), 2, &Wider { region: Some("eu".to_owned()), ..new }).unwrap();
    assert_eq!(new.decode::<Progress>(2).unwrap(), progress());
}

#[test]
fn what_is_too_large_or_no_json_is_refused() {
    let envelope = Note::encode(fence(), 1, "").unwrap().bytes().len();
    let largest = "x".repeat(MAX_NOTE_BYTES - envelope);
    assert_eq!(Note::encode(fence(), 1, &largest).unwrap().decode::<String>(1).unwrap(), largest);
    let error = Note::encode(fence(), 1, &format!("{largest}x")).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge(size) if size.0 == MAX_NOTE_BYTES + 1), "{error:?}");

    let keys_are_lists = BTreeMap::from([([1, 2], "x")]);
    let error = Note::encode(fence(), 1, &keys_are_lists).unwrap_err();
    assert!(matches!(error, EncodeError::Shape(_)), "{error:?}");
}
