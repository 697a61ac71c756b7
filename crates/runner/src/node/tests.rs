use std::collections::BTreeMap;

use corten_kubelet::{
    Config, ContainerSpec, Failure, Image, NodeFacts, Observed, ObservedContainer, ObservedSandbox, Outcome, Snapshot,
    VolumeSource,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::fake::{FakeApi, Fault, Memory, clock};

mod alone;

const POD: &str = "/api/v1/namespaces/default/pods";

/// A machine on which everything works, but for pods called `hang` and `break`; those of `slow` take five seconds to start.
struct FakeHands {
    clock: Clock,
    n_starts: Mutex<u32>,
    sandboxes: Mutex<BTreeMap<String, ObservedSandbox>>,
    containers: Mutex<BTreeMap<String, ObservedContainer>>,
    volumes: Mutex<Vec<String>>,
    is_told: Mutex<bool>,
    news: Notify,
}

impl FakeHands {
    fn snapshot(&self) -> Event {
        let sandboxes = self.sandboxes.lock().values().cloned().collect();
        let containers = self.containers.lock().values().cloned().collect();
        Event::Snapshot(Snapshot { taken_at: Some((self.clock)()), sandboxes, containers })
    }

    fn do_it(&self, effect: HostEffect) -> Outcome {
        match effect {
            HostEffect::PrepareVolumes { volumes, .. } => {
                let text = |it: &VolumeSource| match it {
                    VolumeSource::Files { files, .. } => {
                        files.iter().map(|it| String::from_utf8_lossy(&it.content).into_owned()).collect()
                    }
                    _ => String::new(),
                };
                self.volumes.lock().extend(volumes.iter().map(|it| text(&it.source)));
                Outcome::Volumes(Ok(()))
            }
            HostEffect::RunSandbox(spec) => {
                let id = format!("sandbox-{}", spec.pod.key.name);
                let ips = vec!["10.0.0.1".to_owned()];
                let sandbox = ObservedSandbox { id, pod: spec.pod, ready: true, ips, ..ObservedSandbox::default() };
                self.sandboxes.lock().insert(sandbox.id.clone(), sandbox.clone());
                Outcome::Sandbox(Ok(sandbox))
            }
            HostEffect::InspectImage { container, .. } => {
                Outcome::Image { container, result: Ok(Some(Image::default())) }
            }
            HostEffect::StartContainer(spec) => {
                let state = Observed::Running { started_at: Some((self.clock)()) };
                let container = ObservedContainer { state, ..container_of(&spec) };
                self.containers.lock().insert(container.id.clone(), container.clone());
                Outcome::Container { container: spec.name, attempt: spec.attempt, result: Ok(container) }
            }
            HostEffect::StopContainer { container, id, .. } => {
                if let Some(it) = self.containers.lock().get_mut(&id) {
                    it.state = Observed::Exited(corten_kubelet::Exit { code: 143, ..corten_kubelet::Exit::default() });
                }
                self.news.notify_one();
                Outcome::Stopped { container, id, result: Ok(()) }
            }
            HostEffect::RemoveContainer { container, id, .. } => {
                self.containers.lock().remove(&id);
                Outcome::Removed { container, id, result: Ok(()) }
            }
            HostEffect::RemoveSandbox { id, .. } => {
                self.sandboxes.lock().remove(&id);
                self.containers.lock().retain(|_, it| it.sandbox_id != id);
                Outcome::SandboxRemoved { id, result: Ok(()) }
            }
            HostEffect::RemovePod { .. } => Outcome::PodRemoved(Ok(())),
            other => panic!("no test asks for {other:?}"),
        }
    }
}

fn container_of(spec: &ContainerSpec) -> ObservedContainer {
    ObservedContainer {
        id: format!("container-{}-{}", spec.pod.key.name, spec.name),
        sandbox_id: spec.sandbox_id.clone(),
        pod: spec.pod.clone(),
        name: spec.name.clone(),
        attempt: spec.attempt,
        ..ObservedContainer::default()
    }
}

impl Hands for FakeHands {
    fn perform(&self, effect: HostEffect) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async move {
            let pod = effect.pod().clone();
            if let HostEffect::RunSandbox(_) = effect {
                match pod.key.name.as_str() {
                    "hang" => std::future::pending().await,
                    "break" => panic!("a hand breaks, as the test wants"),
                    "refuse" => return vec![Event::Done { pod, outcome: Outcome::Sandbox(Err(Failure::new("no"))) }],
                    _ => {}
                }
            }
            if let HostEffect::StartContainer(spec) = &effect {
                *self.n_starts.lock() += 1;
                if pod.key.name == "slow" {
                    let made = ObservedContainer { state: Observed::Created, ..container_of(spec) };
                    self.containers.lock().insert(made.id.clone(), made);
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            }
            let outcome = self.do_it(effect);
            vec![Event::Done { pod, outcome }]
        })
    }

    fn perform_node(&self, effect: NodeEffect) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async move { effect.failed("not on this machine").into_iter().collect() })
    }

    fn node_news(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(std::future::pending())
    }

    fn renew(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { *self.is_told.lock() = false })
    }

    fn events(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async move {
            if std::mem::replace(&mut *self.is_told.lock(), true) {
                tokio::select! {
                    biased;
                    () = self.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_secs(10)) => {}
                }
            }
            vec![self.snapshot(), Event::Facts(Box::new(NodeFacts { cpus: 2, ..NodeFacts::default() }))]
        })
    }
}

