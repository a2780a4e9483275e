//! What each verb does.

mod bare;
mod pages;

use crate::{
    cli::{Cli, Verb},
    exit::Exit,
    say,
};

/// Does what was asked for.
pub(crate) async fn perform(cli: Cli) -> Exit {
    match cli.verb {
        Verb::Bare(bare) => bare::bare(bare).await,
        Verb::Completions { shell } => pages::completions(shell),
        Verb::Man { verb } => pages::man(verb.as_deref()),
        _ => {
            say::note("internal: not wired yet");
            Exit::Internal
        }
    }
}
