//! The protected resource: a ledger that takes lines under a fence, and refuses a fence lower than one it took.
//!
//! One line a request and one a reply: `WRITE fence text` → `ok` | `stale presented highest`. It is served by the
//! test itself, so that its journal and the test read one clock.

use crate::{Deadline, Log};
use leasehold::{BootClock, Clock};
use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// A write that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When it was decided, in nanoseconds of the host's boot clock.
    pub at: u64,
    /// The fence that was presented.
    pub fence: u64,
    /// The line.
    pub text: String,
    /// The decision.
    pub verdict: Verdict,
}

/// What the ledger decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Written.
    Taken,
    /// Not written: a higher fence was taken before.
    Stale {
        /// That fence.
        highest: u64,
    },
}

/// The ledger. It is served until the test ends.
#[derive(Debug)]
pub struct Ledger {
    address: SocketAddr,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    // Compared, raised and journaled in one step: the journal's order is the order of the decisions.
    highest: Mutex<u64>,
    journal: Log<Entry>,
}

impl Ledger {
    /// Opens an empty ledger at a free port.
    ///
    /// # Panics
    /// If this host has no port left.
    #[must_use]
    pub fn open() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let gate = Arc::<Gate>::default();
        let serving = gate.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let gate = serving.clone();
                // A client that was frozen in the middle of a line must not hold up the others.
                thread::spawn(move || gate.serve(&client));
            }
        });
        Self { address, gate }
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything so far, refusals included, in the order of the decisions.
    #[must_use]
    pub fn journal(&self) -> Vec<Entry> {
        self.gate.journal.all()
    }

    /// The lines that were taken, with their fences.
    #[must_use]
    pub fn lines(&self) -> Vec<(u64, String)> {
        let taken = |entry: &Entry| entry.verdict == Verdict::Taken;
        self.journal().into_iter().filter(taken).map(|entry| (entry.fence, entry.text)).collect()
    }

    /// Waits for an entry that `fits`, among all so far too.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn wait(&self, what: &str, fits: impl Fn(&Entry) -> bool) -> Entry {
        self.wait_behind(0, what, fits)
    }

    /// Waits for an entry that `fits`, behind so many others.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn wait_behind(&self, others: usize, what: &str, fits: impl Fn(&Entry) -> bool) -> Entry {
        match self.gate.journal.wait(others, Deadline::patient(), fits) {
            Some((_, entry)) => entry,
            None => panic!("waited in vain for {what} in the ledger: {:#?}", self.journal()),
        }
    }
}

impl Gate {
    fn serve(&self, client: &TcpStream) {
        let Ok(mut answers) = client.try_clone() else { return };
        for line in BufReader::new(client).lines() {
            let Ok(line) = line else { return };
            let answer = self.answer(&line);
            if writeln!(answers, "{answer}").is_err() {
                return;
            }
        }
    }

    fn answer(&self, line: &str) -> String {
        let request = line.strip_prefix("WRITE ").and_then(|rest| rest.split_once(' '));
        let Some((Ok(fence), text)) = request.map(|(fence, text)| (fence.parse::<u64>(), text)) else {
            return format!("what? {line}");
        };
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = if fence < *highest { Verdict::Stale { highest: *highest } } else { Verdict::Taken };
        *highest = fence.max(*highest);
        self.journal.push(Entry { at: BootClock.now().as_nanos(), fence, text: text.into(), verdict });
        match verdict {
            Verdict::Taken => "ok".into(),
            Verdict::Stale { highest } => format!("stale {fence} {highest}"),
        }
    }
}
