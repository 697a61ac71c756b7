//! `restartPolicyRules` with the action `RestartAllContainers`: one container's exit begins the whole pod anew, in its
//! sandbox and with its volumes: all containers stop and go, then the first init container starts.

use corten_api::{
    apimachinery::pkg::apis::meta::v1::Time as ApiTime,
    core::v1::{Container, Pod, PodCondition, PodStatus},
};
use corten_meta::Time;

use crate::{
    HostEffect,
    pod::{container_record::exit_of, containers, context::Context, machine::PodMachine},
    spec::pod::{all_containers, rule},
};

const CONDITION: &str = "AllContainersRestarting";
const ACTION: &str = "RestartAllContainers";

pub(crate) fn may_happen(pod: &Pod) -> bool {
    all_containers(pod).any(|it| it.restart_policy_rules.iter().flatten().any(|it| it.action == ACTION))
}

impl PodMachine {
    /// Some container's exit asks for it, or it was begun and is not over.
    pub(crate) fn must_restart_all(&self) -> bool {
        if !may_happen(&self.pod) {
            return false;
        }
        let asks = |container: &Container| {
            let exit = self.container_records.get(&container.name).and_then(|it| exit_of(it.latest()?));
            exit.and_then(|it| rule(container, it)).is_some_and(|it| it.action == ACTION)
        };
        let conditions = self.pod.status.as_ref().and_then(|it| it.conditions.as_ref());
        let told = || conditions.into_iter().flatten().any(|it| it.type_ == CONDITION && it.status == "True");
        let has_any = || {
            all_containers(&self.pod)
                .any(|it| self.container_records.get(&it.name).is_some_and(|it| it.latest().is_some()))
        };
        // What an earlier run of the kubelet has begun only the status tells.
        all_containers(&self.pod).any(asks) || (self.restarting_all.unwrap_or_else(told) && has_any())
    }

    /// True while it goes on: nothing may start before all is gone.
    pub(crate) fn restart_all(&mut self, cx: &mut Context<'_>) -> bool {
        let goes_on = self.must_restart_all();
        self.restarting_all = Some(goes_on);
        if !goes_on {
            return false;
        }
        let pod = self.pod.clone();
        let mut is_alive = false;
        for container in all_containers(&pod) {
            is_alive |= self.with_container_record(container, cx, |record, context, cx| {
                if record.stopping.is_some() {
                    containers::keep_stopping(record, context, None, cx);
                } else if record.starting.is_none() && record.is_alive() {
                    containers::stop(record, context, Some("is restarted with all containers of its pod"), None, cx);
                }
                record.starting.is_some() || record.is_alive()
            });
        }
        if is_alive {
            return true;
        }
        for container in all_containers(&pod) {
            let who = self.who.clone();
            self.with_container_record(container, cx, |record, _, cx| {
                if cx.is_due(record.retry_at) {
                    let dead: Vec<_> = record.attempts.iter().map(|it| it.it.clone()).collect();
                    for it in dead {
                        if record.removing.insert(it.id.clone()) {
                            let (pod, container) = (who.clone(), it.name);
                            cx.host(HostEffect::RemoveContainer { pod, container, id: it.id, attempt: it.attempt });
                        }
                    }
                }
            });
        }
        true
    }

    /// The condition, for pods to which that may happen.
    pub(crate) fn restart_condition(&self, status: &mut PodStatus, now: Time) {
        if !may_happen(&self.pod) {
            return;
        }
        let reason = match status.phase.as_deref() {
            Some("Succeeded") => Some("PodCompleted"),
            Some("Failed") => Some("PodFailed"),
            _ if self.restarting_all == Some(true) => Some("RestartAllContainersStarted"),
            _ => None,
        };
        let is_going_on = reason == Some("RestartAllContainersStarted");
        let status_text = if is_going_on { "True" } else { "False" };
        let conditions = status.conditions.get_or_insert_default();
        let old: Vec<PodCondition> = conditions.extract_if(.., |it| it.type_ == CONDITION).collect();
        let since = old.iter().find(|it| it.status == status_text).and_then(|it| it.last_transition_time.clone());
        conditions.push(PodCondition {
            type_: CONDITION.into(),
            status: status_text.into(),
            reason: reason.map(str::to_owned),
            message: is_going_on.then(|| "container exited with restart policy rule".into()),
            last_transition_time: Some(since.unwrap_or(ApiTime(now.0))),
            ..PodCondition::default()
        });
    }
}
