//! Deployments, replica sets, pods that come up, and the garbage collector in one world: it must always converge, and a
//! rolling update must keep its promises at every step on the way.

use std::{sync::Arc, time::Duration};

use corten_api::resources::{DEPLOYMENTS, PODS, REPLICA_SETS};
use corten_meta::{Key, Resource};
use corten_reconcile::{Controller, Effect, fixture::World};
use serde_json::{Value, json};

use super::is_declared;
use crate::{Deployments, GarbageCollector, ReplicaSets};

/// Pods become ready after a while; deleted objects go at once.
struct Cluster {
    world: World,
    controllers: Vec<Arc<dyn Controller>>,
    /// Images whose pods never become ready.
    broken: &'static str,
    most_pods: usize,
    fewest_ready: usize,
}

impl Cluster {
    fn new(lines: &str) -> Self {
        let world = World::parse(lines).expect("the world can be read");
        let controllers: Vec<Arc<dyn Controller>> =
            vec![Arc::new(Deployments), Arc::new(ReplicaSets), Arc::new(GarbageCollector::default())];
        Self { world, controllers, broken: "broken", most_pods: 0, fewest_ready: usize::MAX }
    }

    /// Asks every controller about everything, until none has anything to do. Returns the number of rounds.
    fn settle(&mut self) -> usize {
        for round in 1..500 {
            self.world.now = self.world.now.after(Duration::from_secs(1));
            let has_moved = self.ask_all();
            let has_started = self.start_a_pod();
            if !has_moved && !has_started {
                return round;
            }
        }
        panic!("the world does not settle: {:#?}", self.world.list(&DEPLOYMENTS).collect::<Vec<_>>());
    }

    fn ask_all(&mut self) -> bool {
        let mut has_moved = false;
        for controller in self.controllers.clone() {
            for key in self.keys(&*controller) {
                let view = self.world.view(&controller.watches());
                let plan = controller.reconcile(&view, &key, self.world.now);
                for effect in &plan.effects {
                    assert!(is_declared(&*controller, effect), "{} did not declare {effect}", controller.name());
                }
                has_moved |= !plan.effects.iter().all(|it| matches!(it, Effect::Event { .. }));
                self.world.carry_out(&plan);
                self.observe();
            }
        }
        has_moved
    }

