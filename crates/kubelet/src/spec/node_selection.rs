//! Which nodes a pod may run on: its `nodeSelector`, its required node affinity, and the taints it tolerates.

use std::collections::BTreeMap;

use corten_api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration};

use crate::spec::pod::spec_of;

type Labels = BTreeMap<String, String>;

/// Does the pod select its nodes at all?
pub(crate) fn is_selective(pod: &Pod) -> bool {
    spec_of(pod).node_selector.as_ref().is_some_and(|it| !it.is_empty()) || required(pod).is_some()
}

pub(crate) fn allows(pod: &Pod, node: &str, labels: &Labels) -> bool {
    let mut selector = spec_of(pod).node_selector.iter().flatten();
    selector.all(|(key, value)| labels.get(key) == Some(value))
        && required(pod).is_none_or(|it| it.node_selector_terms.iter().any(|it| matches(it, node, labels)))
}

fn required(pod: &Pod) -> Option<&NodeSelector> {
    let affinity = spec_of(pod).affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()
}

/// As upstream: a term without any requirement matches no node.
fn matches(term: &NodeSelectorTerm, node: &str, labels: &Labels) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label = |key: &str| labels.get(key).map(String::as_str);
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|it| holds(it, label(&it.key)))
        && fields.iter().all(|it| holds(it, (it.key == "metadata.name").then_some(node)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_listed = || value.is_some_and(|value| values.iter().any(|it| it == value));
    let number = || value.and_then(|it| it.parse::<i64>().ok()).zip(values.first()?.parse::<i64>().ok());
    match requirement.operator.as_str() {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number().is_some_and(|(value, bound)| value > bound),
        "Lt" => number().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// As upstream, a kubelet heeds only the taints that would have the pod evicted.
pub(crate) fn tolerates(pod: &Pod, taints: &[Taint]) -> bool {
    taints.iter().filter(|it| it.effect == "NoExecute").all(|taint| tolerates_taint(pod, taint))
}

pub(crate) fn tolerates_taint(pod: &Pod, taint: &Taint) -> bool {
    spec_of(pod).tolerations.iter().flatten().any(|it| covers(it, taint))
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let is_open = |it: &Option<String>, own: &str| it.as_deref().is_none_or(|it| it.is_empty() || it == own);
    let value = taint.value.as_deref().unwrap_or_default();
    let bound = toleration.value.as_deref().unwrap_or_default();
    let numbers = || value.parse::<i64>().ok().zip(bound.parse::<i64>().ok());
    is_open(&toleration.effect, &taint.effect)
        && is_open(&toleration.key, &taint.key)
        && match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => value == bound,
            "Exists" => true,
            "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
            "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
            _ => false,
        }
}
