//! What each verb does.

mod doctor;
mod elect;
mod fence;
mod handoff;
mod pages;
mod release;
mod run;
mod status;
mod watch;

use crate::attend::Passing;
use crate::{
    child::{Lend, Order, Reaper},
    cli::{Cli, Fence, Holding, Verb},
    duty::Duty,
    exit::Exit,
    say,
    session::Session,
    signals::Signals,
};
use leasehold::Timing;
use std::ffi::OsString;

/// Does what was asked for.
pub(crate) async fn perform(cli: Cli) -> Exit {
    let done = match cli.verb {
        Verb::Run(run) => run::run(run, cli.common).await,
        Verb::Elect(elect) => elect::elect(elect, cli.common).await,
        Verb::Status(list) => status::status(list, cli.common).await,
        Verb::Watch(list) => watch::watch(list, cli.common).await,
        Verb::Handoff(handoff) => handoff::handoff(handoff, cli.common).await,
        Verb::Release(release) => release::release(release, cli.common).await,
        Verb::Fence(Fence::Check(check)) => fence::check(check, cli.common).await,
        Verb::Doctor(doctor) => doctor::doctor(doctor, cli.common).await,
        Verb::Completions { shell } => Ok(pages::completions(shell)),
        Verb::Man { verb } => Ok(pages::man(verb.as_deref())),
    };
    done.unwrap_or_else(|exit| exit)
}

/// What holds a command to its lease: checked before anything is touched.
fn timing(holding: &Holding) -> Result<Timing, Exit> {
    holding.timing().map_err(|error| {
        say::note(error);
        Exit::Usage
    })
}

/// Begins to listen and to reap.
fn attendants() -> Result<(Reaper, Signals), Exit> {
    Reaper::start().and_then(|reaper| Ok((reaper, Signals::listen()?))).map_err(|error| {
        say::note(format_args!("signals cannot be handled: {error}"));
        Exit::Internal
    })
}

fn duty(
    holding: &Holding,
    timing: &Timing,
    command: Vec<OsString>,
    session: &Session,
    reaper: &Reaper,
    (passing, lend): (Passing, Lend),
) -> Result<Duty, Exit> {
    Ok(Duty {
        // The command line asks for one word at least.
        command: Order::of_words(command).ok_or(Exit::Usage)?,
        url: session.url.clone(),
        grace: timing.grace(),
        pulse: holding.pulse_cmd.clone().map(Into::into),
        pulse_every: timing.renew_every(),
        passing,
        lend,
        reaper: reaper.clone(),
        events: session.events.clone(),
    })
}
