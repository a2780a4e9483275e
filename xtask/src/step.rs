//! One command of a task: announced before, timed, and judged by its exit status.

use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a step took. For people only, so that time asleep is nobody's concern.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "printed for people; no lease hangs on it")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Seconds {
        Seconds(self.0.elapsed())
    }
}

/// A duration as tables print it: `12.3 s`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} s", self.0.as_secs_f64()))
    }
}

/// The cargo that runs this task, so that its subcommands use the same toolchain.
///
/// What `cargo run` sets for this package is not handed on: build scripts that watch these variables would be
/// run again at each change between a plain `cargo` and this task.
pub(crate) fn cargo() -> Command {
    let mut command = at_root(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let ours = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if ours {
            command.env_remove(name);
        }
    }
    command
}

/// A program that runs in the workspace's folder, with nothing to read.
pub(crate) fn at_root(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(crate::root()).stdin(Stdio::null());
    command
}

/// Prints what is about to run, as a shell line that can be pasted.
pub(crate) fn announce(command: &Command) {
    let mut line = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            line.push_str(&format!("{}={} ", name.display(), quoted(&value.to_string_lossy())));
        }
    }
    let program = std::path::Path::new(command.get_program());
    line.push_str(&program.file_name().unwrap_or(program.as_os_str()).to_string_lossy());
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&quoted(&argument.to_string_lossy()));
    }
    eprintln!("\n$ {line}");
}

/// Announces a command, and runs it with our own streams.
///
/// # Errors
/// When it cannot be started, and when it ends with anything but status 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    announce(command);
    let status =
        command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}
