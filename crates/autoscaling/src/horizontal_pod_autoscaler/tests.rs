//! Many autoscalers, and what is remembered over a life of looks.

use std::{sync::Arc, time::Duration};

use corten_api::resources::{HORIZONTAL_POD_AUTOSCALERS, PODS};
use corten_meta::{Key, Time};
use corten_reconcile::{ApiPath, Controller, Effect, Plan, View};
use serde_json::{Value, json};

use super::HorizontalPodAutoscalers;

/// What a whole cluster of them is: its view, and what other servers say.
struct Scene {
    view: View,
    /// In each namespace.
    n_scalers: usize,
    replicas: i64,
    /// What every Pod uses, in thousandths of a processor.
    used: i64,
    /// A Pod of which nothing is said that could be read.
    unread: &'static str,
    now: Time,
    /// What was asked for.
    asked: Vec<String>,
}

impl Scene {
    fn new(namespaces: usize, scalers_each: usize, pods_each: usize, spec: &Value) -> Self {
        let mut view = View::default();
        let watches = HorizontalPodAutoscalers.watches();
        watches.iter().for_each(|it| view.declare_with(&it.resource, it.table()));
        let mut insert = |resource, object: &Value| {
            let watch = watches.iter().find(|it| it.resource == resource).expect("it is watched");
            view.insert(&resource, watch.decode(object.to_string().as_bytes()).expect("it has the shape"));
        };
        for namespace in (0..namespaces).map(|it| format!("n{it}")) {
            for name in (0..scalers_each).map(|it| format!("s{it}")) {
                let metadata = json!({ "namespace": namespace, "name": name, "uid": name });
                let mut spec = spec.clone();
                spec["scaleTargetRef"] = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name });
                insert(HORIZONTAL_POD_AUTOSCALERS, &json!({ "metadata": metadata, "spec": spec }));
                for pod in 0..pods_each {
                    let metadata =
                        json!({ "namespace": namespace, "name": format!("{name}-{pod}"), "labels": { "app": name } });
                    let spec =
                        json!({ "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }] });
                    let ready =
                        json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T10:00:00Z" });
                    let status =
                        json!({ "phase": "Running", "startTime": "2026-11-20T10:00:00Z", "conditions": [ready] });
                    insert(PODS, &json!({ "metadata": metadata, "spec": spec, "status": status }));
                }
            }
        }
        let now = "2026-11-20T12:00:00Z".parse().expect("it is a time");
        let replicas = i64::try_from(pods_each).expect("they are few");
        Self { view, n_scalers: scalers_each, replicas, used: 100, unread: "", now, asked: Vec::new() }
    }

    /// What a path brings.
    fn body(&mut self, path: &ApiPath, name: &str) -> Arc<[u8]> {
        self.asked.push(path.to_string());
        if path.path.ends_with("/scale") {
            let status = json!({ "replicas": self.replicas, "selector": format!("app={name}") });
            let scale = json!({ "metadata": { "uid": name }, "spec": { "replicas": self.replicas }, "status": status });
            return scale.to_string().into_bytes().into();
        }
        let used = |pod: String| {
            let used = if pod == self.unread { "NaN".into() } else { format!("{}m", self.used) };
            let usage = json!({ "cpu": used });
            let containers = json!([{ "name": "c", "usage": usage }]);
            json!({ "metadata": { "name": pod }, "timestamp": "2026-11-20T11:59:50Z", "window": "15s", "containers": containers })
        };
        let pods_of = |name: &str| (0..self.replicas).map(|it| format!("{name}-{it}")).collect::<Vec<_>>();
        let pods: Vec<String> = match path.query.is_empty() {
            true => (0..self.n_scalers).flat_map(|it| pods_of(&format!("s{it}"))).collect(),
            false => pods_of(name),
        };
        json!({ "items": pods.into_iter().map(used).collect::<Vec<_>>() }).to_string().into_bytes().into()
    }

    /// One look at one of them, with all that it fetches; what is decided is remembered as the runner does it.
    fn look(&mut self, key: &Key) -> Plan {
        loop {
            let plan = HorizontalPodAutoscalers.reconcile(&self.view, key, self.now);
            let has_fetched = plan.effects.iter().any(Effect::is_fetch);
            for effect in &plan.effects {
                match effect {
                    Effect::Fetch(path) => {
                        let body = self.body(path, &key.name);
                        self.view.record_fetched(key, path.clone(), Ok(body));
                    }
                    Effect::FetchForAll(path) => {
                        let body = self.body(path, &key.name);
                        self.view.record_fetched_for_all(key, path.clone(), Ok(body), self.now);
                    }
                    Effect::Remember { note } => self.view.record_note(key, note.clone()),
                    _ => {}
                }
            }
            if !has_fetched {
                self.view.forget_fetched(key);
                return plan;
            }
        }
    }
}

