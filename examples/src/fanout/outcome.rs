//! The result of a run: as a table for people, or as JSON for programs.

use super::{
    args::Args,
    chart::Chart,
    checks::{Check, Evidence},
    timeline::{End, Refused, Term, Timeline},
};
use crate::clock::{Brief, Stamp};
use anstyle::{AnsiColor, Color, Style};
use serde::Serialize;
use std::{fmt::Write, time::Duration};

/// The result.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Whether all promises were kept.
    pub ok: bool,
    replicas: u8,
    ttl_ms: u64,
    events: usize,
    terms: Vec<TermRow>,
    /// If handoffs were asked for.
    handoffs: Option<Handoffs>,
    refused: Vec<Refused>,
    clients: Vec<ClientRow>,
    checks: Vec<Check>,
    #[serde(skip)]
    timeline: Timeline,
}

/// A term, with times since the beginning of the run.
#[derive(Debug, Serialize)]
struct TermRow {
    fence: u64,
    leader: String,
    predecessor: String,
    from_ms: f64,
    to_ms: f64,
    ended_by: &'static str,
    /// Until the next term began, if there was one.
    nobody_led_ms: Option<f64>,
    /// The longest wait for an event around that gap, at clients of replicas that ran all the while.
    clients_waited_ms: Option<f64>,
}

/// How long nobody led at handoffs, as the protocol measures it.
#[derive(Debug, Serialize)]
struct Handoffs {
    asked: u32,
    done: usize,
    gap_median_ms: f64,
    gap_p99_ms: f64,
    gap_longest_ms: f64,
}

impl Handoffs {
    fn of(evidence: &Evidence) -> Option<Self> {
        let mut gaps: Vec<f64> = evidence.handoffs.iter().filter_map(|handed| handed.gap).map(ms).collect();
        gaps.sort_by(f64::total_cmp);
        let at = |share: f64| gaps.get((gaps.len() as f64 * share) as usize).or_else(|| gaps.last()).copied();
        (evidence.asked > 0).then(|| Self {
            asked: evidence.asked,
            done: evidence.handoffs.iter().filter(|handed| handed.done).count(),
            gap_median_ms: at(0.5).unwrap_or_default(),
            gap_p99_ms: at(0.99).unwrap_or_default(),
            gap_longest_ms: gaps.last().copied().unwrap_or_default(),
        })
    }
}

#[derive(Debug, Serialize)]
struct ClientRow {
    of: String,
    events: usize,
    connections: u32,
    fences: Vec<u64>,
}

impl Outcome {
    /// Judges the evidence.
    #[must_use]
    pub fn of(mut evidence: Evidence, args: &Args) -> Self {
        let checks = evidence.judge();
        let Evidence { timeline, ledgers, emitted, .. } = &evidence;
        let gaps: Vec<_> = timeline.gaps().collect();
        let terms = timeline.terms.iter().enumerate().map(|(index, term)| {
            let gap = gaps.get(index);
            TermRow {
                fence: term.fence.get(),
                leader: term.replica.clone(),
                predecessor: term.predecessor.clone(),
                from_ms: ms(term.began - timeline.from),
                to_ms: ms(term.ended - timeline.from),
                ended_by: match gap {
                    Some((_, after, _)) if after.predecessor == "handed-off" => HANDED_OVER,
                    _ => ended_by(term),
                },
                nobody_led_ms: gap.map(|(_, _, length)| ms(*length)),
                clients_waited_ms: gap
                    .map(|(before, after, _)| ms(evidence.waited(before.ended, after.began))),
            }
        });
        let clients = ledgers.iter().map(|(of, ledger)| ClientRow {
            of: of.clone(),
            events: ledger.count(),
            connections: ledger.connections,
            fences: ledger.fences(),
        });
        Self {
            ok: checks.iter().all(|check| check.kept),
            replicas: args.replicas.get(),
            ttl_ms: u64::try_from(args.ttl.as_millis()).unwrap_or(u64::MAX),
            events: emitted.len(),
            terms: terms.collect(),
            handoffs: Handoffs::of(&evidence),
            refused: timeline.refusals.clone(),
            clients: clients.collect(),
            checks,
            timeline: evidence.timeline,
        }
    }