struct World {
    api: Arc<FakeApi>,
    hands: Arc<FakeHands>,
    journal: Arc<JournalBook>,
    own: Arc<OwnPods>,
    _running: tokio::task::JoinHandle<()>,
}

impl World {
    fn new() -> Self {
        Self::by(clock())
    }

    fn by(clock: Clock) -> Self {
        let api = FakeApi::new();
        let client = api.client();
        Self::with(clock, api, client)
    }

    /// A machine on which nothing is yet.
    fn with(clock: Clock, api: Arc<FakeApi>, client: Client) -> Self {
        let hands = Arc::new(FakeHands {
            clock,
            n_starts: Mutex::default(),
            sandboxes: Mutex::default(),
            containers: Mutex::default(),
            volumes: Mutex::default(),
            is_told: Mutex::default(),
            news: Notify::new(),
        });
        let (journal, own) = (Arc::new(JournalBook::default()), Arc::new(OwnPods::default()));
        let kubelet = Kubelet::new(Config::new("n1", "192.168.0.1"));
        let running = run_node(
            kubelet,
            client,
            hands.clone(),
            hands.clock.clone(),
            (journal.clone(), own.clone()),
            std::future::pending(),
        );
        Self { api, hands, journal, own, _running: tokio::spawn(running) }
    }

    fn pod(&self, name: &str, mut spec: Value) {
        spec["nodeName"] = "n1".into();
        spec["containers"] = json!([{"name": "app", "image": "app:1"}]);
        let meta = json!({"name": name, "namespace": "default"});
        self.api.put(&format!("{POD}/{name}"), json!({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}));
    }

