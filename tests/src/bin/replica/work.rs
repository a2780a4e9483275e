//! The worker: what is done while the lease is held.

use crate::{
    duties::Duties,
    voice::{self, Voice},
};
use leasehold::{BoxError, Fence, Stale, Term};
use leasehold_tests::{Order, What};
use std::{
    io::{BufRead, BufReader as LineReader, Write},
    net::{SocketAddr, TcpStream as BlockingStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{Interval, MissedTickBehavior, interval, timeout},
};

/// One term of work: obeys orders, and writes by itself if its part says so, until asked to end.
pub(crate) async fn lead(term: Term, duties: Arc<Duties>) -> Result<(), BoxError> {
    let fence = term.fence().get();
    let _stage = Stage::enter(duties.voice, &term);
    if duties.cast.sample {
        sample(term.clone(), duties.voice);
    }
    let pen = Pen { term, duties, checked: AtomicU64::new(0) };
    let mut ticks = pen.duties.cast.every.map(|every| {
        let mut ticks = interval(every.into());
        // After a pause one write is due, not all that were missed.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    let mut written = 0;
    loop {
        tokio::select! {
            _ = pen.term.quiescing() => return pen.finish_up().await,
            order = pen.duties.next() => match order {
                Order::Write(text) => pen.write(&text).await,
                Order::WriteUnder(fence, text) => pen.write_under(fence, &text).await,
                Order::InHand(text) => {
                    if pen.write_in_hand(&text) {
                        return Err("the write in hand was refused: this term is over".into());
                    }
                }
                Order::Block(ms) => {
                    pen.blocking(|| thread::sleep(Duration::from_millis(ms)));
                    pen.duties.voice.say(Some(fence), What::Unblocked);
                }
                Order::Panic => panic!("told to panic"),
                Order::Finish => return Ok(()),
                // For the process, which has them already.
                Order::Go | Order::Leave | Order::Abandon | Order::DropRuntime => {}
            },
            () = tick(&mut ticks) => {
                written += 1;
                pen.write(&format!("line {written}")).await;
            }
        }
    }
}

async fn tick(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

/// Says when the worker begins, and when its future is dropped.
struct Stage {
    voice: Voice,
    fence: u64,
}

impl Stage {
    fn enter(voice: Voice, term: &Term) -> Self {
        let (fence, until) = (term.fence().get(), term.grant().trusted_until());
        voice.say(Some(fence), What::Began { trusted_until: until.as_nanos() });
        Self { voice, fence }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.voice.say(Some(self.fence), What::Ended);
    }
}

/// Looks at the lease from a thread that nothing holds up, and tells when it was trusted for the last time.
fn sample(term: Term, voice: Voice) {
    thread::spawn(move || {
        let mut last = 0;
        loop {
            let at = voice::now();
            if term.check().is_err() {
                break;
            }
            last = at;
            thread::sleep(Duration::from_millis(1));
        }
        voice.say(Some(term.fence().get()), What::TrustedUntil { last });
    });
}

struct Pen {
    term: Term,
    duties: Arc<Duties>,
    // When the lease was last found to be trusted.
    checked: AtomicU64,
}

impl Pen {
    fn fence(&self) -> u64 {
        self.term.fence().get()
    }

    fn say(&self, what: What) {
        self.duties.voice.say(Some(self.fence()), what);
    }

    /// The last unit of work, which takes its time and goes on writing.
    async fn finish_up(&self) -> Result<(), BoxError> {
        let linger: Duration = self.duties.cast.linger.into();
        if linger.is_zero() {
            return Ok(());
        }
        let mut pace = interval(Duration::from_millis(20));
        let lingering = async {
            loop {
                pace.tick().await;
                self.write("finishing up").await;
            }
        };
        // It ends by the time, never by itself.
        let _ = timeout(linger, lingering).await;
        self.write("last words").await;
        Ok(())
    }

    async fn write(&self, text: &str) {
        // Before the check: if it passes, the lease was trusted at this instant too.
        let to = voice::now();
        match self.term.check() {
            Ok(permit) => {
                let from = self.checked.swap(to, Ordering::Relaxed);
                if from != 0 {
                    self.say(What::Trusted { from, to });
                }
                self.write_under(permit.fence().get(), text).await;
            }
            Err(lost) => {
                self.say(What::Unwritten { text: text.into(), cause: lost.cause.as_str().into() });
            }
        }
    }

    async fn write_under(&self, fence: u64, text: &str) {
        let Some(ledger) = self.duties.cast.ledger else { return };
        let answer = async {
            let mut stream = BufReader::new(TcpStream::connect(ledger).await?);
            stream.write_all(format!("WRITE {fence} {text}\n").as_bytes()).await?;
            let mut answer = String::new();
            stream.read_line(&mut answer).await?;
            Ok(answer)
        };
        self.answered(text, answer.await);
    }

    /// A write that is under way already when something happens: no await, so nothing can take it back. Whether it was
    /// refused.
    fn write_in_hand(&self, text: &str) -> bool {
        let Some(ledger) = self.duties.cast.ledger else { return false };
        let permit = match self.term.check() {
            Ok(permit) => permit,
            Err(lost) => {
                self.say(What::Unwritten { text: text.into(), cause: lost.cause.as_str().into() });
                return false;
            }
        };
        self.say(What::InHand { text: text.into() });
        let answer = self.blocking(|| {
            self.duties.await_leave_to_go();
            write_blocking(ledger, permit.fence(), text)
        });
        self.answered(text, answer)
    }

    fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.duties.cast.one_thread { work() } else { tokio::task::block_in_place(work) }
    }

    /// Tells the answer; whether it was a refusal.
    fn answered(&self, text: &str, answer: std::io::Result<String>) -> bool {
        let text = text.to_owned();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.say(What::LedgerGone { error: error.to_string() });
                return false;
            }
        };
        let words: Vec<_> = answer.split_whitespace().collect();
        let refusal = match words[..] {
            ["ok"] => {
                self.say(What::Wrote { text });
                return false;
            }
            ["stale", presented, highest] => presented.parse().ok().zip(highest.parse().ok()),
            _ => None,
        };
        let Some((presented, highest)) = refusal else {
            self.say(What::LedgerGone { error: format!("it answered {answer:?}") });
            return false;
        };
        self.say(What::Stale { text, presented, highest });
        self.outranked(presented, highest);
        true
    }

    /// A resource that knows a higher fence than ours is the proof that this term is over.
    fn outranked(&self, presented: u64, highest: u64) {
        if presented == self.fence()
            && let (Ok(presented), Ok(highest)) = (Fence::new(presented), Fence::new(highest))
        {
            self.term.outranked(Stale { presented, highest });
        }
    }
}

fn write_blocking(ledger: SocketAddr, fence: Fence, text: &str) -> std::io::Result<String> {
    let stream = BlockingStream::connect(ledger)?;
    writeln!(&stream, "WRITE {fence} {text}")?;
    let mut answer = String::new();
    LineReader::new(&stream).read_line(&mut answer)?;
    Ok(answer)
}
