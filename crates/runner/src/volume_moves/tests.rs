//! A carrier with nodes that write down what they are asked.

use serde_json::{Value, json};

use super::*;
use crate::fake::{FakeApi, clock};

const VOLUME: &str = "/api/v1/persistentvolumes/pvc-u1";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const STRANGER: &str = "/api/v1/namespaces/other/persistentvolumeclaims/thief";
const POD: &str = "/api/v1/namespaces/default/pods/db-0";

/// What happens while a step is done.
type Meanwhile = Box<dyn FnMut() + Send>;

#[derive(Default)]
struct Nodes {
    asked: Mutex<Vec<String>>,
    /// What happens elsewhere while this is asked.
    meanwhile: Mutex<BTreeMap<&'static str, Meanwhile>>,
}

impl Nodes {
    fn did<T: Send + 'static>(
        &self,
        what: &'static str,
        transfer: &VolumeTransfer,
        answer: T,
    ) -> BoxFuture<'_, Result<T, Refusal>> {
        self.asked.lock().push(format!("{what} {} {}", transfer.handle, transfer.id));
        if let Some(it) = self.meanwhile.lock().get_mut(what) {
            it();
        }
        Box::pin(async { Ok(answer) })
    }

    fn meanwhile(&self, what: &'static str, then: impl FnMut() + Send + 'static) {
        self.meanwhile.lock().insert(what, Box::new(then));
    }
}

impl MoveHands for Nodes {
    fn leave(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<Leaving, Refusal>> {
        self.did("leave", &transfer, Leaving { bytes: 1 << 20, record: "{}".into() })
    }
    fn stay(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        self.did("stay", &transfer, ())
    }
    fn arrive(&self, transfer: VolumeTransfer, _: String) -> BoxFuture<'_, Result<(u64, bool), Refusal>> {
        self.did("arrive", &transfer, (0, false))
    }
    fn copy(&self, transfer: VolumeTransfer, _: (u64, u64)) -> BoxFuture<'_, Result<(), Refusal>> {
        self.did("copy", &transfer, ())
    }
    fn settle(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        self.did("settle", &transfer, ())
    }
    fn give_up(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        self.did("give_up", &transfer, ())
    }
    fn remove_left(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>> {
        self.did("remove_left", &transfer, ())
    }
}

fn volume() -> Value {
    let on = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"] });
    json!({
        "metadata": { "name": "pvc-u1", "annotations": {} },
        "spec": {
            "csi": { "driver": "local.corten.dev", "volumeHandle": "pvc-u1" },
            "claimRef": { "name": "data", "namespace": "default", "uid": "u1" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [on] }] } },
        },
    })
}

fn claim(namespace: &str, name: &str, uid: &str, wish: Option<&str>) -> Value {
    let annotations: BTreeMap<&str, &str> = wish.map(|it| ("local.corten.dev/move-to", it)).into_iter().collect();
    json!({
        "metadata": { "name": name, "namespace": namespace, "uid": uid, "annotations": annotations },
        "spec": { "volumeName": "pvc-u1" },
        "status": {},
    })
}

fn pod() -> Value {
    let of = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "data" } });
    json!({ "metadata": { "name": "db-0", "namespace": "default" }, "spec": { "nodeName": "n1", "containers": [], "volumes": [of] } })
}

struct World {
    api: Arc<FakeApi>,
    nodes: Arc<Nodes>,
}

fn world() -> World {
    let (api, nodes) = (FakeApi::new(), Arc::<Nodes>::default());
    for node in ["n1", "n2"] {
        let driver = json!({ "name": "local.corten.dev", "nodeID": node });
        let of = json!({ "metadata": { "name": node }, "spec": { "drivers": [driver] } });
        api.put(&format!("/apis/storage.k8s.io/v1/csinodes/{node}"), of);
    }
    api.put(VOLUME, volume());
    World { api, nodes }
}

impl World {
    /// Runs the loop for a while of the paused clock.
    async fn run(&self) -> Vec<String> {
        let settings = VolumeMoveSettings {
            driver: "local.corten.dev",
            client: self.api.client(),
            viewer: self.api.client(),
            hands: self.nodes.clone(),
            clock: clock(),
        };
        run_volume_moves(settings, tokio::time::sleep(Duration::from_secs(30))).await;
        std::mem::take(&mut *self.nodes.asked.lock())
    }

    fn is_on(&self) -> Value {
        let volume = self.api.object(VOLUME).expect("the volume");
        volume
            .pointer("/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0")
            .cloned()
            .unwrap_or_default()
    }
}

