//! A store's site: where it is, and by what it judges time. Shared by the threads of one store instance.

use crate::{
    bell::Bell,
    config::{self, Config},
    disk,
    error::Fault,
    place::Place,
    witness::Witness,
};
use leasehold_core::{Clock, Moment, StoreErrorKind};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// What does not change while a store is open, and its one witness.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) place: Place,
    /// `sqlite:` and the resolved path. It holds no secret.
    pub(crate) address: Arc<str>,
    pub(crate) busy_timeout: Duration,
    pub(crate) safety_poll: Duration,
    pub(crate) boot: Arc<str>,
    pub(crate) bell: Bell,
    clock: Arc<dyn Clock>,
    // A std mutex: taken by one thread of the store at a time, and by its drop.
    witness: Mutex<Option<Arc<Witness>>>,
    closing: AtomicBool,
}

impl Site {
    /// Resolves a configuration; makes the directory.
    pub(crate) fn new(config: &Config) -> Result<Self, Fault> {
        config::check_path(&config.path)?;
        let place = Place::resolve(&config.path)?;
        Ok(Self {
            address: format!("sqlite:{}", place.db.display()).into(),
            busy_timeout: config.busy_timeout,
            safety_poll: config.safety_poll,
            boot: config.boot_id()?,
            bell: Bell::default(),
            clock: config.clock.clone(),
            witness: Mutex::default(),
            closing: AtomicBool::new(false),
            place,
        })
    }

    /// The moment by which expiry is judged. Read it inside a transaction: then the store's time never runs
    /// backwards from one change to the next.
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The witness of this instance, made at the first call.
    pub(crate) fn witness(&self) -> Result<Arc<Witness>, Fault> {
        let mut witness = self.witness.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(witness) = &*witness {
            return Ok(witness.clone());
        }
        let fresh = Arc::new(Witness::appear(&self.place)?);
        *witness = Some(fresh.clone());
        Ok(fresh)
    }

    /// Whether `name` is the witness of this instance.
    pub(crate) fn is_own_witness(&self, name: &str) -> bool {
        let witness = self.witness.lock().unwrap_or_else(PoisonError::into_inner);
        witness.as_ref().is_some_and(|own| own.name() == name)
    }

    /// Says that the store is being dropped: whoever waits for a lock stops waiting.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub(crate) fn disk_trouble(&self) -> StoreErrorKind {
        disk::trouble(&self.place.db)
    }
}
