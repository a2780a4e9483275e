//! What every verb that uses the store begins with.

use crate::{cli::Common, config, events::Events, exit::Exit, say};
use leasehold::{Node, ReplicaId, SharedStore, StartError, StoreError, StoreErrorKind};
use std::{future::Future, time::Duration};
use tokio::time::timeout;

/// The longest that a store may take to answer a question that no lease depends on.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// An open store, and who we are at it.
#[derive(Debug)]
pub(crate) struct Session {
    /// The address, secrets included: for the command's environment, never for a message.
    pub(crate) url: String,
    pub(crate) replica: ReplicaId,
    pub(crate) store: SharedStore,
    pub(crate) events: Events,
}

impl Session {
    /// Opens the store and the events' file. What fails has been said.
    pub(crate) async fn open(common: Common) -> Result<Self, Exit> {
        let url = common.store.filter(|url| !url.is_empty()).unwrap_or_else(config::default_store);
        let url = config::anchored(&url);
        let replica = common.replica.unwrap_or_else(config::default_replica);
        let events = Events::open(common.events.as_deref(), &replica, common.log).map_err(|error| {
            say::note(error);
            Exit::Usage
        })?;
        let store = match timeout(ANSWER_WITHIN, leasehold::connect(&url)).await {
            Ok(Ok(store)) => store,
            Ok(Err(error)) => return Err(store_failed(&error)),
            Err(_) => {
                say::note(format_args!("{} did not open within {ANSWER_WITHIN:?}", config::redacted(&url)));
                return Err(Exit::Unreachable);
            }
        };
        Ok(Self { url, replica, store, events })
    }

    /// A node on the store, whose events are written.
    pub(crate) async fn node(&self) -> Result<Node, Exit> {
        let events = self.events.clone();
        let started = Node::builder(self.store.clone())
            .replica(self.replica.clone())
            .observe(move |event| events.observe(event))
            .start()
            .await;
        started.map_err(|error| {
            say::note(&error);
            match error {
                StartError::Store(_) => Exit::Unreachable,
                _ => Exit::Internal,
            }
        })
    }

    /// Bounds a question to the store. What fails has been said.
    pub(crate) async fn ask<T>(
        &self,
        question: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Exit> {
        self.ask_for(Duration::ZERO, question).await
    }

    /// As [`ask`](Self::ask), for questions that take some time by themselves.
    pub(crate) async fn ask_for<T>(
        &self,
        length: Duration,
        question: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Exit> {
        match timeout(length + ANSWER_WITHIN, question).await {
            Ok(answer) => answer.map_err(|error| store_failed(&error)),
            Err(_) => {
                say::note(format_args!("{} did not answer within {ANSWER_WITHIN:?}", self.store.address()));
                Err(Exit::Unreachable)
            }
        }
    }

    /// Lets the events be written out, and says how many were not.
    pub(crate) fn finish(&self) {
        let dropped = self.events.finish(Duration::from_millis(500));
        if dropped > 0 {
            say::note(format_args!("{dropped} events could not be written"));
        }
    }
}

/// Says what failed. An address that no store understands is a fault of the command line.
pub(crate) fn store_failed(error: &StoreError) -> Exit {
    say::note(error);
    match error.kind() {
        StoreErrorKind::Config(_) | StoreErrorKind::NeverIssued { .. } => Exit::Usage,
        _ => Exit::Unreachable,
    }
}