    fn keys(&self, controller: &dyn Controller) -> Vec<Key> {
        let keys_of = |resource: &Resource| self.world.list(resource).map(|it| it.0.clone()).collect();
        match controller.about() {
            Some(resource) => keys_of(&resource),
            None => {
                let objects = [&DEPLOYMENTS, &REPLICA_SETS, &PODS].map(|it| self.world.list(it).collect::<Vec<_>>());
                let owners = |it: &Value| it["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
                let uids = objects.iter().flatten().flat_map(|it| owners(it.1));
                uids.map(|it| Key::cluster(it["uid"].as_str().unwrap_or_default())).collect()
            }
        }
    }

    /// One pod of a working image becomes ready, the first in name order.
    fn start_a_pod(&mut self) -> bool {
        let is_startable =
            |it: &Value| it["status"]["phase"] != "Running" && it["spec"]["containers"][0]["image"] != self.broken;
        let Some(key) = self.world.list(&PODS).find(|it| is_startable(it.1)).map(|it| it.0.clone()) else {
            return false;
        };
        let now = self.world.now;
        let pod = self.world.get_mut(&PODS, &key).expect("it was just listed");
        pod["status"] = json!({ "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }] });
        self.observe();
        true
    }

    fn observe(&mut self) {
        let n_ready = self.world.list(&PODS).filter(|it| it.1["status"]["phase"] == "Running").count();
        self.most_pods = self.most_pods.max(self.world.list(&PODS).count());
        self.fewest_ready = self.fewest_ready.min(n_ready);
    }

    fn forget_extremes(&mut self) {
        (self.most_pods, self.fewest_ready) = (0, usize::MAX);
    }

    fn deployment(&mut self) -> &mut Value {
        self.world.get_mut(&DEPLOYMENTS, &Key::new("default", "web")).expect("the deployment is there")
    }

    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let deployment = self.deployment();
        change(&mut deployment["spec"]);
        let generation = deployment["metadata"]["generation"].as_i64().expect("it has one");
        deployment["metadata"]["generation"] = json!(generation + 1);
    }

    fn images(&self) -> Vec<&str> {
        self.world.list(&PODS).filter_map(|it| it.1["spec"]["containers"][0]["image"].as_str()).collect()
    }

    fn condition(&mut self, r#type: &str) -> Value {
        let conditions = self.deployment()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|it| it["type"] == r#type).unwrap_or_default()
    }

    fn sets(&self) -> Vec<(String, i64)> {
        let revision = |it: &Value| it["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone();
        let mut sets: Vec<_> = self
            .world
            .list(&REPLICA_SETS)
            .map(|it| {
                (revision(it.1).as_str().unwrap_or("").to_owned(), it.1["spec"]["replicas"].as_i64().unwrap_or(-1))
            })
            .collect();
        sets.sort();
        sets
    }
}

fn image(name: &'static str) -> impl FnOnce(&mut Value) {
    move |spec| spec["template"]["spec"]["containers"][0]["image"] = json!(name)
}

#[test]
fn a_rolling_update_keeps_its_bounds() {
    for (rule, replicas, most, fewest) in [
        ("surge=1 unavailable=0", 3, 4, 3),
        ("surge=0 unavailable=1", 3, 3, 2),
        ("surge=25% unavailable=25%", 3, 4, 3),
        ("surge=25% unavailable=25%", 10, 13, 8),
        ("surge=0% unavailable=0%", 4, 4, 3),
        ("surge=100% unavailable=0", 5, 10, 5),
        ("surge=0 unavailable=100%", 5, 5, 0),
    ] {
        let mut cluster = Cluster::new(&format!("deployment web replicas={replicas} {rule} image=a"));
        cluster.settle();
        assert_eq!(cluster.sets(), [("1".to_owned(), replicas)], "{rule}");
        cluster.forget_extremes();
        cluster.change(image("b"));
        cluster.settle();
        assert_eq!(cluster.sets(), [("1".to_owned(), 0), ("2".to_owned(), replicas)], "{rule}");
        assert!(cluster.images().iter().all(|it| *it == "b"), "{rule}");
        assert!(cluster.most_pods <= most, "{rule} of {replicas}: {} pods at once", cluster.most_pods);
        assert!(cluster.fewest_ready >= fewest, "{rule} of {replicas}: only {} ready", cluster.fewest_ready);
        let progressing = cluster.condition("Progressing");
        assert_eq!(progressing["reason"], "NewReplicaSetAvailable", "{rule}");
        let status = cluster.deployment()["status"].clone();
        assert_eq!(
            [&status["availableReplicas"], &status["updatedReplicas"]],
            [&json!(replicas); 2],
            "{rule}: {status}"
        );
        assert_eq!(status["unavailableReplicas"], Value::Null, "{rule}: {status}");
    }
}

#[test]
fn a_rollback_takes_the_old_set_up_again() {
    let mut cluster = Cluster::new("deployment web replicas=2 image=a");
    for (step, expected) in [
        ("a", &[("1", 2)][..]),
        ("b", &[("1", 0), ("2", 2)]),
        ("a", &[("2", 0), ("3", 2)]),
        ("c", &[("2", 0), ("3", 0), ("4", 2)]),
    ] {
        cluster.change(image(step));
        cluster.settle();
        let expected: Vec<_> = expected.iter().map(|it| (it.0.to_owned(), it.1)).collect();
        assert_eq!(cluster.sets(), expected, "image {step}");
    }
}

#[test]
fn history_is_bounded() {
    let mut cluster = Cluster::new("deployment web replicas=1 image=a history=2");
    for step in ["a", "b", "c", "d", "e"] {
        cluster.change(image(step));
        cluster.settle();
    }
    assert_eq!(cluster.sets(), [("3".to_owned(), 0), ("4".to_owned(), 0), ("5".to_owned(), 1)]);
}

#[test]
fn recreate_never_runs_two_versions() {
    let mut cluster = Cluster::new("deployment web replicas=3 recreate image=a");
    cluster.settle();
    cluster.forget_extremes();
    cluster.change(image("b"));
    cluster.settle();
    assert_eq!(cluster.images(), ["b"; 3]);
    assert_eq!((cluster.most_pods, cluster.fewest_ready), (3, 0));
}

#[test]
fn a_broken_version_stops_at_its_bounds_and_runs_out_of_time() {
    let mut cluster = Cluster::new("deployment web replicas=4 surge=1 unavailable=1 image=a deadline=60");
    cluster.settle();
    cluster.forget_extremes();
    cluster.change(image("broken"));
    cluster.settle();
    assert!(cluster.fewest_ready >= 3 && cluster.most_pods <= 5);
    cluster.world.now = cluster.world.now.after(Duration::from_secs(120));
    cluster.settle();
    let condition = cluster.condition("Progressing");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("ProgressDeadlineExceeded")));
    // Undone, it comes back without losing another pod.
    cluster.change(image("a"));
    cluster.settle();
    assert_eq!(cluster.images(), ["a"; 4]);
    assert!(cluster.fewest_ready >= 3);
}

#[test]
fn a_new_size_amid_a_rollout_is_shared() {
    let mut cluster = Cluster::new("deployment web replicas=10 surge=3 unavailable=2 image=a");
    cluster.settle();
    cluster.change(image("broken"));
    cluster.settle();
    assert_eq!(cluster.sets(), [("1".to_owned(), 8), ("2".to_owned(), 5)]);
    cluster.change(|spec| spec["replicas"] = json!(15));
    cluster.settle();
    let sizes: i64 = cluster.sets().iter().map(|it| it.1).sum();
    assert_eq!(sizes, 18, "{:?}", cluster.sets());
    assert_eq!(cluster.sets(), [("1".to_owned(), 11), ("2".to_owned(), 7)]);
}

#[test]
fn what_is_taken_away_comes_back_and_what_loses_its_owner_goes() {
    let mut cluster = Cluster::new("deployment web replicas=3 image=a");
    cluster.settle();
    let first = cluster.world.list(&PODS).next().expect("it has pods").0.clone();
    cluster.world.remove(&PODS, &first);
    cluster.settle();
    assert_eq!(cluster.world.list(&PODS).count(), 3);
    assert!(cluster.world.get(&PODS, &first).is_none(), "names are not used twice");

    cluster.world.remove(&DEPLOYMENTS, &Key::new("default", "web"));
    cluster.settle();
    assert_eq!((cluster.world.list(&REPLICA_SETS).count(), cluster.world.list(&PODS).count()), (0, 0));
}
