mod shared;

use std::time::Duration;

use corten_provisioner::{DriverFacts, Snapshotted};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::*;
use crate::fake::{FakeApi, Fault, clock};

const DRIVER: &str = "local.corten.dev";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// A driver that remembers what it was asked.
#[derive(Default)]
struct FakeVolumes {
    asked: Mutex<Vec<String>>,
    is_told: Mutex<bool>,
    has_class: Mutex<bool>,
    has_snapshots: Mutex<bool>,
    refusal: Mutex<Option<Refusal>>,
    /// It is a program of somebody else's.
    foreign: Mutex<bool>,
    /// It answers every request with the same volume.
    repeats: Mutex<bool>,
    /// Why what it makes is not what it was asked for.
    refused: Mutex<Option<String>>,
    /// How large it says a volume is that it has grown.
    grown: Mutex<u64>,
    /// The node it is on, where that is not `n1`.
    node: Option<String>,
    /// Drivers of others beside it, where the node is another machine.
    others: tokio::sync::Mutex<Option<watch::Receiver<Vec<NodeDriver>>>>,
}

impl FakeVolumes {
    fn ask(&self, what: String) -> Result<(), Refusal> {
        self.asked.lock().push(what);
        self.refusal.lock().take().map_or(Ok(()), Err)
    }
}

impl VolumeHands for FakeVolumes {
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>> {
        let is_told = std::mem::replace(&mut *self.is_told.lock(), true);
        let foreign = *self.foreign.lock();
        let facts = DriverFacts {
            name: DRIVER.into(),
            attaches: foreign,
            socket: foreign.then(|| "/x/csi.sock".into()),
            provisions: true,
            expands: true,
            node_expands: true,
            tells_capacity: true,
            snapshots: true,
            clones: true,
            modifies: true,
            topology: [("kubernetes.io/hostname".to_owned(), self.node.clone().unwrap_or_else(|| "n1".into()))].into(),
            ..DriverFacts::default()
        };
        let driver = NodeDriver { facts, node_id: "n1".into(), limit: Some(7) };
        Box::pin(async move {
            let mut others = self.others.lock().await;
            let Some(others) = &mut *others else {
                return if is_told { std::future::pending().await } else { vec![driver] };
            };
            if is_told {
                others.changed().await.expect("the node is followed");
            }
            let mut all = others.borrow_and_update().clone();
            all.push(driver);
            all
        })
    }

