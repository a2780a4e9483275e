//! The timeline as lanes of a terminal, one a replica.

use super::timeline::{End, Timeline};
use crate::clock::Stamp;
use anstyle::{AnsiColor, Color, Style};
use std::fmt::Write;

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use colour.
    pub colour: bool,
}

/// What one column of a lane shows. The order is the one in which they win over each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Down,
    Standby,
    Frozen,
    /// Leading, as the n-th term.
    Leading(usize),
    Refused,
    Killed,
}

/// Columns that name the replica.
const MARGIN: usize = 8;

impl Chart {
    /// The columns of the terminal on standard output, or 100 where there is none.
    #[must_use]
    pub fn for_stdout(colour: bool) -> Self {
        let columns = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).map_or(0, |size| size.ws_col);
        let width = if columns == 0 { 100 } else { usize::from(columns).clamp(60, 132) };
        Self { width, colour }
    }

    /// Draws.
    #[must_use]
    pub fn draw(&self, timeline: &Timeline) -> String {
        let columns = self.width.saturating_sub(MARGIN + 1).max(10);
        let length = (timeline.to - timeline.from).as_micros().max(1);
        let column = |at: Stamp| {
            let share = (at - timeline.from).as_micros() * columns as u128 / length;
            usize::try_from(share).unwrap_or(columns).min(columns - 1)
        };
        let mut out = String::new();
        for row in &timeline.rows {
            let mut cells = vec![Cell::Down; columns];
            let mut fill = |from: Stamp, to: Stamp, cell: Cell| {
                for slot in &mut cells[column(from)..=column(to)] {
                    *slot = (*slot).max(cell);
                }
            };
            for span in &row.up {
                fill(span.from, span.to, Cell::Standby);
            }
            for span in &row.frozen {
                fill(span.from, span.to, Cell::Frozen);
            }
            for (index, term) in timeline.terms.iter().enumerate().filter(|(_, t)| t.replica == row.replica) {
                fill(term.began, term.ended, Cell::Leading(index));
                if term.end == End::Killed {
                    fill(term.ended, term.ended, Cell::Killed);
                }
            }
            for refused in timeline.refusals.iter().filter(|r| r.from == row.replica) {
                fill(refused.at, refused.at, Cell::Refused);
            }
            let _ = write!(out, "{:<MARGIN$}", format!("  {}", row.replica));
            self.lane(&mut out, &cells);
            out.push('\n');
        }
        out.push_str(&labels(
            columns,
            timeline.terms.iter().map(|t| (column(t.began), format!("#{}", t.fence))),
        ));
        out.push_str(&self.axis(columns, length, column, timeline.from));
        out
    }

    fn lane(&self, out: &mut String, cells: &[Cell]) {
        for run in cells.chunk_by(|a, b| a == b) {
            let (glyph, style) = run[0].look();
            let text: String = std::iter::repeat_n(glyph, run.len()).collect();
            if self.colour {
                let _ = write!(out, "{style}{text}{style:#}");
            } else {
                out.push_str(&text);
            }
        }
    }

    fn axis(&self, columns: usize, length: u128, column: impl Fn(Stamp) -> usize, from: Stamp) -> String {
        // A mark every 1, 2, 5, 10 … seconds, so that there are at most eight.
        let mut steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600].into_iter();
        let step = steps.find(|s| length / (s * 1_000_000) < 8).unwrap_or(3_600);
        let marks = (0..).map(|n| n * step).take_while(|s| s * 1_000_000 <= length).map(|s| {
            let at = Stamp(from.0 + u64::try_from(s * 1_000_000).unwrap_or(u64::MAX));
            (column(at), format!("{s}s"))
        });
        labels(columns, marks)
    }

    /// What the glyphs mean.
    #[must_use]
    pub const fn legend() -> &'static str {
        "  █ leads   ─ stands by   ▒ frozen   ✕ killed   · down   ! refused by its fence   #n fence\n"
    }
}

impl Cell {
    const fn look(self) -> (char, Style) {
        // One colour a term, so that a leader who comes back under a new fence is seen to be another one.
        const TERMS: [AnsiColor; 5] =
            [AnsiColor::Green, AnsiColor::Cyan, AnsiColor::Magenta, AnsiColor::Blue, AnsiColor::Yellow];
        const fn in_colour(colour: AnsiColor) -> Style {
            Style::new().fg_color(Some(Color::Ansi(colour)))
        }
        match self {
            Self::Down => ('·', Style::new().dimmed()),
            Self::Standby => ('─', Style::new().dimmed()),
            Self::Frozen => ('▒', in_colour(AnsiColor::BrightBlue)),
            Self::Leading(index) => ('█', in_colour(TERMS[index % TERMS.len()])),
            Self::Refused => ('!', in_colour(AnsiColor::Red).bold()),
            Self::Killed => ('✕', in_colour(AnsiColor::Red).bold()),
        }
    }
}

/// A line with each text at its column; one that would touch the text before it is left out.
fn labels(columns: usize, texts: impl Iterator<Item = (usize, String)>) -> String {
    let mut line = " ".repeat(MARGIN);
    for (column, text) in texts {
        let column = MARGIN + column.min(columns.saturating_sub(text.len()));
        let length = line.chars().count();
        if length <= MARGIN || column > length {
            let _ = write!(line, "{:width$}{text}", "", width = column.saturating_sub(length));
        }
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanout::timeline::tests::story;

    #[test]
    fn a_story_is_drawn_as_lanes_that_can_be_read_without_colour() {
        let drawn = Chart { width: 70, colour: false }.draw(&story());
        let expected = concat!(
            "  r1    ─███████████████████✕······──────────────────────────────────\n",
            "  r2    ────────────────────█████████████████████▒▒▒▒▒▒!─────────────\n",
            "  r3    ─────────────────────────────────────────────████████████████\n",
            "         #1                 #2                       #3\n",
            "        0s        2s        4s        6s        8s        10s     12s\n",
        );
        assert_eq!(drawn, expected, "\n{drawn}");
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = Chart { width: 70, colour: false }.draw(&story());
        let coloured = Chart { width: 70, colour: true }.draw(&story());
        assert!(coloured.contains("\u{1b}["));
        let stripped = coloured.split('\u{1b}').enumerate().map(|(index, part)| match index {
            0 => part,
            _ => part.split_once('m').map_or("", |(_, rest)| rest),
        });
        assert_eq!(stripped.collect::<String>(), plain);
    }
}
