//! Services that lead nowhere: the label, the port or the address that is not there.

use std::collections::BTreeMap;

use corten_api::resources::{ENDPOINT_SLICES, PODS};
use serde_json::{Value, json};

use super::case::{Advice, Case};
use crate::why::{
    command::{kubectl, merge},
    fields::{items, text},
    findings::services::{SERVICE_NAME, is_selected, port_names, workloads, writer_of},
    nearest::nearest,
};

type Labels = BTreeMap<String, String>;

fn labels(pod: &Value) -> Labels {
    serde_json::from_value(pod["metadata"]["labels"].clone()).unwrap_or_default()
}

pub(super) async fn selector(case: &Case<'_>) -> Advice {
    let wanted: Labels = serde_json::from_value(case.object["spec"]["selector"].clone()).unwrap_or_default();
    let written = wanted.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
    let headline = format!("no pod of {} has the labels it selects: {written}", case.namespace);
    let pods = case.reader.list(&PODS, case.namespace).await;
    let templates = workloads(case.reader, case.namespace).await;
    let templates = templates.into_iter().map(|(kind, it)| {
        (format!("the pods of {kind}/{}", text(&it, "/metadata/name")), it["spec"]["template"].clone())
    });
    let pods: Vec<(String, Value)> =
        pods.iter().map(|it| (format!("pod/{}", text(it, "/metadata/name")), it.clone())).chain(templates).collect();
    let advice = Advice::default().headline(headline);
    if pods.is_empty() {
        let mut advice = advice.hint(format!("{} has no pods that can be seen", case.namespace));
        advice.next = kubectl(case.namespace, &["get", "deployments,statefulsets,daemonsets,pods", "--show-labels"]);
        return advice;
    }
    // The pod that has most of the labels is the one that was meant.
    let score = |it: &&Value| wanted.iter().filter(|(key, value)| labels(it).get(*key) == Some(value)).count();
    let candidates = pods.iter().filter_map(|(name, it)| Some((it, name, meant(&wanted, &labels(it))?)));
    let Some((pod, name, fix)) = candidates.max_by_key(|it| score(&it.0)) else {
        let mut advice = advice.hint("no pod's labels come near them");
        advice.next = kubectl(case.namespace, &["get", "pods", "--show-labels"]);
        return advice;
    };
    let changes = fix.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
    let mut advice = advice.hint(format!("nearest: {name}, with {changes}"));
    let mut patch: serde_json::Map<String, Value> =
        fix.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    // A label that was mistyped goes away with its right name in place.
    patch.extend(wanted.keys().filter(|it| !labels(pod).contains_key(*it)).map(|it| (it.clone(), Value::Null)));
    advice.next = merge(case.namespace, &case.at.subject, &json!({"spec": {"selector": patch}}));
    advice
}

/// What of the selector would have to be another way for the pod to be selected; none where too much would. `web-1` and `web-2`
/// are two names and no slip, unless another label says that the pod is meant.
fn meant(wanted: &Labels, has: &Labels) -> Option<Labels> {
    let shares_any = wanted.iter().any(|(key, value)| has.get(key) == Some(value));
    let mut fix = Labels::new();
    for (key, value) in wanted {
        match has.get(key) {
            Some(it) if it == value => {}
            Some(it) => {
                let is_slip = nearest(value, [it.as_str()]).is_some() && !is_version_of(value, it);
                let is_near = is_slip || shares_any && is_version_of(value, it);
                if !is_near {
                    return None;
                }
                fix.insert(key.clone(), it.clone());
            }
            None => {
                let near = nearest(key, has.keys().map(String::as_str)).filter(|it| has[*it] == *value)?;
                fix.insert(near.to_owned(), value.clone());
            }
        }
    }
    Some(fix).filter(|it| !it.is_empty())
}

/// Do two values differ by nothing but their numbers, as `v1` and `v2` do?
fn is_version_of(value: &str, other: &str) -> bool {
    without_digits(value) == without_digits(other)
}

fn without_digits(value: &str) -> String {
    value.chars().filter(|it| !it.is_ascii_digit()).collect()
}

