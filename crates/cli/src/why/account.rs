//! The meaning of what was read: one object's state, its named steps, and the causes it waits for.

use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Step, StepState, Wait};
use serde::Serialize;
use serde_json::Value;

/// The kubelet's step that ends a Pod.
const END: &str = "end";

/// What became of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum State {
    /// It is what its spec wants.
    Fine,
    /// It goes on by itself.
    Progressing,
    /// It cannot go on until somebody acts.
    Blocked,
    /// It ended and will not run again.
    Finished,
    /// It is being deleted.
    Terminating,
}

/// Everything `corten why` says of one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    /// `pod/web-1`.
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) state: State,
    /// One line: the heart of the matter.
    pub(crate) summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
    /// Failures of the loops themselves: a refused write, for example.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
    /// The newest warnings about the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<String>,
}

/// One wait, and the account of what it waits for.
#[derive(Debug, Serialize)]
pub(crate) struct Cause {
    pub(crate) by: String,
    #[serde(flatten)]
    pub(crate) wait: Wait,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) because: Option<Box<Account>>,
}

impl Account {
    /// The deepest cause that somebody other than the cluster must end, else the deepest cause at all.
    pub(crate) fn root(&self) -> Option<(&Self, &Wait)> {
        self.root_below(0).map(|(_, at, wait)| (at, wait))
    }

    fn root_below(&self, depth: usize) -> Option<(usize, &Self, &Wait)> {
        let own = self.steps.iter().filter_map(|it| it.wait.as_ref()).map(|it| (depth, self, it));
        let below = self.causes.iter().map(|it| {
            let deeper = it.because.as_ref().and_then(|it| it.root_below(depth + 1));
            deeper.unwrap_or((depth, self, &it.wait))
        });
        let mut all: Vec<_> = own.chain(below).collect();
        // A stable sort: of several equally deep ones that somebody must end, the first step's comes first.
        all.sort_by_key(|(depth, _, wait)| (wait.actor == Actor::Cluster, std::cmp::Reverse(*depth)));
        all.into_iter().next()
    }
}

/// What was read of one object, before it has a meaning.
#[derive(Default)]
pub(super) struct Evidence {
    pub(super) kind: String,
    pub(super) object: Value,
    pub(super) decisions: Vec<Decision>,
    pub(super) warnings: Vec<String>,
}

/// Makes an account of the evidence; `because` gives the account of what a wait points at.
pub(super) fn account(evidence: Evidence, mut because: impl FnMut(&Wait) -> Option<Account>) -> Account {
    let Evidence { kind, object, decisions, warnings } = evidence;
    let meta = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();

    let mut steps = if kind == "pod" { pod_steps(&object, &decisions) } else { own_steps(&decisions) };
    if meta["deletionTimestamp"].is_string() {
        // What it once waited for to run matters no more.
        steps.retain(|it| it.name == END);
    }
    let causes: Vec<Cause> = decisions
        .iter()
        .flat_map(|it| it.waits.iter().map(move |wait| (it.by.clone(), wait.clone())))
        .filter(|(_, wait)| !steps.iter().any(|it| it.wait.as_ref().is_some_and(|it| it.reason == wait.reason)))
        .map(|(by, wait)| Cause { because: because(&wait).map(Box::new), by, wait })
        .collect();
    let errors: Vec<String> = decisions.iter().filter_map(error).collect();

    let mut account = Account {
        subject: format!("{kind}/{}", text(&meta["name"])),
        namespace: text(&meta["namespace"]),
        state: State::Fine,
        summary: String::new(),
        steps,
        causes,
        errors,
        events: warnings,
    };
    account.state = state(&account, &object);
    account.summary = summary(&account, &object);
    if matches!(account.state, State::Fine | State::Finished | State::Terminating) {
        account.events.clear();
    }
    account
}

fn error(decision: &Decision) -> Option<String> {
    let error = decision.error.as_ref()?;
    Some(match decision.retries {
        0 | 1 => format!("{}: {error}", decision.by),
        n => format!("{}: {error} ({n} times in a row)", decision.by),
    })
}

fn own_steps(decisions: &[Decision]) -> Vec<Step> {
    decisions.iter().flat_map(|it| it.steps.clone()).collect()
}

/// The scheduler's step first, then the kubelet's. What a journal has forgotten is taken from the Pod's conditions.
fn pod_steps(pod: &Value, decisions: &[Decision]) -> Vec<Step> {
    let of = |by: &str| decisions.iter().filter(|it| it.by == by).flat_map(|it| it.steps.clone()).collect::<Vec<_>>();
    let mut steps = of("scheduler");
    let node = pod["spec"]["nodeName"].as_str();
    if node.is_some() || steps.is_empty() {
        steps = vec![scheduled_step(pod, node)];
    }
    let kubelet = of("kubelet");
    if kubelet.is_empty() && node.is_some() {
        steps.push(node_silent(node.unwrap_or_default()));
    }
    steps.extend(kubelet);
    steps
}

fn scheduled_step(pod: &Value, node: Option<&str>) -> Step {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let condition = conditions.iter().find(|it| it["type"] == "PodScheduled");
    let at = |value: &Value| value.as_str().and_then(|it| it.parse::<Time>().ok());
    let changed = condition.and_then(|it| at(&it["lastTransitionTime"]));
    let created = at(&pod["metadata"]["creationTimestamp"]);
    match node {
        Some(node) => Step {
            name: "scheduled".into(),
            state: StepState::Done,
            started: created,
            finished: changed.or(created),
            message: format!("to node {node}"),
            wait: None,
        },
        None => {
            let reason = condition.and_then(|it| it["reason"].as_str()).unwrap_or("NotScheduled");
            let message =
                condition.and_then(|it| it["message"].as_str()).unwrap_or("no scheduler has looked at it yet");
            let mut wait = Wait::new(reason, message, Actor::Operator);
            wait.since = changed.or(created);
            Step {
                name: "scheduled".into(),
                state: StepState::Blocked,
                started: created,
                finished: None,
                message: String::new(),
                wait: Some(wait),
            }
        }
    }
}

