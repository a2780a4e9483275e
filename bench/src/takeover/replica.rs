//! One replica as a process: waits for the lease, works until it is told to end, waits again.

use super::polling;
use anyhow::{Context as _, bail};
use leasehold::{BootClock, Clock, Moment, Node};
use std::{process::Stdio, str::FromStr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines, Stdin},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Mutex,
    time::timeout,
};

/// By what means a replica gets its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Leasehold,
    /// With the crash witness.
    Witness,
    /// The yardstick: tries to acquire every ttl/3.
    Polling,
}

impl FromStr for Way {
    type Err = anyhow::Error;
    fn from_str(word: &str) -> anyhow::Result<Self> {
        Ok(match word {
            "Leasehold" => Self::Leasehold,
            "Witness" => Self::Witness,
            "Polling" => Self::Polling,
            _ => bail!("no such way: {word}"),
        })
    }
}

/// A replica's process, in the hands of the measurement.
pub(super) struct Replica {
    process: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

/// Nothing measured takes longer; a replica that is silent for this long is broken.
const SILENCE: Duration = Duration::from_secs(60);

impl Replica {
    pub(super) async fn spawn(url: &str, name: &str, ttl: Duration, way: Way) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["holder", url, name, &ttl.as_millis().to_string(), &format!("{way:?}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let to = process.stdin.take().context("piped")?;
        let from = BufReader::new(process.stdout.take().context("piped")?).lines();
        Ok(Self { process, to, from })
    }

    async fn hear(&mut self, word: &str) -> anyhow::Result<Moment> {
        let line = timeout(SILENCE, self.from.next_line()).await??.context("the replica ended")?;
        let (said, at) = line.split_once(' ').context("a replica says a word and a time")?;
        if said != word {
            bail!("the replica said {said:?} instead of {word:?}");
        }
        Ok(Moment::from_nanos(at.parse()?))
    }

    /// Lets it campaign; it leads at once, for nobody else wants the lease.
    pub(super) async fn begins(&mut self) -> anyhow::Result<()> {
        self.to.write_all(b"campaign\n").await?;
        self.leads().await?;
        Ok(())
    }

    /// Lets it campaign, and waits until it has met somebody else's holding.
    pub(super) async fn waits(&mut self) -> anyhow::Result<()> {
        self.to.write_all(b"campaign\n").await?;
        self.hear("waits").await?;
        // It says so as it begins; its first attempt, its place in the roster and its watch follow at once.
        tokio::time::sleep(Duration::from_millis(60)).await;
        Ok(())
    }

    /// When its work began.
    pub(super) async fn leads(&mut self) -> anyhow::Result<Moment> {
        self.hear("leads").await
    }

    /// Ends its work; when that ended.
    pub(super) async fn end(&mut self) -> anyhow::Result<Moment> {
        self.to.write_all(b"end\n").await?;
        self.hear("ended").await
    }

    /// Kills it; when.
    pub(super) async fn kill(&mut self) -> anyhow::Result<Moment> {
        let at = BootClock.now();
        self.process.start_kill()?;
        self.process.wait().await?;
        Ok(at)
    }
}

/// The process itself.
#[tokio::main]
pub(crate) async fn holder(arguments: &[&str]) -> anyhow::Result<()> {
    let [url, name, ttl, way] = arguments else { bail!("holder URL NAME TTL_MS WAY") };
    let (ttl, way): (_, Way) = (Duration::from_millis(ttl.parse()?), way.parse()?);
    let commands: Commands = Arc::new(Mutex::new(BufReader::new(tokio::io::stdin()).lines()));
    let work = {
        let commands = commands.clone();
        move || {
            let commands = commands.clone();
            async move {
                say("leads");
                let _ = commands.lock().await.next_line().await;
                say("ended");
            }
        }
    };
    let store = leasehold::connect(url).await?;
    let node = Node::builder(store.clone()).start().await?;
    // Only when told to: an old leader that bids again at once would be its own successor.
    while commands.lock().await.next_line().await?.is_some() {
        if store.inspect(&(*name).try_into()?).await?.claim().is_some() {
            say("waits");
        }
        let work = work.clone();
        if way == Way::Polling {
            polling::coordinate(&store, name, ttl, work).await?;
        } else {
            let lease = node.lease(*name).ttl(ttl).crash_witness(way == Way::Witness);
            drop(lease.hold(move |_| work()).await?);
        }
    }
    Ok(())
}

type Commands = Arc<Mutex<Lines<BufReader<Stdin>>>>;

pub(super) fn say(word: &str) {
    println!("{word} {}", BootClock.now().as_nanos());
}