pub(super) async fn port(case: &Case<'_>) -> Advice {
    let wanted: Labels = serde_json::from_value(case.object["spec"]["selector"].clone()).unwrap_or_default();
    let pods = case.reader.list(&PODS, case.namespace).await;
    let selected: Vec<&Value> = pods.iter().filter(|it| is_selected(it, &wanted)).collect();
    let names: Vec<&str> = selected.iter().flat_map(|it| port_names(it)).collect();
    let numbers = selected.iter().flat_map(|it| items(it, "/spec/containers")).flat_map(|it| items(it, "/ports"));
    let number = numbers.filter_map(|it| it["containerPort"].as_i64()).next();
    let ports = items(case.object, "/spec/ports");
    let at = ports.iter().position(|it| it["targetPort"].as_str().is_some_and(|it| !names.contains(&it))).unwrap_or(0);
    let name = ports.get(at).map(|it| text(it, "/targetPort")).unwrap_or_default();
    let meant = nearest(name, names.iter().copied())
        .or_else(|| names.first().copied())
        .map(|it| json!(it))
        .or(number.map(|it| json!(it)));
    let Some(meant) = meant else { return Advice::run(case.describe()).headline(case.wait.message.clone()) };
    let patch = json!([{"op": "replace", "path": format!("/spec/ports/{at}/targetPort"), "value": meant}]);
    Advice::run(kubectl(case.namespace, &["patch", &case.at.subject, "--type=json", "-p", &patch.to_string()]))
        .headline(case.wait.message.clone())
}

pub(super) async fn endpoints(case: &Case<'_>) -> Advice {
    if case.wait.reason == "LoadBalancerPending" {
        return Advice::run(kubectl(case.namespace, &["get", &case.at.subject, "-o", "wide"]))
            .headline("it has no address from outside yet")
            .hint("within the cluster, and at its node ports, it works without");
    }
    let look = Advice::run(kubectl(case.namespace, &["get", "endpointslices,endpoints"]));
    let look = look.headline(case.wait.message.clone());
    if case.object["spec"]["selector"].as_object().is_some_and(|it| !it.is_empty()) {
        return look;
    }
    let slices = case.reader.list(&ENDPOINT_SLICES, case.namespace).await;
    let is_own = |it: &&Value| it["metadata"]["labels"][SERVICE_NAME] == case.object["metadata"]["name"];
    if let Some(slice) = slices.iter().filter(is_own).find(|it| !items(it, "/endpoints").is_empty()) {
        let (written, who) = writer_of(slice);
        let last = if who.is_empty() { String::new() } else { format!(": {who} wrote it last") };
        let next = kubectl(case.namespace, &["get", &written, "-o", "yaml"]);
        return Advice { next, ..look }.who(format!("whoever writes {written}{last}"));
    }
    look.hint("give it a selector, or write an EndpointSlice with the label kubernetes.io/service-name")
}

pub(super) fn pool(case: &Case<'_>) -> Advice {
    Advice::run("kubectl get services --all-namespaces --field-selector spec.type=LoadBalancer".into())
        .headline(case.wait.message.clone())
        .hint("within the cluster, and at its node ports, it works without")
}

pub(super) fn ended(case: &Case<'_>) -> Advice {
    Advice::run(kubectl(case.namespace, &["get", "pods", "-o", "wide"]))
        .hint("a Service needs pods that go on: those of a Deployment, or of restartPolicy Always")
}

pub(super) fn closed(case: &Case<'_>) -> Advice {
    Advice::run(case.edit())
        .hint("name a port at which they listen, or let them listen there")
        .hint("what listens at 127.0.0.1 answers nobody outside its pod: 0.0.0.0 or :: does")
}

pub(super) fn scaled(case: &Case<'_>) -> Advice {
    let workload = case.wait.on.as_deref().unwrap_or_default();
    Advice::run(kubectl(case.namespace, &["scale", workload, "--replicas=1"])).headline(case.wait.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_pod_is_meant_where_a_slip_keeps_it_out() {
        for (wanted, has, fix) in [
            (vec![("a", "h")], vec![("a", "b")], None),
            (vec![("app", "wbe")], vec![("app", "web")], Some(vec![("app", "web")])),
            (vec![("app", "web")], vec![("app", "db")], None),
            (vec![("app", "web-1")], vec![("app", "web-2")], None),
            (
                vec![("app", "web"), ("version", "v1")],
                vec![("app", "web"), ("version", "v2")],
                Some(vec![("version", "v2")]),
            ),
            (vec![("app", "web"), ("tier", "x")], vec![("app", "web"), ("tier", "y")], None),
            (vec![("aps", "web")], vec![("app", "web")], Some(vec![("app", "web")])),
        ] {
            assert_eq!(meant(&of(&wanted), &of(&has)), fix.map(|it| of(&it)), "{wanted:?} {has:?}");
        }
    }
}
