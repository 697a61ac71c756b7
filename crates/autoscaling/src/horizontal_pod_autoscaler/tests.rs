//! Many autoscalers, and what is remembered over a life of looks.

use std::time::Duration;

use corten_api::resources::{HORIZONTAL_POD_AUTOSCALERS, PODS};
use corten_meta::{Key, Time};
use corten_reconcile::{Controller, Effect, Plan, View};
use serde_json::{Value, json};

use super::HorizontalPodAutoscalers;

/// What a whole cluster of them is: its view, and what other servers say.
struct Scene {
    view: View,
    replicas: i64,
    /// What every Pod uses, in thousandths of a processor.
    used: i64,
    now: Time,
}

impl Scene {
    fn new(namespaces: usize, scalers_each: usize, pods_each: usize, spec: &Value) -> Self {
        let mut view = View::default();
        let watches = HorizontalPodAutoscalers.watches();
        watches.iter().for_each(|it| view.declare(&it.resource));
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
        Self { view, replicas: i64::try_from(pods_each).expect("they are few"), used: 100, now }
    }

    /// What a path brings.
    fn body(&self, path: &str, name: &str) -> Value {
        if path.ends_with("/scale") {
            let status = json!({ "replicas": self.replicas, "selector": format!("app={name}") });
            return json!({ "metadata": { "uid": name }, "spec": { "replicas": self.replicas }, "status": status });
        }
        let used = |it| {
            let usage = json!({ "cpu": format!("{}m", self.used) });
            let metadata = json!({ "name": format!("{name}-{it}") });
            json!({ "metadata": metadata, "timestamp": "2026-11-20T11:59:50Z", "window": "15s", "containers": [{ "name": "c", "usage": usage }] })
        };
        json!({ "items": (0..self.replicas).map(used).collect::<Vec<_>>() })
    }

    /// One look at one of them, with all that it fetches; what is decided is remembered as the runner does it.
    fn look(&mut self, key: &Key) -> Plan {
        loop {
            let plan = HorizontalPodAutoscalers.reconcile(&self.view, key, self.now);
            let mut has_fetched = false;
            for effect in &plan.effects {
                match effect {
                    Effect::Fetch(path) => {
                        let body = self.body(&path.path, &key.name).to_string();
                        self.view.record_fetched(key, path.clone(), Ok(body.as_bytes().into()));
                        has_fetched = true;
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
