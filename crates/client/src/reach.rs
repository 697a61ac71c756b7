//! Whether the server can be reached, as all requests of one client and of its clones find it: who rests after a failure learns that
//! another request got through, and need not wait until its own time has come.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Clones share everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    connectivity: Mutex<Connectivity>,
    /// Not a channel of `watch`, which wakes those who wait in an order of chance: a simulation repeats them exactly.
    returned: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connectivity {
    /// The last request did not get through.
    is_away: bool,
    n_returns: u64,
}

impl Reach {
    /// An answer is one, whatever it says.
    pub(crate) fn note(&self, is_answered: bool) {
        let mut connectivity = self.0.connectivity.lock();
        let returns = connectivity.is_away && is_answered;
        connectivity.is_away = !is_answered;
        connectivity.n_returns += u64::from(returns);
        drop(connectivity);
        if returns {
            self.0.returned.notify_waiters();
        }
    }

    /// Ends when a request gets through after one that did not.
    pub(crate) fn returned(&self) -> impl Future<Output = ()> + Send + use<> {
        let (shared, n_before) = (self.0.clone(), self.0.connectivity.lock().n_returns);
        async move {
            loop {
                let mut returned = std::pin::pin!(shared.returned.notified());
                // Before the look: what comes after it wakes.
                returned.as_mut().enable();
                if shared.connectivity.lock().n_returns != n_before {
                    return;
                }
                returned.await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_waits_learns_of_a_return_and_of_nothing_else() {
        let reach = Reach::default();
        let mut waiting = Box::pin(reach.returned());
        for is_answered in [true, false, false] {
            reach.note(is_answered);
            assert!((&mut waiting).now_or_never().is_none());
        }
        reach.note(true);
        assert!(waiting.now_or_never().is_some());
        let later = reach.returned();
        reach.note(true);
        assert!(later.now_or_never().is_none(), "that return was before");
    }
}
