//! Tells, of the Node, what should protect it and does not.

use std::{sync::Arc, time::Duration};

use corten_api::resources::NODES;
use corten_client::BoxFuture;
use corten_kubelet::{NodeProblem, node_problem};
use corten_meta::Key;

use crate::{Clock, JournalBook};

/// How often to look whether somebody has opened what was closed.
const LOOK: Duration = Duration::from_secs(10);

/// Looks at one machine.
pub trait NodeProblemHands: Send + Sync + 'static {
    /// What is not protected. What can be protected again is.
    fn node_problems(&self) -> BoxFuture<'_, Vec<NodeProblem>>;
}

/// Runs until `shutdown` is ready.
pub async fn run_node_problems(
    hands: impl NodeProblemHands,
    node_name: String,
    clock: Clock,
    journal: Arc<JournalBook>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let key = Key::cluster(&*node_name);
    let look = async {
        let mut told = None;
        loop {
            let found = hands.node_problems().await;
            // A journal that is full forgets who says the same again and again last.
            if told.as_ref() != Some(&found) {
                let mut decision = node_problem::decision(&found);
                decision.at = Some(clock());
                journal.record(&NODES, &key, decision);
                told = Some(found);
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        () = shutdown => {}
        () = look => {}
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    struct Machine(Arc<Mutex<Vec<NodeProblem>>>);

    impl NodeProblemHands for Machine {
        fn node_problems(&self) -> BoxFuture<'_, Vec<NodeProblem>> {
            Box::pin(async { self.0.lock().clone() })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_open_is_told_until_it_is_closed() {
        let journal = Arc::new(JournalBook::default());
        let found = Arc::new(Mutex::new(Vec::new()));
        let reasons = || {
            let decisions = journal.decisions(&NODES, &Key::cluster("n1"));
            let waits = decisions.into_iter().flat_map(|it| it.waits);
            waits.map(|it| it.reason.to_string()).collect::<Vec<_>>()
        };
        let check = async {
            for (now, expected) in [
                (vec![], vec![]),
                (vec![NodeProblem::SetUserId { why: "because".into() }], vec!["SetUserIDNotPrevented"]),
                (vec![], vec![]),
            ] {
                *found.lock() = now;
                tokio::time::sleep(2 * LOOK).await;
                assert_eq!(reasons(), expected);
            }
        };
        let clock: Clock = Arc::new(|| "2026-11-20T11:30:00Z".parse().expect("a time"));
        run_node_problems(Machine(found.clone()), "n1".into(), clock, journal.clone(), check).await;
    }
}
