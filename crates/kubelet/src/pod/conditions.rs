//! A pod's conditions, with upstream's reasons and sentences.

use corten_api::{
    apimachinery::pkg::apis::meta::v1::Time as ApiTime,
    core::v1::{ContainerStatus, Pod, PodCondition, PodStatus},
};
use corten_meta::Time;

use crate::spec::pod::{is_sidecar, spec_of};

/// What one condition says.
struct Verdict {
    status: bool,
    reason: &'static str,
    message: String,
}

impl Verdict {
    fn yes() -> Self {
        Self { status: true, reason: "", message: String::new() }
    }

    fn yes_because(reason: &'static str) -> Self {
        Self { reason, ..Self::yes() }
    }

    fn no(reason: &'static str, message: String) -> Self {
        Self { status: false, reason, message }
    }
}

/// Sets the kubelet's five conditions; others stay as they are, behind them.
pub(crate) fn update(status: &mut PodStatus, pod: &Pod, has_network: bool, now: Time) {
    let phase = status.phase.clone().unwrap_or_default();
    let containers_ready = containers_ready(pod, status, &phase);
    let ready = ready(pod, status, &containers_ready);
    let network = if has_network { Verdict::yes() } else { Verdict::no("", String::new()) };
    let verdicts = [
        ("PodReadyToStartContainers", network),
        ("Initialized", initialized(pod, status, &phase)),
        ("Ready", ready),
        ("ContainersReady", containers_ready),
        ("PodScheduled", Verdict::yes()),
    ];
    let old = status.conditions.take().unwrap_or_default();
    let is_own = |it: &PodCondition| verdicts.iter().any(|(name, _)| *name == it.type_);
    let foreign: Vec<_> = old.iter().filter(|it| !is_own(it)).cloned().collect();
    let own = verdicts.iter().map(|(name, verdict)| {
        let before = old.iter().find(|it| it.type_ == *name);
        condition(name, verdict, before, pod.metadata.generation, now)
    });
    status.conditions = Some(own.chain(foreign).collect());
}

/// Says that the node ends the pod.
pub(crate) fn disrupt(status: &mut PodStatus, pod: &Pod, message: &str, now: Time) {
    const NAME: &str = "DisruptionTarget";
    let conditions = status.conditions.get_or_insert_default();
    let before = conditions.iter().position(|it| it.type_ == NAME);
    let verdict = Verdict { message: message.into(), ..Verdict::yes_because("TerminationByKubelet") };
    let told = condition(NAME, &verdict, before.map(|at| &conditions[at]), pod.metadata.generation, now);
    match before {
        Some(at) => conditions[at] = told,
        None => conditions.push(told),
    }
}

fn condition(
    name: &str,
    verdict: &Verdict,
    before: Option<&PodCondition>,
    generation: Option<i64>,
    now: Time,
) -> PodCondition {
    let status = if verdict.status { "True" } else { "False" };
    let since = before.filter(|it| it.status == status).and_then(|it| it.last_transition_time.clone());
    let text = |it: &str| Some(it.to_owned()).filter(|it| !it.is_empty());
    PodCondition {
        type_: name.into(),
        status: status.into(),
        reason: text(verdict.reason),
        message: text(&verdict.message),
        last_transition_time: Some(since.unwrap_or(ApiTime(now.0))),
        last_probe_time: None,
        observed_generation: generation,
    }
}

/// The init containers that keep the others from starting.
pub(crate) fn incomplete_init(pod: &Pod, status: &PodStatus) -> Vec<String> {
    let init = spec_of(pod).init_containers.iter().flatten();
    let incomplete = init.filter(|container| {
        let it = status.init_container_statuses.iter().flatten().find(|it| it.name == container.name);
        let is_complete = |it: &ContainerStatus| {
            let exit = it.state.as_ref().and_then(|it| it.terminated.as_ref());
            if is_sidecar(container) { it.started == Some(true) } else { exit.is_some_and(|it| it.exit_code == 0) }
        };
        !it.is_some_and(is_complete)
    });
    incomplete.map(|it| it.name.clone()).collect()
}

fn initialized(pod: &Pod, status: &PodStatus, phase: &str) -> Verdict {
    if phase == "Succeeded" {
        return Verdict::yes_because("PodCompleted");
    }
    let began = status.container_statuses.iter().flatten().any(|it| it.container_id.is_some());
    let incomplete = incomplete_init(pod, status);
    if began || incomplete.is_empty() {
        return Verdict::yes();
    }
    let message = format!("containers with incomplete status: [{}]", incomplete.join(" "));
    Verdict::no("ContainersNotInitialized", message)
}

fn containers_ready(pod: &Pod, status: &PodStatus, phase: &str) -> Verdict {
    match phase {
        "Succeeded" => return Verdict::no("PodCompleted", String::new()),
        "Failed" => return Verdict::no("PodFailed", String::new()),
        _ => {}
    }
    let sidecars = spec_of(pod).init_containers.iter().flatten().filter(|it| is_sidecar(it));
    let unready = sidecars.chain(&spec_of(pod).containers).filter(|container| {
        let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
        !all.into_iter().any(|it| it.name == container.name && it.ready)
    });
    let unready: Vec<_> = unready.map(|it| it.name.as_str()).collect();
    if unready.is_empty() {
        return Verdict::yes();
    }
    Verdict::no("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" ")))
}

fn ready(pod: &Pod, status: &PodStatus, containers: &Verdict) -> Verdict {
    if !containers.status {
        return Verdict::no(containers.reason, containers.message.clone());
    }
    let gates = spec_of(pod).readiness_gates.iter().flatten();
    let unmet = gates.filter_map(|gate| {
        let name = &gate.condition_type;
        match status.conditions.iter().flatten().find(|it| it.type_ == *name) {
            None => Some(format!("corresponding condition of pod readiness gate {name:?} does not exist.")),
            Some(it) if it.status != "True" => {
                Some(format!("the status of pod readiness gate {name:?} is not \"True\", but {}", it.status))
            }
            Some(_) => None,
        }
    });
    let unmet: Vec<_> = unmet.collect();
    if unmet.is_empty() { Verdict::yes() } else { Verdict::no("ReadinessGatesNotReady", unmet.join(", ")) }
}