    fn create(&self, request: Request, _: Secrets) -> BoxFuture<'_, Result<Created, Refusal>> {
        let made = self.ask(format!("create {} {}", request.name, request.bytes));
        let handle = if *self.repeats.lock() { "one".into() } else { request.name };
        let topology = self.node.iter().map(|it| [("kubernetes.io/hostname".to_owned(), it.clone())].into()).collect();
        let refused = self.refused.lock().take();
        let created = Created { handle, bytes: request.bytes, topology, refused, ..Created::default() };
        Box::pin(std::future::ready(made.map(|()| created)))
    }

    fn delete(&self, _: String, handle: String, _: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(self.ask(format!("delete {handle}"))))
    }

    fn expand(
        &self,
        _: String,
        AttachedVolume { handle, .. }: AttachedVolume,
        bytes: u64,
        _: Secrets,
    ) -> BoxFuture<'_, Result<Grown, Refusal>> {
        let grown = Grown { bytes: *self.grown.lock(), needs_node: false };
        Box::pin(std::future::ready(self.ask(format!("expand {handle} {bytes}")).map(|()| grown)))
    }

    fn attach(
        &self,
        _: String,
        volume: AttachedVolume,
        node_id: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, Refusal>> {
        let asked = self.ask(format!("attach {} {node_id} {secrets:?}", volume.handle));
        Box::pin(std::future::ready(asked.map(|()| [("device".to_owned(), "sdb".to_owned())].into())))
    }

    fn detach(&self, _: String, handle: String, node_id: String, _: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(self.ask(format!("detach {handle} {node_id}"))))
    }

    fn expand_on_node(&self, volume: AttachedVolume, bytes: u64) -> BoxFuture<'_, Result<(), Failure>> {
        let asked = self.ask(format!("expand on node {} {bytes}", volume.handle));
        let failure = |it: Refusal| {
            let Refusal { message, finality, .. } = it;
            Failure { message, finality, ..Failure::default() }
        };
        Box::pin(std::future::ready(asked.map_err(failure)))
    }

    fn create_snapshot(&self, taking: Taking, _: Secrets) -> BoxFuture<'_, Result<Snapshotted, SnapshotRefusal>> {
        let taken = self.ask(format!("snapshot {} of {}", taking.name, taking.volume));
        let taken = match taken {
            Ok(()) => Ok(Snapshotted { handle: taking.name, bytes: 1 << 30, created_at: 7, is_ready: true }),
            Err(refusal) => {
                Err(SnapshotRefusal { message: refusal.message, is_final: refusal.finality == Finality::Infeasible })
            }
        };
        Box::pin(std::future::ready(taken))
    }

    fn delete_snapshot(&self, _: String, handle: String, _: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(self.ask(format!("delete snapshot {handle}"))))
    }

    fn find_snapshot(
        &self,
        _: String,
        handle: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<Option<Snapshotted>, Refusal>> {
        let found = self.ask(format!("find snapshot {handle} {secrets:?}"));
        let found = found.map(|()| Some(Snapshotted { handle, bytes: 1 << 20, created_at: 9, is_ready: true }));
        Box::pin(std::future::ready(found))
    }

    fn conditions(
        &self,
        _: String,
        handles: BTreeSet<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, Option<String>>, Refusal>> {
        let told = handles.into_iter().map(|it| (it, Some("bad blocks".to_owned()))).collect();
        Box::pin(std::future::ready(Ok(told)))
    }

    fn modify(
        &self,
        _: String,
        handle: String,
        parameters: BTreeMap<String, String>,
    ) -> BoxFuture<'_, Result<(), Unchanged>> {
        let changed = self.ask(format!("modify {handle} {parameters:?}"));
        let changed = changed.map_err(|it| Unchanged { finality: it.finality, message: it.message });
        Box::pin(std::future::ready(changed))
    }

    fn capacity(&self, _: Published) -> BoxFuture<'_, Option<(u64, Option<u64>)>> {
        Box::pin(std::future::ready(Some((5 << 30, Some(1 << 30)))))
    }

    fn built_in(&self) -> BoxFuture<'_, BuiltIn> {
        Box::pin(std::future::ready(BuiltIn {
            driver: DRIVER.into(),
            has_class: *self.has_class.lock(),
            has_snapshots: *self.has_snapshots.lock(),
        }))
    }

    fn snapshots_are_made(&self) -> BoxFuture<'_, ()> {
        *self.has_snapshots.lock() = true;
        Box::pin(std::future::ready(()))
    }

    fn class_is_made(&self) -> BoxFuture<'_, ()> {
        *self.has_class.lock() = true;
        Box::pin(std::future::ready(()))
    }
}

fn refusal(message: &str, finality: Finality) -> Refusal {
    Refusal { message: message.into(), is_exhausted: false, finality }
}

struct World {
    api: Arc<FakeApi>,
    hands: Arc<FakeVolumes>,
    running: tokio::task::JoinHandle<()>,
}

impl World {
    fn new() -> Self {
        let (api, hands) = (FakeApi::new(), Arc::new(FakeVolumes::default()));
        api.put("/api/v1/nodes/n1", json!({ "metadata": { "name": "n1", "uid": "node-1" } }));
        let settings = ProvisionerSettings {
            node_name: "n1".into(),
            client: api.client(),
            node: Some(api.client()),
            viewer: api.client(),
            shared: None,
            hands: hands.clone(),
            clock: clock(),
        };
        let running = tokio::spawn(run_provisioner(settings, std::future::pending()));
        Self { api, hands, running }
    }

