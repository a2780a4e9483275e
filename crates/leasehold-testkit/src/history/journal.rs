//! Histories as files of JSON lines.

use super::Event;
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::Path,
};

/// Appends events to a file. Many processes may append to one file: each line is one write.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Opens or makes the file.
    ///
    /// # Errors
    /// Those of opening a file.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().append(true).create(true).open(path)? })
    }

    /// Writes one event.
    ///
    /// # Errors
    /// Those of writing to a file.
    pub fn write(&self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        (&self.file).write_all(&line)
    }

    /// Reads a history, ordered by time. A last line without its newline is left out: its writer was killed at it.
    ///
    /// # Errors
    /// Those of reading a file; a line that is no event is an error that names its number.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<Event>> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut events: Vec<Event> = Vec::new();
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            if reader.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                break;
            }
            let damaged =
                |error| io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {error}"));
            events.push(serde_json::from_str(&line).map_err(damaged)?);
        }
        events.sort_by_key(|event| event.at);
        Ok(events)
    }
}
