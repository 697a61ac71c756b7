use corten_scheduler::Config;

use super::*;
use crate::fake::{FakeApi, Fault, clock};

const POD: &str = "/api/v1/namespaces/default/pods";

struct World {
    api: Arc<FakeApi>,
    journal: Arc<JournalBook>,
    _running: tokio::task::JoinHandle<()>,
}

impl World {
    /// A scheduler and nodes that hold one pod each.
    fn with_nodes(names: &[&str]) -> Self {
        let (api, journal) = (FakeApi::new(), Arc::new(JournalBook::default()));
        for name in names {
            let status = json!({"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
                                "conditions": [{"type": "Ready", "status": "True"}]});
            api.put(&format!("/api/v1/nodes/{name}"), json!({"metadata": {"name": name}, "status": status}));
        }
        let scheduler = Scheduler::new(Config::default());
        let running = run_scheduler(scheduler, api.client(), clock(), journal.clone(), std::future::pending());
        Self { api, journal, _running: tokio::spawn(running) }
    }

    fn pod(&self, name: &str) {
        let spec = json!({"schedulerName": "default-scheduler",
                          "containers": [{"name": "c", "resources": {"requests": {"cpu": "900m"}}}]});
        self.api
            .put(&format!("{POD}/{name}"), json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}));
    }

    fn node_of(&self, name: &str) -> Option<String> {
        let pod = self.api.object(&format!("{POD}/{name}"))?;
        pod["spec"]["nodeName"].as_str().map(str::to_owned)
    }
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