fn node_silent(node: &str) -> Step {
    let message = format!("node {node} has not said anything about this Pod");
    Step {
        name: "node".into(),
        state: StepState::Blocked,
        started: None,
        finished: None,
        message: String::new(),
        wait: Some(Wait::new("NodeSilent", message, Actor::Operator).on("node", node)),
    }
}

fn state(account: &Account, object: &Value) -> State {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return State::Terminating;
    }
    if account.subject.starts_with("pod/") && matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
    {
        return State::Finished;
    }
    let blocked = account.steps.iter().any(|it| matches!(it.state, StepState::Blocked | StepState::Failed));
    if blocked || !account.errors.is_empty() || account.root().is_some_and(|(_, it)| it.actor != Actor::Cluster) {
        return State::Blocked;
    }
    let unfinished = account.steps.iter().any(|it| it.state != StepState::Done);
    if unfinished || !account.causes.is_empty() { State::Progressing } else { State::Fine }
}

fn summary(account: &Account, object: &Value) -> String {
    let root = account.root().map(|(_, wait)| format!("{}: {}", wait.reason, wait.message));
    match account.state {
        State::Fine => "nothing is waited for".into(),
        State::Finished => finished(object),
        State::Terminating => root.unwrap_or_else(|| "it is being deleted".into()),
        State::Progressing | State::Blocked => {
            let step = account.steps.iter().find(|it| it.state == StepState::Running);
            root.or_else(|| account.errors.first().cloned())
                .or_else(|| step.map(|it| format!("{} is under way", it.name)))
                .unwrap_or_else(|| "its next step has not begun".into())
        }
    }
}

fn finished(pod: &Value) -> String {
    let status = &pod["status"];
    let phase = status["phase"].as_str().unwrap_or_default();
    match (status["reason"].as_str(), status["message"].as_str()) {
        (Some(reason), Some(message)) => format!("it ended as {phase}: {reason}: {message}"),
        _ => format!("it ended as {phase} and will not run again"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(name: &str, state: StepState, wait: Option<Wait>) -> Step {
        Step { name: name.into(), state, started: None, finished: None, message: String::new(), wait }
    }

    fn of(kind: &str, object: Value, decisions: Vec<Decision>) -> Account {
        account(Evidence { kind: kind.into(), object, decisions, warnings: Vec::new() }, |_| None)
    }

    #[test]
    fn a_pod_without_node_is_blocked_by_what_the_scheduler_says() {
        let condition =
            json!({"type": "PodScheduled", "reason": "Unschedulable", "message": "0/1 nodes are available"});
        let pod = json!({"metadata": {"name": "p"}, "spec": {}, "status": {"conditions": [condition]}});
        let account = of("pod", pod, vec![]);
        assert_eq!(account.state, State::Blocked);
        assert_eq!(account.summary, "Unschedulable: 0/1 nodes are available");
    }

    #[test]
    fn a_bound_pod_that_no_kubelet_speaks_of_waits_for_its_node() {
        let account = of("pod", json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}}), vec![]);
        let (_, wait) = account.root().expect("a cause");
        assert_eq!((&*wait.reason, wait.on.as_deref()), ("NodeSilent", Some("node/n1")));
    }

    #[test]
    fn somebody_who_must_act_comes_before_what_ends_by_itself() {
        let steps = vec![
            step("image a", StepState::Running, Some(Wait::new("Pulling", "pulling", Actor::Cluster))),
            step("image b", StepState::Blocked, Some(Wait::new("ErrImagePull", "no such image", Actor::Author))),
        ];
        let kubelet = Decision { by: "kubelet".into(), steps, ..Decision::default() };
        let account = of("pod", json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}}), vec![kubelet]);
        assert_eq!(account.summary, "ErrImagePull: no such image");
    }

    #[test]
    fn a_workload_is_explained_by_what_it_points_at() {
        let late = Wait::new("ProgressDeadlineExceeded", "no progress in time", Actor::Author);
        let wait = Wait::new("PodsNotReady", "0 of 1 Pods are ready", Actor::Cluster).on("pod", "p");
        let decision = Decision { by: "replicaset".into(), waits: vec![late, wait], ..Decision::default() };
        let evidence = Evidence {
            kind: "replicaset".into(),
            object: json!({"metadata": {"name": "r"}}),
            decisions: vec![decision],
            warnings: vec![],
        };
        let account = account(evidence, |wait| {
            wait.on.as_ref()?;
            let blocked =
                step("volumes", StepState::Blocked, Some(Wait::new("ConfigMapMissing", "no c", Actor::Author)));
            let kubelet = Decision { by: "kubelet".into(), steps: vec![blocked], ..Decision::default() };
            Some(of("pod", json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}}), vec![kubelet]))
        });
        assert_eq!(account.state, State::Blocked);
        assert_eq!(account.root().map(|(at, _)| &*at.subject), Some("pod/p"));
    }

    #[test]
    fn nothing_to_wait_for_is_fine() {
        let done =
            Decision { by: "kubelet".into(), steps: vec![step("ready", StepState::Done, None)], ..Decision::default() };
        let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}});
        assert_eq!(of("pod", pod, vec![done]).state, State::Fine);
    }
}
