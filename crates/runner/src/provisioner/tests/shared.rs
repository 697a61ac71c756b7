//! The loops of many nodes that have joined, in one process.

use std::sync::atomic::{AtomicUsize, Ordering};

use corten_api::volumes::{CONTROLLER_NODES, DRIVERS_OF_OTHERS};
use corten_client::Client;

use super::{
    capacities::{is_told, told_by},
    *,
};
use crate::{JoinedNodesSettings, follow_joined_nodes};

const N_NODES: usize = 20;
const SELECTED: &str = "volume.kubernetes.io/selected-node";

type AllHands = Arc<Mutex<Vec<Arc<FakeVolumes>>>>;
/// How often the loop of each node was looked at.
type Wakes = Arc<Mutex<BTreeMap<String, Arc<AtomicUsize>>>>;

struct Joined {
    api: Arc<FakeApi>,
    wakes: Wakes,
    hands: AllHands,
    running: tokio::task::JoinHandle<()>,
}

fn begin(
    client: &Client,
    shared: &SharedStorage,
    (wakes, all): (&Wakes, &AllHands),
    node: &str,
    others: watch::Receiver<Vec<NodeDriver>>,
) -> BoxFuture<'static, ()> {
    let hands = Arc::new(FakeVolumes {
        is_told: Mutex::new(false),
        has_class: Mutex::new(true),
        has_snapshots: Mutex::new(true),
        node: Some(node.to_owned()),
        others: tokio::sync::Mutex::new(Some(others)),
        ..FakeVolumes::default()
    });
    all.lock().push(hands.clone());
    let settings = ProvisionerSettings {
        node_name: node.to_owned(),
        client: client.clone(),
        node: None,
        viewer: client.clone(),
        shared: Some(shared.clone()),
        hands,
        clock: clock(),
    };
    let mut running = Box::pin(run_provisioner(settings, std::future::pending()));
    let count = wakes.lock().entry(node.to_owned()).or_default().clone();
    Box::pin(std::future::poll_fn(move |context| {
        count.fetch_add(1, Ordering::Relaxed);
        running.as_mut().poll(context)
    }))
}

impl Joined {
    fn new() -> Self {
        let api = FakeApi::new();
        let class = json!({
            "metadata": { "name": "local" }, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer",
        });
        api.put("/apis/storage.k8s.io/v1/storageclasses/local", class);
        api.put(&format!("/apis/storage.k8s.io/v1/csidrivers/{DRIVER}"), json!({ "metadata": { "name": DRIVER } }));
        let (wakes, hands) = (Wakes::default(), AllHands::default());
        let (client, counted, all) = (api.client(), wakes.clone(), hands.clone());
        let running = tokio::spawn(async move {
            let shared = SharedStorage::new(client.clone(), DRIVER);
            let begin = |node: &str, others| begin(&client, &shared, (&counted, &all), node, others);
            let settings = JoinedNodesSettings { client: client.clone(), viewer: client.clone(), driver: DRIVER };
            let following = follow_joined_nodes(settings, begin);
            futures_util::future::join(following, shared.clone().run()).await;
        });
        let joined = Self { api, wakes, hands, running };
        (1..=N_NODES).for_each(|it| joined.join(it));
        joined
    }

    fn join(&self, n: usize) {
        let name = format!("n{n}");
        let meta = json!({ "name": name, "annotations": { MADE_BY_CONTROL_PLANE: "true" } });
        let spec = json!({ "drivers": [{ "name": DRIVER, "nodeID": name }] });
        self.api.put(&format!("/apis/storage.k8s.io/v1/csinodes/{name}"), json!({ "metadata": meta, "spec": spec }));
    }

    /// The node has a driver of somebody else's, too, and the cluster says so of the node.
    fn join_with(&self, n: usize, driver: &str, is_ready: bool) {
        let name = format!("n{n}");
        let facts = DriverFacts {
            name: driver.into(),
            provisions: true,
            socket: Some("/x/csi.sock".into()),
            ..DriverFacts::default()
        };
        let told = [NodeDriver { facts, node_id: name.clone(), limit: None }];
        let told = serde_json::to_string(&told).expect("JSON");
        let meta = json!({ "name": name, "annotations": { MADE_BY_CONTROL_PLANE: "true", DRIVERS_OF_OTHERS: told } });
        let drivers = [DRIVER, driver].map(|it| json!({ "name": it, "nodeID": name }));
        let node = json!({ "metadata": meta, "spec": { "drivers": drivers } });
        self.api.put(&format!("/apis/storage.k8s.io/v1/csinodes/{name}"), node);
        let ready = if is_ready { "True" } else { "Unknown" };
        let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
        self.api.put(&format!("/api/v1/nodes/{name}"), json!({ "metadata": { "name": name }, "status": status }));
    }

