//! Holds a controller to what it declared to write. What was not declared is not done.

use corten_reconcile::{DEFINED, Effect, Verb, Write};
use serde_json::Value;

/// Why an effect may not be carried out, if so. Events, questions, notes and counts need no declaration.
pub(crate) fn refusal(effect: &Effect, writes: &[Write]) -> Option<String> {
    let (verb, resource) = match effect {
        Effect::Create { resource, .. } => (Verb::Create, resource),
        Effect::Patch { resource, .. } | Effect::StrategicPatch { resource, .. } => (Verb::Patch, resource),
        Effect::Delete { resource, .. } => (Verb::Delete, resource),
        Effect::Sequence(parts) => return parts.iter().find_map(|it| refusal(it, writes)),
        Effect::Event { .. }
        | Effect::Ask { .. }
        | Effect::AskAccess { .. }
        | Effect::Fetch(_)
        | Effect::FetchForAll(_)
        | Effect::Remember { .. }
        | Effect::Count(_) => return None,
    };
    let is_it = |it: &&Write| it.verb == verb && it.resource == *resource;
    let is_declared = writes.iter().any(|it| is_it(&it));
    let is_defined = |it: &&Write| !is_declared && it.verb == verb && it.resource == DEFINED;
    let mut declared = writes.iter().filter(|it| is_it(it) || is_defined(it)).peekable();
    if declared.peek().is_none() {
        return Some(format!("undeclared write: {verb:?} of {resource}"));
    }
    let (Effect::Patch { patch, .. } | Effect::StrategicPatch { patch, .. }) = effect else { return None };
    let fields: Vec<&str> = declared.flat_map(|it| it.fields).copied().collect();
    let path = stray(patch, "", &fields)?;
    Some(format!("undeclared write: Patch of {resource} at {path}"))
}

/// The first path of a merge patch that no declared field covers.
fn stray(patch: &Value, path: &str, fields: &[&str]) -> Option<String> {
    let is_covered = fields.iter().any(|it| *it == "*" || is_beneath(path, it));
    // Preconditions: they change nothing.
    if is_covered || matches!(path, "metadata.uid" | "metadata.resourceVersion" | "apiVersion" | "kind") {
        return None;
    }
    let leads_to_a_field = path.is_empty() || fields.iter().any(|it| is_beneath(it, path)) || path == "metadata";
    match patch {
        Value::Object(members) if leads_to_a_field => members.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            stray(value, &path, fields)
        }),
        _ => Some(path.to_owned()),
    }
}

/// `spec.replicas` is beneath `spec` and beneath itself, `spec.replicas` is not beneath `spec.rep`.
fn is_beneath(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|it| it.is_empty() || it.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use corten_api::resources::{DEPLOYMENTS, PODS, REPLICA_SETS};
    use corten_meta::Key;
    use serde_json::json;

    use super::*;

    const WRITES: &[Write] = &[
        Write { verb: Verb::Create, resource: REPLICA_SETS, fields: &[] },
        Write { verb: Verb::Patch, resource: REPLICA_SETS, fields: &["spec.replicas", "metadata.annotations"] },
        Write { verb: Verb::Patch, resource: DEPLOYMENTS, fields: &["status"] },
        Write { verb: Verb::Patch, resource: PODS, fields: &["*"] },
    ];

    #[test]
    fn only_what_was_declared_is_done() {
        let patch =
            |resource, patch| Effect::Patch { resource, key: Key::new("default", "web"), subresource: None, patch };
        for (effect, expected) in [
            (Effect::Create { resource: REPLICA_SETS, object: json!({}) }, None),
            (Effect::Create { resource: PODS, object: json!({}) }, Some("undeclared write: Create of pods")),
            (Effect::Ask { resource: PODS, key: Key::cluster("x") }, None),
            (patch(REPLICA_SETS, json!({"spec": {"replicas": 1}})), None),
            (
                patch(
                    REPLICA_SETS,
                    json!({"metadata": {"uid": "u", "resourceVersion": "1", "annotations": {"a": "b"}}}),
                ),
                None,
            ),
            (
                patch(REPLICA_SETS, json!({"spec": {"replicas": 1, "paused": true}})),
                Some("undeclared write: Patch of replicasets.apps at spec.paused"),
            ),
            (
                patch(REPLICA_SETS, json!({"metadata": {"labels": {"a": "b"}}})),
                Some("undeclared write: Patch of replicasets.apps at metadata.labels"),
            ),
            (patch(REPLICA_SETS, json!({"spec": null})), Some("undeclared write: Patch of replicasets.apps at spec")),
            (patch(DEPLOYMENTS, json!({"status": {"replicas": 1}})), None),
            (
                patch(DEPLOYMENTS, json!({"statusLine": 1})),
                Some("undeclared write: Patch of deployments.apps at statusLine"),
            ),
            (patch(PODS, json!({"metadata": {"finalizers": []}})), None),
        ] {
            assert_eq!(refusal(&effect, WRITES).as_deref(), expected, "{effect}");
        }
    }
}
