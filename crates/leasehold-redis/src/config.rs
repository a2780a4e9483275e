//! Where a store is and how patient it is, from an address or from code.

use leasehold_core::StoreErrorKind;

/// The settings of a store.
#[derive(Clone)]
pub struct Config {
    pub(crate) client: redis::Client,
    pub(crate) prefix: String,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Config {
    /// Reads an address.
    ///
    /// # Errors
    /// [`StoreErrorKind::Config`].
    pub fn parse(address: &str) -> Result<Self, StoreErrorKind> {
        let client = redis::Client::open(address)
            .map_err(|e| StoreErrorKind::Config(e.to_string().into()))?;
        Ok(Self { client, prefix: "leasehold:".into() })
    }
}
