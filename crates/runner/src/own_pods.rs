//! Asks a kubelet what it has, while the API may not say.

use corten_api::core::v1::{Node, Pod};
use tokio::sync::{Mutex, mpsc, oneshot};

/// So many wait for an answer; more are told nothing.
const ASKERS_MAX: usize = 64;

/// What a kubelet has.
#[derive(Debug, Default)]
pub struct OwnObjects {
    pub node: Option<Node>,
    /// With the status that each has now.
    pub pods: Vec<Pod>,
}

pub(crate) type Asker = oneshot::Sender<OwnObjects>;

/// Between whoever asks and the kubelet that runs now.
pub struct OwnPods {
    asked: mpsc::Sender<Asker>,
    askers: Mutex<mpsc::Receiver<Asker>>,
}

impl Default for OwnPods {
    fn default() -> Self {
        let (asked, askers) = mpsc::channel(ASKERS_MAX);
        Self { asked, askers: Mutex::new(askers) }
    }
}

impl OwnPods {
    /// Nothing where the kubelet does not run, or is asked by too many.
    pub async fn ask(&self) -> Option<OwnObjects> {
        let (asker, answer) = oneshot::channel();
        self.asked.try_send(asker).ok()?;
        answer.await.ok()
    }

    /// Who asks next.
    pub(crate) async fn next(&self) -> Option<Asker> {
        self.askers.lock().await.recv().await
    }
}
