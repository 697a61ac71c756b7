//! What `kubectl get pods` prints: a Pod's life in one word, worked out from its containers.

use std::collections::BTreeSet;

use corten_meta::Time;
use corten_validation::read::{items, number, text};
use serde_json::{Value, json};

use super::is_terminal;
use crate::{
    Column,
    age::since,
    columns::{AGE, column, or_none, wide},
};

pub(super) const COLUMNS: &[Column] = &[
    column("Ready", "How many of its containers are ready.", |pod, _| {
        let summary = Summary::of(pod);
        json!(format!("{}/{}", summary.ready, summary.total))
    }),
    column("Status", "What it is doing, or what keeps it from that.", |pod, _| json!(Summary::of(pod).reason)),
    column("Restarts", "How often its containers were restarted, and when last.", |pod, now| {
        json!(Summary::of(pod).restarts.text(now))
    }),
    AGE,
    wide("IP", "Its address.", |pod, _| json!(or_none(text(pod, "/status/podIPs/0/ip")))),
    wide("Node", "Where it runs.", |pod, _| json!(or_none(text(pod, "/spec/nodeName")))),
    wide("Nominated Node", "Where it will run once others have made room.", |pod, _| {
        json!(or_none(text(pod, "/status/nominatedNodeName")))
    }),
    wide("Readiness Gates", "How many of its extra conditions hold.", |pod, _| json!(readiness_gates(pod))),
];

struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts,
}

#[derive(Default)]
struct Restarts {
    count: i64,
    /// RFC 3339 in UTC sorts as text.
    last: String,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += number(status, "/restartCount");
        let finished = text(status, "/lastState/terminated/finishedAt");
        if finished > &*self.last {
            self.last = finished.to_owned();
        }
    }

    fn text(&self, now: Time) -> String {
        if self.count == 0 || self.last.is_empty() {
            return self.count.to_string();
        }
        format!("{} ({} ago)", self.count, since(&self.last, now))
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let phase = text(pod, "/status/phase");
        let mut reason = match text(pod, "/status/reason") {
            "" => phase.to_owned(),
            reason => reason.to_owned(),
        };
        if condition(pod, "PodScheduled").is_some_and(|it| it["reason"] == "SchedulingGated") {
            reason = "SchedulingGated".into();
        }
        let sidecars = items(pod, "/spec/initContainers").iter().filter(|it| it["restartPolicy"] == "Always").count();
        let total = items(pod, "/spec/containers").len() + sidecars;
        let mut summary = Self { ready: 0, total, reason, restarts: Restarts::default() };
        let sidecar_restarts = summary.initialize(pod);
        if let Initialization { done: true, restarts } = sidecar_restarts {
            summary.restarts = restarts;
            summary.run(pod);
        }
        summary.end(pod);
        summary
    }

    /// Looks at the init containers up to the first that is not done.
    fn initialize(&mut self, pod: &Value) -> Initialization {
        let specs = items(pod, "/spec/initContainers");
        let is_sidecar = |it: &&Value| it["restartPolicy"] == "Always";
        let names_of_sidecars: BTreeSet<&str> = specs.iter().filter(is_sidecar).map(|it| text(it, "/name")).collect();
        let mut sidecars = Restarts::default();
        let mut waiting = false;
        for (at, status) in items(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.restarts.add(status);
            let is_sidecar = names_of_sidecars.contains(text(status, "/name"));
            if is_sidecar {
                sidecars.add(status);
            }
            let ended = status.pointer("/state/terminated");
            if ended.is_some_and(|it| number(it, "/exitCode") == 0) {
                continue;
            }
            if is_sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            self.reason = format!("Init:{}", init_reason(status, at, specs.len()));
            waiting = true;
            break;
        }
        let initialized = condition(pod, "Initialized").is_some_and(|it| it["status"] == "True");
        Initialization { done: !waiting || initialized, restarts: sidecars }
    }

    fn run(&mut self, pod: &Value) {
        let mut some_run = false;
        for status in items(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(ended) = status.pointer("/state/terminated") {
                self.reason = end_reason(ended);
            } else if status["ready"] == true && status.pointer("/state/running").is_some() {
                some_run = true;
                self.ready += 1;
            }
        }
        // Some containers are through while others still run.
        if self.reason == "Completed" && some_run {
            let is_ready = condition(pod, "Ready").is_some_and(|it| it["status"] == "True");
            self.reason = if is_ready { "Running" } else { "NotReady" }.into();
        }
    }

    fn end(&mut self, pod: &Value) {
        if pod["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        if pod["status"]["reason"] == "NodeLost" {
            self.reason = "Unknown".into();
        } else if !is_terminal(pod) {
            self.reason = "Terminating".into();
        }
    }
}

struct Initialization {
    done: bool,
    /// Those of init containers that go on beside the others.
    restarts: Restarts,
}

fn init_reason(status: &Value, at: usize, of: usize) -> String {
    if let Some(ended) = status.pointer("/state/terminated") {
        return end_reason(ended);
    }
    match text(status, "/state/waiting/reason") {
        "" | "PodInitializing" => format!("{at}/{of}"),
        reason => reason.to_owned(),
    }
}

fn end_reason(ended: &Value) -> String {
    match (text(ended, "/reason"), number(ended, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(ended, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn condition<'v>(pod: &'v Value, kind: &str) -> Option<&'v Value> {
    items(pod, "/status/conditions").iter().find(|it| it["type"] == kind)
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let holds = |gate: &&Value| {
        condition(pod, gate["conditionType"].as_str().unwrap_or_default()).is_some_and(|it| it["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(holds).count(), gates.len())
}
