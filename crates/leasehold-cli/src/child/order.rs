//! What is to be run, and with which environment.

use std::{
    env,
    ffi::{OsStr, OsString},
    process::Command,
};

/// A command with the variables that are set for it.
#[derive(Debug, Clone)]
pub struct Order {
    program: OsString,
    arguments: Vec<OsString>,
    own: Vec<(&'static str, OsString)>,
}

impl Order {
    /// A program, looked up in `PATH` unless it holds a slash, and its arguments.
    #[must_use]
    pub const fn new(program: OsString, arguments: Vec<OsString>) -> Self {
        Self { program, arguments, own: Vec::new() }
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
        for (name, _) in env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"LEASEHOLD_") {
                command.env_remove(name);
            }
        }
        command.envs(self.own.iter().map(|(name, value)| (name, value)));
        command
    }
}
