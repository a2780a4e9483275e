//! Exit statuses: the numbers that scripts rely on.

use crate::child::ChildStatus;

/// How the program ends. [`code`](Self::code) is what a shell sees in `$?`.
///
/// The numbers follow `sysexits.h` and the habits of shells, so that a command rarely uses one of ours by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// What was asked for was done: 0.
    Done,
    /// The command ended by itself: its own status, or 128+n if signal n ended it.
    Child(ChildStatus),
    /// A signal ended the wrapper before it had a command to pass it to: 128+n.
    Signalled(i32),
    /// The command line was wrong: 64. Nothing was sent to any store, no command was started.
    Usage,
    /// The store could not be reached or used: 69.
    Unreachable,
    /// A fault of this program, or of the operating system under it: 70.
    Internal,
    /// The lease was not acquired, so the command was not started: 75, or what `--conflict-exit-code` says.
    NotAcquired(u8),
    /// The lease was lost while the command ran, however the command then ended: 76, or what `--lost-exit-code` says.
    Lost(u8),
    /// A fence token was refused, for a higher one was seen before: 77.
    Stale,
    /// The lease was not handed over; the incumbent still leads: 78.
    Aborted,
    /// The lease was given up, or was free, and nobody is known to have taken it yet: 79.
    Vacated,
    /// The command exists and cannot be executed: 126.
    NotExecutable,
    /// There is no such command: 127.
    NotFound,
}

impl Exit {
    /// What [`Self::NotAcquired`] is by default.
    pub const NOT_ACQUIRED: u8 = 75;
    /// What [`Self::Lost`] is by default.
    pub const LOST: u8 = 76;

    /// The exit status, 0 to 255.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Child(status) => status.code(),
            Self::Signalled(signal) => ChildStatus::Signalled(signal).code(),
            Self::Usage => 64,
            Self::Unreachable => 69,
            Self::Internal => 70,
            Self::NotAcquired(code) | Self::Lost(code) => code,
            Self::Stale => 77,
            Self::Aborted => 78,
            Self::Vacated => 79,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The part of `--help` on exit statuses of `run`.
pub(crate) const OF_RUN: &str = "\
Exit status:
  the command's own; 128+n if signal n ended it; and of leasehold itself
   64  usage: the command line was wrong, nothing was started
   69  the store could not be reached
   70  internal error
   75  the lease was not acquired (--conflict-exit-code)
   76  the lease was lost, whether or not the command then ended cleanly (--lost-exit-code)
  126  the command cannot be executed
  127  the command was not found";

/// The part of `--help` on exit statuses of `elect`.
pub(crate) const OF_ELECT: &str = "\
Exit status:
    0  ended by INT, TERM, HUP or QUIT, after the command had ended and the lease was released
   64  usage: the command line was wrong, nothing was started
   69  the store could not be reached at the start, or can never be used as it is
   70  internal error
   75  not elected in time, with --wait or --try (--conflict-exit-code)
   76  the lease was lost while the last term was ending (--lost-exit-code)
  126  the command cannot be executed
  127  the command was not found";

/// The part of `--help` on exit statuses of `fence check`.
pub(crate) const OF_FENCE_CHECK: &str = "\
Exit status:
    0  the token is accepted; with a command: the command's own status
   64  usage: the command line was wrong, or the lease has never issued this token
   69  the store could not be reached
   70  internal error
   75  another command held the gate, with --wait or --try (--conflict-exit-code)
   77  stale: a higher token was seen before
  126  the command cannot be executed
  127  the command was not found";

/// The part of `--help` on exit statuses of `handoff`.
pub(crate) const OF_HANDOFF: &str = "\
Exit status:
    0  handed over
   64  usage: the command line was wrong
   69  the store could not be reached
   70  internal error
   78  aborted: the incumbent still leads
   79  released, or nobody led: nobody is known to have taken it yet";

/// The part of `--help` on exit statuses of the other verbs.
pub(crate) const OF_OTHERS: &str = "\
Exit status:
    0  done
   64  usage: the command line was wrong
   69  the store could not be reached
   70  internal error";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_contract() {
        let table = [
            (Exit::Done, 0),
            (Exit::Child(ChildStatus::Exited(3)), 3),
            (Exit::Child(ChildStatus::Signalled(9)), 137),
            (Exit::Signalled(15), 143),
            (Exit::Usage, 64),
            (Exit::Unreachable, 69),
            (Exit::Internal, 70),
            (Exit::NotAcquired(Exit::NOT_ACQUIRED), 75),
            (Exit::Lost(Exit::LOST), 76),
            (Exit::Stale, 77),
            (Exit::Aborted, 78),
            (Exit::Vacated, 79),
            (Exit::NotExecutable, 126),
            (Exit::NotFound, 127),
        ];
        for (exit, code) in table {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }
}
