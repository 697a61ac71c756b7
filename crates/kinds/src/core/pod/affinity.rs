//! Affinity to Pods that are like this one: the values of the labels it names become part of its selectors when it is made.

use serde_json::{Value, json};

const LISTS: [&str; 2] =
    ["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"];

pub(super) fn merge_label_keys(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    for kind in ["podAffinity", "podAntiAffinity"] {
        for list in LISTS {
            let terms = pod.pointer_mut(&format!("/spec/affinity/{kind}/{list}")).and_then(Value::as_array_mut);
            for term in terms.into_iter().flatten() {
                let term = if term["podAffinityTerm"].is_object() { &mut term["podAffinityTerm"] } else { term };
                merge(term, &labels);
            }
        }
    }
}

fn merge(term: &mut Value, labels: &Value) {
    if !term["labelSelector"].is_object() {
        return;
    }
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term[field].as_array().cloned().unwrap_or_default();
        for key in keys.iter().filter_map(Value::as_str) {
            let Some(value) = labels.get(key) else { continue };
            let wanted = json!({"key": key, "operator": operator, "values": [value]});
            match term["labelSelector"]["matchExpressions"].as_array_mut() {
                Some(expressions) => expressions.push(wanted),
                None => term["labelSelector"]["matchExpressions"] = json!([wanted]),
            }
        }
    }
}
