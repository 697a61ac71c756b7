//! Tells, of each Pod of a node and of the node's machine, what their processes do: `corten why` knows a limit that holds a Pod back
//! or a port at which nothing listens by it.

use std::{sync::Arc, time::Duration};

use corten_api::resources::{NODES, PODS};
use corten_client::BoxFuture;
use corten_kubelet::{Observations, PodReading};
use corten_meta::Key;
use corten_reconcile::{Decision, Observation};

use crate::{Clock, JournalBook};

/// Who says it, beside what the kubelet decides.
const BY: &str = "observer";
/// How often to look.
const LOOK: Duration = Duration::from_secs(15);

/// One reading of a machine.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub pods: Vec<PodReading>,
    /// TCP ports of the node's addresses at which processes of the machine listen, in order.
    pub listening: Vec<u16>,
}

/// Reads what runs on one machine.
pub trait ObservationHands: Send + Sync + 'static {
    /// `None` where the runtime does not say what runs: then what was told last still holds.
    fn read(&self) -> BoxFuture<'_, Option<Reading>>;
}

/// Runs until `shutdown` is ready.
pub async fn run_observations(
    hands: impl ObservationHands,
    node_name: String,
    clock: Clock,
    journal: Arc<JournalBook>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let node = Key::cluster(&*node_name);
    let look = async {
        let (mut observations, mut told) = (Observations::default(), None);
        loop {
            if let Some(Reading { pods, listening }) = hands.read().await {
                let now = clock();
                let of = |observation| Decision {
                    by: BY.into(),
                    at: Some(now),
                    observed: Some(Box::new(observation)),
                    ..Decision::default()
                };
                for (key, observation) in observations.step(&pods, now) {
                    match observation {
                        Some(it) => journal.record(&PODS, &key, of(it)),
                        None => journal.retract(&PODS, &key, BY),
                    }
                }
                if told.as_ref() != Some(&listening) {
                    let listening = Some(listening.clone());
                    journal.record(&NODES, &node, of(Observation { listening, ..Observation::default() }));
                }
                told = Some(listening);
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
    use corten_meta::Resource;
    use parking_lot::Mutex;

    use super::*;

    struct Machine(Arc<Mutex<Option<Reading>>>);

    impl ObservationHands for Machine {
        fn read(&self) -> BoxFuture<'_, Option<Reading>> {
            Box::pin(async { self.0.lock().clone() })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_seen_is_told_until_the_pod_is_gone() {
        let journal = Arc::new(JournalBook::default());
        let pod = Key::new("shop", "web");
        let listens = |ports: &[u16]| {
            let web = PodReading { key: pod.clone(), listening: Some(ports.to_vec()), ..PodReading::default() };
            Some(Reading { pods: vec![web], listening: vec![22] })
        };
        let found = Arc::new(Mutex::new(listens(&[80])));
        let seen = |resource: &Resource, key: &Key| {
            let decisions = journal.decisions(resource, key);
            decisions.into_iter().filter_map(|it| it.observed?.listening).collect::<Vec<_>>()
        };
        let check = async {
            for (now, expected) in [
                (listens(&[80]), vec![vec![80]]),
                (listens(&[80, 443]), vec![vec![80, 443]]),
                (None, vec![vec![80, 443]]),
                (Some(Reading::default()), vec![]),
            ] {
                *found.lock() = now;
                tokio::time::sleep(2 * LOOK).await;
                assert_eq!(seen(&PODS, &pod), expected);
            }
            assert_eq!(seen(&NODES, &Key::cluster("n1")), [Vec::<u16>::new()]);
        };
        let clock: Clock = Arc::new(|| "2026-11-20T11:30:00Z".parse().expect("a time"));
        run_observations(Machine(found.clone()), "n1".into(), clock, journal.clone(), check).await;
    }
}
