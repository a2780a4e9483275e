//! What is done to the leaders, and what is expected of the rest.

use super::{
    LEASE,
    reader::Reader,
    replica::{Line, Said},
};
use crate::{
    clock::{Brief, Stamp},
    process::Process,
};
use leasehold::BoxError;
use rustix::process::Signal;
use std::{
    io::{Write as _, stdout},
    time::Duration,
};
use tokio::{process::Command, sync::mpsc, time::timeout};

/// What to play.
#[derive(Debug)]
pub struct Plan {
    /// The server.
    pub store: String,
    /// How many replicas.
    pub replicas: u8,
    /// Of the lease.
    pub ttl: Duration,
    /// For how long each leader works in peace.
    pub peace: Duration,
    /// One object at the end instead of lines.
    pub json: bool,
}

/// Far above what anything takes: it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    replicas: Vec<(String, Option<Process>)>,
    lines: mpsc::UnboundedReceiver<(usize, Line)>,
    begun: Stamp,
    json: bool,
}

/// Plays it.
///
/// # Errors
/// What differed from what was expected.
pub async fn play(plan: Plan) -> Result<(), BoxError> {
    // What an earlier run left stays: its mark above all (I1). Fences go on from there, and so do the versions.
    let mut stage = Stage::set(&plan)?;
    let reader = Reader::start(&plan.store).await?;

    let (first, one, _) = stage.leader(0).await?;
    stage.tell(&format!("{} leads under fence {one}, and refreshes", stage.name(first)));
    stage.peace(plan.peace).await;

    let killed = Stamp::now();
    stage.kill(first).await?;
    stage.tell(&format!("{} is killed (SIGKILL)", stage.name(first)));
    let (second, two, led) = stage.leader(one).await?;
    let crash_gap = led.0 - killed;
    let how = &led.1;
    stage.tell(&format!(
        "{} leads under fence {two}; the one before {how}; nobody led for {}",
        stage.name(second),
        Brief(crash_gap)
    ));
    stage.peace(plan.peace).await;

    stage.process(second)?.hold().await?;
    stage
        .until("the leader to stand before its write", |at, said| {
            at == second && matches!(said, Said::InHand)
        })
        .await?;
    let frozen = Stamp::now();
    stage.process(second)?.freeze().await?;
    stage.tell(&format!(
        "{} has looked at its lease, is about to write, and is frozen (SIGSTOP)",
        stage.name(second)
    ));
    let (third, three, led) = stage.leader(two).await?;
    let pause_gap = led.0 - frozen;
    stage.tell(&format!(
        "{} leads under fence {three}; nobody led for {}",
        stage.name(third),
        Brief(pause_gap)
    ));
    // It has written: the late write must meet a newer one.
    stage.process(second)?.thaw()?;
    stage.process(second)?.go().await?;
    stage.tell(&format!("{} is resumed (SIGCONT), and writes", stage.name(second)));
    let refused = stage.until("the late write's answer", |at, said| {
        at == second && matches!(said, Said::Refused { .. } | Said::Wrote { .. })
    });
    let Said::Refused { presented, highest } = refused.await?.said else {
        return Err(format!("the late write under fence {two} was accepted").into());
    };
    stage.tell(&format!("its write under fence {presented} is refused: the cache has seen {highest}"));
    stage.peace(plan.peace).await;
    stage.end().await?;

    let seen = reader.end().await?;
    if seen.went_back > 0 {
        return Err(format!("a reader saw an older version {} times", seen.went_back).into());
    }
    if seen.reads < 100 || seen.last.0 < three || presented != two {
        return Err(format!("not enough was seen: {seen:?}, refused {presented}").into());
    }
    let summary = serde_json::json!({
        "ok": true,
        "fences": [one, two, three],
        "after_sigkill_ms": crash_gap.as_secs_f64() * 1e3,
        "after_sigstop_ms": pause_gap.as_secs_f64() * 1e3,
        "refused": { "presented": presented, "highest": highest },
        "reads": seen.reads,
    });
    let text = if plan.json {
        summary.to_string()
    } else {
        format!("\n{} reads, and no older version after a newer one; the late write was refused", seen.reads)
    };
    let _ = writeln!(stdout(), "{text}");
    Ok(())
}