    async fn until(&self, what: &str, is_so: impl Fn(&FakeApi) -> bool) {
        for _ in 0..10_000 {
            if is_so(&self.api) {
                return;
            }
            tokio::time::advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
        panic!("not {what}; asked: {:?}", self.hands.asked.lock());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn claim(more: &Value) -> Value {
    let mut claim = json!({
        "metadata": {
            "name": "data", "namespace": "default", "uid": "c1",
            "annotations": {
                "volume.kubernetes.io/storage-provisioner": DRIVER,
                "volume.kubernetes.io/selected-node": "n1",
            },
        },
        "spec": {
            "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        claim[name] = value.clone();
    }
    claim
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_told_of_the_node_and_given_its_class_once() {
    let world = World::new();
    let class = "/apis/storage.k8s.io/v1/storageclasses/local";
    let node = "/apis/storage.k8s.io/v1/csinodes/n1";
    world.until("introduced", |api| api.object(class).is_some() && api.object(node).is_some()).await;
    let told = world.api.object(node).expect("there");
    assert_eq!(told["spec"]["drivers"][0]["allocatable"]["count"], 7);
    assert_eq!(told["metadata"]["ownerReferences"][0]["uid"], "node-1");
    assert!(*world.hands.has_class.lock());
    let capacities = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities/";
    world.until("told what is left", |api| !api.objects(capacities).is_empty()).await;
    assert_eq!(world.api.objects(capacities)[0]["capacity"], "5Gi");
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_given_a_volume_which_goes_when_it_is_released() {
    let world = World::new();
    world.api.fault(Fault::Refused("POST", 500, "InternalError"));
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    let volume = format!("{VOLUMES}/pvc-c1");
    world.until("provisioned", |api| api.object(&volume).is_some()).await;
    let made = world.api.object(&volume).expect("there");
    assert_eq!(
        (&made["spec"]["claimRef"]["uid"], &made["spec"]["csi"]["volumeHandle"]),
        (&json!("c1"), &json!("pvc-c1"))
    );
    let mut released = made;
    released["status"] = json!({ "phase": "Released" });
    *world.hands.refusal.lock() = Some(refusal("in use", Finality::Open));
    world.api.remove(&format!("{CLAIMS}/data"));
    world.api.put(&volume, released);
    world.until("removed", |api| api.object(&volume).is_none_or(|it| it["metadata"]["finalizers"] == json!([]))).await;
    let asked = world.hands.asked.lock().clone();
    assert_eq!(asked.iter().filter(|it| *it == "delete pvc-c1").count(), 2, "in use at first: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_finds_no_room_is_given_back_to_the_scheduler() {
    let world = World::new();
    *world.hands.refusal.lock() = Some(Refusal { is_exhausted: true, ..refusal("no room", Finality::Infeasible) });
    let path = format!("{CLAIMS}/data");
    world.api.put(&path, claim(&Value::Null));
    let selected = |api: &FakeApi| {
        let claim = api.object(&path).expect("there");
        claim["metadata"]["annotations"].get("volume.kubernetes.io/selected-node").is_some_and(|it| !it.is_null())
    };
    world.until("given back", |api| !selected(api)).await;
    assert!(world.api.objects(VOLUMES).is_empty());
}

const ATTACHMENT: &str = "/apis/storage.k8s.io/v1/volumeattachments/csi-1";

/// A driver of others, known by the fake's name, that attaches.
fn attaching(world: &World) {
    *world.hands.foreign.lock() = true;
    world.api.put(
        &format!("{VOLUMES}/pv1"),
        json!({
            "metadata": { "name": "pv1" },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "csi": {
                    "driver": DRIVER, "volumeHandle": "vol-1",
                    "controllerPublishSecretRef": { "name": "s", "namespace": "default" },
                },
            },
        }),
    );
    let data = json!({ "metadata": { "name": "s", "namespace": "default" }, "data": { "key": "eA==" } });
    world.api.put("/api/v1/namespaces/default/secrets/s", data);
    let attachment = json!({
        "metadata": { "name": "csi-1", "finalizers": ["somebodys/own"] },
        "spec": { "attacher": DRIVER, "nodeName": "n1", "source": { "persistentVolumeName": "pv1" } },
    });
    world.api.put(ATTACHMENT, attachment);
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_attached_and_detached_with_the_drivers_words() {
    let world = World::new();
    let refused = |message: &str, is_exhausted| {
        *world.hands.refusal.lock() = Some(Refusal { is_exhausted, ..refusal(message, Finality::Open) });
    };
    refused("no place", true);
    attaching(&world);
    let error = |api: &FakeApi| api.object(ATTACHMENT).expect("there")["status"]["attachError"].clone();
    world.until("refused", |api| error(api)["message"] == "no place").await;
    assert_eq!(error(&world.api)["errorCode"], 8, "the node is to learn of it");
    refused("no such disk", false);
    world.until("refused", |api| error(api)["message"] == "no such disk").await;
    assert_eq!(error(&world.api).get("errorCode"), None);
    let is_attached = |api: &FakeApi| api.object(ATTACHMENT).expect("there")["status"]["attached"] == true;
    world.until("attached", is_attached).await;
    let found = world.api.object(ATTACHMENT).expect("there");
    assert_eq!(found["status"]["attachmentMetadata"]["device"], "sdb");
    assert_eq!(found["status"].get("attachError"), None);
    let held = format!("external-attacher/{DRIVER}");
    assert_eq!(found["metadata"]["finalizers"], json!(["somebodys/own", held]));
    assert_eq!(found["metadata"]["annotations"]["csi.alpha.kubernetes.io/node-id"], "n1");
    let volume = world.api.object(&format!("{VOLUMES}/pv1")).expect("there");
    assert_eq!(volume["metadata"]["finalizers"], json!([held]));
    assert!(
        world.hands.asked.lock().contains(&"attach vol-1 n1 {\"key\"}".to_owned()),
        "{:?}",
        world.hands.asked.lock()
    );

    let mut leaving = found;
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.api.put(ATTACHMENT, leaving);
    let is_let_go = |api: &FakeApi| {
        api.object(ATTACHMENT).is_none_or(|it| it["metadata"]["finalizers"] == json!(["somebodys/own"]))
    };
    world.until("let go", is_let_go).await;
    assert!(world.hands.asked.lock().contains(&"detach vol-1 n1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_anothers_is_not_taken() {
    let world = World::new();
    *world.hands.foreign.lock() = true;
    let csi = json!({ "driver": DRIVER, "volumeHandle": "pvc-c1" });
    world.api.put(&format!("{VOLUMES}/taken"), json!({ "metadata": { "name": "taken" }, "spec": { "csi": csi } }));
    world.until("introduced", |api| api.object("/apis/storage.k8s.io/v1/csinodes/n1").is_some()).await;
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    let is_told = |api: &FakeApi| {
        let events = api.objects("/api/v1/namespaces/default/events/");
        events
            .iter()
            .any(|it| it["message"].as_str().is_some_and(|it| it.contains("is that of PersistentVolume taken")))
    };
    world.until("refused", is_told).await;
    assert!(world.api.object(&format!("{VOLUMES}/pvc-c1")).is_none());
}

const CONTENTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";

impl World {
    /// As the server does: kinds are served a moment after they were defined.
    async fn serve_snapshots(&self) {
        const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";
        self.until("defined", |api| {
            for mut definition in api.objects(DEFINITIONS).into_iter().filter(|it| it["status"].is_null()) {
                definition["status"] = json!({ "conditions": [{ "type": "Established", "status": "True" }] });
                let name = definition["metadata"]["name"].as_str().expect("a name").to_owned();
                api.put(&format!("{DEFINITIONS}{name}"), definition);
            }
            *self.hands.has_snapshots.lock()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_taken_and_removed() {
    let world = World::new();
    world.serve_snapshots().await;
    let class = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/local";
    assert_eq!(world.api.object(class).expect("there")["driver"], DRIVER);
    *world.hands.refusal.lock() = Some(Refusal { is_exhausted: true, ..refusal("no room", Finality::Infeasible) });
    let path = format!("{CONTENTS}/snapcontent-u1");
    let content = json!({
        "metadata": {
            "name": "snapcontent-u1", "uid": "k1",
            "finalizers": ["snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"],
        },
        "spec": {
            "driver": DRIVER, "deletionPolicy": "Delete", "volumeSnapshotClassName": "local",
            "source": { "volumeHandle": "pvc-h" },
            "volumeSnapshotRef": { "namespace": "default", "name": "s", "uid": "u1" },
        },
    });
    world.api.put(&path, content);
    let status = |api: &FakeApi| api.object(&path).expect("there")["status"].clone();
    world.until("refused", |api| status(api)["error"]["message"].as_str().is_some()).await;
    let why = status(&world.api)["error"]["message"].clone();
    assert!(
        why.as_str().expect("a text").ends_with("failed to take snapshot of the volume pvc-h: \"no room\""),
        "{why}"
    );
    world.until("taken", |api| status(api)["readyToUse"] == true).await;
    assert_eq!(status(&world.api)["snapshotHandle"], "snapshot-u1");
    assert!(status(&world.api)["error"].is_null());
    let mark = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
    world
        .until("unmarked", |api| api.object(&path).expect("there")["metadata"]["annotations"].get(mark).is_none())
        .await;

    let mut deleted = world.api.object(&path).expect("there");
    deleted["metadata"]["deletionTimestamp"] = "2026-11-20T11:00:00Z".into();
    deleted["metadata"]["annotations"] =
        json!({ "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted": "yes" });
    world.api.put(&path, deleted);
    let is_let_go = |api: &FakeApi| api.object(&path).expect("there")["metadata"]["finalizers"] == json!([]);
    world.until("let go", is_let_go).await;
    let asked = world.hands.asked.lock().clone();
    assert_eq!(
        asked,
        ["snapshot snapshot-u1 of pvc-h", "snapshot snapshot-u1 of pvc-h", "delete snapshot snapshot-u1"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_was_there_before_is_found() {
    let world = World::new();
    world.serve_snapshots().await;
    let secret = "/api/v1/namespaces/vault/secrets/key";
    let class = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/listed";
    world.api.put(
        class,
        json!({
            "metadata": { "name": "listed" }, "driver": DRIVER, "deletionPolicy": "Retain",
            "parameters": { "csi.storage.k8s.io/snapshotter-list-secret-name": "key",
                "csi.storage.k8s.io/snapshotter-list-secret-namespace": "vault" },
        }),
    );
    let path = format!("{CONTENTS}/given");
    world.api.put(
        &path,
        json!({
            "metadata": { "name": "given", "uid": "k2" },
            "spec": {
                "driver": DRIVER, "deletionPolicy": "Retain", "volumeSnapshotClassName": "listed",
                "source": { "snapshotHandle": "h0" },
                "volumeSnapshotRef": { "namespace": "default", "name": "s" },
            },
        }),
    );
    let status = |api: &FakeApi| api.object(&path).expect("there")["status"].clone();
    world.until("without its Secret", |api| status(api)["error"]["message"].is_string()).await;
    let why = status(&world.api)["error"]["message"].to_string();
    assert!(why.contains("failed to list snapshot for content given") && why.contains("key"), "{why}");
    assert!(world.hands.asked.lock().is_empty(), "not without what it is to be told");
    world.api.put(secret, json!({ "metadata": { "name": "key", "namespace": "vault" }, "data": { "a": "Yg==" } }));
    world.until("found", |api| status(api)["readyToUse"] == true).await;
    let told = status(&world.api);
    assert_eq!(
        (&told["snapshotHandle"], &told["restoreSize"], &told["creationTime"]),
        (&json!("h0"), &json!(1 << 20), &json!(9))
    );
    assert!(told["error"].is_null());
    let asked = world.hands.asked.lock().clone();
    assert!(asked.len() == 1 && asked[0].starts_with("find snapshot h0 ") && asked[0].contains('a'), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn one_volume_is_not_given_to_two_claims() {
    let world = World::new();
    *world.hands.repeats.lock() = true;
    for uid in ["c1", "c2"] {
        let mut claim = claim(&Value::Null);
        (claim["metadata"]["name"], claim["metadata"]["uid"]) = (uid.into(), uid.into());
        world.api.put(&format!("{CLAIMS}/{uid}"), claim);
    }
    let asked = |what: &str| world.hands.asked.lock().iter().filter(|it| it.starts_with(what)).count();
    world.until("both asked for", |_| asked("create pvc-c1") > 0 && asked("create pvc-c2") > 0).await;
    world.until("asked for again", |_| asked("create") > 2).await;
    let made = ["c1", "c2"].into_iter().filter(|it| world.api.object(&format!("{VOLUMES}/pvc-{it}")).is_some());
    assert_eq!(made.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_nodes_lease_is_taken_over_once_it_is_stale() {
    let world = World::new();
    *world.hands.foreign.lock() = true;
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/corten-csi-{DRIVER}");
    let held = json!({ "holderIdentity": "n2", "leaseDurationSeconds": 15, "leaseTransitions": 3 });
    let meta = json!({ "name": format!("corten-csi-{DRIVER}"), "namespace": "kube-system" });
    world.api.put(&lease, json!({ "metadata": meta, "spec": held }));
    let before = tokio::time::Instant::now();
    world.until("taken over", |api| api.object(&lease).is_some_and(|it| it["spec"]["holderIdentity"] == "n1")).await;
    assert!(before.elapsed() >= Duration::from_secs(15), "{:?}", before.elapsed());
    assert_eq!(world.api.object(&lease).expect("there")["spec"]["leaseTransitions"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_changed_as_another_class_says_with_the_drivers_words_before() {
    let world = World::new();
    let class = json!({ "metadata": { "name": "fast" }, "driverName": DRIVER, "parameters": { "iops": "9" } });
    world.api.put("/apis/storage.k8s.io/v1/volumeattributesclasses/fast", class);
    let csi = json!({ "driver": DRIVER, "volumeHandle": "h1" });
    let spec = json!({ "capacity": { "storage": "1Gi" }, "csi": csi });
    world.api.put(&format!("{VOLUMES}/pv1"), json!({ "metadata": { "name": "pv1" }, "spec": spec }));
    *world.hands.refusal.lock() = Some(refusal("too busy", Finality::Open));
    let path = format!("{CLAIMS}/data");
    let mut bound = claim(&json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } }));
    bound["spec"]["volumeName"] = "pv1".into();
    bound["spec"]["volumeAttributesClassName"] = "fast".into();
    world.api.put(&path, bound);
    let status = |api: &FakeApi| api.object(&path).map(|it| it["status"].clone()).unwrap_or_default();
    world.until("refused", |api| status(api)["conditions"][0]["type"] == "ModifyVolumeError").await;
    let told = status(&world.api);
    assert_eq!(
        told["modifyVolumeStatus"],
        json!({ "status": "InProgress", "targetVolumeAttributesClassName": "fast" })
    );
    let words = "ModifyVolume failed with error: too busy. Waiting for retry.";
    assert_eq!(told["conditions"][0]["message"], words);
    world.until("changed", |api| status(api)["currentVolumeAttributesClassName"] == "fast").await;
    let told = status(&world.api);
    assert!(told["modifyVolumeStatus"].is_null() && told["conditions"] == json!([]), "{told}");
    let volume = world.api.object(&format!("{VOLUMES}/pv1")).expect("there");
    assert_eq!(volume["spec"]["volumeAttributesClassName"], "fast");
    let asked = world.hands.asked.lock().iter().filter(|it| *it == r#"modify h1 {"iops": "9"}"#).count();
    assert_eq!(asked, 2);
}

/// Drivers make volumes larger than they are asked to, and what was larger before is not made smaller.
#[tokio::test(start_paused = true)]
async fn a_volume_that_was_grown_is_as_large_as_its_driver_says() {
    for (grown, volume_has, expected, is_patched) in [
        (0, "1Gi", "2Gi", true),
        (3 << 30, "1Gi", "3Gi", true),
        (1 << 30, "1Gi", "2Gi", true),
        (0, "4Gi", "4Gi", false),
    ] {
        let world = World::new();
        *world.hands.grown.lock() = grown;
        let csi = json!({ "driver": DRIVER, "volumeHandle": "h1" });
        let volume = format!("{VOLUMES}/pv1");
        let spec = json!({ "capacity": { "storage": volume_has }, "csi": csi });
        world.api.put(&volume, json!({ "metadata": { "name": "pv1" }, "spec": spec }));
        let path = format!("{CLAIMS}/data");
        let mut bound = claim(&json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } }));
        bound["spec"]["volumeName"] = "pv1".into();
        bound["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
        world.api.put(&path, bound);
        let capacity = |api: &FakeApi, path: &str, of: &str| {
            api.object(path).map(|it| it[of]["capacity"]["storage"].clone()).unwrap_or_default()
        };
        world.until("grown", |api| capacity(api, &path, "status") == expected).await;
        assert_eq!(capacity(&world.api, &volume, "spec"), expected);
        assert_eq!(world.api.writes().contains(&format!("PATCH {volume}")), is_patched);
    }
}

/// Nobody else knows of it, and it would stay for ever.
#[tokio::test(start_paused = true)]
async fn a_volume_that_is_not_what_was_asked_for_is_removed_again() {
    let world = World::new();
    *world.hands.refused.lock() = Some("too small".into());
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    world.until("made", |api| api.object(&format!("{VOLUMES}/pvc-c1")).is_some()).await;
    let create = "create pvc-c1 1073741824";
    assert_eq!(*world.hands.asked.lock(), [create, "delete pvc-c1", create]);
}

#[tokio::test(start_paused = true)]
async fn anothers_volume_that_a_driver_answers_with_is_not_removed() {
    let world = World::new();
    (*world.hands.foreign.lock(), *world.hands.repeats.lock()) = (true, true);
    let csi = json!({ "driver": DRIVER, "volumeHandle": "one" });
    world.api.put(&format!("{VOLUMES}/taken"), json!({ "metadata": { "name": "taken" }, "spec": { "csi": csi } }));
    world.until("introduced", |api| api.object("/apis/storage.k8s.io/v1/csinodes/n1").is_some()).await;
    *world.hands.refused.lock() = Some("too small".into());
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    let asked = |what: &str| world.hands.asked.lock().iter().filter(|it| it.starts_with(what)).count();
    world.until("asked for again", |_| asked("create") > 1).await;
    assert_eq!(asked("delete"), 0);
}

/// Its answer was lost, and its claim is gone: the object says whose it was, and is released.
#[tokio::test(start_paused = true)]
async fn a_volume_whose_claim_went_meanwhile_is_made_known_and_removed() {
    let world = World::new();
    *world.hands.refusal.lock() = Some(refusal("no answer", Finality::Open));
    let path = format!("{CLAIMS}/data");
    world.api.put(&path, claim(&Value::Null));
    world.until("asked for", |_| !world.hands.asked.lock().is_empty()).await;
    world.api.remove(&path);
    let volume = format!("{VOLUMES}/pvc-c1");
    world.until("made known", |api| api.object(&volume).is_some()).await;
    let mut made = world.api.object(&volume).expect("there");
    assert_eq!(made["spec"]["claimRef"]["uid"], "c1");
    made["status"] = json!({ "phase": "Released" });
    world.api.put(&volume, made);
    world.until("removed", |_| world.hands.asked.lock().contains(&"delete pvc-c1".to_owned())).await;
}
