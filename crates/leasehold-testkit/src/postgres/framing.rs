//! Where a client's command ends.

use crate::faults::Framing;

/// For a [`Proxy`](crate::Proxy) that counts commands: whatever the client waits for an answer to is one. A statement
/// with its text (`Query`), a whole extended query up to its `Sync`, and each step of a login.
#[must_use]
pub const fn framing() -> Framing {
    Framing::Custom(first)
}

fn first(bytes: &[u8]) -> Option<usize> {
    let mut end = 0;
    loop {
        let rest = bytes.get(end..)?;
        let tag = *rest.first()?;
        // What comes before the login has no tag; it begins with its length, which is far below 2^24.
        let tagged = usize::from(tag != 0);
        let length = rest.get(tagged..tagged + 4)?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        end += tagged + usize::try_from(length).ok()?.max(4);
        if end > bytes.len() {
            return None;
        }
        if matches!(tag, 0 | b'Q' | b'S' | b'X' | b'p' | b'F') {
            return Some(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::first;

    fn message(tag: &[u8], body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [tag, &length.to_be_bytes(), body].concat()
    }

    #[test]
    fn a_command_is_what_is_answered() {
        let startup = message(b"", b"\0\x03\0\0user\0app\0\0");
        let query = message(b"Q", b"SELECT 1\0");
        let extended =
            [message(b"P", b"\0SELECT 1\0\0\0"), message(b"D", b"S\0"), message(b"S", b"")].concat();
        for whole in [&startup, &query, &extended] {
            assert_eq!(first(whole), Some(whole.len()));
            assert_eq!(first(&[&whole[..], b"Q"].concat()), Some(whole.len()), "and no byte of the next one");
            for cut in 0..whole.len() {
                assert_eq!(first(&whole[..cut]), None, "{cut} bytes are no whole command");
            }
        }
    }
}
