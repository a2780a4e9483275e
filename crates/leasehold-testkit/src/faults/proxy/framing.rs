//! Where one command ends and the next begins.

/// How a proxy tells commands apart.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Framing {
    /// Whatever a client sends in one piece. Right for clients that wait for each reply and send small commands.
    Chunks,
    /// Lines, each with its newline.
    Lines,
    /// The length of the first whole command in these bytes, or `None` if it is not whole yet. The place for a server's
    /// own protocol.
    Custom(fn(&[u8]) -> Option<usize>),
}

impl Framing {
    /// The length of the first whole command.
    pub(super) fn first(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Chunks => (!bytes.is_empty()).then_some(bytes.len()),
            Self::Lines => bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
            Self::Custom(first) => first(bytes).filter(|len| (1..=bytes.len()).contains(len)),
        }
    }
}
