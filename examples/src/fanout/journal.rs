//! What a gate must not forget when its process is killed: which events it has, and the highest fence it met.
//!
//! One JSON object a line, appended with a single write before the delivery is acknowledged:
//! `{"fence":2,"seq":17,"payload":"…"}` for an event, `{"fence":3}` for a higher fence alone. A line whose write was
//! cut short was never acknowledged, and is dropped at the next start. The data survives the death of the process;
//! one that should survive the loss of power would need an `fsync` before each acknowledgement.

use super::event::{Stamped, number};
use leasehold::Fence;
use serde::{Deserialize, Serialize};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

/// What a journal says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The highest fence that was met.
    pub highest: Option<Fence>,
    /// All events, in order and without gaps.
    pub events: Vec<Stamped>,
}

/// A journal that cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be opened, read or written.
    #[error("the journal {path} cannot be used: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A whole line is not what this program writes.
    #[error("line {line} of the journal {path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: Damage,
    },
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// It does not parse.
    #[error("{0}")]
    Unreadable(#[from] serde_json::Error),
    /// Its event is not the next one.
    #[error("event {got} where {expected} should be")]
    OutOfOrder {
        /// The next event.
        expected: u64,
        /// The event of the line.
        got: u64,
    },
    /// A lower fence was accepted after a higher one (invariant I1).
    #[error("fence {got} was accepted after fence {highest}")]
    FenceWentBack {
        /// The highest before.
        highest: Fence,
        /// The fence of the line.
        got: Fence,
    },
}

#[derive(Serialize, Deserialize)]
struct Mark {
    #[serde(with = "number")]
    fence: Fence,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Event(Stamped),
    Mark(Mark),
}

impl Journal {
    /// Opens the journal at `path`, or begins it, and reads all of it.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub fn open(path: &Path) -> Result<(Self, Told), JournalError> {
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        text.truncate(whole);
        let told = Told::read(&text, path)?;
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        Ok((Self { file }, told))
    }

    /// Appends a higher fence.
    ///
    /// # Errors
    /// Of the file; the mark then counts as not kept.
    pub fn raise(&mut self, fence: Fence) -> io::Result<()> {
        self.append(&[Mark { fence }])
    }

    /// Appends events.
    ///
    /// # Errors
    /// Of the file; the events then count as not kept.
    pub fn append<T: Serialize>(&mut self, entries: &[T]) -> io::Result<()> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines)
    }
}

impl Told {
    /// Reads a journal without touching it, as an auditor does.
    ///
    /// # Errors
    /// See [`JournalError`]; `Damaged` also when its fences or its numbers go backwards.
    pub fn audit(path: &Path) -> Result<Self, JournalError> {
        let text =
            std::fs::read(path).map_err(|source| JournalError::File { path: path.to_owned(), source })?;
        Self::read(&text, path)
    }

    fn read(text: &[u8], path: &Path) -> Result<Self, JournalError> {
        let mut told = Self::default();
        for (index, line) in text.split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
            told.learn(line).map_err(|what| JournalError::Damaged {
                path: path.to_owned(),
                line: index + 1,
                what,
            })?;
        }
        Ok(told)
    }

    fn learn(&mut self, line: &[u8]) -> Result<(), Damage> {
        let entry: Entry = serde_json::from_slice(line)?;
        let got = match &entry {
            Entry::Event(event) => event.fence,
            Entry::Mark(mark) => mark.fence,
        };
        if let Some(highest) = self.highest.filter(|highest| *highest > got) {
            return Err(Damage::FenceWentBack { highest, got });
        }
        self.highest = Some(got);
        if let Entry::Event(event) = entry {
            let expected = self.events.len() as u64 + 1;
            if event.seq != expected {
                return Err(Damage::OutOfOrder { expected, got: event.seq });
            }
            self.events.push(event);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(fence: u64, seq: u64) -> Stamped {
        Stamped { fence: Fence::new(fence).unwrap(), seq, payload: format!("event {seq}") }
    }

    #[test]
    fn a_journal_tells_after_a_restart_what_was_written_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, told) = Journal::open(&path).unwrap();
        assert_eq!(told, Told::default());
        journal.append(&[event(1, 1), event(1, 2)]).unwrap();
        journal.raise(Fence::new(5).unwrap()).unwrap();
        drop(journal);

        let (mut journal, told) = Journal::open(&path).unwrap();
        assert_eq!(told, Told { highest: Fence::new(5).ok(), events: vec![event(1, 1), event(1, 2)] });
        journal.append(&[event(5, 3)]).unwrap();
        assert_eq!(Told::audit(&path).unwrap().events.len(), 3);
    }

    #[test]
    fn a_line_that_was_cut_short_is_dropped_and_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, _) = Journal::open(&path).unwrap();
        journal.append(&[event(1, 1)]).unwrap();
        journal.file.write_all(b"{\"fence\":1,\"se").unwrap();
        drop(journal);

        let (mut journal, told) = Journal::open(&path).unwrap();
        assert_eq!(told.events, [event(1, 1)]);
        journal.append(&[event(1, 2)]).unwrap();
        assert_eq!(Told::audit(&path).unwrap().events, [event(1, 1), event(1, 2)]);
    }

    #[test]
    fn a_lower_fence_after_a_higher_one_is_damage() {
        // I1, as an auditor sees it.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, _) = Journal::open(&path).unwrap();
        journal.append(&[event(2, 1), event(1, 2)]).unwrap();
        let error = Told::audit(&path).unwrap_err().to_string();
        assert!(error.ends_with("is damaged: fence 1 was accepted after fence 2"), "{error}");
        assert!(error.contains("line 2"), "{error}");
    }
}
