//! All that happened, in one place and in the order of the clock.

use super::report::Report;
use crate::clock::Stamp;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::watch;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Stamp,
    /// To which replica.
    pub who: String,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The replica said so itself.
    Said(Report),
    /// The parent started the process.
    Started,
    /// The parent sent SIGKILL.
    Killed,
    /// The parent sent SIGSTOP, and the process stands still.
    Stopped,
    /// The parent sent SIGCONT.
    Continued,
    /// The parent sent SIGTERM.
    Terminated,
    /// The process is gone.
    Exited {
        /// Its status, or the signal that ended it, as the operating system says it.
        status: String,
        /// Whether that status is 0.
        clean: bool,
    },
}

/// What was waited for did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Missed {
    /// Not in time.
    #[error("waited {} for {what}, and it did not happen", humantime::format_duration(*.within))]
    Late {
        /// What.
        what: String,
        /// How long.
        within: Duration,
    },
    /// A replica is in trouble, so that waiting makes no sense any more.
    #[error("waited for {what}, but {who} is in trouble")]
    Trouble {
        /// What was waited for.
        what: String,
        /// Who is in trouble; the chronicle has it in its own words.
        who: String,
    },
}

/// The chronicle. Clones are the same one.
#[derive(Clone)]
pub struct Chronicle {
    entries: Arc<Mutex<Vec<Entry>>>,
    count: Arc<watch::Sender<usize>>,
    // Told of each entry as it is made, for those who watch the run.
    onlooker: Arc<dyn Fn(&Entry) + Send + Sync>,
}

impl Chronicle {
    /// An empty chronicle; `onlooker` is told of each entry.
    pub fn new(onlooker: impl Fn(&Entry) + Send + Sync + 'static) -> Self {
        Self { entries: Arc::default(), count: Arc::new(watch::Sender::new(0)), onlooker: Arc::new(onlooker) }
    }

    /// Enters what the parent did just now.
    pub fn note(&self, who: &str, what: What) {
        self.enter(Entry { at: Stamp::now(), who: who.to_owned(), what });
    }

    /// Enters what happened at a known time.
    pub fn enter(&self, entry: Entry) {
        (self.onlooker)(&entry);
        let count = {
            let mut entries = self.lock();
            entries.push(entry);
            entries.len()
        };
        self.count.send_replace(count);
    }

    /// All entries, sorted by time.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.lock().clone();
        entries.sort_by_key(|e| e.at);
        entries
    }

    /// Waits until `find` finds what it looks for among the entries made since the beginning.
    ///
    /// # Errors
    /// [`Missed`] if it is not there `within` the given time, or a replica reports trouble before.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        within: Duration,
        find: impl Fn(&[Entry]) -> Option<T>,
    ) -> Result<T, Missed> {
        let mut count = self.count.subscribe();
        let search = async {
            loop {
                count.mark_unchanged();
                {
                    let entries = self.lock();
                    if let Some(found) = find(&entries) {
                        return Ok(found);
                    }
                    let trouble = |e: &&Entry| matches!(e.what, What::Said(Report::Trouble { .. }));
                    if let Some(Entry { who, .. }) = entries.iter().find(trouble) {
                        return Err(Missed::Trouble { what: what.to_owned(), who: who.clone() });
                    }
                }
                // The sender is our own field: it cannot have gone.
                let _ = count.changed().await;
            }
        };
        let late = |_| Err(Missed::Late { what: what.to_owned(), within });
        tokio::time::timeout(within, search).await.unwrap_or_else(late)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Chronicle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chronicle").field("entries", &self.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_ends_when_it_happens_or_says_what_did_not() {
        let chronicle = Chronicle::new(|_| {});
        let waiting = {
            let chronicle = chronicle.clone();
            tokio::spawn(async move {
                let killed = |all: &[Entry]| all.iter().find(|e| e.what == What::Killed).cloned();
                chronicle.wait_for("a kill", Duration::from_secs(20), killed).await
            })
        };
        chronicle.note("r1", What::Started);
        tokio::task::yield_now().await;
        chronicle.note("r1", What::Killed);
        assert_eq!(waiting.await.unwrap().unwrap().who, "r1");

        let never = chronicle.wait_for("a miracle", Duration::from_millis(1), |_| None::<()>).await;
        assert_eq!(never.unwrap_err().to_string(), "waited 1ms for a miracle, and it did not happen");

        chronicle.note("r2", What::Said(Report::Trouble { what: "no disk".to_owned() }));
        let hopeless = chronicle.wait_for("a miracle", Duration::from_secs(20), |_| None::<()>).await;
        assert_eq!(hopeless.unwrap_err().to_string(), "waited for a miracle, but r2 is in trouble");
    }
}
