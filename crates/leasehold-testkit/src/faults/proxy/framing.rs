//! Where one command ends and the next begins.

/// How a proxy tells commands apart.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Framing {
    /// Whatever a client sends in one piece. Right for clients that wait for each reply and send small commands.
    Chunks,
    /// Lines, each with its newline.
    Lines,
    /// The protocol of Redis: arrays of bulk strings, as clients send them.
    Resp,
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
            Self::Resp => resp(bytes),
            Self::Custom(first) => first(bytes).filter(|len| (1..=bytes.len()).contains(len)),
        }
    }
}

/// `*N`, then N times `$LEN` and so many bytes, each with a line break behind it. What begins otherwise is one line.
fn resp(bytes: &[u8]) -> Option<usize> {
    let (count, mut at) = header(bytes, 0, b'*').or_else(|| Some((0, line(bytes, 0)?)))?;
    for _ in 0..count {
        let (len, from) = header(bytes, at, b'$')?;
        at = from.checked_add(len)?.checked_add(2)?;
    }
    (at <= bytes.len()).then_some(at)
}

/// The number of a line that begins with `kind`, and where the line ends.
fn header(bytes: &[u8], from: usize, kind: u8) -> Option<(usize, usize)> {
    let end = line(bytes, from)?;
    let number = bytes[from..end - 1].strip_prefix(&[kind])?.strip_suffix(b"\r")?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, end))
}

/// Where the line ends that begins at `from`: behind its newline.
fn line(bytes: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| *byte == b'\n').map(|at| from + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_redis_are_whole_at_their_last_byte_and_not_before() {
        let both = b"*2\r\n$3\r\nGET\r\n$5\r\n*1\r\n\n\r\nPING\r\n";
        let first = both.len() - 6;
        for len in 0..first {
            assert_eq!(Framing::Resp.first(&both[..len]), None, "{len}");
        }
        assert_eq!(Framing::Resp.first(both), Some(first), "its value looks like a command");
        assert_eq!(Framing::Resp.first(&both[first..]), Some(6), "a command in a line");
        assert_eq!(Framing::Resp.first(b"*1\r\n$99999999999999999999\r\n"), None);
    }
}
