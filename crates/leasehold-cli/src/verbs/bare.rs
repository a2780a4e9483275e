//! `__child`: a command as under a lease, without one.

use crate::{
    attend::attend,
    child::{Child, Lend, Order, Reaper, Terminal},
    cli::{Bare, duration::MAX_SPAN},
    exit::Exit,
    say,
    signals::Signals,
};
use std::time::Duration;

pub(super) async fn bare(bare: Bare) -> Exit {
    let Some(order) = Order::of_words(bare.command) else { return Exit::Usage };
    let order = order.with("LEASEHOLD_NAME", "bare");
    let (reaper, mut signals) = match Reaper::start().and_then(|reaper| Ok((reaper, Signals::listen()?))) {
        Ok(both) => both,
        Err(error) => {
            say::note(error);
            return Exit::Internal;
        }
    };
    let lend = if bare.on_request { Lend::OnRequest } else { Lend::AtOnce };
    let mut child = match Child::spawn(&reaper, &order, Terminal::of_this_process(lend)) {
        Ok(child) => child,
        Err(error) => {
            say::note(&error);
            return error.exit();
        }
    };
    let may_go_on = || bare.end_when.as_ref().is_none_or(|path| !path.exists());
    let must_end = async {
        let due = tokio::time::sleep(bare.end_after.unwrap_or(MAX_SPAN));
        tokio::pin!(due);
        while !due.is_elapsed() && may_go_on() {
            tokio::time::timeout(Duration::from_millis(10), &mut due).await.ok();
        }
        bare.grace
    };
    let attended = attend(&mut child, &mut signals, bare.grace, may_go_on, must_end).await;
    drop(child);
    reaper.settle().await;
    if attended.by_us { Exit::Lost(Exit::LOST) } else { Exit::Child(attended.ended.status) }
}
