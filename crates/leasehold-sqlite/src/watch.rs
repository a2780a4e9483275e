//! The thread that looks: for whoever asks, for the watches of this process, and for its letters.
//!
//! ```text
//!  bell, witnesses ──► Listener (the system's events) ─┐
//!  reads, watches, inboxes of this process ────────────┼─► Lookout ─► feeds, and deliveries by the writer
//!  the safety poll, the end of the next lease ─────────┘
//! ```
//!
//! Events only save time. Whatever they fail to tell, the safety poll finds: it compares SQLite's data version, which
//! costs a look at shared memory, and feels the pulses of the witnesses.

use crate::{
    bell::{Listener, Sound},
    db::Db,
    error::Fault,
    feeds::Feeds,
    mail,
    thread::{self, Job},
    witness::{self, Pulse},
};
use leasehold_core::{BootClock, Clock, Envelope, Moment, ReplicaId, Scope, WatchFeed};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{mpsc as letters, oneshot};

/// How often it looks when the system gives no events (Linux gives a user 128 listeners).
const POLL_WITHOUT_EVENTS: Duration = Duration::from_millis(20);
/// How often it looks where the system does not tell that a file was closed.
const POLL_WITHOUT_CLOSES: Duration = Duration::from_millis(100);
/// When a witness was closed its lock falls a moment later: the kernel tells first and lets go then.
const PULSE_AGAIN: [u64; 5] = [0, 1, 3, 10, 30];

/// Something to do for the thread that looks.
pub(crate) enum Errand {
    Do(Job),
    Watch(Scope, WatchFeed, oneshot::Sender<Result<(), Fault>>),
    Open(ReplicaId, letters::Sender<Envelope>),
    Heard(Sound),
    Stop,
}

