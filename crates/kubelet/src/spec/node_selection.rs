//! Which nodes a pod may run on: its `nodeSelector`, its required node affinity, and the taints it tolerates.

use std::collections::BTreeMap;

use corten_api::{
    core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration},
    scheduling::{self, node_field, requirement_holds, term_matches},
};

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

fn matches(term: &NodeSelectorTerm, node: &str, labels: &Labels) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    let expressions = term.match_expressions.iter().flatten().map(|it| holds(it, label(&it.key)));
    let fields = term.match_fields.iter().flatten().map(|it| holds(it, node_field(&it.key, node)));
    term_matches(expressions.chain(fields))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    requirement_holds(&requirement.operator, requirement.values.iter().flatten().map(String::as_str), value)
}

/// Does the pod tolerate the taints that would have it evicted? A kubelet heeds no others (`lifecycle.AdmitHandler`).
pub(crate) fn tolerates(pod: &Pod, taints: &[Taint]) -> bool {
    taints.iter().filter(|it| it.effect == "NoExecute").all(|taint| tolerates_taint(pod, taint))
}

pub(crate) fn tolerates_taint(pod: &Pod, taint: &Taint) -> bool {
    spec_of(pod).tolerations.iter().flatten().any(|it| covers(it, taint))
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    fn text(it: &Option<String>) -> &str {
        it.as_deref().unwrap_or_default()
    }
    let of = scheduling::Toleration {
        key: text(&toleration.key),
        operator: text(&toleration.operator),
        value: text(&toleration.value),
        effect: text(&toleration.effect),
    };
    of.tolerates(scheduling::Taint { key: &taint.key, value: text(&taint.value), effect: &taint.effect })
}
