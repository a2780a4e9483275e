//! `cargo xtask check`: everything that can be said of the tree without running its tests, and without changing it.
//!
//! All steps run, also after one failed: one reading of the summary shows all there is to mend.

use anyhow::{Result, bail};

use crate::step::{self, Seconds, Stopwatch};
use crate::{links, tools};

/// A named part of the gate, in the order in which they are worth knowing: cheap and frequent failures first.
type Step = (&'static str, fn() -> Result<Verdict>);

/// What the summary says of a step that did not fail: `OK`, or what could not be looked at on this machine.
pub(crate) type Verdict = &'static str;

pub(crate) const OK: Verdict = "ok";

const STEPS: [Step; 7] = [
    ("fmt", fmt),
    ("clippy", clippy),
    ("features", features),
    ("rustdoc", rustdoc),
    ("deny", deny),
    ("book", book),
    ("links", links::check),
];

/// Runs the steps named, or all; says at the end which passed, how long each took, and why one did not.
///
/// # Errors
/// When a name is no step.
pub(crate) fn run(named: &[String]) -> Result<bool> {
    if let Some(stranger) = named.iter().find(|name| STEPS.iter().all(|(step, _)| step != name)) {
        let steps: Vec<&str> = STEPS.iter().map(|(step, _)| *step).collect();
        bail!("there is no step `{stranger}`; the steps are {}", steps.join(", "));
    }
    let mut report: Vec<(&str, Seconds, Result<Verdict>)> = Vec::new();
    for (name, step) in STEPS {
        if named.is_empty() || named.iter().any(|wanted| wanted == name) {
            let watch = Stopwatch::start();
            let outcome = step();
            report.push((name, watch.elapsed(), outcome));
        }
    }
    eprintln!();
    for (name, took, outcome) in &report {
        match outcome {
            Ok(verdict) => eprintln!("{name:<9} {took:>8}  {verdict}"),
            Err(error) => eprintln!("{name:<9} {took:>8}  FAILED: {error:#}"),
        }
    }
    Ok(report.iter().all(|(_, _, outcome)| outcome.is_ok()))
}

fn fmt() -> Result<Verdict> {
    cargo("fmt --all --check")
}

fn clippy() -> Result<Verdict> {
    cargo("clippy --locked --workspace --all-targets --keep-going -- -D warnings")
}

/// ractor's features change its traits for everyone in the graph, so each combination that we pass on is compiled;
/// by clippy, which also holds the code behind the features to the lints.
fn features() -> Result<Verdict> {
    cargo("clippy --locked --package leasehold -- -D warnings")?;
    cargo("clippy --locked --package leasehold --features async-trait -- -D warnings")?;
    cargo("clippy --locked --package leasehold --features cluster -- -D warnings")?;
    cargo("clippy --locked --package leasehold --features async-trait,cluster -- -D warnings")?;
    cargo("clippy --locked --package leasehold --no-default-features -- -D warnings")
}

fn rustdoc() -> Result<Verdict> {
    step::run(
        step::cargo()
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(words("doc --locked --workspace --no-deps --keep-going")),
    )?;
    Ok(OK)
}

/// The graph against `deny.toml`. Advisories come from a database on the network, which not every machine reaches:
/// where it cannot be fetched that is said, since passing is then not the same as being clean.
fn deny() -> Result<Verdict> {
    let cargo_deny = |line: &str| -> Result<()> {
        let mut command = tools::DENY.command()?;
        // A network that swallows packets is given up on, and nobody is asked for a password.
        command.envs([("GIT_HTTP_LOW_SPEED_LIMIT", "1000"), ("GIT_HTTP_LOW_SPEED_TIME", "20")]);
        command.env("GIT_TERMINAL_PROMPT", "0");
        step::run(command.args(words("deny --locked --all-features")).args(words(line)))
    };
    cargo_deny("check --hide-inclusion-graph bans licenses sources")?;
    if cargo_deny("fetch db").is_err() {
        return Ok("ok, but NOT CHECKED: advisories, whose database could not be fetched");
    }
    cargo_deny("check --disable-fetch advisories")?;
    Ok(OK)
}

fn book() -> Result<Verdict> {
    let output = crate::target().join("book");
    step::run(tools::MDBOOK.command()?.args(words("build docs --dest-dir")).arg(output))?;
    Ok(OK)
}

fn cargo(line: &str) -> Result<Verdict> {
    step::run(step::cargo().args(words(line)))?;
    Ok(OK)
}

fn words(line: &str) -> std::str::SplitWhitespace<'_> {
    line.split_whitespace()
}
