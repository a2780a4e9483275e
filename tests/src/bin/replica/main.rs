//! `replica`: a small real program on leasehold's public interface, to be held, paused, killed and listened to.
//!
//! It says a JSON line for everything that happens, and obeys an order a line on its standard input; when that ends,
//! so does the program. SIGTERM and SIGINT shut its node down.

mod cast;
mod duties;
mod voice;
mod work;

use cast::{Cast, Mode};
use clap::Parser as _;
use duties::{Duties, ProcessOrder};
use leasehold::{BoxError, Node, Stopped, shutdown::Signals};
use leasehold_tests::What;
use std::{process::ExitCode, sync::Arc};
use tokio::{
    runtime::{Handle, Runtime},
    sync::mpsc,
    task::JoinHandle,
};
use voice::Voice;

fn main() -> ExitCode {
    let cast = Cast::parse();
    let voice = Voice;
    match play(cast, voice) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            voice.say(None, What::Failed { error: full(&*error) });
            eprintln!("replica: {}", full(&*error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes, as a program should print it.
fn full(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// How the life of the node came to its end.
enum Ending {
    Stopped,
    /// The runtime is to be dropped, and the process to live on.
    DropRuntime,
}

fn play(cast: Cast, voice: Voice) -> Result<(), BoxError> {
    let threads = if cast.one_thread { 1 } else { 2 };
    let runtime: Runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let apart = match cast.renew_apart {
        true => Some(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?),
        false => None,
    };
    let renew_on = apart.as_ref().map(|apart| apart.handle().clone());
    let (duties, orders) = Duties::take_up(cast, voice);
    // On a worker thread, as everything else: what blocks it blocks the renewals.
    let life = runtime.spawn(live(Arc::new(duties), renew_on, orders));
    match runtime.block_on(life)?? {
        Ending::Stopped => Ok(()),
        Ending::DropRuntime => {
            runtime.shutdown_background();
            voice.say(None, What::RuntimeDropped);
            loop {
                std::thread::park(); // Until the end of the orders ends the process.
            }
        }
    }
}

async fn live(
    duties: Arc<Duties>,
    renew_on: Option<Handle>,
    mut orders: mpsc::UnboundedReceiver<ProcessOrder>,
) -> Result<Ending, BoxError> {
    let (cast, voice) = (&duties.cast, duties.voice);
    let store = leasehold::connect(&cast.store).await?;
    let mut builder =
        Node::builder(store).replica(cast.replica.as_str()).observe(move |event| voice.tell(event));
    if let Some(runtime) = renew_on {
        builder = builder.renew_on(runtime);
    }
    let node = builder.start().await?;
    let mut signals = Signals::install()?;
    voice.say(None, What::Ready);
    let mut owner = Some(match cast.mode {
        Mode::Elect => tokio::spawn(elect(node.clone(), duties.clone())),
        Mode::Hold | Mode::Try => tokio::spawn(hold(node.clone(), duties.clone())),
    });
    loop {
        tokio::select! {
            () = signals.wait() => break,
            ended = ended(&mut owner) => ended?,
            order = orders.recv() => match order {
                Some(ProcessOrder::Abandon) => {
                    if let Some(owner) = owner.take() {
                        owner.abort();
                        let _ = owner.await;
                    }
                    voice.say(None, What::Abandoned);
                }
                // The node is given up with the runtime, not shut down.
                Some(ProcessOrder::DropRuntime) => {
                    std::mem::forget(node);
                    return Ok(Ending::DropRuntime);
                }
                Some(ProcessOrder::Leave) | None => break,
            }
        }
    }
    let stopped = node.shutdown(cast.within.into()).await;
    let how = match stopped {
        Stopped::Clean => "clean",
        Stopped::Unconfirmed => "unconfirmed",
        Stopped::Killed => "killed",
        _ => "otherwise",
    };
    voice.say(None, What::Stopped { how: how.into() });
    Ok(Ending::Stopped)
}

/// The end of the owner's task; never, once it was taken away.
async fn ended(owner: &mut Option<JoinHandle<Result<(), BoxError>>>) -> Result<(), BoxError> {
    match owner {
        Some(task) => {
            let result = task.await;
            *owner = None;
            result?
        }
        None => std::future::pending().await,
    }
}

async fn elect(node: Node, duties: Arc<Duties>) -> Result<(), BoxError> {
    let cast = &duties.cast;
    let doing = duties.clone();
    let mut election = node
        .election(cast.lease.as_str())
        .ttl(cast.ttl.into())
        .crash_witness(cast.crash_witness)
        .lead(move |term| work::lead(term, doing.clone()))
        .await?;
    while let Some(stood) = election.standings().next().await {
        duties.voice.stood(&stood);
    }
    Ok(())
}

async fn hold(node: Node, duties: Arc<Duties>) -> Result<(), BoxError> {
    let cast = &duties.cast;
    let mut lease = node.lease(cast.lease.as_str()).ttl(cast.ttl.into()).crash_witness(cast.crash_witness);
    if cast.mode == Mode::Try {
        lease = lease.try_once();
    }
    let doing = duties.clone();
    match lease.hold(move |term| work::lead(term, doing)).await {
        Ok(finished) => {
            duties.voice.finished(&finished);
            finished.output
        }
        Err(error) => {
            duties.voice.say(None, What::NotHeld { error: full(&error) });
            Ok(())
        }
    }
}
