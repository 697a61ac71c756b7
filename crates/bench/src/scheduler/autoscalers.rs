//! Many HorizontalPodAutoscalers that are looked at once: each with its scale, its metrics and its Pods.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, ensure};
use corten_autoscaling::HorizontalPodAutoscalers;
use corten_meta::{Key, Resource, Time};
use corten_reconcile::{Controller, Effect, View};
use serde_json::{Value, json};

use super::super::report::{Row, Unit};

const NAMESPACES: usize = 100;
const PODS_EACH: usize = 3;
const NOW: &str = "2026-11-20T12:00:00Z";
const STARTED: &str = "2026-11-20T10:00:00Z";
const MEASURED: &str = "2026-11-20T11:59:50Z";

pub(super) fn measure(count: usize) -> Result<Row> {
    let now: Time = NOW.parse().ok().context("reading the time")?;
    let mut view = View::default();
    let watches = HorizontalPodAutoscalers.watches();
    watches.iter().for_each(|it| view.declare_with(&it.resource, it.table()));
    let mut insert = |kind: &str, object: &Value| -> Result<()> {
        let watch = watches.iter().find(|it| it.resource.kind == kind).context("it is watched")?;
        let resource: Resource = watch.resource.clone();
        let object = watch.decode(object.to_string().as_bytes()).map_err(|it| anyhow::anyhow!("{it}"))?;
        view.insert(&resource, object);
        Ok(())
    };
    let keys: Vec<Key> = (0..count).map(|it| Key::new(format!("n{}", it % NAMESPACES), format!("s{it}"))).collect();
    for key in &keys {
        insert("HorizontalPodAutoscaler", &autoscaler(key))?;
        (0..PODS_EACH).try_for_each(|it| insert("Pod", &pod(key, it)))?;
    }

    let mut of_namespaces: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
    keys.iter().for_each(|it| of_namespaces.entry(&it.namespace).or_default().push(it));

    let begin = Instant::now();
    for key in &keys {
        let of_namespace = &of_namespaces[&*key.namespace];
        ensure!(
            look(&mut view, of_namespace, key, now)? == Some(2 * PODS_EACH as u64),
            "{key} is not scaled to twice its Pods"
        );
    }
    let took = begin.elapsed().as_secs_f64();
    let row = Row::new(format!("{count} HorizontalPodAutoscalers are looked at"), took, Unit::Seconds);
    Ok(row.note(format!(
        "{PODS_EACH} Pods each; {:.0} µs each, answers read and changes decided",
        took * 1e6 / count as f64
    )))
}

/// One look at an autoscaler, which is one of those of its namespace, with all that it fetches, and what it scales to.
fn look(view: &mut View, of_namespace: &[&Key], key: &Key, now: Time) -> Result<Option<u64>> {
    loop {
        let plan = HorizontalPodAutoscalers.reconcile(view, key, now);
        let has_fetched = plan.effects.iter().any(Effect::is_fetch);
        for effect in &plan.effects {
            match effect {
                Effect::Fetch(path) => {
                    let body = if path.path.ends_with("/scale") { scale(key) } else { metrics(&[key]) };
                    view.record_fetched(key, path.clone(), Ok(body.to_string().into_bytes().into()));
                }
                Effect::FetchForAll(path) => {
                    let body = metrics(of_namespace).to_string().into_bytes().into();
                    view.record_fetched_for_all(key, path.clone(), Ok(body), now);
                }
                Effect::Remember { note } => view.record_note(key, note.clone()),
                _ => {}
            }
        }
        if has_fetched {
            continue;
        }
        view.forget_fetched(key);
        return Ok(plan.effects.iter().find_map(|it| match it {
            Effect::Patch { subresource: Some("scale"), patch, .. } => patch["spec"]["replicas"].as_u64(),
            _ => None,
        }));
    }
}

fn autoscaler(key: &Key) -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": 50 });
    json!({
        "metadata": { "namespace": key.namespace, "name": key.name, "uid": key.name },
        "spec": {
            "maxReplicas": 100,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": key.name },
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": target } }],
        },
    })
}

fn pod(key: &Key, idx: usize) -> Value {
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": "100m" } } });
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": STARTED });
    json!({
        "metadata": { "namespace": key.namespace, "name": format!("{}-{idx}", key.name), "labels": { "app": key.name } },
        "spec": { "containers": [container] },
        "status": { "phase": "Running", "startTime": STARTED, "conditions": [ready] },
    })
}

fn scale(key: &Key) -> Value {
    let status = json!({ "replicas": PODS_EACH, "selector": format!("app={}", key.name) });
    json!({ "metadata": { "uid": key.name }, "spec": { "replicas": PODS_EACH }, "status": status })
}

/// Every Pod uses all it asks for.
fn metrics(keys: &[&Key]) -> Value {
    let of_pod = |key: &Key, idx: usize| {
        json!({
            "metadata": { "name": format!("{}-{idx}", key.name) }, "timestamp": MEASURED, "window": "15s",
            "containers": [{ "name": "c", "usage": { "cpu": "100m" } }],
        })
    };
    let of_target = |key: &&Key| (0..PODS_EACH).map(|it| of_pod(key, it)).collect::<Vec<_>>();
    json!({ "items": keys.iter().flat_map(of_target).collect::<Vec<_>>() })
}
