//! What the program says to people.
//!
//! `println!` and `eprintln!` panic when their stream is closed; here a reader that went away is no error. Standard
//! output belongs to the command in `run`, `elect` and `fence check`: only the other verbs write to it.

use crate::outlet::Outlet;
use std::{fmt::Display, io::Write, time::Duration};

/// Nobody reads standard output any more: what is left to write may be left unwritten, quietly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody reads standard output any more")]
pub struct ReaderGone;

/// A sentence to standard error, under the program's name. Never waits for a reader.
pub fn note(text: impl Display) {
    raw(&format!("leasehold: {text}\n"));
}

/// Text to standard error as it is.
pub fn raw(text: &str) {
    Outlet::stderr().put(text.as_bytes().to_vec());
}

/// Text to standard output as it is, flushed.
///
/// # Errors
/// [`ReaderGone`] if it could not be written.
pub fn out(text: &str) -> Result<(), ReaderGone> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|_| ReaderGone)
}

/// Whether somebody can still read standard output; a pipe tells.
///
/// # Errors
/// [`ReaderGone`] if not.
pub fn still_read() -> Result<(), ReaderGone> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = rustix::stdio::stdout();
    let mut state = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut state, Some(&at_once)) {
        Ok(_) if state[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL) => Err(ReaderGone),
        _ => Ok(()),
    }
}

/// Lets standard error catch up at the end of the program, for a moment.
pub fn finish() {
    Outlet::flush_stderr(Duration::from_millis(500));
}
