//! Two nodes, each with a driver of its own, and one API.

use serde_json::{Value, json};

use super::*;
use crate::fake::{FakeApi, clock};
use corten_provisioner::FailureKind;

const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const VOLUME: &str = "/api/v1/persistentvolumes/pv1";

/// The driver of a node, and the Pods that have its volume there.
#[derive(Default)]
struct FakeNode {
    asked: Mutex<Vec<String>>,
    has_pod: Mutex<bool>,
    refusal: Mutex<Option<Failure>>,
}

impl VolumeGrowthHands for FakeNode {
    fn growable(&self) -> BoxFuture<'_, Vec<GrowableVolume>> {
        let volume = GrowableVolume {
            driver: "d".into(),
            handle: "h1".into(),
            claim: Key::new("default", "data"),
            pods: [("u1".to_owned(), Key::new("default", "db"))].into(),
        };
        Box::pin(std::future::ready(Vec::from_iter(self.has_pod.lock().then_some(volume))))
    }

    fn grow(
        &self,
        driver: String,
        volume: AttachedVolume,
        bytes: u64,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<(), Failure>> {
        let AttachedVolume { handle, access_mode, .. } = volume;
        let secrets: Vec<&String> = secrets.0.keys().collect();
        self.asked.lock().push(format!("{driver} {handle} {bytes} {access_mode} {secrets:?}"));
        Box::pin(std::future::ready(self.refusal.lock().clone().map_or(Ok(()), Err)))
    }
}

struct World {
    api: Arc<FakeApi>,
    nodes: [Arc<FakeNode>; 2],
    running: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl World {
    /// The volume is of two GB, and its claim has seen one.
    fn new(status: Value) -> Self {
        let api = FakeApi::new();
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": "data", "namespace": "default", "uid": "c1" },
            "spec": { "volumeName": "pv1", "resources": { "requests": { "storage": "2Gi" } } },
            "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
        });
        claim["status"].as_object_mut().expect("an object").extend(status.as_object().expect("an object").clone());
        api.put(CLAIM, claim);
        api.put(
            VOLUME,
            json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "pv1" },
                "spec": {
                    "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteOnce"],
                    "claimRef": { "namespace": "default", "name": "data", "uid": "c1" },
                    "csi": {
                        "driver": "d", "volumeHandle": "h1",
                        "nodeExpandSecretRef": { "namespace": "kube-system", "name": "key" },
                    },
                },
            }),
        );
        let secret = json!({ "metadata": { "name": "key", "namespace": "kube-system" }, "data": { "k": "eA==" } });
        api.put("/api/v1/namespaces/kube-system/secrets/key", secret);
        let nodes: [Arc<FakeNode>; 2] = Default::default();
        let run = |(name, node): (&str, &Arc<FakeNode>)| {
            let (node_name, hands) = (name.to_owned(), node.clone());
            let settings = VolumeGrowthSettings { node_name, client: api.client(), hands, clock: clock() };
            tokio::spawn(run_volume_growth(settings, std::future::pending()))
        };
        let running = ["n1", "n2"].into_iter().zip(&nodes).map(run).collect();
        Self { api, nodes, running }
    }

    fn pending() -> Self {
        Self::new(json!({
            "allocatedResources": { "storage": "2Gi" },
            "allocatedResourceStatuses": { "storage": "NodeResizePending" },
            "conditions": [{ "type": "FileSystemResizePending", "status": "True" }],
        }))
    }

    fn status(&self) -> Value {
        self.api.object(CLAIM).expect("the claim")["status"].clone()
    }

    fn said(&self) -> Value {
        self.status()["allocatedResourceStatuses"]["storage"].clone()
    }

    fn condition(&self) -> Option<String> {
        let status = self.status();
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let found = conditions.find(|it| it["type"] == "NodeResizeError")?;
        Some(found["message"].as_str().expect("a message").to_owned())
    }

    fn events(&self) -> Vec<String> {
        let events = self.api.objects("/api/v1/namespaces/default/events/");
        let show =
            |it: &Value| format!("{} {}", it["involvedObject"]["kind"].as_str().unwrap_or_default(), it["message"]);
        let mut told: Vec<String> = events.iter().map(show).collect();
        told.sort();
        told
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if is_so(self) {
                return;
            }
            tokio::time::advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
        panic!("not {what}: {}", self.status());
    }

    /// So that whoever would do something has done it.
    async fn wait(&self, seconds: u64) {
        for _ in 0..seconds * 10 {
            tokio::time::advance(Duration::from_millis(100)).await;
            tokio::task::yield_now().await;
        }
    }
}

fn failure(message: &str, kind: FailureKind) -> Failure {
    Failure { message: message.into(), kind, ..Failure::default() }
}

