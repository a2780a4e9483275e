//! Dropping a future at each of its awaits in turn.

use std::{
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

/// How long one await of a future may take before the test says that it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Polls a future a given number of times and then drops it, as a caller's timeout or a killed actor would.
///
/// Between two polls it waits until the future was woken, so that each poll finds progress: poll `n` reaches the
/// `n`th await that really waits.
#[derive(Debug, Clone, Copy)]
pub struct Stepper {
    polls: usize,
}

impl Stepper {
    /// Allows this many polls; none means that the future is dropped unpolled.
    #[must_use]
    pub const fn allowing(polls: usize) -> Self {
        Self { polls }
    }

    /// The output, if the future was ready within the allowed polls; else it was dropped half done.
    ///
    /// # Panics
    /// If the future is not woken for 20 seconds.
    pub async fn run<F: Future>(self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut left = self.polls;
        let stepped = std::future::poll_fn(|cx: &mut Context<'_>| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            match future.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if left == 0 => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        });
        tokio::time::timeout(PATIENCE, stepped).await.expect("the future was not woken for 20 s")
    }

    /// Calls `attempt` with a stepper of 0, 1, 2, … polls until it says that its future ran to its end. Gives the
    /// number of polls which that took.
    ///
    /// # Panics
    /// After 1,000 polls, since then the future never ends.
    pub async fn at_every_await(mut attempt: impl AsyncFnMut(Self) -> bool) -> usize {
        for polls in 0..1_000 {
            if attempt(Self::allowing(polls)).await {
                return polls;
            }
        }
        panic!("the future did not end within 1,000 polls");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn a_future_is_dropped_at_each_of_its_awaits_once() {
        let reached = Cell::new(0);
        let mut seen = Vec::new();
        let polls = Stepper::at_every_await(async |stepper| {
            reached.set(0);
            let done = stepper
                .run(async {
                    for step in 1..=3 {
                        reached.set(step);
                        tokio::task::yield_now().await;
                    }
                    "done"
                })
                .await;
            seen.push(reached.get());
            done == Some("done")
        })
        .await;
        assert_eq!((polls, seen), (4, vec![0, 1, 2, 3, 3]));
    }
}