/// The handle of the thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Watcher {
    errands: mpsc::Sender<Errand>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts the thread. `writer` is used to take letters out of the store.
    pub(crate) fn start(db: Db, writer: mpsc::Sender<Job>) -> std::io::Result<Self> {
        let (errands, queue) = mpsc::channel();
        let lookout = Lookout {
            db,
            writer,
            own: errands.clone(),
            feeds: Feeds::default(),
            inboxes: Vec::new(),
            listener: None,
            deaf: false,
            rung: Arc::default(),
            data_version: None,
            next_patrol: Moment::ORIGIN,
            next_end: None,
        };
        let thread =
            std::thread::Builder::new().name("leasehold-watch".into()).spawn(|| lookout.run(queue))?;
        Ok(Self { errands, thread: Some(thread) })
    }

    /// Hands an errand over; false if the thread has ended.
    pub(crate) fn send(&self, errand: Errand) -> bool {
        self.errands.send(errand).is_ok()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The listener keeps a sender, so the channel would not close by itself.
        drop(self.errands.send(Errand::Stop));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

struct Lookout {
    db: Db,
    writer: mpsc::Sender<Job>,
    own: mpsc::Sender<Errand>,
    feeds: Feeds,
    inboxes: Vec<(ReplicaId, letters::Sender<Envelope>)>,
    listener: Option<Listener>,
    /// Whether it was said that there are no events.
    deaf: bool,
    /// Whether a ring is in the queue already: a thousand rings are one look.
    rung: Arc<AtomicBool>,
    data_version: Option<i64>,
    next_patrol: Moment,
    next_end: Option<Moment>,
}

impl Lookout {
    fn run(mut self, queue: mpsc::Receiver<Errand>) {
        loop {
            let errand = if self.is_idle() {
                queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                let next = self.next_end.map_or(self.next_patrol, |end| end.min(self.next_patrol));
                queue.recv_timeout(next.since(BootClock.now()))
            };
            match errand {
                Ok(Errand::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(errand) => self.guarded(|lookout| lookout.attend(errand)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !self.is_idle() {
                self.guarded(Self::patrol_if_due);
            }
        }
    }

    /// A panic costs the connection and one look, not the watches of the process.
    fn guarded(&mut self, step: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| step(self))).is_err() {
            tracing::error!(store = %self.db.site.address, "the watch of the store panicked; it goes on");
            self.db.reset();
            self.next_patrol = BootClock.now().after(self.db.site.safety_poll);
        }
    }

    fn is_idle(&self) -> bool {
        self.feeds.is_empty() && self.inboxes.is_empty()
    }

    fn attend(&mut self, errand: Errand) {
        match errand {
            Errand::Do(job) => thread::perform(&mut self.db, job),
            Errand::Watch(scope, feed, done) => {
                // First listen, then look: what changes in between is heard.
                self.listen();
                let added = self.feeds.add(&mut self.db, scope, feed);
                self.expect_next_end(Duration::ZERO);
                drop(done.send(added));
            }
            Errand::Open(me, inbox) => {
                self.listen();
                self.inboxes.push((me, inbox));
                self.collect_letters();
            }
            Errand::Heard(Sound::Rung) => {
                // Before the look, so that a ring during it is another look.
                self.rung.store(false, Ordering::SeqCst);
                self.feeds.look_at_news(&mut self.db);
                self.expect_next_end(Duration::ZERO);
                self.collect_letters();
            }
            Errand::Heard(Sound::Closed(witness)) => self.attend_death(&witness),
            Errand::Heard(Sound::Missed) => {
                self.listener = None;
                self.next_patrol = Moment::ORIGIN;
            }
            Errand::Stop => {}
        }
    }

    fn attend_death(&mut self, witness: &str) {
        let site = self.db.site.clone();
        for pause in PULSE_AGAIN {
            std::thread::sleep(Duration::from_millis(pause));
            match witness::pulse(&site.place, witness) {
                Pulse::Beats => {}
                Pulse::Stopped => return self.feeds.look_at_witness(&mut self.db, witness),
                // Withdrawn, or already buried.
                Pulse::Unknown => return,
            }
        }
    }

    fn patrol_if_due(&mut self) {
        let now = BootClock.now();
        if now >= self.next_patrol {
            self.patrol();
            let poll = self.db.site.safety_poll;
            let poll = match (&self.listener, cfg!(target_os = "linux")) {
                (None, _) => poll.min(POLL_WITHOUT_EVENTS),
                (Some(_), false) => poll.min(POLL_WITHOUT_CLOSES),
                (Some(_), true) => poll,
            };
            self.next_patrol = BootClock.now().after(poll);
        } else if self.next_end.is_some_and(|end| now >= end) {
            self.look_at_all();
        }
    }

    /// The safety poll.
    fn patrol(&mut self) {
        self.feeds.prune();
        self.inboxes.retain(|(_, inbox)| !inbox.is_closed());
        if self.is_idle() {
            self.listener = None;
            return;
        }
        let listened = self.listener.as_ref().is_some_and(|listener| listener.is_sound(&self.db.site.place));
        if !listened {
            self.listener = None;
            self.listen();
        }
        let generation = self.db.generation;
        let version =
            self.db.read(|conn, _, _| Ok(conn.query_row("PRAGMA data_version", (), |row| row.get(0))?));
        let version: Option<i64> = version.ok();
        let changed = version.is_none() || version != self.data_version || generation != self.db.generation;
        self.data_version = version;
        if changed || self.feeds.is_broken() || (!listened && self.listener.is_some()) {
            self.look_at_all();
            self.collect_letters();
        }
        self.feel_pulses();
        // Letters for which an inbox had no room.
        self.collect_letters();
    }

    fn look_at_all(&mut self) {
        let start = BootClock.now();
        self.feeds.look_at_all(&mut self.db);
        // Many leases end at many moments: however many they are, looking takes a twentieth of a processor at most.
        self.expect_next_end((BootClock.now().since(start) * 20).max(Duration::from_millis(5)));
    }

    fn expect_next_end(&mut self, not_within: Duration) {
        self.next_end = self.feeds.next_end.map(|end| BootClock.now().after(end.max(not_within)));
    }

    fn listen(&mut self) {
        if self.listener.is_some() {
            return;
        }
        let (own, rung) = (self.own.clone(), self.rung.clone());
        let listener = Listener::new(&self.db.site.place, move |sound| {
            if sound != Sound::Rung || !rung.swap(true, Ordering::SeqCst) {
                drop(own.send(Errand::Heard(sound)));
            }
        });
        match listener {
            Ok(listener) => {
                self.listener = Some(listener);
                self.deaf = false;
            }
            Err(cause) if !self.deaf => {
                self.deaf = true;
                tracing::warn!(
                    store = %self.db.site.address, %cause,
                    "no events from the filesystem; looking every {POLL_WITHOUT_EVENTS:?} instead"
                );
            }
            Err(_) => {}
        }
        // A ring that was promised by a listener that is gone will not come.
        self.rung.store(false, Ordering::SeqCst);
    }

    fn feel_pulses(&mut self) {
        if !self.feeds.is_attentive() {
            return;
        }
        let named = self.db.read(|conn, _, _| {
            let sql = "SELECT DISTINCT witness FROM lease WHERE witness IS NOT NULL";
            let mut select = conn.prepare_cached(sql)?;
            let mut rows = select.query(())?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                // One that is damaged has no pulse.
                found.extend(row.get_ref(0)?.as_str().map(str::to_owned));
            }
            Ok(found)
        });
        let site = self.db.site.clone();
        for witness in named.unwrap_or_default() {
            if !site.is_own_witness(&witness) && witness::pulse(&site.place, &witness) == Pulse::Stopped {
                self.feeds.look_at_witness(&mut self.db, &witness);
            }
        }
    }

    /// Has the writer deliver what lies for the open inboxes.
    fn collect_letters(&mut self) {
        if self.inboxes.is_empty() {
            return;
        }
        let waiting = self.db.read(|conn, _, _| mail::addressees(conn)).unwrap_or_default();
        for (me, inbox) in &self.inboxes {
            if waiting.contains(me.as_str()) {
                let (me, inbox) = (me.clone(), inbox.clone());
                drop(self.writer.send(Box::new(move |db| {
                    if let Err(failure) = mail::deliver(db, &me, &inbox) {
                        tracing::warn!(store = %db.site.address, fault = %failure.fault, "letters wait in the store");
                    }
                })));
            }
        }
    }
}
