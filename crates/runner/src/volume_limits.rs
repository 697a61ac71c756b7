//! Has the drivers of one node say again how many volumes it takes, as often as their CSIDrivers ask for
//! (`nodeAllocatableUpdatePeriodSeconds`). Who follows the node's drivers writes its CSINode.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    sync::Arc,
    time::Duration,
};

use corten_api::{resources::CSI_DRIVERS, storage::v1::CSIDriver};
use corten_client::{BoxFuture, Client, Identity, Informer, InformerEvent, InformerParams, decode};
use corten_meta::ObjectMeta;
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde::Deserialize;
use tokio::time::Instant;

/// As the kubelet's `csiTimeout`.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks the drivers of one node.
pub trait VolumeLimitHands: Send + Sync + 'static {
    /// Does nothing where the driver is not on the node.
    fn ask_limit(&self, driver: &str) -> BoxFuture<'_, ()>;
}

/// A driver that is asked again and again.
struct Turn {
    period: Duration,
    next: Instant,
}

/// Runs until `shutdown` is ready. `client`: as the node.
pub async fn run_volume_limits(
    client: Client,
    hands: Arc<dyn VolumeLimitHands>,
    shutdown: impl Future<Output = ()> + Send,
) {
    tokio::select! {
        () = shutdown => {}
        () = ask_again_and_again(client, &*hands) => {}
    }
}

async fn ask_again_and_again(client: Client, hands: &dyn VolumeLimitHands) {
    let mut drivers = Informer::decoding(client, InformerParams::all(CSI_DRIVERS), |bytes| {
        #[derive(Deserialize)]
        struct OnlyMeta {
            metadata: ObjectMeta,
        }
        let meta = decode::<OnlyMeta>(&bytes)?.metadata;
        let seconds = decode::<CSIDriver>(&bytes)?.spec.node_allocatable_update_period_seconds;
        let period = seconds.and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0).map(Duration::from_secs);
        Ok((Identity::of(&meta), (meta.name, period)))
    });
    let (mut turns, mut in_flight) = (BTreeMap::<String, Turn>::new(), BTreeSet::new());
    let mut asked = FuturesUnordered::new();
    loop {
        let next = turns.values().map(|it| it.next).min();
        tokio::select! {
            event = poll_fn(|context| drivers.poll_event(context)) => match event {
                InformerEvent::Applied((driver, Some(period)), _) => {
                    if turns.get(&driver).is_none_or(|it| it.period != period) {
                        turns.insert(driver, Turn { period, next: Instant::now() + period });
                    }
                }
                InformerEvent::Applied((driver, None), _) => {
                    turns.remove(&driver);
                }
                InformerEvent::Deleted(meta) => {
                    turns.remove(&meta.name);
                }
                InformerEvent::Synced(_) => {}
            },
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                let now = Instant::now();
                for (driver, turn) in turns.iter_mut().filter(|it| it.1.next <= now) {
                    turn.next = now + turn.period;
                    // One that hangs is not asked beside that.
                    if in_flight.insert(driver.clone()) {
                        let driver = driver.clone();
                        asked.push(async move {
                            let _ = tokio::time::timeout(PATIENCE, hands.ask_limit(&driver)).await;
                            driver
                        });
                    }
                }
            }
            Some(driver) = asked.next() => {
                in_flight.remove(&driver);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::fake::FakeApi;

    #[derive(Default)]
    struct Asked(Mutex<Vec<String>>);

    impl VolumeLimitHands for Asked {
        fn ask_limit(&self, driver: &str) -> BoxFuture<'_, ()> {
            self.0.lock().push(driver.to_owned());
            // It does not answer.
            if driver == "hangs" { Box::pin(std::future::pending()) } else { Box::pin(std::future::ready(())) }
        }
    }

    impl Asked {
        fn n(&self, driver: &str) -> usize {
            self.0.lock().iter().filter(|it| *it == driver).count()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_is_asked_as_often_as_it_wants() {
        let (api, hands) = (FakeApi::new(), Arc::new(Asked::default()));
        let put = |name: &str, spec| {
            let object = json!({ "metadata": { "name": name }, "spec": spec });
            api.put(&format!("/apis/storage.k8s.io/v1/csidrivers/{name}"), object);
        };
        put("often", json!({ "nodeAllocatableUpdatePeriodSeconds": 10 }));
        put("never", json!({}));
        put("hangs", json!({ "nodeAllocatableUpdatePeriodSeconds": 10 }));
        let seconds = |it| tokio::time::sleep(Duration::from_secs(it));
        let told = async {
            seconds(65).await;
            assert_eq!((hands.n("often"), hands.n("never"), hands.n("hangs")), (6, 0, 1));
            put("often", json!({ "nodeAllocatableUpdatePeriodSeconds": 60 }));
            seconds(65).await;
            assert_eq!(hands.n("often"), 7);
            put("often", json!({}));
            seconds(600).await;
            assert_eq!(hands.n("often"), 7);
            // It was given up each time.
            assert!(hands.n("hangs") >= 5, "{}", hands.n("hangs"));
        };
        run_volume_limits(api.client(), hands.clone(), told).await;
    }
}
