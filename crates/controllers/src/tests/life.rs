//! Worlds in which pods live: they become ready one after another, end, and go when they are deleted. Whatever happens in
//! them, the controllers must come to rest, with nothing lost and nothing counted twice.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use corten_api::resources::{
    CONTROLLER_REVISIONS, DAEMON_SETS, JOBS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS,
};
use corten_meta::{Key, Resource, Time};
use corten_reconcile::{
    Controller, Effect, Plan,
    fixture::{self, World},
};
use serde_json::{Value, json};

use super::is_declared;
use crate::{
    CronJobs, DaemonSets, Deployments, Jobs, ReplicaSets, ReplicationControllers, StatefulSets, TtlAfterFinished,
};

struct WorkloadRun {
    world: World,
    controller: Arc<dyn Controller>,
    about: Resource,
    /// What becomes of a pod that runs: nothing, or an exit code by its number in the order of being made.
    end: fn(u64) -> Option<i64>,
    n_ended: u64,
    n_failed: i64,
    /// Chooses how much of a plan is carried out; zero: all of it.
    dice: u64,
    /// Creates and deletes of pods, in order.
    log: Vec<String>,
    fewest_ready: usize,
    most_pods: usize,
}

impl WorkloadRun {
    fn new(controller: impl Controller, about: Resource, lines: &str) -> Self {
        let world = World::parse(lines).expect("the world can be read");
        Self {
            world,
            controller: Arc::new(controller),
            about,
            end: |_| None,
            n_ended: 0,
            n_failed: 0,
            dice: 0,
            log: Vec::new(),
            fewest_ready: usize::MAX,
            most_pods: 0,
        }
    }

