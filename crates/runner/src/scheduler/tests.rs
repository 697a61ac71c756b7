mod device_conditions;
mod extended_resources;

use std::task::{Wake, Waker};

use corten_scheduler::{Config, ExtendedClaimWrite};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    writes::{bind_with_devices, tell},
    *,
};
use crate::fake::{FakeApi, Fault, clock};

const POD: &str = "/api/v1/namespaces/default/pods";

struct World {
    api: Arc<FakeApi>,
    journal: Arc<JournalBook>,
    clock: Clock,
    running: tokio::task::JoinHandle<()>,
}

impl World {
    /// A scheduler and nodes that hold one pod each.
    fn with_nodes(names: &[&str]) -> Self {
        let (api, journal) = (FakeApi::new(), Arc::new(JournalBook::default()));
        for name in names {
            api.put(&format!("/api/v1/nodes/{name}"), node(name));
        }
        let clock = clock();
        let running = started(&api, &clock, &journal);
        Self { api, journal, clock, running }
    }

    /// It ends amid its work, and another one begins.
    fn restart_scheduler(&mut self) {
        self.running.abort();
        self.running = started(&self.api, &self.clock, &self.journal);
    }

    fn pod(&self, name: &str) {
        self.api.put(&format!("{POD}/{name}"), pod(name));
    }

    fn node_of(&self, name: &str) -> Option<String> {
        let pod = self.api.object(&format!("{POD}/{name}"))?;
        pod["spec"]["nodeName"].as_str().map(str::to_owned)
    }
}

fn started(api: &Arc<FakeApi>, clock: &Clock, journal: &Arc<JournalBook>) -> tokio::task::JoinHandle<()> {
    let scheduler = Scheduler::new(Config::default());
    tokio::spawn(run_scheduler(scheduler, api.client(), clock.clone(), journal.clone(), std::future::pending()))
}

fn node(name: &str) -> Value {
    let status = json!({"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
                        "conditions": [{"type": "Ready", "status": "True"}]});
    json!({"metadata": {"name": name}, "status": status})
}