#[tokio::test(start_paused = true)]
async fn the_node_that_has_the_pod_is_asked_and_no_other() {
    let world = World::pending();
    world.wait(40).await;
    assert_eq!(world.said(), "NodeResizePending", "no pod has it");
    *world.nodes[1].has_pod.lock() = true;
    world.until("grown", |it| it.status()["capacity"]["storage"] == "2Gi").await;
    assert!(world.nodes[0].asked.lock().is_empty());
    assert_eq!(*world.nodes[1].asked.lock(), [r#"d h1 2147483648 ReadWriteOnce ["k"]"#]);
    assert!(world.said().is_null());
    assert_eq!(world.status()["conditions"], json!([]));
    world.until("told", |it| it.events().len() == 2).await;
    let done = r#""MountVolume.NodeExpandVolume succeeded for volume \"pv1\" n2""#;
    assert_eq!(world.events(), [format!("PersistentVolumeClaim {done}"), format!("Pod {done}")]);
    world.wait(60).await;
    assert_eq!(world.nodes[1].asked.lock().len(), 1, "it is done once");
}

/// As resizers of before `RecoverVolumeExpansionFailure` say it.
#[tokio::test(start_paused = true)]
async fn a_condition_alone_is_enough() {
    let conditions = json!([{ "type": "FileSystemResizePending", "status": "True" }]);
    let world = World::new(json!({ "conditions": conditions }));
    *world.nodes[0].has_pod.lock() = true;
    world.until("grown", |it| it.status()["capacity"]["storage"] == "2Gi").await;
    assert!(world.said().is_null());
}

#[tokio::test(start_paused = true)]
async fn what_a_driver_says_stands_in_the_claim_and_the_pod_is_told_and_it_is_tried_again() {
    let world = World::pending();
    *world.nodes[0].refusal.lock() = Some(failure("rpc error: bad sector", FailureKind::Refused));
    *world.nodes[0].has_pod.lock() = true;
    world.until("told", |it| it.condition().is_some()).await;
    assert_eq!(world.condition().as_deref(), Some("failed to expand pvc with rpc error: bad sector"));
    assert_eq!(world.said(), "NodeResizeInProgress");
    let kinds = world.status()["conditions"].as_array().expect("conditions").len();
    assert_eq!(kinds, 2, "that it waits for the node stands there, too");
    world.until("an event", |it| !it.events().is_empty()).await;
    let told = r#"Pod "NodeExpandVolume.NodeExpandVolume failed for volume \"pv1\" : rpc error: bad sector""#;
    assert_eq!(world.events(), [told]);
    *world.nodes[0].refusal.lock() = None;
    world.until("grown", |it| it.status()["capacity"]["storage"] == "2Gi").await;
    assert_eq!(world.condition(), None);
}

#[tokio::test(start_paused = true)]
async fn what_a_driver_will_always_refuse_is_not_asked_again() {
    let world = World::pending();
    *world.nodes[0].refusal.lock() = Some(failure("too large", FailureKind::Infeasible));
    *world.nodes[0].has_pod.lock() = true;
    world.until("infeasible", |it| it.said() == "NodeResizeInfeasible").await;
    assert_eq!(world.condition().as_deref(), Some("failed to expand pvc with too large"));
    world.wait(300).await;
    assert_eq!(world.nodes[0].asked.lock().len(), 1);
}

/// Who asks for less after a failure is heard once the node has given up: the resizer begins anew with what is asked for.
#[tokio::test(start_paused = true)]
async fn a_failure_is_for_good_where_another_size_is_asked_for_by_now() {
    let world = World::pending();
    *world.nodes[0].refusal.lock() = Some(failure("no", FailureKind::Refused));
    *world.nodes[0].has_pod.lock() = true;
    world.until("failed", |it| it.condition().is_some()).await;
    assert_eq!(world.said(), "NodeResizeInProgress");
    let mut claim = world.api.object(CLAIM).expect("the claim");
    claim["spec"]["resources"]["requests"]["storage"] = "1536Mi".into();
    world.api.put(CLAIM, claim);
    world.until("infeasible", |it| it.said() == "NodeResizeInfeasible").await;
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_grows_only_while_nobody_has_it_is_asked_for_again_by_the_next_pod() {
    let world = World::pending();
    let in_use = Failure { is_in_use: true, ..failure("in use", FailureKind::Refused) };
    *world.nodes[0].refusal.lock() = Some(in_use);
    *world.nodes[0].has_pod.lock() = true;
    world.until("told", |it| it.condition().is_some()).await;
    world.wait(300).await;
    // Whether it is another Pod by now nobody knows: it is asked again every two minutes.
    assert_eq!((world.nodes[0].asked.lock().len(), world.events().len()), (3, 0));
    *world.nodes[0].has_pod.lock() = false;
    world.wait(20).await;
    *world.nodes[0].refusal.lock() = None;
    *world.nodes[0].has_pod.lock() = true;
    world.until("grown", |it| it.status()["capacity"]["storage"] == "2Gi").await;
}

/// A volume of many nodes is grown on each; who comes later finds it done in the claim.
#[tokio::test(start_paused = true)]
async fn each_node_that_has_the_volume_does_its_part() {
    let world = World::new(json!({}));
    for node in &world.nodes {
        *node.has_pod.lock() = true;
    }
    world.wait(20).await;
    let mut claim = world.api.object(CLAIM).expect("the claim");
    claim["status"]["allocatedResourceStatuses"] = json!({ "storage": "NodeResizePending" });
    world.api.put(CLAIM, claim);
    world.until("grown on both", |it| it.nodes.iter().all(|it| !it.asked.lock().is_empty())).await;
    world.wait(60).await;
    assert!(world.nodes.iter().all(|it| it.asked.lock().len() == 1));
    assert_eq!(world.status()["capacity"]["storage"], "2Gi");
}
