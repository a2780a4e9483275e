//! The signals that concern a command under a lease.

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::Signal;
use std::{
    fs,
    future::poll_fn,
    io,
    task::{Context, Poll, Waker},
};
use tokio::signal::unix::{self, SignalKind};

/// Those that go on to the command's group.
const CONCERNED: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];

/// Makes this process fit to look after a command. Called first on the main thread, before there are others.
///
/// A background process that writes to a terminal, or gives it to somebody, is stopped by TTOU on some terminals; while
/// the command is in the foreground, the background process is us, and a wrapper that is stopped renews nothing.
pub fn prepare() {
    let mut ttou = SigSet::empty();
    ttou.add(NixSignal::SIGTTOU);
    // It cannot fail for a valid set. Children start with an empty mask.
    ttou.thread_block().ok();
}

/// A listener to the signals that concern a command. Several may listen; each hears each signal, though two of one
/// kind in quick succession may become one, as signals do.
#[derive(Debug)]
pub struct Signals {
    heard: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// Begins to listen. From now on these signals no longer end or stop the process, for the rest of its life.
    ///
    /// A signal that was ignored when the program started stays ignored, for the command too: that is what `nohup`
    /// and the background jobs of scripts rely on.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let heard = CONCERNED
            .into_iter()
            .filter(|signal| ignored & (1 << (signal.as_raw() - 1)) == 0)
            .map(|signal| Ok((signal, unix::signal(SignalKind::from_raw(signal.as_raw()))?)))
            .collect::<io::Result<_>>()?;
        Ok(Self { heard })
    }

    /// The next signal. Cancel safe.
    pub async fn next(&mut self) -> Signal {
        poll_fn(|context| self.poll(context)).await
    }

    /// The next signal that asks this process to end. Others that come before it are passed over. Cancel safe.
    pub async fn next_end(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if asks_to_end(signal) {
                return signal;
            }
        }
    }

    /// Takes what has come so far, without waiting: the first signal that asks to end, if any did.
    pub fn pending_end(&mut self) -> Option<Signal> {
        let mut context = Context::from_waker(Waker::noop());
        let mut end = None;
        while let Poll::Ready(signal) = self.poll(&mut context) {
            if asks_to_end(signal) {
                end.get_or_insert(signal);
            }
        }
        end
    }

    /// Waits for one signal and leaves the others for later; returns at once if it is ignored.
    pub(crate) async fn hear(&mut self, signal: Signal) {
        if let Some((_, stream)) = self.heard.iter_mut().find(|(heard, _)| *heard == signal) {
            stream.recv().await;
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Signal> {
        for (signal, stream) in &mut self.heard {
            if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    }
}

/// Whether a signal asks a process to end: INT, TERM, HUP, QUIT.
#[must_use]
pub fn asks_to_end(signal: Signal) -> bool {
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal)
}

/// Stops this process, as TSTP would have if nobody listened to it. Returns when it is continued.
pub fn pause() {
    rustix::process::kill_process(rustix::process::getpid(), Signal::STOP).ok();
}

/// The mask of ignored signals, bit n-1 for signal n. Where it cannot be known, none.
fn ignored() -> u64 {
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .unwrap_or(0)
}
