//! What the parent does to A and B, and what it expects of them.

use super::{
    document::{self, Lines},
    said::{Answer, Line, Said},
};
use crate::{clock::Stamp, process::Process};
use leasehold::{AttemptId, BoxError, Fence, Fenced, LeaseName, LeaseState, Node};
use rustix::process::Signal;
use std::{
    fmt,
    io::{self, Write},
    net::SocketAddr,
    time::Duration,
};
use tokio::{process::Command, sync::mpsc, time::timeout};

/// How A is kept from renewing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// SIGSTOP, and SIGCONT.
    Signal,
    /// It blocks the thread that its runtime runs on.
    OwnRuntime,
}

/// The lease of A.
const TTL: Duration = Duration::from_millis(300);
/// How long A is paused.
const PAUSED: Duration = Duration::from_millis(400);
/// The lease of B, which nobody pauses: long, so that a busy machine does not cost it.
const LONG: Duration = Duration::from_secs(10);
/// For what should take milliseconds, on a machine that is busy with something else.
const AMPLE: Duration = Duration::from_secs(20);

/// It did not go as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Differs {
    /// A lost its lease before it was paused: the machine was too busy for a lease of 300 ms. Nothing is wrong with
    /// anybody, and the scene may be played again.
    #[error("A lost its lease before it was paused: this machine is too busy for a lease of {TTL:?}")]
    TooBusy,
    /// Somebody said something else than expected.
    #[error("{who} should have said {expected:?}, and said {said:?}")]
    Said {
        /// Who.
        who: char,
        /// What was expected.
        expected: Said,
        /// What was said.
        said: Said,
    },
    /// Somebody said nothing.
    #[error("{who} said nothing for {AMPLE:?}, and should have said {expected:?}")]
    Silent {
        /// Who.
        who: char,
        /// What was expected.
        expected: Said,
    },
    /// The store tells something else.
    #[error("the store should say that B holds the lease under token 2, and says {0:?}")]
    Store(LeaseState),
    /// The document contains something else.
    #[error("the document should contain {expected:?}, and contains {lines:?}")]
    Document {
        /// What was expected.
        expected: Lines,
        /// What is there.
        lines: Lines,
    },
    /// Something could not even be tried.
    #[error(transparent)]
    Stage(#[from] BoxError),
}

/// One scene.
struct Scene<'a> {
    node: &'a Node,
    store: &'a str,
    lease: LeaseName,
    document: SocketAddr,
    from: Stamp,
}

/// A or B.
struct Player {
    name: char,
    process: Process,
    says: mpsc::UnboundedReceiver<Line>,
    from: Stamp,
}

/// Plays the scene on the store at `store`, for which `node` is open, under a fresh lease name, and tells it.
///
/// # Errors
/// [`Differs`] at the first thing that is not as it should be.
pub async fn play(node: &Node, store: &str, pause: Pause) -> Result<(), Differs> {
    // Fresh, so that the tokens are 1 and 2 on a store that has seen other runs.
    let lease = LeaseName::new(format!("paused-holder-{}", AttemptId::random())).map_err(BoxError::from)?;
    let (document, lines) = document::serve(node, lease.as_str()).await?;
    Scene { node, store, lease, document, from: Stamp::now() }.acts(pause, lines).await
}