    fn phase(&self, name: &str) -> String {
        let pod = self.api.object(&format!("{POD}/{name}")).expect("stored");
        pod["status"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    fn events(&self, reason: &str) -> Vec<String> {
        let events = self.api.objects("/api/v1/namespaces/default/events");
        let events = events.iter().filter(|it| it["reason"] == reason);
        events
            .map(|it| {
                format!(
                    "{}: {}",
                    it["involvedObject"]["name"].as_str().unwrap_or_default(),
                    it["message"].as_str().unwrap_or_default()
                )
            })
            .collect()
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_and_runs_a_pod_to_its_end() {
    let world = World::new();
    pass(1).await;
    let node = world.api.object("/api/v1/nodes/n1").expect("registered");
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "n1");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
    let first = world.api.object(lease).expect("alive");
    pass(11).await;
    assert_ne!(world.api.object(lease).expect("alive")["spec"]["renewTime"], first["spec"]["renewTime"]);

    world.pod("web", json!({}));
    pass(1).await;
    assert_eq!(world.phase("web"), "Running");
    assert_eq!(world.events("Started"), ["web: Container started"]);
    let steps = world.journal.decisions(&PODS, &Key::new("default", "web"))[0].steps.clone();
    let names: Vec<_> = steps.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["network", "volumes", "image app", "container app", "ready"]);

    let path = format!("{POD}/web");
    let mut pod = world.api.object(&path).expect("stored");
    pod["metadata"]["deletionTimestamp"] = json!((world.hands.clock)());
    pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    world.api.put(&path, pod);
    pass(2).await;
    assert_eq!(world.api.object(&path), None);
    assert!(world.hands.sandboxes.lock().is_empty() && world.hands.containers.lock().is_empty());
    assert!(world.journal.decisions(&PODS, &Key::new("default", "web")).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_placed_for_a_new_label_of_the_node_is_taken() {
    let world = World::new();
    pass(1).await;
    let path = "/api/v1/nodes/n1";
    let mut node = world.api.object(path).expect("registered");
    node["metadata"]["labels"]["disk"] = "fast".into();
    world.api.put(path, node);
    world.pod("picky", json!({"nodeSelector": {"disk": "fast"}}));
    pass(1).await;
    assert_eq!(world.phase("picky"), "Running");
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_or_breaks_holds_up_nobody() {
    let world = World::new();
    for name in ["hang", "break", "refuse", "web"] {
        world.pod(name, json!({}));
    }
    pass(2).await;
    assert_eq!(world.phase("web"), "Running");
    let mut failed = world.events("FailedCreatePodSandBox");
    failed.sort();
    let expected =
        ["break: Failed to create pod sandbox: internal error of the node", "refuse: Failed to create pod sandbox: no"];
    assert_eq!(failed, expected);
    pass(240).await;
    let failed = world.events("FailedCreatePodSandBox");
    assert!(failed.contains(&"hang: Failed to create pod sandbox: context deadline exceeded".to_owned()), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_refused_is_written_again() {
    let world = World::new();
    pass(1).await;
    for _ in 0..3 {
        world.api.fault(Fault::Refused("PATCH", 409, "Conflict"));
        world.api.fault(Fault::AnswerLost("PATCH"));
    }
    world.pod("web", json!({}));
    pass(60).await;
    assert_eq!(world.phase("web"), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_config_map_is_followed() {
    let world = World::new();
    world.pod("web", json!({"volumes": [{"name": "cfg", "configMap": {"name": "settings"}}]}));
    pass(2).await;
    assert_eq!(world.phase("web"), "Pending");
    let failed = world.events("FailedMount");
    assert_eq!(failed, ["web: MountVolume.SetUp failed for volume \"cfg\" : configmap \"settings\" not found"]);
    let path = "/api/v1/namespaces/default/configmaps/settings";
    let settings =
        |value: &str| json!({"metadata": {"name": "settings", "namespace": "default"}, "data": {"a": value}});
    world.api.put(path, settings("1"));
    pass(2).await;
    assert_eq!(world.phase("web"), "Running");
    world.api.put(path, settings("2"));
    pass(2).await;
    assert_eq!(*world.hands.volumes.lock(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_a_token_of_its_account() {
    let world = World::new();
    let source = json!({"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 3600}});
    let volumes = json!([{"name": "api", "projected": {"sources": [source]}}]);
    world.pod("web", json!({"serviceAccountName": "bot", "volumes": volumes}));
    pass(1).await;
    let failed = world.events("FailedMount");
    assert!(failed.len() == 1 && failed[0].contains("failed to fetch token"), "{failed:?}");
    let account = json!({"metadata": {"name": "bot", "namespace": "default"}});
    world.api.put("/api/v1/namespaces/default/serviceaccounts/bot", account);
    pass(10).await;
    assert_eq!(world.phase("web"), "Running");
    let token = "\"bot\" [\"vault\"] 3600 \"web\"";
    assert!(world.hands.volumes.lock().iter().all(|it| it.contains(token)), "{:?}", world.hands.volumes.lock());
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_a_certificate_of_its_own() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests";
    let world = World::new();
    let account = json!({"metadata": {"name": "bot", "namespace": "default"}});
    world.api.put("/api/v1/namespaces/default/serviceaccounts/bot", account);
    pass(1).await;
    let wish = json!({
        "signerName": "example.com/s", "keyType": "ED25519", "maxExpirationSeconds": 3600, "credentialBundlePath": "all",
    });
    let volumes = json!([{"name": "id", "projected": {"sources": [{"podCertificate": wish}]}}]);
    world.pod("web", json!({"serviceAccountName": "bot", "volumes": volumes}));
    pass(2).await;
    let mut request = world.api.objects(REQUESTS).pop().expect("asked for");
    let uid = |path: &str| world.api.object(path).expect("stored")["metadata"]["uid"].clone();
    let spec = request["spec"].clone();
    assert_eq!(spec["podUID"], uid(&format!("{POD}/web")));
    assert_eq!(spec["nodeUID"], uid("/api/v1/nodes/n1"));
    assert_eq!(spec["serviceAccountUID"], uid("/api/v1/namespaces/default/serviceaccounts/bot"));
    assert_eq!((&spec["signerName"], &spec["maxExpirationSeconds"]), (&json!("example.com/s"), &json!(3600)));
    assert_eq!(world.phase("web"), "Pending");
    let chain = "-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n";
    let end = (world.hands.clock)().after(Duration::from_hours(1));
    request["status"] = json!({
        "conditions": [{"type": "Issued", "status": "True", "reason": "Yes", "message": ""}],
        "certificateChain": chain, "beginRefreshAt": end, "notAfter": end,
    });
    let name = request["metadata"]["name"].as_str().expect("named").to_owned();
    world.api.put(&format!("{REQUESTS}/{name}"), request);
    pass(2).await;
    assert_eq!(world.phase("web"), "Running");
    let volumes = world.hands.volumes.lock();
    assert!(volumes[0].starts_with("-----BEGIN PRIVATE KEY-----\n") && volumes[0].ends_with(chain), "{volumes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_being_started_when_the_clock_is_set_back_is_started_once() {
    let (back, right) = (Arc::new(Mutex::new(Duration::ZERO)), clock());
    let set = back.clone();
    let world = World::by(Arc::new(move || Time(right().0 - *set.lock())));
    world.pod("slow", json!({}));
    pass(2).await;
    assert_eq!((world.phase("slow").as_str(), *world.hands.n_starts.lock()), ("Pending", 1));
    let renewed = || {
        let lease = world.api.object("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1");
        lease.expect("alive")["spec"]["renewTime"].as_str().expect("renewed").to_owned()
    };
    let before = renewed();
    *back.lock() = Duration::from_hours(7 * 24);
    world.hands.news.notify_one();
    pass(1).await;
    assert_eq!(world.phase("slow"), "Pending");
    assert!(renewed() < before, "the node is not silent while it waits: {}", renewed());
    pass(59).await;
    assert_eq!((world.phase("slow").as_str(), *world.hands.n_starts.lock()), ("Running", 1));
}
