//! The rows, and the page they make.

use std::{fmt::Write as _, time::Duration};

/// The measurements of one run.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    what: String,
    ours: String,
    beside: String,
    goal: &'static str,
    samples: usize,
}

impl Table {
    /// Adds a row, and says on stderr that it is done: a run takes a few minutes.
    pub(crate) fn row(
        &mut self,
        what: impl Into<String>,
        ours: impl Into<String>,
        beside: impl Into<String>,
        goal: &'static str,
        samples: usize,
    ) {
        let row = Row { what: what.into(), ours: ours.into(), beside: beside.into(), goal, samples };
        eprintln!("{}: {} ({})", row.what, row.ours, row.beside);
        self.rows.push(row);
    }

    pub(crate) fn markdown(&self) -> String {
        let mut page = String::from(HEAD);
        let _ = writeln!(page, "{}\n", machine());
        page.push_str(
            "| what | leasehold | beside it, in the same run | goal | samples |\n|---|---|---|---|---|\n",
        );
        for Row { what, ours, beside, goal, samples } in &self.rows {
            let _ = writeln!(page, "| {what} | {ours} | {beside} | {goal} | {samples} |");
        }
        page.push_str(FOOT);
        page
    }
}

const HEAD: &str = "\
# Performance

Made by `cargo xtask bench`, which anyone can run: this page is its last kept output. Medians, with the 99th percentile
where there are enough samples. No test asserts these numbers.

";

const FOOT: &str = "
*Takeover* is the time in which nobody leads: from the end of the old holder's work (or its kill, or the instant at which
the store's record expired) to the start of the new holder's, each process reading the one boot clock of the host. The
*polling coordinator* is the usual recipe, on the same store and ttl: try to acquire every ttl/3. For scale: an equivalent
coordinator in Python on Redis took 842 to 1,170 ms from SIGKILL to the next leader at a ttl of 1,000 ms, on two cores.
";

fn machine() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("")
        .trim_matches([':', ' ', '\t']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = if model.is_empty() { "unknown processor" } else { model };
    format!(
        "Machine: {model}, {cores} cores, Linux {}; release build; SQLite in a temporary directory on its disk, Redis and PostgreSQL on loopback.",
        kernel.trim()
    )
}

/// The median of samples that it sorts.
pub(crate) fn median(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// The value below which 99 of 100 samples lie; of sorted samples.
pub(crate) fn p99(sorted: &[Duration]) -> Duration {
    sorted.get((sorted.len() * 99 / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Milliseconds with one decimal.
pub(crate) fn ms(d: Duration) -> String {
    format!("{:.1} ms", d.as_secs_f64() * 1e3)
}
