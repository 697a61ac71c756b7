//! Whether the machine is about to end, and whether the pods that go before it have.

use tokio::sync::watch;

/// One for each node; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct EndOfMachine {
    is_near: watch::Sender<bool>,
    is_awaited: watch::Sender<bool>,
}

impl EndOfMachine {
    /// Tells the kubelet that the machine will end: it ends the pods first.
    pub fn begin(&self) {
        self.is_awaited.send_replace(false);
        self.is_near.send_replace(true);
    }

    /// The machine will not end after all.
    pub fn cancel(&self) {
        self.is_near.send_replace(false);
    }

    /// All pods have ended that were to end before the machine.
    pub fn pods_have_ended(&self) {
        self.is_awaited.send_replace(true);
    }

    /// Becomes ready when they have.
    pub async fn drained(&self) {
        // An error would say that nobody can tell any more; this one can.
        let _ = self.is_awaited.subscribe().wait_for(|it| *it).await;
    }

    /// Changes when the machine is about to end, and when it is not after all.
    pub fn news(&self) -> watch::Receiver<bool> {
        self.is_near.subscribe()
    }
}