fn scaled_to(plan: &Plan) -> Option<i64> {
    plan.effects.iter().find_map(|it| match it {
        Effect::Patch { subresource: Some("scale"), patch, .. } => patch["spec"]["replicas"].as_i64(),
        _ => None,
    })
}

fn cpu(percent: i64) -> Value {
    json!([{ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": percent } } }])
}

#[test]
fn many_are_looked_at_each_for_itself() {
    let mut scene = Scene::new(10, 50, 2, &json!({ "maxReplicas": 10, "metrics": cpu(50) }));
    let keys: Vec<Key> =
        (0..10).flat_map(|of| (0..50).map(move |it| Key::new(format!("n{of}"), format!("s{it}")))).collect();
    for key in &keys {
        assert_eq!(scaled_to(&scene.look(key)), Some(4), "{key}");
    }
}

/// Beside the scale of each target nothing is asked for more than once while a second lasts.
#[test]
fn one_look_at_all_of_a_namespace_asks_once_what_its_pods_use() {
    let mut scene = Scene::new(1, 1000, 3, &json!({ "maxReplicas": 10, "metrics": cpu(50) }));
    let keys: Vec<Key> = (0..1000).map(|it| Key::new("n0", format!("s{it}"))).collect();
    for looks in 1..=2 {
        for key in &keys {
            assert_eq!(scaled_to(&scene.look(key)), Some(6), "{key}");
        }
        let n_scales = scene.asked.iter().filter(|it| it.ends_with("/scale")).count();
        assert_eq!((n_scales, scene.asked.len()), (1000 * looks, 1001 * looks), "a scale for each, and one list");
        scene.now = scene.now.after(Duration::from_secs(15));
    }
}

#[test]
fn a_pod_of_which_nothing_can_be_read_is_nothing_to_others() {
    let mut scene = Scene::new(1, 20, 2, &json!({ "maxReplicas": 10, "metrics": cpu(50) }));
    scene.unread = "s7-1";
    for n in 0..20 {
        let plan = scene.look(&Key::new("n0", format!("s{n}")));
        let wait = plan.waits.iter().find(|it| it.reason == "FailedGetResourceMetric");
        assert_eq!((scaled_to(&plan), wait.is_some()), if n == 7 { (None, true) } else { (Some(4), false) }, "{n}");
    }
    assert_eq!(scene.asked.iter().filter(|it| !it.ends_with("/scale")).count(), 1);
}

/// A list for all would tell of more Pods than a list for each.
#[test]
fn who_has_few_of_many_pods_asks_for_its_own() {
    let mut scene = Scene::new(1, 2, 40, &json!({ "maxReplicas": 100, "metrics": cpu(50) }));
    assert_eq!(scaled_to(&scene.look(&Key::new("n0", "s0"))), Some(80));
    let lists: Vec<&String> = scene.asked.iter().filter(|it| !it.ends_with("/scale")).collect();
    assert!(lists.len() == 1 && lists[0].ends_with("labelSelector=app=s0"), "{lists:?}");
}

/// Load comes and goes for an hour: the count follows it up at once, and down no sooner than five minutes after the last peak.
#[test]
fn a_count_comes_down_five_minutes_after_the_last_peak() {
    let mut scene = Scene::new(1, 1, 3, &json!({ "maxReplicas": 10, "metrics": cpu(50) }));
    let key = Key::new("n0", "s0");
    let mut last_peak = scene.now;
    for n in 0..240 {
        let is_peak = n % 50 < 10;
        scene.used = if is_peak { 50 } else { 10 };
        if is_peak {
            last_peak = scene.now;
        }
        if let Some(to) = scaled_to(&scene.look(&key)) {
            assert_eq!((to, is_peak), (1, false));
            assert!(scene.now.since(last_peak) > Duration::from_secs(300), "{:?}", scene.now.since(last_peak));
        }
        let note = scene.view.note(&key).expect("it is remembered");
        let n_kept = note["recommendations"].as_array().map_or(0, Vec::len);
        assert!(n_kept <= 22, "what is older than the window is forgotten: {n_kept}");
        scene.now = scene.now.after(Duration::from_secs(15));
    }
}
