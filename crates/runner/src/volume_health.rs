//! Tells, at Pods and at their claims, of volumes whose drivers say that they are not well.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use corten_api::{core::v1::PersistentVolumeClaim, resources::PERSISTENT_VOLUME_CLAIMS};
use corten_client::{BoxFuture, Client};
use corten_meta::{Key, ObjectReference};
use corten_reconcile::EventType;

use crate::{Clock, EventRecorder};

/// The kubelet's `volumeStatsAggPeriod`.
const PERIOD: Duration = Duration::from_secs(60);
const REASON: &str = "VolumeConditionAbnormal";

/// A volume that is not well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SickVolume {
    pub uid: String,
    pub pod: Key,
    /// The Pod's own name for it.
    pub volume: String,
    /// `None`: it is in the Pod itself.
    pub claim: Option<Key>,
    /// In the driver's words.
    pub message: String,
}

/// Asks the drivers of one node.
pub trait VolumeHealthHands: Send + Sync + 'static {
    fn sick_volumes(&self) -> BoxFuture<'_, Vec<SickVolume>>;
}

/// What the loop is given.
pub struct VolumeHealthSettings {
    pub node_name: String,
    /// As the node.
    pub client: Client,
    pub hands: Arc<dyn VolumeHealthHands>,
    pub clock: Clock,
}

/// Runs until `shutdown` is ready.
pub async fn run_volume_health(settings: VolumeHealthSettings, shutdown: impl Future<Output = ()> + Send) {
    let VolumeHealthSettings { node_name, client, hands, clock } = settings;
    let recorder = &parking_lot::Mutex::new(EventRecorder::on_node(client.clone(), "kubelet", &node_name));
    let look = async {
        loop {
            for sick in hands.sick_volumes().await {
                let told = abouts(&client, &sick).await;
                let mut recorder = recorder.lock();
                for (about, message) in told {
                    recorder.record(&about, EventType::Warning, REASON, &message, clock());
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    };
    let (mut shutdown, mut look) = (pin!(shutdown), pin!(look));
    poll_fn(|context| {
        if shutdown.as_mut().poll(context).is_ready() || look.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let _: Poll<()> = recorder.lock().poll(context);
        Poll::Pending
    })
    .await;
}

/// What is told of, and in which words: of the Pod as the kubelet, of the claim as external-health-monitor.
async fn abouts(client: &Client, sick: &SickVolume) -> Vec<(ObjectReference, String)> {
    let of = |kind: &str, key: &Key, uid: &str| ObjectReference {
        kind: kind.into(),
        api_version: "v1".into(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: uid.into(),
        ..ObjectReference::default()
    };
    let mut told = vec![(of("Pod", &sick.pod, &sick.uid), format!("Volume {}: {}", sick.volume, sick.message))];
    if let Some(claim) = &sick.claim {
        let found = client.get_as::<PersistentVolumeClaim>(&PERSISTENT_VOLUME_CLAIMS, claim).await;
        if let Some(uid) = found.ok().and_then(|it| it.metadata.uid) {
            told.push((of("PersistentVolumeClaim", claim, &uid), sick.message.clone()));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake::{FakeApi, clock};

    struct Sick;

    impl VolumeHealthHands for Sick {
        fn sick_volumes(&self) -> BoxFuture<'_, Vec<SickVolume>> {
            let claim = Some(Key::new("ns", "data"));
            let (uid, pod) = ("u1".into(), Key::new("ns", "p"));
            let sick = SickVolume { uid, pod, volume: "v".into(), claim, message: "bad blocks".into() };
            Box::pin(std::future::ready(vec![sick]))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pod_and_claim_are_told_of_a_volume_that_is_not_well() {
        let api = FakeApi::new();
        let claims = "/api/v1/namespaces/ns/persistentvolumeclaims/data";
        api.put(claims, json!({ "metadata": { "name": "data", "namespace": "ns", "uid": "c1" } }));
        let settings = VolumeHealthSettings {
            node_name: "n1".into(),
            client: api.client(),
            hands: Arc::new(Sick),
            clock: clock(),
        };
        let events = || api.objects("/api/v1/namespaces/ns/events/");
        let told = async {
            while events().len() < 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        run_volume_health(settings, told).await;
        let mut messages: Vec<String> =
            events().iter().map(|it| format!("{} {}", it["involvedObject"]["kind"], it["message"])).collect();
        messages.sort();
        assert_eq!(messages, [r#""PersistentVolumeClaim" "bad blocks""#, r#""Pod" "Volume v: bad blocks""#]);
    }
}
