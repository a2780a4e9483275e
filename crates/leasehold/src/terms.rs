//! The settings of leases and elections, and the setters that both share.

use crate::{context::Context, error::ConfigError, holder::Settings};
use leasehold_core::Timing;
use std::time::Duration;

/// How a lease is to be held. Checked when it is first used, so that the setters can be chained.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    pub(crate) margin: Option<Duration>,
    pub(crate) renew_every: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) priority: i32,
    pub(crate) crash_witness: bool,
    pub(crate) join_within: Duration,
    pub(crate) abort_on_overrun: bool,
    pub(crate) max_silence: Option<Duration>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(10),
            margin: None,
            renew_every: None,
            grace: Duration::ZERO,
            priority: 0,
            crash_witness: false,
            join_within: Duration::from_secs(2),
            abort_on_overrun: false,
            max_silence: None,
        }
    }
}

impl Terms {
    pub(crate) fn timing(&self, ctx: &Context) -> Result<Timing, ConfigError> {
        let traits = ctx.store.traits();
        let mut timing = Timing::new(self.ttl)?.within(traits.min_ttl, traits.max_ttl)?;
        if let Some(renew_every) = self.renew_every {
            timing = timing.with_renew_every(renew_every)?;
        }
        if let Some(margin) = self.margin {
            timing = timing.with_margin(margin)?;
        }
        Ok(timing.with_grace(self.grace)?)
    }

    pub(crate) fn settings(&self, ctx: &Context) -> Result<Settings, ConfigError> {
        let timing = self.timing(ctx)?;
        if self.crash_witness && !ctx.store.traits().crash_witness {
            return Err(ConfigError::NoCrashWitness { kind: ctx.store.traits().kind });
        }
        // With renewals apart from the worker a pulse is not an option: without it a wedged worker would keep its
        // lease for ever.
        let max_silence = self.max_silence.or_else(|| ctx.apart.then(|| timing.ttl()));
        let renew_every = timing.renew_every();
        if let Some(max_silence) = max_silence.filter(|max| *max <= renew_every) {
            return Err(ConfigError::SilenceTooShort { max_silence, renew_every });
        }
        Ok(Settings {
            timing,
            join_within: self.join_within,
            release_within: timing.ttl().clamp(Duration::from_millis(500), Duration::from_secs(5)),
            abort_on_overrun: self.abort_on_overrun,
            max_silence,
        })
    }
}

/// The setters of both builders.
macro_rules! terms_setters {
    () => {
        /// How long the store keeps a claim without renewal: 50 ms to 24 h, default 10 s. Rounded up to whole
        /// milliseconds. It bounds how long everyone waits after a crash, not how long the work may take.
        pub fn ttl(mut self, ttl: std::time::Duration) -> Self {
            self.terms.ttl = ttl;
            self
        }

        /// How long before the store's expiry the claim is no longer trusted. Default ttl/10, at least 5 ms; it
        /// covers the difference in clock rate between this host and the store.
        pub fn margin(mut self, margin: std::time::Duration) -> Self {
            self.terms.margin = Some(margin);
            self
        }

        /// From one renewal to the next. Default ttl/3.
        pub fn renew_every(mut self, every: std::time::Duration) -> Self {
            self.terms.renew_every = Some(every);
            self
        }

        /// How long before the end of trust a worker whose renewals fail is asked to end. Default zero: it is told of
        /// the jeopardy, and dropped at the end of trust.
        pub fn grace(mut self, grace: std::time::Duration) -> Self {
            self.terms.grace = grace;
            self
        }

        /// Asks the store to end the claim as soon as the operating system ends this process, whatever the ttl. For
        /// fenced resources; a process that is only paused still costs the ttl. Default off.
        pub fn crash_witness(mut self, on: bool) -> Self {
            self.terms.crash_witness = on;
            self
        }

        /// The place among waiting candidates: higher goes first. Default 0.
        pub fn priority(mut self, priority: i32) -> Self {
            self.terms.priority = priority;
            self
        }

        /// How long a worker that was killed is waited for before an `overrun` is told. Default 2 s. The lease is not
        /// released before the worker has ended, however long that takes; it expires.
        pub fn join_within(mut self, within: std::time::Duration) -> Self {
            self.terms.join_within = within;
            self
        }

        /// Ends the whole process by `abort` when a killed worker overruns: for work that must not go on without its
        /// lease and whose resource cannot check fences. Default off.
        pub fn abort_on_overrun(mut self, on: bool) -> Self {
            self.terms.abort_on_overrun = on;
            self
        }

        /// Renews only while the worker gave a pulse within this time, which must be longer than
        /// [`renew_every`](Self::renew_every). Futures pulse by themselves as long as they
        /// give way; a worker actor answers `Notice::Pulse`. Default: off when renewals share the worker's runtime (a
        /// blocked runtime renews nothing), the ttl when they have [one of their own](crate::NodeBuilder::renew_on).
        pub fn max_silence(mut self, max: std::time::Duration) -> Self {
            self.terms.max_silence = Some(max);
            self
        }
    };
}
pub(crate) use terms_setters;
