//! Whether the server can be reached, as all requests of one client and of its clones find it: who rests after a failure learns that
//! another request got through, and need not wait until its own time has come.

use std::{future::pending, sync::Arc};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The last request did not get through.
    is_away: bool,
    n_returns: u64,
}

/// Clones share everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach(Arc<watch::Sender<Seen>>);

impl Reach {
    /// An answer is one, whatever it says.
    pub(crate) fn note(&self, is_answered: bool) {
        self.0.send_if_modified(|it| {
            let returns = it.is_away && is_answered;
            it.is_away = !is_answered;
            it.n_returns += u64::from(returns);
            returns
        });
    }

    /// Ends when a request gets through after one that did not.
    pub(crate) fn returned(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut seen = self.0.subscribe();
        async move {
            if seen.changed().await.is_err() {
                pending().await
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