fn steps(asked: &[String]) -> Vec<&str> {
    asked.iter().map(|it| it.split(' ').next().unwrap_or_default()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_move_has_one_id_from_its_first_step_to_its_last() {
    let world = world();
    world.api.put(CLAIM, claim("default", "data", "u1", Some("n2")));
    let asked = world.run().await;
    assert_eq!(steps(&asked), ["leave", "arrive", "copy", "settle", "remove_left"], "{asked:?}");
    let ids: BTreeSet<&str> = asked.iter().map(|it| it.rsplit(' ').next().unwrap_or_default()).collect();
    assert!(ids.len() == 1 && ids.iter().all(|it| it.contains('-')), "{ids:?}");
    assert_eq!(world.is_on(), "n2");
    let volume = world.api.object(VOLUME).expect("the volume");
    assert_eq!((&volume["metadata"]["annotations"], &volume["metadata"]["finalizers"]), (&json!({}), &json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_names_the_volume_of_another_is_refused_and_calls_nothing_off() {
    let world = world();
    world.api.put(CLAIM, claim("default", "data", "u1", Some("n2")));
    let api = world.api.clone();
    world.nodes.meanwhile("arrive", move || api.put(STRANGER, claim("other", "thief", "u2", Some("n1"))));
    let asked = world.run().await;
    assert_eq!(steps(&asked), ["leave", "arrive", "copy", "settle", "remove_left"], "{asked:?}");
    let told = world.api.object(STRANGER).expect("the claim")["status"]["conditions"][0].clone();
    assert_eq!(
        (&told["reason"], &told["message"]),
        (&json!("MoveRefused"), &json!("volume pvc-u1 is not this claim's"))
    );
    // The one that it is of has wished nothing.
    world.api.put(VOLUME, volume());
    world.api.put(CLAIM, claim("default", "data", "u1", None));
    world.api.put(STRANGER, claim("other", "thief", "u2", Some("n2")));
    assert_eq!(world.run().await, Vec::<String>::new());
    assert_eq!(world.is_on(), "n1");
}

#[tokio::test(start_paused = true)]
async fn what_is_called_off_in_the_last_moment_stays_and_is_marked_so_before_anything_is_removed() {
    let world = world();
    world.api.put(CLAIM, claim("default", "data", "u1", Some("n2")));
    let api = world.api.clone();
    world.nodes.meanwhile("settle", move || api.put(CLAIM, claim("default", "data", "u1", None)));
    let (api, mark) = (world.api.clone(), Arc::<Mutex<Value>>::default());
    let marked = mark.clone();
    world.nodes.meanwhile("stay", move || {
        let volume = api.object(VOLUME).expect("the volume");
        *marked.lock() = volume["metadata"]["annotations"]["local.corten.dev/move-called-off"].clone();
    });
    let asked = world.run().await;
    assert_eq!(steps(&asked), ["leave", "arrive", "copy", "settle", "stay", "give_up"], "{asked:?}");
    assert_eq!(*mark.lock(), "true");
    assert_eq!(world.is_on(), "n1");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_placed_meanwhile_gets_the_volume_and_the_move_waits_for_it() {
    let world = world();
    world.api.put(CLAIM, claim("default", "data", "u1", Some("n2")));
    let api = world.api.clone();
    world.nodes.meanwhile("leave", move || api.put(POD, pod()));
    let asked = world.run().await;
    assert_eq!(steps(&asked).last(), Some(&"give_up"), "{asked:?}");
    assert_eq!(world.is_on(), "n1");
    let told = world.api.object(CLAIM).expect("the claim")["status"]["conditions"][0].clone();
    assert_eq!(told["reason"], "MoveInUse", "{told}");
    world.nodes.meanwhile("leave", || ());
    world.api.remove(POD);
    let asked = world.run().await;
    assert_eq!(steps(&asked).last(), Some(&"remove_left"), "{asked:?}");
    assert_eq!(world.is_on(), "n2");
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_cluster_are_not_watched_before_a_claim_is_to_move() {
    let world = world();
    world.api.put(CLAIM, claim("default", "data", "u1", None));
    assert_eq!(world.run().await, Vec::<String>::new());
    assert!(!world.api.was_watched("/api/v1/pods"));
    world.api.put(CLAIM, claim("default", "data", "u1", Some("n2")));
    assert_eq!(steps(&world.run().await).last(), Some(&"remove_left"));
    assert!(world.api.was_watched("/api/v1/pods"));
}
