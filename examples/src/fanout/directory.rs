//! Where the replicas are: what a service registry is to a real service. A replica that restarts gets a new address.

use axum::{Json, extract::State};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
};

/// Replica ids and their present addresses.
#[derive(Debug, Clone, Default)]
pub struct Directory(Arc<RwLock<BTreeMap<String, SocketAddr>>>);

impl Directory {
    /// Enters a replica, or its new address.
    pub fn enter(&self, replica: &str, addr: SocketAddr) {
        // No code panics under this lock; a map is whole after each insert.
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(replica.to_owned(), addr);
    }

    /// The present address of a replica.
    #[must_use]
    pub fn find(&self, replica: &str) -> Option<SocketAddr> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(replica).copied()
    }
}

/// The handler of `GET /replicas`.
pub async fn replicas(State(directory): State<Directory>) -> Json<BTreeMap<String, SocketAddr>> {
    Json(directory.0.read().unwrap_or_else(PoisonError::into_inner).clone())
}
