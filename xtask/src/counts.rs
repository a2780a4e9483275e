//! What a test runner said it ran: read from its own summary lines, so that no count is ours.

use std::fmt;
use std::ops::AddAssign;

/// Tests by outcome. `skipped` are those that the source marks as ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// Those of the passed ones that failed first.
    pub(crate) flaky: u64,
}

/// Whose summary lines are read. What tests print is passed on in between, and may hold anything, also the summary
/// of another runner; so each is looked for only where its runner speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Runner {
    /// One summary, after everything that the tests printed: the last one counts.
    Nextest,
    /// One summary for each test program: they add up.
    Libtest,
}

impl Runner {
    /// Adds a line of the runner's output to what is known. `None` stays `None` until there was a summary.
    pub(crate) fn reads(self, line: &str, sum: &mut Option<Counts>) {
        let plain = without_colours(line);
        match self {
            Self::Nextest => {
                if let Some(counts) = Counts::of_nextest(plain.trim()) {
                    *sum = Some(counts);
                }
            }
            Self::Libtest => {
                if let Some(counts) = Counts::of_libtest(plain.trim()) {
                    *sum.get_or_insert_default() += counts;
                }
            }
        }
    }
}

impl Counts {
    /// `Summary [   0.123s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped`
    fn of_nextest(line: &str) -> Option<Self> {
        let (_, tally) = line.strip_prefix("Summary [")?.split_once(" run: ")?;
        Some(Self::tallied(tally.split(", ")))
    }

    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn of_libtest(line: &str) -> Option<Self> {
        let (_, tally) = line.strip_prefix("test result: ")?.split_once(". ")?;
        Some(Self::tallied(tally.split("; ").filter(|part| !part.starts_with("finished"))))
    }

    /// Sums parts like `10 passed`. An outcome that is not known to be good counts as failed, so that a word which
    /// a newer runner invents cannot turn a failure into nothing.
    fn tallied<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = Self::default();
        for part in parts {
            counts.flaky += flaky(part);
            let Some((number, outcome)) = part.trim().split_once(' ') else { continue };
            // What is not a number belongs to the remark in parentheses before it: `2 passed (1 slow, 1 leaky)`.
            let Ok(number) = number.parse::<u64>() else { continue };
            match outcome.split(' ').next().unwrap_or_default() {
                "passed" => counts.passed += number,
                "skipped" | "ignored" => counts.skipped += number,
                "measured" | "filtered" | "slow" | "flaky" | "leaky" | "slow)" | "flaky)" | "leaky)" => {}
                _ => counts.failed += number,
            }
        }
        counts
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.flaky += other.flaky;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        if self.flaky > 0 {
            write!(f, ", {} flaky: a defect, named above", self.flaky)?;
        }
        Ok(())
    }
}

/// How many of a part are flaky: 2 of `10 passed (1 slow` and `2 flaky)`.
fn flaky(part: &str) -> u64 {
    let words: Vec<&str> = part.split(' ').map(|word| word.trim_matches(['(', ')'])).collect();
    let at = words.windows(2).find(|pair| pair[1] == "flaky");
    at.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

/// The line without its terminal sequences (`ESC [ … letter`).
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Counts, Runner};

    #[track_caller]
    fn says(runner: Runner, line: &str, passed: u64, failed: u64, skipped: u64) {
        let mut sum = None;
        runner.reads(line, &mut sum);
        assert_eq!(
            sum.map(|sum| Counts { flaky: 0, ..sum }),
            Some(Counts { passed, failed, skipped, flaky: 0 }),
            "in {line:?}"
        );
    }

    #[test]
    fn a_test_that_passed_only_the_second_time_is_counted_and_told() {
        for line in [
            "Summary [ 1.2s] 12 tests run: 12 passed (2 flaky), 3 skipped",
            "Summary [ 1.2s] 12 tests run: 12 passed (1 slow, 2 flaky, 1 leaky), 3 skipped",
        ] {
            let mut sum = None;
            Runner::Nextest.reads(line, &mut sum);
            let sum = sum.unwrap();
            assert_eq!((sum.passed, sum.failed, sum.flaky), (12, 0, 2), "{line}");
            assert!(sum.to_string().ends_with("2 flaky: a defect, named above"));
        }
    }

    #[test]
    fn libtest_summaries_are_read() {
        let says = |line, passed, failed, skipped| says(Runner::Libtest, line, passed, failed, skipped);
        says(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s",
            3,
            0,
            1,
        );
        says(
            "test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
            2,
            4,
            0,
        );
        says("\u{1b}[0mtest result: \u{1b}[32mok\u{1b}(B. 5 passed; 0 failed; 0 ignored", 5, 0, 0);
    }

    #[test]
    fn nextest_summaries_are_read() {
        let says = |line, passed, failed, skipped| says(Runner::Nextest, line, passed, failed, skipped);
        says("     Summary [   0.007s] 3 tests run: 3 passed, 0 skipped", 3, 0, 0);
        says("     Summary [   0.007s] 1 test run: 1 passed, 2 skipped", 1, 0, 2);
        says(
            "     Summary [   0.5s] 13 tests run: 11 passed, 2 failed (1 due to being leaky), 1 skipped",
            11,
            2,
            1,
        );
        says(
            "     Summary [   1.2s] 9 tests run: 7 passed (1 slow, 2 flaky, 1 leaky), 1 failed, 1 timed out, 4 skipped",
            7,
            2,
            4,
        );
        says(
            "\u{1b}[32;1m     Summary\u{1b}[0m [   0.007s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m passed, 0 skipped",
            3,
            0,
            0,
        );
    }

    #[test]
    fn an_outcome_with_an_unknown_name_is_a_failure() {
        let line = "     Summary [   1.2s] 2 tests run: 1 passed, 1 swallowed by a whale, 0 skipped";
        says(Runner::Nextest, line, 1, 1, 0);
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in [
            "",
            "running 3 tests",
            "test a::b ... ok",
            "3 passed, 0 failed",
            "Summary [never]",
            "test result: ",
        ] {
            for runner in [Runner::Nextest, Runner::Libtest] {
                let mut sum = None;
                runner.reads(line, &mut sum);
                assert_eq!(sum, None, "in {line:?}");
            }
        }
    }

    /// nextest shows what a failed test printed, and that ends with libtest's summary of this one test.
    #[test]
    fn what_a_failed_test_printed_is_not_counted_again() {
        let mut sum = None;
        for line in [
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s",
            "    Summary [   9.9s] 99 tests run: 99 passed, 0 skipped",
            "     Summary [   0.5s] 2 tests run: 1 passed, 1 failed, 0 skipped",
            "        FAIL [   0.096s] ( 2/13) leasehold tests::bad",
        ] {
            Runner::Nextest.reads(line, &mut sum);
        }
        assert_eq!(sum, Some(Counts { passed: 1, failed: 1, skipped: 0, flaky: 0 }));
    }

    #[test]
    fn the_closing_line_names_skipped_tests_only_where_there_are_some() {
        let mut sum = Counts { passed: 2, failed: 0, skipped: 0, flaky: 0 };
        assert_eq!(sum.to_string(), "2 passed, 0 failed");
        sum += Counts { passed: 1, failed: 1, skipped: 4, flaky: 0 };
        assert_eq!(sum.to_string(), "3 passed, 1 failed, 4 skipped");
    }
}
