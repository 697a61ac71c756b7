//! `autoscaling/v1`: it knows one metric, the processor. What else an object has travels in annotations, so that reading
//! and writing it in this version loses nothing.

use corten_validation::fill::{Object, made};
use serde_json::{Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const PERCENT: &str = "targetCPUUtilizationPercentage";
const CURRENT_PERCENT: &str = "currentCPUUtilizationPercentage";

pub(super) fn from_stored(scaler: &mut Value) {
    let Some(scaler) = scaler.as_object_mut() else { return };
    let mut notes = Vec::new();
    if let Some(spec) = scaler.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics = taken_list(spec, "metrics");
        let own = metrics.iter().position(|it| is_cpu(it) && !it["resource"]["target"]["averageUtilization"].is_null());
        if let Some(own) = own {
            let metric = metrics.remove(own);
            spec.insert(PERCENT.into(), metric["resource"]["target"]["averageUtilization"].clone());
        }
        if !metrics.is_empty() {
            notes.push((METRICS, Value::Array(metrics.iter().map(|it| old_metric(it, "target", &SPEC)).collect())));
        }
        if let Some(behavior) = spec.shift_remove("behavior").filter(|it| !it.is_null()) {
            notes.push((BEHAVIOR, behavior));
        }
    }
    if let Some(status) = scaler.get_mut("status").and_then(Value::as_object_mut) {
        let mut metrics = taken_list(status, "currentMetrics");
        let own =
            metrics.iter().position(|it| is_cpu(it) && !it["resource"]["current"]["averageUtilization"].is_null());
        if let Some(own) = own {
            // As in `Convert_autoscaling_HorizontalPodAutoscaler_To_v1_HorizontalPodAutoscaler`: the note keeps this one,
            // too, for it also has an absolute value.
            let percent = metrics[own]["resource"]["current"]["averageUtilization"].clone();
            status.insert(CURRENT_PERCENT.into(), percent);
        }
        if !metrics.is_empty() {
            metrics = metrics.iter().map(|it| old_metric(it, "current", &STATUS)).collect();
            notes.push((CURRENT_METRICS, Value::Array(metrics)));
        }
        let conditions = taken_list(status, "conditions");
        if !conditions.is_empty() {
            notes.push((CONDITIONS, Value::Array(conditions)));
        }
    }
    if notes.is_empty() {
        return;
    }
    let metadata = made(scaler, "metadata");
    if let Some(annotations) = metadata.and_then(|it| made(it, "annotations")) {
        annotations.extend(notes.into_iter().map(|(name, note)| (name.to_owned(), note.to_string().into())));
    }
}

