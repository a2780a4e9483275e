//! `__child`: a command as under a lease, without one.

use crate::{
    attend::attend,
    child::{Child, Lend, Order, Reaper, Terminal},
    cli::Bare,
    exit::Exit,
    say,
    signals::Signals,
};

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
    let must_end = async {
        match bare.end_after {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
        bare.grace
    };
    let may_go_on = || bare.unless.as_ref().is_none_or(|path| !path.exists());
    let attended = attend(&mut child, &mut signals, bare.grace, may_go_on, must_end).await;
    drop(child);
    reaper.settle().await;
    if attended.by_us { Exit::Lost(Exit::LOST) } else { Exit::Child(attended.ended.status) }
}
