//! A check from outside that a command does its work: `--pulse-cmd`.
//!
//! A process that hangs keeps its lease for ever, since its wrapper renews it. Only somebody who knows the work can
//! tell that it hangs.

use super::Duty;
use crate::child::{Child, ChildEvent, ChildStatus, Order, SpawnError};
use leasehold::Term;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Why a lease is given up although it could be renewed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PulseFailure {
    /// The check failed.
    #[error("the pulse command ended with status {}", .0.code())]
    Failed(ChildStatus),
    /// The check did not end in time.
    #[error("the pulse command did not end within {0:?}")]
    Hung(Duration),
    /// The check could not be started.
    #[error("the pulse command cannot be started: {0}")]
    NotStarted(SpawnError),
}

impl Duty {
    /// Takes the pulse as often as the lease is renewed; ends only when it fails.
    pub(super) async fn watch_pulse(&self, term: &Term) -> PulseFailure {
        let Some(script) = &self.pulse else { return std::future::pending().await };
        let order = Order::new("/bin/sh".into(), vec!["-c".into(), script.clone()]).apart();
        let order = self.under(term, None, order);
        loop {
            // First a pause: a command that is just starting may be excused.
            sleep(self.pulse_every).await;
            let mut check = match Child::spawn(&self.reaper, &order, None) {
                Ok(check) => check,
                Err(error) => return PulseFailure::NotStarted(error),
            };
            let ended = timeout(self.pulse_every, ended(&mut check)).await;
            // What it left behind goes with it.
            check.kill().await;
            match ended {
                Ok(ChildStatus::Exited(0)) => {}
                Ok(status) => return PulseFailure::Failed(status),
                Err(_) => return PulseFailure::Hung(self.pulse_every),
            }
        }
    }
}

/// A check that is stopped has not ended.
async fn ended(check: &mut Child) -> ChildStatus {
    loop {
        if let ChildEvent::Exited(status) = check.event().await {
            return status;
        }
    }
}
