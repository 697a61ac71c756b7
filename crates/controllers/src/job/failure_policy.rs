//! What a failed pod means for its job, by the first rule of the policy that it matches.

use crate::projections::{ContainerStatus, Job, OnExitCodes, Pod};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The whole job fails, for this reason.
    FailJob(String),
    /// Its index fails, however often it might still be tried.
    FailIndex,
    /// It counts as a failure.
    Count,
    /// It is as if it had never been.
    Ignore,
}

impl Verdict {
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignore
    }
}

pub(super) fn verdict(job: &Job, pod: &Pod) -> Verdict {
    let rules = job.spec.pod_failure_policy.iter().flat_map(|it| &it.rules).enumerate();
    for (at, rule) in rules {
        let (namespace, name, action) = (&pod.metadata.namespace, &pod.metadata.name, &rule.action);
        let matched = if let Some(codes) = &rule.on_exit_codes {
            matching_container(pod, codes).map(|(container, code)| {
                format!("Container {container} for pod {namespace}/{name} failed with exit code {code} matching {action} rule at index {at}")
            })
        } else {
            let is_met = |r#type: &str, status: &str| {
                pod.status.conditions.iter().any(|it| it.r#type == r#type && it.status == status)
            };
            let condition = rule.on_pod_conditions.iter().find(|it| is_met(&it.r#type, &it.status));
            condition.map(|it| {
                format!("Pod {namespace}/{name} has condition {} matching {action} rule at index {at}", it.r#type)
            })
        };
        if let Some(message) = matched {
            return match &**action {
                "FailJob" => Verdict::FailJob(message),
                "FailIndex" => Verdict::FailIndex,
                "Ignore" => Verdict::Ignore,
                _ => Verdict::Count,
            };
        }
    }
    Verdict::Count
}

fn matching_container<'a>(pod: &'a Pod, codes: &OnExitCodes) -> Option<(&'a str, i64)> {
    let all = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    let is_meant = |it: &&ContainerStatus| codes.container_name.as_deref().is_none_or(|name| *it.name == *name);
    let ended = all.filter(is_meant).filter_map(|it| Some((&*it.name, it.state.terminated.as_ref()?.exit_code)));
    let mut failed = ended.filter(|it| it.1 != 0);
    failed.find(|(_, code)| codes.values.contains(code) == (codes.operator == "In"))
}