    /// Goes on until nothing happens and nothing is to happen.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.world.now = self.world.now.after(Duration::from_secs(1));
            let (has_acted, wake_at) = self.ask_all();
            let has_lived = self.live();
            match wake_at {
                _ if has_acted || has_lived => {}
                Some(wake_at) => self.world.now = self.world.now.max(wake_at),
                None => return,
            }
        }
        panic!("the world does not settle: {:#?}", self.world.list(&self.about).collect::<Vec<_>>());
    }

    /// Says whether anything was to be done, and when it wants to be asked again.
    fn ask_all(&mut self) -> (bool, Option<Time>) {
        let mut keys: BTreeSet<Key> = self.world.list(&self.about).map(|it| it.0.clone()).collect();
        // Orphans of a job are asked about by its uid.
        let owners = self.world.list(&PODS).filter_map(|it| {
            let owner = &it.1["metadata"]["ownerReferences"][0];
            Some(Key::new("default", format!("{}/{}", owner["name"].as_str()?, owner["uid"].as_str()?)))
        });
        keys.extend(owners);
        let (mut has_acted, mut wake_at) = (false, None);
        for key in keys {
            let plan = self.controller.reconcile(&self.world.view(&self.controller.watches()), &key, self.world.now);
            for effect in &plan.effects {
                assert!(is_declared(&*self.controller, effect), "not declared: {effect}");
            }
            has_acted |= plan.effects.iter().flat_map(Effect::parts).any(|it| !matches!(it, Effect::Event { .. }));
            wake_at = wake_at.into_iter().chain(plan.wake_at).min();
            self.carry_out(plan);
        }
        (has_acted, wake_at)
    }

    fn carry_out(&mut self, mut plan: Plan) {
        if self.dice != 0 {
            let n_done = usize::try_from(self.throw(plan.effects.len() as u64 + 2)).expect("it fits");
            plan.effects.truncate(n_done);
        }
        for effect in plan.effects.iter().flat_map(Effect::parts).cloned() {
            match &effect {
                Effect::Create { resource, object } if *resource == PODS => {
                    self.log.push(format!("+{}", object["metadata"]["name"].as_str().unwrap_or_default()));
                }
                Effect::Delete { resource, key, .. } if *resource == PODS => self.log.push(format!("-{}", key.name)),
                _ => {}
            }
            self.world.carry_out(&Plan { effects: vec![effect], ..Plan::default() });
            self.observe();
        }
    }

    fn throw(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    /// One thing happens to one pod, the first that something can happen to.
    fn live(&mut self) -> bool {
        let keys: Vec<Key> = self.world.list(&PODS).map(|it| it.0.clone()).collect();
        keys.iter().any(|it| self.live_on(it))
    }

    fn live_on(&mut self, key: &Key) -> bool {
        let now = self.world.now;
        let pod = self.world.get_mut(&PODS, key).expect("it was just listed");
        match pod["status"]["phase"].as_str() {
            Some("Succeeded" | "Failed") => return false,
            Some("Running") => {
                let Some(code) = (self.end)(self.n_ended) else { return false };
                self.n_ended += 1;
                self.n_failed += i64::from(code != 0);
                let ended = json!({ "name": "c", "state": { "terminated": { "exitCode": code, "finishedAt": now } } });
                let phase = if code == 0 { "Succeeded" } else { "Failed" };
                pod["status"] = json!({ "phase": phase, "containerStatuses": [ended] });
            }
            _ => {
                pod["status"] = json!({ "phase": "Running",
                    "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }] });
            }
        }
        self.observe();
        true
    }

    fn observe(&mut self) {
        let n_ready = self.world.list(&PODS).filter(|it| it.1["status"]["phase"] == "Running").count();
        self.fewest_ready = self.fewest_ready.min(n_ready);
        self.most_pods = self.most_pods.max(self.world.list(&PODS).count());
    }

    fn forget(&mut self) {
        self.log.clear();
        (self.fewest_ready, self.most_pods) = (usize::MAX, 0);
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let object = self.world.get_mut(&self.about, &Key::new("default", name)).expect("it is there");
        change(&mut object["spec"]);
        object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
    }

    fn status(&self, name: &str) -> &Value {
        &self.world.get(&self.about, &Key::new("default", name)).expect("it is there")["status"]
    }

    fn images(&self) -> Vec<&str> {
        self.world.list(&PODS).filter_map(|it| it.1["spec"]["containers"][0]["image"].as_str()).collect()
    }
}

fn image(name: &'static str) -> impl FnOnce(&mut Value) {
    move |spec| spec["template"]["spec"]["containers"][0]["image"] = json!(name)
}

// ---- stateful sets ----

#[test]
fn an_ordered_set_goes_up_and_down_and_forward_in_order() {
    let mut life = WorkloadRun::new(StatefulSets, STATEFUL_SETS, "stateful-set db replicas=3 claim=data");
    life.settle();
    assert_eq!(life.log, ["+db-0", "+db-1", "+db-2"]);
    assert_eq!(life.world.list(&PERSISTENT_VOLUME_CLAIMS).count(), 3);
    life.forget();
    life.change("db", image("b"));
    life.settle();
    assert_eq!(life.log, ["-db-2", "+db-2", "-db-1", "+db-1", "-db-0", "+db-0"]);
    assert_eq!((life.images(), life.fewest_ready), (vec!["b"; 3], 2));
    let status = life.status("db");
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!((&status["currentReplicas"], &status["updatedReplicas"]), (&json!(3), &json!(3)));
    life.forget();
    life.change("db", |spec| spec["replicas"] = json!(1));
    life.settle();
    assert_eq!(life.log, ["-db-2", "-db-1"]);
    assert_eq!(life.status("db")["replicas"], 1);
}

#[test]
fn a_partition_moves_step_by_step_and_a_rollback_goes_back() {
    let mut life = WorkloadRun::new(StatefulSets, STATEFUL_SETS, "stateful-set db replicas=3 partition=2");
    life.settle();
    life.change("db", image("b"));
    life.settle();
    assert_eq!(life.images(), ["a", "a", "b"]);
    assert_ne!(life.status("db")["currentRevision"], life.status("db")["updateRevision"]);
    life.change("db", |spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(0));
    life.settle();
    assert_eq!(life.images(), ["b"; 3]);
    life.change("db", image("a"));
    life.settle();
    assert_eq!(life.images(), ["a"; 3]);
    let revisions: Vec<_> = life.world.list(&CONTROLLER_REVISIONS).map(|it| it.1["revision"].as_i64()).collect();
    assert!(revisions.contains(&Some(3)) && revisions.len() == 2, "{revisions:?}");
}

#[test]
fn a_parallel_set_updates_as_many_at_once_as_it_may() {
    let mut life = WorkloadRun::new(StatefulSets, STATEFUL_SETS, "stateful-set db replicas=5 parallel unavailable=2");
    life.settle();
    life.forget();
    life.change("db", image("b"));
    life.settle();
    assert_eq!((life.images(), life.fewest_ready), (vec!["b"; 5], 3));
}

// ---- daemon sets ----

#[test]
fn a_daemon_set_keeps_its_bounds() {
    for (rule, most, fewest) in [("unavailable=1", 5, 4), ("unavailable=40%", 5, 3), ("surge=2 unavailable=0", 7, 5)] {
        let nodes: String = (1..=5).map(|it| format!("\nnode n{it}")).collect();
        let mut life = WorkloadRun::new(DaemonSets, DAEMON_SETS, &format!("daemon-set log {rule}{nodes}"));
        life.settle();
        assert_eq!(life.world.list(&PODS).count(), 5);
        life.forget();
        life.change("log", image("b"));
        life.settle();
        assert_eq!(life.images(), ["b"; 5], "{rule}");
        assert!(life.most_pods <= most && life.fewest_ready >= fewest, "{rule}: {:?}", life.log);
        let status = life.status("log").clone();
        for field in ["desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable"] {
            assert_eq!(status[field], 5, "{rule}: {field}");
        }
        let late = World::parse("node n6").expect("a node");
        let (key, node) = late.list(&NODES).next().expect("one node");
        life.world.insert(NODES, node.clone());
        life.settle();
        assert_eq!(life.world.list(&PODS).count(), 6);
        life.world.remove(&NODES, key);
        life.settle();
        assert_eq!(life.status("log")["desiredNumberScheduled"], 5);
    }
}

// ---- jobs ----

/// Whatever is done of each plan and what is not, every pod is counted once.
#[test]
fn a_job_counts_every_pod_once() {
    let every_third_fails: fn(u64) -> Option<i64> = |it| Some(i64::from(it % 3 == 0));
    let all_succeed: fn(u64) -> Option<i64> = |_| Some(0);
    for (line, end) in [
        ("completions=7 parallelism=3 backoff=100", every_third_fails),
        ("completions=7 parallelism=3 backoff=100 indexed", every_third_fails),
        ("completions=5 parallelism=5 backoff=100 indexed per-index=9", every_third_fails),
        ("completions=4 parallelism=2 backoff=100 replaces-failed", every_third_fails),
        ("completions=3 parallelism=9", all_succeed),
    ] {
        for dice in 0..20 {
            let mut life = WorkloadRun::new(Jobs, JOBS, &format!("job sum {line}"));
            (life.end, life.dice) = (end, dice);
            life.settle();
            let status = life.status("sum").clone();
            let conditions: Vec<&str> =
                status["conditions"].as_array().into_iter().flatten().filter_map(|it| it["type"].as_str()).collect();
            assert_eq!(conditions, ["SuccessCriteriaMet", "Complete"], "{line}, dice {dice}: {status}");
            let wanted = life.world.list(&JOBS).next().expect("the job").1["spec"]["completions"].clone();
            assert_eq!(status["succeeded"], wanted, "{line}, dice {dice}: {status}");
            assert_eq!(status["failed"].as_i64().unwrap_or(0), life.n_failed, "{line}, dice {dice}: {status}");
            assert_eq!(status["uncountedTerminatedPods"], json!({}), "{line}, dice {dice}");
            let is_held = |it: &Value| it["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty());
            assert!(!life.world.list(&PODS).any(|it| is_held(it.1)), "{line}, dice {dice}: a pod is held for ever");
        }
    }
}

#[test]
fn a_job_that_may_not_fail_so_often_ends() {
    for dice in 0..20 {
        let mut life = WorkloadRun::new(Jobs, JOBS, "job sum completions=4 parallelism=2 backoff=2");
        (life.end, life.dice) = (|_| Some(1), dice);
        life.settle();
        let status = life.status("sum").clone();
        let last = status["conditions"].as_array().and_then(|it| it.last()).cloned().unwrap_or_default();
        assert_eq!((&last["type"], &last["reason"]), (&json!("Failed"), &json!("BackoffLimitExceeded")), "dice {dice}");
        let n_pods = i64::try_from(life.world.list(&PODS).count()).expect("few");
        let n_deleted = i64::try_from(life.log.iter().filter(|it| it.starts_with('-')).count()).expect("few");
        assert!(
            status["failed"].as_i64().is_some_and(|it| it >= 3 && it <= n_pods + n_deleted),
            "dice {dice}: {status}"
        );
        assert_eq!(status["active"], Value::Null, "dice {dice}: {status}");
    }
}

#[test]
fn a_job_that_is_deleted_lets_its_pods_go() {
    let mut life = WorkloadRun::new(Jobs, JOBS, "job sum parallelism=3 completions=3");
    life.settle();
    life.world.remove(&JOBS, &Key::new("default", "sum"));
    for key in life.world.list(&PODS).map(|it| it.0.clone()).collect::<Vec<_>>() {
        life.world.delete(&PODS, &key);
    }
    life.settle();
    assert_eq!(life.world.list(&PODS).count(), 0);
}

// ---- rest ----

/// From every world of the fixtures: carrying the plans out leads to a plan that writes nothing.
#[test]
fn every_plan_leads_to_rest() {
    let controllers: [(&str, &dyn Controller); 8] = [
        ("cron_job", &CronJobs),
        ("daemon_set", &DaemonSets),
        ("deployment", &Deployments),
        ("job", &Jobs),
        ("replica_set", &ReplicaSets),
        ("replication_controller", &ReplicationControllers),
        ("stateful_set", &StatefulSets),
        ("ttl_after_finished", &TtlAfterFinished),
    ];
    for (folder, controller) in controllers {
        let dir = format!("{}/testdata/{folder}", env!("CARGO_MANIFEST_DIR"));
        fixture::each_world(&dir, |case, mut world| {
            for _ in 0..40 {
                let plan = controller.reconcile(&world.view(&controller.watches()), &world.asked(), world.now);
                if plan.effects.iter().flat_map(Effect::parts).all(|it| matches!(it, Effect::Event { .. })) {
                    return;
                }
                world.carry_out(&plan);
            }
            panic!("{case} does not come to rest");
        });
    }
}
