//! `status` for people: one line a lease, in columns.

use super::Row;
use std::time::Duration;

const HEADINGS: [&str; 8] =
    ["LEASE", "STATE", "FENCE", "REPLICA", "REMAINING", "HELD FOR", "BEFORE", "CANDIDATES"];

/// The table, with its headings; nothing at all for no leases.
pub(super) fn of(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = std::iter::once(HEADINGS.map(str::to_owned)).chain(rows.iter().map(cells)).collect();
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
    });
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<_> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> [String; HEADINGS.len()] {
    let before = match (&row.predecessor.past.fence, &row.predecessor.by, &row.predecessor.reason) {
        (Some(fence), Some(by), Some(reason)) => {
            format!("{} {fence} by {by}: {reason}", row.predecessor.past.fate)
        }
        (Some(fence), ..) => format!("{} {fence}", row.predecessor.past.fate),
        (None, ..) => "none".to_owned(),
    };
    let waiting: Vec<_> = row.candidates.iter().map(|candidate| &*candidate.replica).collect();
    [
        row.lease.clone(),
        row.state.to_owned(),
        row.fence.map_or_else(none, |fence| fence.to_string()),
        row.replica.clone().unwrap_or_else(none),
        row.remaining_ms.map_or_else(none, length),
        row.held_for_ms.map_or_else(none, length),
        before,
        if waiting.is_empty() { none() } else { waiting.join(", ") },
    ]
}

fn none() -> String {
    "-".to_owned()
}

/// Tenths of a second below a minute; above it nobody counts them.
fn length(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => humantime::format_duration(Duration::from_secs(ms / 1000)).to_string(),
    }
}