    /// For people.
    #[must_use]
    pub fn for_people(&self, chart: Chart) -> String {
        let mut out = format!("\n{}{}\n", chart.draw(&self.timeline), Chart::legend());
        let _ = writeln!(
            out,
            "  fence  leader  led from      to            ended by      then nobody led   clients waited"
        );
        let mut in_a_row = 0;
        for (index, term) in self.terms.iter().enumerate() {
            in_a_row = if term.ended_by == HANDED_OVER { in_a_row + 1 } else { 0 };
            let more = self.terms.get(index + 1).is_some_and(|next| next.ended_by == HANDED_OVER);
            if in_a_row > SHOWN && more {
                continue;
            }
            if in_a_row > SHOWN + 1 {
                let _ = writeln!(out, "  …      {} more like this", in_a_row - SHOWN - 1);
            }
            let or_dash = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| brief(ms).to_string());
            let _ = writeln!(
                out,
                "  {:<6} {:<7} {:>8.3} s    {:>8.3} s    {:<12}  {:>15}  {:>15}",
                format!("#{}", term.fence),
                term.leader,
                term.from_ms / 1e3,
                term.to_ms / 1e3,
                term.ended_by,
                or_dash(term.nobody_led_ms),
                or_dash(term.clients_waited_ms),
            );
        }
        let _ = writeln!(out);
        if let Some(handoffs) = &self.handoffs {
            let Handoffs { done, gap_median_ms, gap_p99_ms, gap_longest_ms, .. } = handoffs;
            let _ = writeln!(
                out,
                "  {done} handoffs: nobody led for {} at the median, {} at the 99th percentile, {} at most\n",
                brief(*gap_median_ms),
                brief(*gap_p99_ms),
                brief(*gap_longest_ms),
            );
        }
        for client in &self.clients {
            let mut fences: Vec<String> = client.fences.iter().map(|f| format!("#{f}")).collect();
            if fences.len() > 8 {
                fences.splice(3..fences.len() - 1, ["…".to_owned()]);
            }
            let connections = match client.connections {
                1 => "1 connection".to_owned(),
                n => format!("{n} connections"),
            };
            let _ = writeln!(
                out,
                "  client of {:<4} {} events over {connections}, under {}",
                client.of,
                client.events,
                fences.join(" ")
            );
        }
        let _ = writeln!(out);
        for check in &self.checks {
            let (mark, colour) = if check.kept { ('✓', AnsiColor::Green) } else { ('✗', AnsiColor::Red) };
            let style = chart.style(colour);
            let _ = writeln!(out, "  {style}{mark}{style:#} {}\n      {}", check.promise, check.seen);
        }
        let (colour, verdict) = if self.ok {
            let takeovers = self.terms.len().saturating_sub(1);
            (
                AnsiColor::Green,
                format!("kept: {takeovers} takeovers, and no client saw more of it than a short wait"),
            )
        } else {
            (AnsiColor::Red, "BROKEN: see the ✗ above".to_owned())
        };
        let style = chart.style(colour).bold();
        let style = if chart.colour { style } else { Style::new() };
        let _ = write!(out, "\n  {style}{verdict}{style:#}");
        out
    }
}

impl Chart {
    fn style(self, colour: AnsiColor) -> Style {
        if self.colour { Style::new().fg_color(Some(Color::Ansi(colour))) } else { Style::new() }
    }
}

impl Evidence {
    /// The longest wait for an event around a gap, at clients whose replica ran all the while.
    fn waited(&self, from: Stamp, to: Stamp) -> Duration {
        let ran = |of: &str| {
            self.timeline.rows.iter().any(|row| {
                row.replica == of
                    && row.up.iter().any(|span| span.holds(from) && span.holds(to))
                    && !row.frozen.iter().any(|span| span.from < to && from < span.to)
            })
        };
        let waits = self.ledgers.iter().filter(|(of, _)| ran(of)).map(|(_, l)| l.longest_wait(from, to));
        waits.max().unwrap_or_default()
    }
}

/// What the table says of a term that was handed over.
const HANDED_OVER: &str = "handoff";
/// How many of them it shows in a row.
const SHOWN: usize = 3;

const fn ended_by(term: &Term) -> &'static str {
    match term.end {
        End::Killed => "SIGKILL",
        End::Frozen => "SIGSTOP",
        End::Ended => "itself",
        End::Lost => "its clock",
        End::Running => "-",
    }
}

fn ms(duration: Duration) -> f64 {
    (duration.as_micros() as f64) / 1e3
}

fn brief(ms: f64) -> Brief {
    Brief(Duration::from_secs_f64(ms / 1e3))
}
