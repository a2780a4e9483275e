//! `completions` and `man`: texts made from the definition of the command line.

use crate::{cli, exit::Exit, say};
use clap_complete::Shell;
use clap_mangen::Man;

pub(super) fn completions(shell: Shell) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "leasehold", &mut text);
    write(&text)
}

pub(super) fn man(verb: Option<&str>) -> Exit {
    let mut program = cli::command();
    // Fills in the full names of the verbs, as `leasehold-run`.
    program.build();
    let page = match verb {
        None => program,
        Some(verb) => match program.find_subcommand(verb) {
            Some(verb) => verb.clone(),
            None => {
                say::note(format_args!("there is no verb {verb:?}, see leasehold --help"));
                return Exit::Usage;
            }
        },
    };
    let mut text = Vec::new();
    match Man::new(page).render(&mut text) {
        Ok(()) => write(&text),
        Err(error) => {
            say::note(error);
            Exit::Internal
        }
    }
}

/// Nobody left to read it is no failure: `leasehold man | head`.
fn write(text: &[u8]) -> Exit {
    say::out(&String::from_utf8_lossy(text)).ok();
    Exit::Done
}
