//! What is to be run, and with which environment.

use leasehold::Moment;
use std::{
    env,
    ffi::{OsStr, OsString},
    process::{Command, Stdio},
};

/// A command with the variables that are set for it.
#[derive(Debug, Clone)]
pub struct Order {
    program: OsString,
    arguments: Vec<OsString>,
    own: Vec<(&'static str, OsString)>,
    /// Whether variables of an outer lease stay.
    inherits: bool,
    /// Whether it gets neither our standard input nor our standard output.
    apart: bool,
    /// Until when it may run, as far as is known before it starts.
    end_of_trust: Option<Moment>,
}

impl Order {
    /// A program, looked up in `PATH` unless it holds a slash, and its arguments.
    #[must_use]
    pub const fn new(program: OsString, arguments: Vec<OsString>) -> Self {
        Self { program, arguments, own: Vec::new(), inherits: false, apart: false, end_of_trust: None }
    }

    /// The words of a command line, of which the first is the program; `None` if there is none.
    pub fn of_words(words: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        Some(Self::new(words.next()?, words.collect()))
    }

    /// Sets a variable for the command, whatever was inherited under its name.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.own.push((name, value.into()));
        self
    }

    /// Keeps what was inherited of the lease under which this program itself runs: for a command of the same lease.
    #[must_use]
    pub const fn inheriting(mut self) -> Self {
        self.inherits = true;
        self
    }

    /// Gives it the null device as standard input and output, for both belong to another command.
    #[must_use]
    pub const fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    /// Has the command ended from without at that moment of the boot clock, unless a later one is told with
    /// [`Child::keep_trusted`](super::Child::keep_trusted).
    #[must_use]
    pub const fn trusted_until(mut self, moment: Moment) -> Self {
        self.end_of_trust = Some(moment);
        self
    }

    pub(super) const fn end_of_trust(&self) -> Option<Moment> {
        self.end_of_trust
    }

    pub(super) const fn is_apart(&self) -> bool {
        self.apart
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Streams and environment are inherited, except for `LEASEHOLD_…`: what an outer lease said about itself
    /// (a note, a slot) must not be taken for a word of this one.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if self.apart {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        for (name, _) in env::vars_os() {
            if !self.inherits && name.as_encoded_bytes().starts_with(b"LEASEHOLD_") {
                command.env_remove(name);
            }
        }
        command.envs(self.own.iter().map(|(name, value)| (name, value)));
        command
    }
}