fn pod(name: &str) -> Value {
    let spec = json!({"schedulerName": "default-scheduler",
                      "containers": [{"name": "c", "resources": {"requests": {"cpu": "900m"}}}]});
    json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn pods_get_nodes_and_the_journal_says_so() {
    let world = World::with_nodes(&["n1", "n2"]);
    world.pod("a");
    world.pod("b");
    pass(5).await;
    let mut nodes = [world.node_of("a").expect("bound"), world.node_of("b").expect("bound")];
    nodes.sort();
    assert_eq!(nodes, ["n1", "n2"]);
    let decisions = world.journal.decisions(&PODS, &Key::new("default", "a"));
    assert_eq!(decisions[0].steps[0].name, "scheduled");
    let events = world.api.objects("/api/v1/namespaces/default/events");
    assert_eq!(events.iter().filter(|it| it["reason"] == "Scheduled").count(), 2);

    // No room: the pod says so, and goes where room appears.
    world.pod("c");
    pass(5).await;
    let waiting = world.api.object(&format!("{POD}/c")).expect("stored");
    assert_eq!(waiting["status"]["conditions"][0]["reason"], "Unschedulable");
    world.api.remove(&format!("{POD}/a"));
    pass(30).await;
    assert!(world.node_of("c").is_some());
    assert!(world.journal.decisions(&PODS, &Key::new("default", "a")).is_empty(), "what is gone is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_binding_in_doubt_holds_its_room() {
    for fault in ["lost", "refused", "conflict"] {
        let world = World::with_nodes(&["n1"]);
        pass(1).await;
        world.api.delay_watches(Duration::from_secs(1000));
        match fault {
            "lost" => world.api.fault(Fault::AnswerLost("POST")),
            "refused" => world.api.fault(Fault::Refused("POST", 500, "InternalError")),
            _ => world.api.fault(Fault::Refused("POST", 409, "Conflict")),
        }
        world.pod("a");
        world.pod("b");
        pass(60).await;
        let bound = ["a", "b"].iter().filter(|it| world.node_of(it).is_some()).count();
        assert_eq!(bound, 1, "{fault}: the node has room for one");
    }
}

/// The node is written at the claim, and the pod bound when the claim is.
#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_after_its_volumes() {
    const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
    let world = World::with_nodes(&["n1"]);
    let claim = |annotations: Value, volume: &str| {
        let metadata = json!({"name": "data", "namespace": "default", "uid": "c", "annotations": annotations});
        json!({"metadata": metadata, "spec": {"storageClassName": "std", "volumeName": volume}})
    };
    let class = json!({"metadata": {"name": "std"}, "provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"});
    world.api.put("/apis/storage.k8s.io/v1/storageclasses/std", class);
    world.api.put(CLAIM, claim(json!({}), ""));
    let mut with_claim = pod("a");
    with_claim["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    world.api.put(&format!("{POD}/a"), with_claim);
    pass(5).await;
    let annotations = world.api.object(CLAIM).expect("stored")["metadata"]["annotations"].clone();
    assert_eq!(annotations["volume.kubernetes.io/selected-node"], "n1");
    assert_eq!(world.node_of("a"), None);
    world.api.put("/api/v1/persistentvolumes/v", json!({"metadata": {"name": "v"}, "spec": {}}));
    let mut bound = annotations;
    bound["pv.kubernetes.io/bind-completed"] = json!("yes");
    world.api.put(CLAIM, claim(bound, "v"));
    pass(5).await;
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
}

/// The Pod of lower priority is marked and deleted, and the other has its room; it is told to whom.
#[tokio::test(start_paused = true)]
async fn a_pod_of_lower_priority_makes_room() {
    for fault in [None, Some(Fault::Refused("DELETE", 500, "InternalError"))] {
        let world = World::with_nodes(&["n1"]);
        world.pod("low");
        pass(5).await;
        assert_eq!(world.node_of("low").as_deref(), Some("n1"));
        let is_refused = fault.is_some();
        fault.into_iter().for_each(|it| world.api.fault(it));
        let mut high = pod("high");
        high["spec"]["priority"] = json!(10);
        world.api.put(&format!("{POD}/high"), high);
        pass(30).await;
        assert_eq!(world.node_of("low"), None, "{is_refused}");
        assert_eq!(world.node_of("high").as_deref(), Some("n1"), "{is_refused}");
        let high = world.api.object(&format!("{POD}/high")).expect("stored");
        assert_eq!(high["status"]["nominatedNodeName"], "n1");
        let events = world.api.objects("/api/v1/namespaces/default/events");
        let preempted: Vec<_> = events.iter().filter(|it| it["reason"] == "Preempted").collect();
        assert_eq!(preempted.len(), 1, "{is_refused}");
        assert_eq!(preempted[0]["involvedObject"]["name"], "low");
        let message = format!("Preempted by pod {} on node n1", high["metadata"]["uid"].as_str().unwrap_or_default());
        assert_eq!(preempted[0]["message"], message);
    }
}

/// What a metric of the scheduler stands at, or how often its histogram was shown something.
fn measured(world: &World, name: &str, labels: &[&str]) -> Option<u64> {
    let all = world.journal.counted();
    let metric = all.iter().find(|it| it.metric.name.strip_prefix("scheduler_") == Some(name))?;
    metric.rows.iter().find(|it| it.0 == labels).map(|it| it.1.n)
}

#[tokio::test(start_paused = true)]
async fn what_it_does_is_measured() {
    const PROFILE: &str = "default-scheduler";
    let mut world = World::with_nodes(&["n1"]);
    pass(1).await;
    world.api.fault(Fault::Refused("POST", 403, "Forbidden"));
    world.pod("a");
    pass(5).await;
    assert!(world.node_of("a").is_some(), "at the second try");
    world.pod("b");
    pass(1).await;
    for (name, labels, n) in [
        ("schedule_attempts_total", &[PROFILE, "error"][..], 1),
        ("schedule_attempts_total", &[PROFILE, "scheduled"], 1),
        ("schedule_attempts_total", &[PROFILE, "unschedulable"], 1),
        ("scheduling_attempt_duration_seconds", &[PROFILE, "scheduled"], 1),
        ("scheduling_algorithm_duration_seconds", &[], 3),
        ("framework_extension_point_duration_seconds", &["Filter", PROFILE, "Success"], 3),
        ("framework_extension_point_duration_seconds", &["Bind", PROFILE, "Error"], 1),
        ("framework_extension_point_duration_seconds", &["Bind", PROFILE, "Success"], 1),
        ("pod_scheduling_sli_duration_seconds", &["2"], 1),
        ("pod_scheduling_attempts", &[], 1),
        ("preemption_attempts_total", &[], 1),
        ("preemption_victims", &[], 0),
        ("queue_incoming_pods_total", &["UnschedulablePodAdd", "active"], 2),
        ("queue_incoming_pods_total", &["BackoffComplete", "active"], 1),
        ("pending_pods", &["unschedulable"], 1),
        ("pending_pods", &["active"], 0),
    ] {
        assert_eq!(measured(&world, name, labels), Some(n), "{name} {labels:?}");
    }
    // One that starts again counts on; while none runs, no pods wait for it.
    world.running.abort();
    pass(1).await;
    assert_eq!(measured(&world, "pending_pods", &["unschedulable"]), Some(0));
    world.restart_scheduler();
    pass(1).await;
    assert_eq!(measured(&world, "pending_pods", &["unschedulable"]), Some(1));
    assert_eq!(measured(&world, "schedule_attempts_total", &[PROFILE, "unschedulable"]), Some(2));
}

#[derive(Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// In real time: the look is begun while the scheduler rests, and ends after the rest.
#[tokio::test]
async fn what_comes_in_a_rest_is_heard_however_long_a_look_takes() {
    let api = FakeApi::new();
    let scheduler = Scheduler::new(Config::default());
    let mut running = SchedulerLoop::new(
        scheduler,
        (api.client(), extenders_over_network()),
        clock(),
        Arc::new(JournalBook::default()),
    );
    let slow = Arc::new(Notify::new());
    let asked = slow.clone();
    running.writes.push(Box::pin(async move {
        asked.notified().await;
        let begun = Instant::now();
        while begun.elapsed() <= REST {
            std::hint::spin_loop();
        }
        std::future::pending().await
    }));
    // A set whose writes have all moved in one look asks for another.
    running.writes.push(Box::pin(std::future::pending()));
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut context = Context::from_waker(&waker);

    while running.poll(&mut context).is_ready() || !running.is_synced() || running.rests_until.is_some() {
        let _woken = tokio::time::timeout(REST, bell.0.notified()).await;
    }
    // The node is taken in at once; the pod comes while it rests. On a busy machine the rest may be over by then.
    api.put("/api/v1/nodes/n1", node("n1"));
    let mut is_taken = false;
    while !is_taken {
        bell.0.notified().await;
        while running.poll(&mut context).is_ready() {
            is_taken = true;
        }
    }
    api.put(&format!("{POD}/a"), pod("a"));
    bell.0.notified().await;
    slow.notify_one();
    let is_bound = || api.object(&format!("{POD}/a")).is_some_and(|it| it["spec"]["nodeName"] == "n1");
    while !is_bound() {
        let rung = tokio::time::timeout(Duration::from_secs(10), bell.0.notified()).await;
        rung.expect("woken when the rest is over");
        while running.poll(&mut context).is_ready() {}
    }
}

/// What the scheduler had to say came too late: the pod is newer than it knew.
#[tokio::test(start_paused = true)]
async fn a_late_condition_undoes_nothing() {
    let ready = json!({"type": "Ready", "status": "True"});
    let scheduled = |status: &str| json!({"type": "PodScheduled", "status": status});
    for (pod, wanted) in [
        (json!({"spec": {"nodeName": "n1"}}), vec![ready.clone(), scheduled("True")]),
        (json!({"spec": {}}), vec![ready.clone(), scheduled("False")]),
        (json!({"metadata": {"uid": "another"}, "spec": {}}), vec![ready.clone(), scheduled("True")]),
    ] {
        let api = FakeApi::new();
        let mut object = json!({"metadata": {"name": "a", "namespace": "default", "uid": "a"}, "spec": {},
                                "status": {"conditions": [ready.clone(), scheduled("True")]}});
        object["spec"] = pod["spec"].clone();
        if let Some(uid) = pod["metadata"]["uid"].as_str() {
            object["metadata"]["uid"] = json!(uid);
        }
        api.put(&format!("{POD}/a"), object);
        let late = json!({"metadata": {"uid": "a", "resourceVersion": "1"},
                          "status": {"conditions": [scheduled("False")]}});
        tell(&api.client(), &Key::new("default", "a"), late).await.expect("nothing to complain of");
        let found = api.object(&format!("{POD}/a")).expect("stored");
        assert_eq!(found["status"]["conditions"], json!(wanted), "{pod}");
    }
}
