//! A process that stands still, as in a long pause of its machine: none of its tasks goes on, and what comes for it waits.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use crate::signal::Signal;

/// Shared by all that stands still together.
#[derive(Clone, Default)]
pub(crate) struct Freezer {
    is_frozen: Arc<Signal<bool>>,
    /// Of those that wanted to go on meanwhile.
    waiting: Arc<Mutex<Vec<Waker>>>,
}

impl Freezer {
    pub(crate) fn freeze(&self) {
        self.is_frozen.set(true);
    }

    /// All go on at once. Time has passed for each of them.
    pub(crate) fn thaw(&self) {
        self.is_frozen.set(false);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen.get()
    }

    /// Ready while it stands still.
    pub(crate) async fn frozen(&self) {
        self.is_frozen.until(|it| it).await;
    }

    /// What of the process comes from outside goes on when this is ready.
    pub(crate) async fn thawed(&self) {
        self.is_frozen.until(|it| !it).await;
    }

    /// A task of the process.
    pub(crate) fn task<T>(&self, future: impl Future<Output = T> + Send + 'static) -> Freezable<T> {
        Freezable { freezer: self.clone(), future: Box::pin(future) }
    }
}

pub(crate) struct Freezable<T> {
    freezer: Freezer,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
}

impl<T> Future for Freezable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if self.freezer.is_frozen() {
            self.freezer.waiting.lock().push(context.waker().clone());
            return Poll::Pending;
        }
        self.future.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_stands_still_goes_on_late() {
        let (freezer, begun) = (Freezer::default(), Instant::now());
        let task = tokio::spawn(freezer.task(async {
            sleep(Duration::from_secs(1)).await;
            Instant::now()
        }));
        tokio::task::yield_now().await;
        freezer.freeze();
        sleep(Duration::from_secs(60)).await;
        assert!(!task.is_finished());
        freezer.thaw();
        assert_eq!(task.await.expect("it ends") - begun, Duration::from_secs(60));
    }
}
