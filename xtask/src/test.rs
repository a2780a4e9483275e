//! `cargo xtask test`: every test of the workspace, with the tools they need, and a closing line that sums them.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::counts::{Counts, Runner};
use crate::servers;
use crate::step::{self, Stopwatch};
use crate::tools;

/// Runs unit, integration and system tests, then the examples in the documentation. One that fails does not hide
/// the others; the last line printed is `N passed, N failed`, with `, N skipped` where tests are marked ignored.
///
/// # Errors
/// When a server is missing, when a runner says nothing of what it ran (it did not build, or was ended), and when no test ran at all.
pub(crate) fn run() -> Result<bool> {
    servers::ready()?;
    let mut sum = Counts::default();
    let mut all_passed = true;
    let mut timings = Vec::new();
    let (mut tests, runner) = runner();
    for (what, command, runner) in [
        ("tests", &mut tests, runner),
        // Only rustdoc knows these; nextest does not run them.
        (
            "doctests",
            step::cargo().args(["test", "--locked", "--workspace", "--doc", "--no-fail-fast"]),
            Runner::Libtest,
        ),
    ] {
        let watch = Stopwatch::start();
        let (passed, counts) = counted(command, runner).with_context(|| format!("the {what} did not run"))?;
        timings.push(format!("{what:<9} {:>8}  {counts}", watch.elapsed()));
        all_passed &= passed;
        sum += counts;
    }
    eprintln!("\n{}\n", timings.join("\n"));
    if sum.passed + sum.failed == 0 {
        bail!("no test ran, which is not a pass");
    }
    println!("{sum}");
    Ok(all_passed && sum.failed == 0)
}

/// nextest, or cargo's own runner where nextest can be neither found nor installed.
fn runner() -> (Command, Runner) {
    match tools::NEXTEST.command() {
        Ok(mut nextest) => {
            nextest.args([
                "nextest",
                "run",
                "--locked",
                "--workspace",
                "--no-fail-fast",
                "--no-tests",
                "pass",
            ]);
            // Ignored tests are named at the end, not only counted.
            nextest.args(["--final-status-level", "skip"]);
            nextest.args(["--color", if std::io::stderr().is_terminal() { "always" } else { "never" }]);
            (nextest, Runner::Nextest)
        }
        Err(error) => {
            eprintln!("\nGoing on with cargo's own runner, which puts no limit on a test's time: {error:#}");
            let mut cargo = step::cargo();
            cargo.args([
                "test",
                "--locked",
                "--workspace",
                "--no-fail-fast",
                "--lib",
                "--bins",
                "--tests",
                "--examples",
            ]);
            (cargo, Runner::Libtest)
        }
    }
}

/// Runs a test runner, passes its output on, and reads its summaries; says whether it ended well.
fn counted(command: &mut Command, runner: Runner) -> Result<(bool, Counts)> {
    step::announce(command);
    // Only the stream with the summary goes through us; the other one is inherited.
    match runner {
        Runner::Nextest => command.stderr(Stdio::piped()),
        Runner::Libtest => command.stdout(Stdio::piped()),
    };
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let counts = match (child.stdout.take(), child.stderr.take()) {
        (Some(stdout), _) => tally(runner, stdout, std::io::stdout()),
        (_, Some(stderr)) => tally(runner, stderr, std::io::stderr()),
        (None, None) => Ok(None),
    };
    // Reaped before anything is returned, so that no runner outlives this task.
    let status = child.wait().context("cannot wait for the runner")?;
    match counts? {
        Some(counts) => Ok((status.success(), counts)),
        None => bail!("{} ended with {status} and no summary", command.get_program().display()),
    }
}

/// Copies lines from a runner to us, and reads the summaries among them; `None` if there was none.
fn tally(runner: Runner, from: impl Read, mut to: impl Write) -> Result<Option<Counts>> {
    let mut from = BufReader::new(from);
    let mut sum = None;
    let mut line = Vec::new();
    // Bytes, not `lines()`: what a test prints need not be UTF-8, and must not end the run.
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        runner.reads(&String::from_utf8_lossy(&line), &mut sum);
        line.clear();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::tally;
    use crate::counts::{Counts, Runner};

    #[test]
    fn every_summary_of_a_run_is_summed_and_every_byte_passed_on() {
        let output = b"running 1 test\n\xff\xfe not UTF-8\ntest result: ok. 1 passed; 0 failed; 0 ignored\n\
            test result: FAILED. 2 passed; 1 failed; 3 ignored\nlast line without an end";
        let mut copy = Vec::new();
        let sum = tally(Runner::Libtest, &output[..], &mut copy).unwrap();
        assert_eq!(sum, Some(Counts { passed: 3, failed: 1, skipped: 3, flaky: 0 }));
        assert_eq!(copy, output);
    }

    #[test]
    fn a_run_without_a_summary_is_told_apart_from_one_without_tests() {
        assert_eq!(tally(Runner::Libtest, &b"error: could not compile\n"[..], Vec::new()).unwrap(), None);
        let empty =
            tally(Runner::Libtest, &b"test result: ok. 0 passed; 0 failed; 0 ignored\n"[..], Vec::new())
                .unwrap();
        assert_eq!(empty, Some(Counts::default()));
    }
}
