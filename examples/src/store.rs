//! The store of an example: one that several processes can share.

use leasehold::{Reach, SharedStore, StoreError};

/// A store that the example cannot use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// It cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Every process would have one of its own.
    #[error("a {0}: store lives in one process, and this example runs several: use sqlite:PATH, for one")]
    NotShared(&'static str),
}

/// Opens the store at `url`.
///
/// # Errors
/// [`Unusable`], before any process was started.
pub async fn open(url: &str) -> Result<SharedStore, Unusable> {
    let store = leasehold::connect(url).await?;
    match store.traits().reach {
        Reach::Process => Err(Unusable::NotShared(store.traits().kind)),
        _ => Ok(store),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_that_each_process_would_have_of_its_own_is_refused() {
        let error = open("memory:").await.unwrap_err().to_string();
        assert!(error.starts_with("a memory: store lives in one process"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        assert!(open(&format!("sqlite:{}", dir.path().join("leases.db").display())).await.is_ok());
    }
}
