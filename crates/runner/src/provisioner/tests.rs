mod attachments;
mod capacities;
mod changes;
mod claims;
mod handles;
mod node_drivers;
mod shared;
mod snapshots;

use std::{collections::BTreeSet, time::Duration};

use corten_kubelet::Secrets;
use corten_provisioner::{
    AttachedTo, AttachedVolume, Created, DriverFacts, Failure, FailureKind, Grown, Request, Snapshotted, Taking,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::fake::{FakeApi, Fault, clock};

const DRIVER: &str = "local.corten.dev";
/// One that makes nothing and says nothing.
const HANGS: &str = "hangs.corten.dev";
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
    /// It lists no volume as attached, once.
    is_detached: Mutex<bool>,
    /// It has not grown yet what it was asked to.
    is_growing: Mutex<bool>,
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
            tells_attached: foreign,
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
        let told = format!(" {:?}", request.parameters);
        let told = if request.parameters.is_empty() { "" } else { &told };
        let made = self.ask(format!("create {} {}{told}", request.name, request.bytes));
        if request.driver == HANGS {
            return Box::pin(std::future::pending());
        }
        let handle = if *self.repeats.lock() { "one".into() } else { request.name };
        let topology = self.node.iter().map(|it| [("kubernetes.io/hostname".to_owned(), it.clone())].into()).collect();
        let refused = self.refused.lock().take();
        let created = Created { handle, bytes: request.bytes, topology, refused, ..Created::default() };
        Box::pin(std::future::ready(made.map(|()| created)))
    }

    fn delete(&self, _: String, handle: String, secrets: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(self.ask(format!("delete {handle} {secrets:?}"))))
    }

    fn expand(
        &self,
        _: String,
        AttachedVolume { handle, .. }: AttachedVolume,
        bytes: u64,
        _: Secrets,
    ) -> BoxFuture<'_, Result<Grown, Refusal>> {
        let asked = self.ask(format!("expand {handle} {bytes}"));
        Box::pin(async move {
            while *self.is_growing.lock() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            asked.map(|()| Grown { bytes: *self.grown.lock(), needs_node: false })
        })
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
            let Refusal { message, kind, .. } = it;
            Failure { message, kind, ..Failure::default() }
        };
        Box::pin(std::future::ready(asked.map_err(failure)))
    }

    fn create_snapshot(&self, taking: Taking, _: Secrets) -> BoxFuture<'_, Result<Snapshotted, SnapshotRefusal>> {
        let taken = self.ask(format!("snapshot {} of {}", taking.name, taking.volume));
        let taken = match taken {
            Ok(()) => Ok(Snapshotted { handle: taking.name, bytes: 1 << 30, created_at: 7, is_ready: true }),
            Err(refusal) => {
                Err(SnapshotRefusal { message: refusal.message, is_final: refusal.kind == FailureKind::Infeasible })
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

    fn attached(&self, _: String, places: AttachedTo) -> BoxFuture<'_, Result<AttachedTo, Refusal>> {
        let told = if std::mem::take(&mut *self.is_detached.lock()) { AttachedTo::new() } else { places };
        Box::pin(std::future::ready(Ok(told)))
    }

    fn modify(
        &self,
        _: String,
        handle: String,
        parameters: BTreeMap<String, String>,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<(), Unchanged>> {
        let changed = self.ask(format!("modify {handle} {parameters:?} {secrets:?}"));
        let changed = changed.map_err(|it| Unchanged { kind: it.kind, message: it.message });
        Box::pin(std::future::ready(changed))
    }

    fn capacity(&self, of: Published) -> BoxFuture<'_, Option<(u64, Option<u64>)>> {
        if of.driver == HANGS {
            self.asked.lock().push(format!("capacity {}", of.class));
            return Box::pin(std::future::pending());
        }
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

fn refusal(message: &str, kind: FailureKind) -> Refusal {
    Refusal { message: message.into(), is_exhausted: false, kind }
}

struct World {
    api: Arc<FakeApi>,
    hands: Arc<FakeVolumes>,
    running: tokio::task::JoinHandle<()>,
}

impl World {
    fn new() -> Self {
        Self::with(FakeVolumes::default())
    }

    fn with(hands: FakeVolumes) -> Self {
        let (api, hands) = (FakeApi::new(), Arc::new(hands));
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
async fn a_driver_that_hangs_holds_up_its_own_volumes_alone() {
    let facts = DriverFacts {
        name: HANGS.into(),
        provisions: true,
        tells_capacity: true,
        topology: [("kubernetes.io/hostname".to_owned(), "n1".to_owned())].into(),
        ..DriverFacts::default()
    };
    let (tell, told) = watch::channel(Vec::new());
    tell.send_replace(vec![NodeDriver { facts, node_id: "n1".into(), limit: None }]);
    let world = World::with(FakeVolumes { others: tokio::sync::Mutex::new(Some(told)), ..FakeVolumes::default() });
    for n in 0..20 {
        let class = json!({ "metadata": { "name": format!("hangs-{n}") }, "provisioner": HANGS });
        world.api.put(&format!("/apis/storage.k8s.io/v1/storageclasses/hangs-{n}"), class);
        let mut theirs = claim(&Value::Null);
        (theirs["metadata"]["name"], theirs["metadata"]["uid"]) = (format!("h{n}").into(), format!("h{n}").into());
        theirs["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] = HANGS.into();
        theirs["spec"]["storageClassName"] = format!("hangs-{n}").into();
        world.api.put(&format!("{CLAIMS}/h{n}"), theirs);
    }
    let n_asked = |what: &str| world.hands.asked.lock().iter().filter(|it| it.starts_with(what)).count();
    world.until("asked", |_| n_asked("create pvc-h") > 0 && n_asked("capacity") > 0).await;
    let begun = tokio::time::Instant::now();
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    world.until("made", |api| api.object(&format!("{VOLUMES}/pvc-c1")).is_some()).await;
    let capacities = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities/";
    world.until("told what is left", |api| !api.objects(capacities).is_empty()).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(n_asked("create pvc-h") <= 8, "so much of one driver at once");
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