    /// The nodes on which something was made since the last call.
    fn makers(&self) -> BTreeSet<String> {
        let hands = self.hands.lock();
        let have =
            hands.iter().filter(|it| std::mem::take(&mut *it.asked.lock()).iter().any(|it| it.starts_with("create")));
        have.filter_map(|it| it.node.clone()).collect()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&FakeApi) -> bool) {
        for _ in 0..10_000 {
            if is_so(&self.api) {
                return;
            }
            tokio::time::advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
        panic!("not {what}");
    }

    /// All that is about to happen happens.
    async fn settle(&self) {
        for _ in 0..300 {
            tokio::time::advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
    }

    async fn until_begun(&self) {
        let capacities = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities/";
        self.until("begun", |api| api.objects(capacities).len() == N_NODES).await;
        self.settle().await;
        self.woken();
    }

    /// Whose loop was looked at since the last call.
    fn woken(&self) -> BTreeSet<String> {
        let wakes = self.wakes.lock();
        wakes.iter().filter(|it| it.1.swap(0, Ordering::Relaxed) > 0).map(|it| it.0.clone()).collect()
    }

    /// A claim that the scheduler has selected this node for.
    fn claim(&self, name: &str, node: &str, more: &Value) {
        let mut claim = claim(more);
        (claim["metadata"]["name"], claim["metadata"]["uid"]) = (name.into(), name.into());
        claim["metadata"]["annotations"][SELECTED] = node.into();
        self.api.put(&format!("{CLAIMS}/{name}"), claim);
    }

    fn volume(&self, name: &str) -> Option<Value> {
        self.api.object(&format!("{VOLUMES}/pvc-{name}"))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_change_wakes_the_loops_of_the_nodes_that_it_concerns_alone() {
    let joined = Joined::new();
    joined.until_begun().await;
    joined.claim("data", "n7", &Value::Null);
    joined.until("provisioned", |_| joined.volume("data").is_some()).await;
    joined.settle().await;
    assert_eq!(joined.woken(), names(&["n7"]));

    // A claim of another driver, and one that the scheduler has selected no node for.
    let mut theirs = claim(&Value::Null);
    theirs["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] = "csi.example".into();
    joined.api.put(&format!("{CLAIMS}/theirs"), theirs);
    let mut waiting = claim(&Value::Null);
    waiting["metadata"]["annotations"].as_object_mut().expect("there").remove(SELECTED);
    joined.api.put(&format!("{CLAIMS}/waiting"), waiting);
    joined.settle().await;
    assert_eq!(joined.woken(), names(&[]));

    // A class is everybody's.
    let class = json!({ "metadata": { "name": "other" }, "provisioner": DRIVER });
    joined.api.put("/apis/storage.k8s.io/v1/storageclasses/other", class);
    joined.settle().await;
    assert_eq!(joined.woken().len(), N_NODES);
}

#[tokio::test(start_paused = true)]
async fn who_was_not_woken_has_read_all_before_it_decides() {
    let joined = Joined::new();
    joined.until_begun().await;
    joined.claim("source", "n3", &Value::Null);
    joined.until("provisioned", |_| joined.volume("source").is_some()).await;
    let spec = |more: &Value| {
        let mut spec = claim(&Value::Null)["spec"].clone();
        for (name, value) in more.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        spec
    };
    let bound = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } });
    let has = spec(&json!({ "volumeName": "pvc-source" }));
    joined.claim("source", "n3", &json!({ "spec": has, "status": bound }));
    joined.settle().await;
    assert_eq!(joined.woken(), names(&["n3"]));

    // It is not made where its source is not, and the scheduler is told so.
    let of = json!({ "kind": "PersistentVolumeClaim", "name": "source" });
    joined.claim("clone", "n7", &json!({ "spec": spec(&json!({ "dataSourceRef": of })) }));
    let path = format!("{CLAIMS}/clone");
    joined
        .until("given back", |api| {
            let claim = api.object(&path).expect("there");
            claim["metadata"]["annotations"].get(SELECTED).is_none_or(Value::is_null)
        })
        .await;
    assert!(joined.volume("clone").is_none());
    joined.claim("clone", "n3", &json!({ "spec": spec(&json!({ "dataSourceRef": of })) }));
    joined.until("made", |_| joined.volume("clone").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_later_is_told_what_there_is_and_one_that_leaves_ends() {
    let joined = Joined::new();
    joined.until_begun().await;
    joined.claim("early", "n99", &Value::Null);
    joined.settle().await;
    assert!(joined.woken().is_empty());
    joined.join(99);
    joined.until("provisioned", |_| joined.volume("early").is_some()).await;

    joined.api.remove("/apis/storage.k8s.io/v1/csinodes/n99");
    joined.settle().await;
    joined.woken();
    joined.claim("late", "n99", &Value::Null);
    joined.settle().await;
    assert!(joined.woken().is_empty() && joined.volume("late").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_went_while_nobody_looked_has_no_room() {
    let joined = Joined::new();
    told_by(&joined.api, "csisc-gone", "corten-n77");
    told_by(&joined.api, "csisc-theirs", "external-provisioner-n77");
    joined.until("withdrawn", |api| !is_told(api, "csisc-gone")).await;
    joined.settle().await;
    assert!(is_told(&joined.api, "csisc-theirs"), "a sidecar's is the sidecar's");
}

#[tokio::test(start_paused = true)]
async fn one_of_all_nodes_makes_the_volume_of_a_claim_that_is_for_any() {
    let joined = Joined::new();
    joined.until_begun().await;
    let class = json!({ "metadata": { "name": "at-once" }, "provisioner": DRIVER, "volumeBindingMode": "Immediate" });
    joined.api.put("/apis/storage.k8s.io/v1/storageclasses/at-once", class);
    let mut any = claim(&Value::Null);
    any["spec"]["storageClassName"] = "at-once".into();
    any["metadata"]["annotations"].as_object_mut().expect("there").remove(SELECTED);
    joined.api.put(&format!("{CLAIMS}/data"), any);
    joined.until("provisioned", |api| api.object(&format!("{VOLUMES}/pvc-c1")).is_some()).await;
    joined.settle().await;
    let asked: usize = joined.hands.lock().iter().map(|it| it.asked.lock().len()).sum();
    assert_eq!(asked, 1, "no other node has it on its disk");
}

const THEIRS: &str = "csi.example";

#[tokio::test(start_paused = true)]
async fn a_driver_of_others_is_asked_on_one_node_and_on_another_when_that_is_lost() {
    let joined = Joined::new();
    joined.until_begun().await;
    for n in [3, 5, 8] {
        joined.join_with(n, THEIRS, true);
    }
    let allowed = json!({ CONTROLLER_NODES: "*" });
    let driver = json!({ "metadata": { "name": THEIRS, "annotations": allowed } });
    joined.api.put(&format!("/apis/storage.k8s.io/v1/csidrivers/{THEIRS}"), driver);
    let class = json!({ "metadata": { "name": "theirs" }, "provisioner": THEIRS, "volumeBindingMode": "Immediate" });
    joined.api.put("/apis/storage.k8s.io/v1/storageclasses/theirs", class);
    joined.settle().await;
    joined.woken();
    let claim = |name: &str, selected: Option<&str>| {
        let mut it = claim(&Value::Null);
        (it["metadata"]["name"], it["metadata"]["uid"]) = (name.into(), name.into());
        it["spec"]["storageClassName"] = "theirs".into();
        let annotations = it["metadata"]["annotations"].as_object_mut().expect("there");
        annotations.remove(SELECTED);
        annotations.insert("volume.kubernetes.io/storage-provisioner".into(), THEIRS.into());
        annotations.extend(selected.map(|it| (SELECTED.to_owned(), it.into())));
        joined.api.put(&format!("{CLAIMS}/{name}"), it);
    };
    claim("first", None);
    joined.until("made", |_| joined.volume("first").is_some()).await;
    joined.settle().await;
    let first = joined.makers();
    assert!(first == names(&["n3"]) || first == names(&["n5"]), "{first:?} alone, of two that stand for it");
    assert_eq!(joined.woken(), names(&["n3", "n5"]), "nobody else has anything to decide");
    // Its Pods and its sidecars' are their business alone.
    joined.api.put(
        "/api/v1/namespaces/default/pods/p",
        json!({ "metadata": { "name": "p", "namespace": "default" }, "spec": {} }),
    );
    joined.settle().await;
    assert_eq!(joined.woken(), names(&["n3", "n5"]));

    // Where the Pod runs nobody asks the driver.
    claim("elsewhere", Some("n8"));
    joined.until("made", |_| joined.volume("elsewhere").is_some()).await;
    assert_eq!(joined.makers(), first);

    let lost = if first == names(&["n3"]) { 3 } else { 5 };
    joined.join_with(lost, THEIRS, false);
    joined.settle().await;
    joined.makers();
    claim("second", None);
    joined.until("made", |_| joined.volume("second").is_some()).await;
    let second = joined.makers();
    assert!(second.len() == 1 && second != first, "{second:?}");
}