pub(super) fn to_stored(scaler: &mut Value) {
    let Some(scaler) = scaler.as_object_mut() else { return };
    let mut note = taken_notes(scaler);
    let mut list = |name: &str| match note(name) {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let (metrics, current, conditions) = (list(METRICS), list(CURRENT_METRICS), list(CONDITIONS));
    let behavior = note(BEHAVIOR);
    if let Some(spec) = scaler.get_mut("spec").and_then(Value::as_object_mut) {
        let percent = spec.shift_remove(PERCENT).filter(|it| !it.is_null());
        let cpu = percent.map(|it| {
            let target = json!({"type": "Utilization", "averageUtilization": it});
            json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
        });
        let all: Vec<Value> = cpu.into_iter().chain(metrics.iter().map(|it| new_metric(it, "target", &SPEC))).collect();
        if !all.is_empty() {
            spec.insert("metrics".into(), all.into());
        }
        if behavior.is_object() {
            spec.insert("behavior".into(), behavior);
        }
    }
    let Some(status) = scaler.get_mut("status").and_then(Value::as_object_mut) else { return };
    let percent = status.shift_remove(CURRENT_PERCENT).filter(|it| !it.is_null());
    let mut all: Vec<Value> = current.iter().map(|it| new_metric(it, "current", &STATUS)).collect();
    if let Some(percent) = percent
        && !all.iter().any(is_cpu)
    {
        let current = json!({"averageUtilization": percent});
        all.push(json!({"type": "Resource", "resource": {"name": "cpu", "current": current}}));
    }
    if !all.is_empty() {
        status.insert("currentMetrics".into(), all.into());
    }
    if !conditions.is_empty() {
        status.insert("conditions".into(), conditions.into());
    }
}

fn taken_list(of: &mut Object, field: &str) -> Vec<Value> {
    match of.shift_remove(field) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Takes the annotations of this version away and reads them. One that cannot be read says nothing.
fn taken_notes(scaler: &mut Object) -> impl FnMut(&str) -> Value + use<> {
    let mut notes = Map::new();
    let metadata = scaler.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        for name in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
            let note = annotations.shift_remove(name);
            if let Some(note) = note.as_ref().and_then(Value::as_str).and_then(|it| serde_json::from_str(it).ok()) {
                notes.insert(name.into(), note);
            }
        }
        if annotations.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
    move |name| notes.shift_remove(name).unwrap_or_default()
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

/// How the fields of a measured value are named in this version.
struct Names {
    value: &'static str,
    average: &'static str,
    utilization: &'static str,
}

const SPEC: Names =
    Names { value: "targetValue", average: "targetAverageValue", utilization: "targetAverageUtilization" };
const STATUS: Names =
    Names { value: "currentValue", average: "currentAverageValue", utilization: "currentAverageUtilization" };

/// The field of a metric that this version names otherwise, or that stands elsewhere, as `(old, new)` pointers.
fn renames(source: &str, whole: &str, names: &Names) -> Vec<(String, String)> {
    let value = |name: &str| format!("/{whole}/{name}");
    let pair = |old: &str, new: String| (format!("/{old}"), new);
    let metric = |name: &str| format!("/metric/{name}");
    match source {
        "object" => vec![
            pair("target", "/describedObject".into()),
            pair("metricName", metric("name")),
            pair("selector", metric("selector")),
            pair(names.value, value("value")),
            pair("averageValue", value("averageValue")),
        ],
        "pods" => vec![
            pair("metricName", metric("name")),
            pair("selector", metric("selector")),
            pair(names.average, value("averageValue")),
        ],
        "external" => vec![
            pair("metricName", metric("name")),
            pair("metricSelector", metric("selector")),
            pair(names.value, value("value")),
            pair(names.average, value("averageValue")),
        ],
        _ => vec![
            pair("name", "/name".into()),
            pair("container", "/container".into()),
            pair(names.utilization, value("averageUtilization")),
            pair(names.average, value("averageValue")),
        ],
    }
}

const SOURCES: [&str; 5] = ["object", "pods", "external", "resource", "containerResource"];

fn old_metric(metric: &Value, whole: &str, names: &Names) -> Value {
    let mut old = json!({"type": metric["type"]});
    for source in SOURCES.into_iter().filter(|it| metric[*it].is_object()) {
        let mut fields = Map::new();
        for (old, new) in renames(source, whole, names) {
            if let Some(value) = metric[source].pointer(&new).filter(|it| !it.is_null()) {
                fields.insert(old[1..].to_owned(), value.clone());
            }
        }
        old[source] = fields.into();
    }
    old
}

fn new_metric(metric: &Value, whole: &str, names: &Names) -> Value {
    let mut new = json!({"type": metric["type"]});
    for source in SOURCES.into_iter().filter(|it| metric[*it].is_object()) {
        let mut fields = json!({});
        for (old, pointer) in renames(source, whole, names) {
            if let Some(value) = metric[source].pointer(&old).filter(|it| !it.is_null()) {
                put(&mut fields, &pointer, value.clone());
            }
        }
        if whole == "target" {
            let target = &fields[whole];
            let kind = match () {
                () if !target["averageUtilization"].is_null() => "Utilization",
                () if !target["averageValue"].is_null() => "AverageValue",
                () => "Value",
            };
            put(&mut fields, "/target/type", kind.into());
        }
        new[source] = fields;
    }
    new
}

fn put(into: &mut Value, pointer: &str, value: Value) {
    let mut at = into;
    for name in pointer.split('/').skip(1) {
        at = &mut at[name];
    }
    *at = value;
}
