//! How a process ended.

use rustix::process::WaitStatus;

/// How the command itself (not what it left behind) ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildStatus {
    /// It exited with this status.
    Exited(u8),
    /// A signal, by number, ended it.
    Signalled(i32),
}

impl ChildStatus {
    /// What a shell would show: the status itself, or 128+n.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            // Signals are 1 to 64, so that the sum fits.
            Self::Signalled(signal) => 128u8.wrapping_add(signal as u8),
        }
    }

    /// `None` for a process that was only stopped or continued.
    pub(super) fn of(status: WaitStatus) -> Option<Self> {
        match (status.exit_status(), status.terminating_signal()) {
            // The kernel hands on the low eight bits of what was passed to exit(2).
            (Some(code), _) => Some(Self::Exited(code as u8)),
            (_, Some(signal)) => Some(Self::Signalled(signal)),
            _ => None,
        }
    }
}
