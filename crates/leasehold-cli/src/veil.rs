//! Keeps the password of a store out of the process title.
//!
//! The arguments of a process are readable by every user of a host, its environment by its own user only. A store with
//! a password that stands on the command line is therefore moved to the environment: the program starts itself anew, in
//! the same process, without that argument.

use std::{env, ffi::OsString, os::unix::process::CommandExt, process::Command};

/// Replaces this process by itself with `store` in `LEASEHOLD_STORE`. Returns only if that failed.
#[must_use]
pub fn draw(store: &str) -> std::io::Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut arguments = env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    again.args(without_store(arguments)).env("LEASEHOLD_STORE", store).exec()
}

/// Drops `--store URL` and `--store=URL` up to `--`, after which all belongs to the command.
fn without_store(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            kept.push(argument);
            kept.extend(arguments);
            break;
        } else if argument == "--store" {
            arguments.next();
        } else if !argument.as_encoded_bytes().starts_with(b"--store=") {
            kept.push(argument);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_store_is_dropped() {
        let line = ["--store", "a", "run", "--store=b", "n", "--stored", "--", "x", "--store", "c"];
        let kept = without_store(line.iter().map(Into::into));
        assert_eq!(kept, ["run", "n", "--stored", "--", "x", "--store", "c"]);
    }
}