impl Scene<'_> {
    async fn acts(self, pause: Pause, lines: Fenced<Lines>) -> Result<(), Differs> {
        let accepted = |token| Said::Wrote { token, answer: Answer::Accepted };
        let held = |token, before: &str| Said::Holds { token, before: before.to_owned() };

        let mut a = self.start('A', TTL, if pause == Pause::OwnRuntime { PAUSED } else { Duration::ZERO })?;
        a.expect_while_it_can(Said::Waits).await?;
        a.expect_while_it_can(held(1, "none")).await?;
        a.expect_while_it_can(accepted(1)).await?;
        let mut b = self.start('B', LONG, Duration::ZERO)?;
        b.expect(Said::Waits).await?;

        a.process.hold().await.map_err(BoxError::from)?;
        a.expect_in_hand().await?;
        let paused = tokio::time::sleep(PAUSED);
        if pause == Pause::Signal {
            a.process.freeze().await.map_err(BoxError::from)?;
            self.tell('A', &format!("… and is paused for {} ms (SIGSTOP)", PAUSED.as_millis()));
        } else {
            self.tell('A', &format!("… and blocks its own runtime for {} ms", PAUSED.as_millis()));
        }
        b.expect(held(2, "expired")).await?;
        b.expect(accepted(2)).await?;
        // Not before B has written: what A's write is refused by is B's.
        paused.await;
        a.process.go().await.map_err(BoxError::from)?;
        if pause == Pause::Signal {
            a.process.thaw().map_err(BoxError::from)?;
        }
        self.tell('A', "wakes, and goes on where it stood");
        a.expect(Said::Wrote { token: 1, answer: Answer::Refused { presented: 1, current: 2 } }).await?;
        a.expect_the_end_of_its_work().await?;
        a.expect(Said::Released { own: false, holder: Some(("B".to_owned(), 2)) }).await?;
        a.end().await?;

        self.b_holds().await?;
        b.process.hold().await.map_err(BoxError::from)?;
        b.expect_in_hand().await?;
        b.process.go().await.map_err(BoxError::from)?;
        b.expect(accepted(2)).await?;
        b.process.signal(Signal::TERM).map_err(BoxError::from)?;
        b.expect(Said::Released { own: true, holder: None }).await?;
        b.end().await?;

        let expected: Lines = vec![(1, "A".to_owned()), (2, "B".to_owned()), (2, "B".to_owned())];
        let lines = lines.write(fence(2)?, |lines| lines.clone()).await.map_err(BoxError::from)?;
        if lines == expected { Ok(()) } else { Err(Differs::Document { expected, lines }) }
    }

    fn start(&self, name: char, ttl: Duration, block: Duration) -> Result<Player, Differs> {
        let (heard, says) = mpsc::unbounded_channel();
        let mut command = Command::new(std::env::current_exe().map_err(BoxError::from)?);
        command.args(["--store", self.store, "--holder", &name.to_string(), "--lease", self.lease.as_str()]);
        command.args(["--document", &self.document.to_string()]);
        command.args([
            "--ttl",
            &format!("{}ms", ttl.as_millis()),
            "--block",
            &format!("{}ms", block.as_millis()),
        ]);
        let process = Process::start(&mut command, move |line| {
            let said = serde_json::from_str::<Line>(&line).unwrap_or_else(|_| Line {
                at: Stamp::now(),
                said: Said::Failed { why: format!("it says something that is no report: {line}") },
            });
            // The scene may have ended already.
            let _ = heard.send(said);
        });
        Ok(Player { name, process: process.map_err(BoxError::from)?, says, from: self.from })
    }

    fn tell(&self, who: char, what: &str) {
        tell(Stamp::now() - self.from, who, what);
    }

    async fn b_holds(&self) -> Result<(), Differs> {
        let record = self.node.store().inspect(&self.lease).await.map_err(BoxError::from)?;
        match record.state {
            LeaseState::Held { claim, .. } if claim.replica.as_str() == "B" && claim.fence.get() == 2 => {
                tell(Stamp::now() - self.from, "·", "the store says: B holds the lease, token 2");
                Ok(())
            }
            other => Err(Differs::Store(other)),
        }
    }
}

impl Player {
    /// The next thing that it says must be this one.
    async fn expect(&mut self, expected: Said) -> Result<(), Differs> {
        let said = self.listen(&expected).await?;
        if said == expected { Ok(()) } else { Err(Differs::Said { who: self.name, expected, said }) }
    }

    /// As [`Player::expect`], for A before its pause: a lease of 300 ms may be lost to a busy machine.
    async fn expect_while_it_can(&mut self, expected: Said) -> Result<(), Differs> {
        match self.expect(expected).await {
            Err(Differs::Said { said: Said::WorkEnded { .. }, .. }) => Err(Differs::TooBusy),
            other => other,
        }
    }

    async fn expect_in_hand(&mut self) -> Result<(), Differs> {
        // For how long the look is good is nothing to be exact about.
        let expected = Said::InHand { trusted_ms: 0 };
        match self.listen(&expected).await? {
            Said::InHand { .. } => Ok(()),
            Said::WorkEnded { .. } if self.name == 'A' => Err(Differs::TooBusy),
            said => Err(Differs::Said { who: self.name, expected, said }),
        }
    }

    async fn expect_the_end_of_its_work(&mut self) -> Result<(), Differs> {
        // Why: its own deadline, or the store's answer to its renewal. Whichever it hears first after it wakes.
        let expected = Said::WorkEnded { why: "the lease is lost".to_owned() };
        match self.listen(&expected).await? {
            Said::WorkEnded { .. } => Ok(()),
            said => Err(Differs::Said { who: self.name, expected, said }),
        }
    }

    async fn listen(&mut self, expected: &Said) -> Result<Said, Differs> {
        let silent = || Differs::Silent { who: self.name, expected: expected.clone() };
        let line = timeout(AMPLE, self.says.recv()).await.ok().flatten().ok_or_else(silent)?;
        tell(line.at - self.from, self.name, &line.said);
        Ok(line.said)
    }

    async fn end(self) -> Result<(), Differs> {
        let status =
            timeout(AMPLE, self.process.end()).await.map_err(BoxError::from)?.map_err(BoxError::from)?;
        if status.success() {
            return Ok(());
        }
        Err(Differs::Stage(format!("{} ended with {status}", self.name).into()))
    }
}

fn fence(number: u64) -> Result<Fence, Differs> {
    Ok(Fence::new(number).map_err(BoxError::from)?)
}

fn tell(at: Duration, who: impl fmt::Display, what: impl fmt::Display) {
    // Whoever closed the pipe does not want to read on; the verdict is in the exit status, too.
    let _ = writeln!(io::stdout(), "  {:>6} ms  {who}  {what}", at.as_millis());
}
