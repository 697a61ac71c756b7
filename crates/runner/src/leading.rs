//! Leading, term after term, beside a server that goes on when a term is over.

use tokio::{sync::watch, task::JoinSet};

use crate::Candidate;

/// Tells when the control plane, or the node, begins to stop.
#[derive(Clone)]
pub struct Stopping(watch::Receiver<bool>);

impl Stopping {
    pub fn new(told: watch::Receiver<bool>) -> Self {
        Self(told)
    }

    pub fn now(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.0.clone();
        async move {
            // An error says that the control plane is gone: that is a stop, too.
            let _ = stopping.wait_for(|it| *it).await;
        }
    }
}

/// Holds the lease, term after term, until `stopping`, and runs what `begin` begins as long as a term lasts, with the lease's revision
/// (0 once it is over). `is_over` is told of each term that ended before.
pub async fn lead(
    candidate: Candidate,
    stopping: &Stopping,
    begin: impl Fn(&Stopping, watch::Receiver<u64>) -> JoinSet<()>,
    is_over: impl Fn(),
) {
    loop {
        let mut term = tokio::select! {
            biased;
            () = stopping.now() => return,
            term = candidate.elected() => term,
        };
        let (ended, told) = watch::channel(false);
        let mut tasks = begin(&Stopping::new(told), term.revision());
        let is_stopping = tokio::select! {
            biased;
            () = stopping.now() => true,
            () = term.keep() => false,
        };
        ended.send_replace(true);
        // Who ends in order still finishes what it is about: nobody else begins before that.
        while tasks.join_next().await.is_some() {}
        term.end();
        if is_stopping {
            return term.release().await;
        }
        is_over();
    }
}