impl Stage {
    fn set(plan: &Plan) -> Result<Self, BoxError> {
        let (told, lines) = mpsc::unbounded_channel();
        let mut replicas = Vec::new();
        for at in 0..usize::from(plan.replicas) {
            let name = char::from(b'A' + u8::try_from(at)?).to_string();
            let told = told.clone();
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["--replica", &name, "--cache", &plan.store]);
            command.args(["--lease-ttl", &format!("{}ms", plan.ttl.as_millis())]);
            let process = Process::start(&mut command, move |line| {
                if let Ok(line) = serde_json::from_str(&line) {
                    // The stage may be struck already.
                    let _ = told.send((at, line));
                }
            })?;
            replicas.push((name, Some(process)));
        }
        Ok(Self { replicas, lines, begun: Stamp::now(), json: plan.json })
    }

    fn name(&self, at: usize) -> String {
        self.replicas[at].0.clone()
    }

    fn tell(&self, text: &str) {
        if !self.json {
            let _ = writeln!(stdout(), "{:>9}  {text}", Brief(Stamp::now() - self.begun).to_string());
        }
    }

    fn process(&mut self, at: usize) -> Result<&mut Process, BoxError> {
        self.replicas[at].1.as_mut().ok_or_else(|| "that replica has ended".into())
    }

    /// Waits for a line.
    async fn until(&mut self, what: &str, wanted: impl Fn(usize, &Said) -> bool) -> Result<Line, BoxError> {
        loop {
            let Ok(Some((at, line))) = timeout(PATIENCE, self.lines.recv()).await else {
                return Err(format!("waited in vain for {what} of {LEASE}").into());
            };
            if wanted(at, &line.said) {
                return Ok(line);
            }
            if let Said::Failed { why } = &line.said {
                self.tell(&format!("{}: {why}", self.name(at)));
            }
        }
    }

    /// Waits for a leader under a higher fence that has written: who, under which, since when and after what. One that the
    /// cache refuses is none: the lease was lost by its store, and the next term begins above the mark.
    async fn leader(&mut self, above: u64) -> Result<(usize, u64, (Stamp, String)), BoxError> {
        let mut leading = None;
        loop {
            let Ok(Some((at, line))) = timeout(PATIENCE, self.lines.recv()).await else {
                return Err("nobody leads".into());
            };
            match line.said {
                Said::Leads { fence, before } if fence > above => {
                    leading = Some((at, fence, (line.at, before)));
                }
                Said::Wrote { fence } if leading.as_ref().is_some_and(|(_, leads, _)| *leads == fence) => {
                    return leading.ok_or_else(|| "nobody leads".into());
                }
                Said::Refused { presented, highest } => {
                    self.tell(&format!(
                        "{} is refused under fence {presented}: the cache has seen {highest}",
                        self.name(at)
                    ));
                }
                Said::Failed { why } => self.tell(&format!("{}: {why}", self.name(at))),
                Said::Leads { .. } | Said::Wrote { .. } | Said::InHand => {}
            }
        }
    }

    async fn peace(&mut self, for_this_long: Duration) {
        tokio::time::sleep(for_this_long).await;
    }

    async fn kill(&mut self, at: usize) -> Result<(), BoxError> {
        if let Some(process) = self.replicas[at].1.take() {
            process.signal(Signal::KILL)?;
            process.end().await?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), BoxError> {
        for (_, process) in &mut self.replicas {
            if let Some(process) = process.take() {
                process.signal(Signal::TERM)?;
                let status = timeout(PATIENCE, process.end()).await??;
                if !status.success() {
                    return Err(format!("a replica ended with {status}").into());
                }
            }
        }
        Ok(())
    }
}
