//! The cargo subcommands that the tasks need: taken from `PATH`, else installed once into `target/tools`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;

/// A program that is not part of the toolchain.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The crate, and the program it installs.
    name: &'static str,
    /// The version that is installed where none is there. Another one found on `PATH` is used as it is.
    version: &'static str,
    /// What `cargo install` is told besides. Unoptimised builds where the tool has little to compute: a check that
    /// takes a second longer is cheaper than minutes of link-time optimisation on a fresh machine.
    build: &'static [&'static str],
}

/// Runs each test in a process of its own, so that a hung one is ended and the others still count.
pub(crate) const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.143",
    build: &["--no-default-features", "--features", "default-no-update"],
};

/// Judges licences, sources, bans and advisories of the whole dependency graph.
pub(crate) const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", build: &["--debug"] };

/// Builds the book. Without its web server and file watcher, which a check has no use for.
pub(crate) const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    build: &["--debug", "--no-default-features", "--features", "search"],
};

impl Tool {
    /// A command for the tool, which is installed first if it is nowhere.
    ///
    /// # Errors
    /// When it is missing and cannot be installed; the error says how to install it by hand.
    pub(crate) fn command(&self) -> Result<Command> {
        let own = installed_here(self.name);
        for candidate in [PathBuf::from(self.name), own.clone()] {
            if let Some(version) = self.version_of(&candidate) {
                let note = if version == self.version { "" } else { "; another one is pinned here" };
                eprintln!("\n{} {version} ({}{note})", self.name, candidate.display());
                return Ok(step::at_root(candidate));
            }
        }
        self.install().with_context(|| {
            format!("{0} is missing; install it by `cargo install --locked {0}@{1}`", self.name, self.version)
        })?;
        Ok(step::at_root(own))
    }

    fn install(&self) -> Result<()> {
        let mut install = step::cargo();
        install.args(["install", "--locked", "--root"]).arg(tools_folder());
        install.args(self.build).arg(format!("{}@{}", self.name, self.version));
        // Line tables of a tool that nobody debugs only cost time to write.
        install.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_RELEASE_LTO", "off");
        install.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        step::run(&mut install)?;
        if self.version_of(&installed_here(self.name)).is_none() {
            bail!("{} was installed but does not answer to --version", self.name);
        }
        Ok(())
    }

    /// The version a program states, or `None` when it is not there or is something else.
    fn version_of(&self, program: &PathBuf) -> Option<String> {
        let mut ask = step::at_root(program);
        // A subcommand that is asked by its own name expects to hear the word cargo would have passed on.
        if let Some(word) = self.name.strip_prefix("cargo-") {
            ask.arg(word);
        }
        let output = ask
            .arg("--version")
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        stated_version(&String::from_utf8_lossy(&output.stdout))
    }
}

fn tools_folder() -> PathBuf {
    crate::target().join("tools")
}

fn installed_here(name: &str) -> PathBuf {
    tools_folder().join("bin").join(OsString::from(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// The first word of a `--version` answer that begins with a digit, a leading `v` aside.
fn stated_version(answer: &str) -> Option<String> {
    let mut words = answer.split_whitespace().map(|word| word.strip_prefix('v').unwrap_or(word));
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::stated_version;

    #[test]
    fn a_version_is_found_in_every_tools_own_wording() {
        let answers = [
            ("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143\n", Some("0.9.143")),
            ("cargo-deny 0.20.2\n", Some("0.20.2")),
            ("mdbook v0.5.4\n", Some("0.5.4")),
            ("error: no such command\n", None),
            ("", None),
        ];
        for (answer, expected) in answers {
            assert_eq!(stated_version(answer).as_deref(), expected, "in {answer:?}");
        }
    }
}
