//! `doctor`: is this store, from this host, fit for leases, and for which?

mod layout;
mod measure;
mod tools;

use crate::{
    cli::{Common, Doctor},
    events::ms,
    exit::Exit,
    say,
    session::Session,
};
use leasehold::{Durability, Finding, Reach, Severity};
use measure::{Measured, Spread};
use serde_json::json;
use std::time::Duration;

/// A renewal is due after a third of the ttl. Nine more may take as long as the slowest one that was measured, waits of
/// this program included, before the lease is in danger.
const SLOWEST_IN_TTL: u32 = 30;
/// Below it a garbage collection, a slow disk or a busy host somewhere decides who leads, whatever was measured today.
const LEAST_ADVISED: Duration = Duration::from_millis(500);

pub(super) async fn doctor(doctor: Doctor, common: Common) -> Result<Exit, Exit> {
    if doctor.migrate {
        return layout::migrate(common).await;
    }
    if doctor.print_sql {
        return layout::print(common, doctor.role.as_deref());
    }
    let session = Session::open(common).await?;
    let measured = session.ask_for(doctor.length, measure::measure(&session, doctor.length)).await?;
    let findings = session.ask(session.store.diagnose()).await?;
    let ttl = advised(&measured, session.store.traits().min_ttl);
    let text = if doctor.json {
        in_json(&session, &measured, &findings, ttl)
    } else {
        in_words(&session, &measured, &findings, ttl)
    };
    say::out(&text).ok();
    Ok(Exit::Done)
}

/// The shortest ttl to use, rounded up to one that people would write.
fn advised(measured: &Measured, least: Duration) -> Duration {
    let slowest = measured.write.max.max(measured.read.max) + measured.lag.max;
    let ttl = (slowest * SLOWEST_IN_TTL).max(least).max(LEAST_ADVISED);
    let ladder = [1, 2, 5].into_iter().map(|step| LEAST_ADVISED * 2 * step);
    let mut rungs = std::iter::once(LEAST_ADVISED)
        .chain((0..).flat_map(|decade| ladder.clone().map(move |rung| rung * 10u32.pow(decade))).take(12));
    rungs.find(|rung| *rung >= ttl).unwrap_or(ttl)
}

fn in_json(session: &Session, measured: &Measured, findings: &[Finding], ttl: Duration) -> String {
    let traits = session.store.traits();
    let us = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let spread = |s: &Spread| json!({ "p50_us": us(s.p50), "p99_us": us(s.p99), "max_us": us(s.max) });
    let found: Vec<_> = findings
        .iter()
        .map(|f| json!({ "severity": severity(f.severity), "code": f.code, "text": f.text }))
        .collect();
    let report = json!({
        "store": session.store.address(),
        "kind": traits.kind,
        "reach": reach(traits.reach),
        "durability": durability(traits.durability),
        "failover_may_lose": traits.failover_may_lose,
        "crash_witness": traits.crash_witness,
        "min_ttl_ms": ms(traits.min_ttl),
        "max_ttl_ms": ms(traits.max_ttl),
        "samples": measured.samples,
        "read": spread(&measured.read),
        "write": spread(&measured.write),
        "runtime_lag": spread(&measured.lag),
        "wall_clock_step_ms": measured.wall_clock_step_ms,
        "findings": found,
        "advised_ttl_ms": ms(ttl),
        "tools": tools::tools(traits.kind).map(|(what, tool)| json!({ "for": what, "use": tool })).collect::<Vec<_>>(),
    });
    format!("{report}\n")
}

fn in_words(session: &Session, measured: &Measured, findings: &[Finding], ttl: Duration) -> String {
    let traits = session.store.traits();
    let mut text = String::new();
    let mut line = |words: String| text.push_str(&(words + "\n"));
    line(format!("store        {} ({})", session.store.address(), traits.kind));
    line(format!("shared by    {}", reach(traits.reach)));
    line(format!("survives     {}", durability(traits.durability)));
    line(format!(
        "failover     {}",
        if traits.failover_may_lose { "may lose a claim: use fences" } else { "loses no claim" }
    ));
    line(format!(
        "witness      {}",
        if traits.crash_witness { "the end of a process is seen at once (--crash-witness)" } else { "none" }
    ));
    for (what, spread) in
        [("read", &measured.read), ("write", &measured.write), ("runtime lag", &measured.lag)]
    {
        line(format!("{what:<11}  median {:?}, p99 {:?}, max {:?}", spread.p50, spread.p99, spread.max));
    }
    line(format!("samples      {}", measured.samples));
    line(match measured.wall_clock_step_ms {
        0 => "wall clock   steady".to_owned(),
        step => format!("wall clock   stepped by {step} ms; leases do not mind, logs will"),
    });
    for finding in findings {
        line(format!("{:<11}  {}: {}", severity(finding.severity), finding.code, finding.text));
    }
    if findings.is_empty() {
        line("findings     none".to_owned());
    }
    line(format!("advice       a ttl of {} or more", humantime::format_duration(ttl)));
    for (what, tool) in tools::tools(traits.kind) {
        line(format!("use          for {what}: {tool}"));
    }
    text
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Danger => "danger",
    }
}

const fn reach(reach: Reach) -> &'static str {
    match reach {
        Reach::Process => "this process",
        Reach::Host => "the processes of this host",
        Reach::Network => "many hosts",
        _ => "unknown",
    }
}

const fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::Process => "nothing: it ends with this process",
        Durability::Server => "its users, not surely a restart of the server",
        Durability::ProcessCrash => "the crash of any process, not surely a loss of power",
        Durability::PowerLoss => "a loss of power",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advised_ttl_is_a_round_one_above_what_was_measured() {
        let advised = |write_ms, lag_ms| {
            let spread = |ms| {
                let max = Duration::from_millis(ms);
                Spread { p50: max, p99: max, max }
            };
            let (read, write, lag) = (spread(0), spread(write_ms), spread(lag_ms));
            let measured = Measured { samples: 1, read, write, lag, wall_clock_step_ms: 0 };
            super::advised(&measured, Duration::from_millis(50)).as_millis()
        };
        assert_eq!(advised(1, 1), 500);
        assert_eq!(advised(20, 0), 1_000);
        assert_eq!(advised(20, 20), 2_000);
        assert_eq!(advised(100, 0), 5_000);
        assert_eq!(advised(200, 0), 10_000);
        assert_eq!(advised(1_000, 0), 50_000);
    }
}
