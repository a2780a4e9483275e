//! Names of keys and channels.
//!
//! Every name of one lease holds the same hash tag, `{…}`, so that a Cluster keeps them in one slot and one script may
//! use them all. What a name itself holds of `{`, `}` and `%` is percent-encoded: two names never share a key.
//!
//! ```text
//! leasehold:{NAME}:claim     string, expires   who holds the lease, or for whom it is kept
//! leasehold:{NAME}:fence     hash, stays       the fence counter, and how the terms went
//! leasehold:{NAME}:roster    hash, expires     who wants the lease
//! leasehold:{NAME}:ends      sorted set, expires   when each candidacy ends
//! leasehold:{NAME}:gate:R    string, stays     the highest fence that resource R has seen
//! leasehold:{NAME}:door:R    string, expires   who goes through that gate just now
//! leasehold:{NAME}:events    channel           each change of hands
//! leasehold:{REPLICA}:mail   list, expires     letters; also the channel that says there are some
//! leasehold:witness:NONCE    channel           subscribed as long as a process lives
//! leasehold:{NONCE}:echo     channel           what a process says to itself, to find out whether it hears
//! ```

use leasehold_core::{LeaseName, ReplicaId, ResourceName};
use percent_encoding::{AsciiSet, percent_decode, utf8_percent_encode};
use std::sync::Arc;

/// What would end or forge a hash tag.
const TAG: &AsciiSet = &percent_encoding::AsciiSet::EMPTY.add(b'%').add(b'{').add(b'}');

/// The names below one prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: Arc<str>,
}

impl Keys {
    /// `prefix` holds no brace: the first brace of a key begins its hash tag.
    pub(crate) fn new(prefix: impl Into<Arc<str>>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// The claim, the fence and the events of a lease: what each change of hands needs.
    pub(crate) fn of(&self, lease: &LeaseName) -> [String; 3] {
        let tag = self.tagged(lease.as_str(), "");
        [":claim", ":fence", ":events"].map(|suffix| [tag.as_str(), suffix].concat())
    }

    pub(crate) fn claim(&self, lease: &LeaseName) -> String {
        self.tagged(lease.as_str(), ":claim")
    }

    pub(crate) fn fence(&self, lease: &LeaseName) -> String {
        self.tagged(lease.as_str(), ":fence")
    }

    pub(crate) fn roster(&self, lease: &LeaseName) -> String {
        self.tagged(lease.as_str(), ":roster")
    }

    /// When each candidacy of the roster ends.
    pub(crate) fn ends(&self, lease: &LeaseName) -> String {
        self.tagged(lease.as_str(), ":ends")
    }

    /// Beside the lease, so that one script can compare with the counter.
    pub(crate) fn gate(&self, lease: &LeaseName, resource: &ResourceName) -> String {
        self.tagged(lease.as_str(), ":gate:") + &encode(resource.as_str())
    }

    /// What keeps writers apart at a gate.
    pub(crate) fn door(&self, lease: &LeaseName, resource: &ResourceName) -> String {
        self.tagged(lease.as_str(), ":door:") + &encode(resource.as_str())
    }

    pub(crate) fn events(&self, lease: &LeaseName) -> String {
        self.tagged(lease.as_str(), ":events")
    }

    pub(crate) fn mail(&self, replica: &ReplicaId) -> String {
        self.tagged(replica.as_str(), ":mail")
    }

    pub(crate) fn witness(&self, nonce: &str) -> String {
        format!("{}witness:{nonce}", self.prefix)
    }

    pub(crate) fn echo(&self, nonce: &str) -> String {
        self.tagged(nonce, ":echo")
    }

    /// The pattern of all channels, for PSUBSCRIBE. Not only those of events: the right to subscribe a pattern is given for
    /// just that pattern, letter by letter, and this is the one that rights are given for.
    pub(crate) fn every_channel(&self) -> String {
        self.escaped() + "*"
    }

    /// The pattern of all counters, for SCAN.
    pub(crate) fn every_fence(&self) -> String {
        self.pattern(":fence")
    }

    /// The pattern of all claims, for SCAN.
    pub(crate) fn every_claim(&self) -> String {
        self.pattern(":claim")
    }

    /// The lease of a key or channel that ends with `suffix`, such as `:fence`.
    pub(crate) fn lease_of(&self, key: &[u8], suffix: &str) -> Option<LeaseName> {
        let tag = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"{")?;
        let tag = tag.strip_suffix(suffix.as_bytes())?.strip_suffix(b"}")?;
        let name = percent_decode(tag).decode_utf8().ok()?;
        // Only as we would have written it: `%61` is nobody's `a`.
        let name = LeaseName::new(&*name).ok()?;
        (encode(name.as_str()).as_bytes() == tag).then_some(name)
    }

    fn tagged(&self, name: &str, suffix: &str) -> String {
        format!("{}{{{}}}{suffix}", self.prefix, encode(name))
    }

    fn pattern(&self, suffix: &str) -> String {
        self.escaped() + "{*}" + suffix
    }

    fn escaped(&self) -> String {
        let mut pattern = String::new();
        for c in self.prefix.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '^' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern
    }
}

/// The Cluster's slot of a key: CRC16 of its hash tag, or of the whole key if it has none.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&b| b == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|&b| b == b'}').filter(|&close| close > 0)?;
        Some(&rest[..close])
    });
    crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(key)) % 16_384
}

fn encode(name: &str) -> String {
    utf8_percent_encode(name, TAG).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(slot(b"123456789"), 0x31C3);
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"));
    }

    #[test]
    fn names_with_braces_share_no_key_and_come_back() {
        let keys = Keys::new("app[1]:");
        let mut seen = std::collections::HashSet::new();
        for name in ["a", "{a}", "a}", "{", "}:claim", "%7B", "{a", "a}:claim{b", "ä ö*?", "%"] {
            let lease = LeaseName::new(name).unwrap();
            assert!(seen.insert(keys.fence(&lease)), "{name}");
            assert_eq!(keys.lease_of(keys.fence(&lease).as_bytes(), ":fence").unwrap(), lease);
            // What Redis takes for the hash tag is the whole name and nothing else.
            let key = keys.claim(&lease);
            let tag = &key[key.find('{').unwrap() + 1..key.find('}').unwrap()];
            assert_eq!(tag, encode(name));
        }
        assert_eq!(keys.every_fence(), "app\\[1\\]:{*}:fence");
        for strange in ["app[1]:{a}:claim", "app[1]:{%61}:fence", "other:{a}:fence", "app[1]:{}:fence"] {
            assert_eq!(keys.lease_of(strange.as_bytes(), ":fence"), None, "{strange}");
        }
    }
}
