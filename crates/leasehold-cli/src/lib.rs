//! The program `leasehold`, as a library so that its parts can be read, documented and tested.
//!
//! # Map
//! * [`cli`]: the command line. [`config`]: what holds when nothing is said. [`exit`]: the exit statuses.
//! * [`child`]: a command in its process group. [`signals`]: what the wrapper hears. [`attend`]: both together.
//! * `verbs`: what each verb does. `session`: the store they use. `duty`: the command under a term, with its `notes`.
//!   `closing`: the end of the node under them.
//! * [`outlet`]: lines that make nobody wait; on it [`say`] (people), [`log`] (operators), [`events`] (programs).
//! * [`veil`]: passwords out of the process title.
//!
//! Its interface is the command line. What is public here may change with every version.

pub mod attend;
pub mod child;
pub mod cli;
mod closing;
pub mod config;
mod duty;
pub mod events;
pub mod exit;
pub mod log;
mod notes;
pub mod outlet;
pub mod say;
mod session;
pub mod signals;
pub mod veil;
mod verbs;

use exit::Exit;
use std::process::ExitCode;

/// The program.
///
/// It runs on the thread that calls it, and must be the main thread: a command lives as long as the *thread* that
/// started it (see [`child`]), and only the main thread lives as long as the process.
#[must_use]
pub fn main() -> ExitCode {
    signals::prepare();
    // A panic has been written to stderr by its hook; all that runs under a lease was killed while unwinding.
    let exit = std::panic::catch_unwind(program).unwrap_or(Exit::Internal);
    say::finish();
    exit.into()
}

fn program() -> Exit {
    if child::Guard::is_asked_for(std::env::args_os()) {
        return child::Guard::stand();
    }
    let parsed = match cli::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(exit) => return exit,
    };
    if let Some(store) = parsed.cli.common.store.as_deref()
        && parsed.store_in_arguments
        && config::redacted(store) != store
    {
        let error = veil::draw(store);
        say::note(format_args!("the store's password stays readable in the list of processes: {error}"));
    }
    let common = &parsed.cli.common;
    log::start(common.log, common.color, parsed.cli.verb.holds_leases());
    // One thread for everything: see above. Stores that block have threads of their own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say::note(format_args!("the runtime cannot be started: {error}"));
            return Exit::Internal;
        }
    };
    let exit = runtime.block_on(verbs::perform(parsed.cli));
    // A store call that hangs must not hold the end.
    runtime.shutdown_background();
    exit
}
