//! The tasks of this workspace: `cargo xtask check`, `fix`, `test` and `bench`.
//!
//! | file | what it holds |
//! |---|---|
//! | `check` | the read-only gate: format, lints, docs, dependencies, book, links, features |
//! | `fix` | the mutating twin: what a machine can repair |
//! | `test` | every test of the workspace, and the closing line with the counts |
//! | `bench` | the measurements, kept in the book |
//! | `servers` | the servers that the tests run against: found, or installed |
//! | `tools` | the cargo subcommands these need: found, or installed at a pinned version |
//! | `counts` | what a test runner said it ran |
//! | `links` | whether the paths that Markdown pages name exist |
//! | `step` | one command: announced, run, timed, and judged |

mod bench;
mod check;
mod counts;
mod fix;
mod links;
mod servers;
mod step;
mod test;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <VERB>

  check [STEP…]   the read-only gate; changes nothing outside target/. Steps, all by default:
                  fmt clippy features rustdoc deny book links
  fix             format, and apply the lint fixes a machine can make
  test            every test of the workspace; ends with a line `N passed, N failed`
  servers         install the servers that the tests need and that are missing; `test` does it, too
  bench           measure, print the table, and keep it in docs/performance.md; takes minutes
  help            this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = match arguments.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => ("help", &[][..]),
    };
    let done = match (verb, rest) {
        ("check", steps) => check::run(steps),
        ("fix", []) => fix::run(),
        ("test", []) => test::run(),
        ("servers", []) => servers::ready().map(|()| true),
        ("bench", []) => bench::run(),
        ("help" | "--help" | "-h", []) => {
            print!("{HELP}");
            Ok(true)
        }
        _ => {
            eprint!("cargo xtask: cannot do `{}`\n\n{HELP}", arguments.join(" "));
            return ExitCode::from(64);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo xtask {verb}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder. Every step runs there, wherever the caller stood.
fn root() -> &'static Path {
    // The manifest's folder is `<root>/xtask`, so it has a parent.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or_else(|| Path::new("."))
}

/// Where build products go. The book and the installed tools go there, too, so that `cargo clean` takes them.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}
