//! Probes: when the next attempt is due, and what a row of answers means.

use std::time::Duration;

use corten_api::{
    apimachinery::pkg::util::intstr::IntOrString,
    core::v1::{Container, ExecAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction},
};
use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    Action, HostEffect, Observed, ProbeKind, ProbeVerdict,
    pod::{
        container_record::{ContainerContext, ContainerRecord},
        context::Context,
    },
};

/// What is known of one probe of one running container.
#[derive(Debug, Default)]
pub(crate) struct ProbeState {
    /// The container it is about; another one starts anew.
    pub(crate) id: String,
    next_at: Option<Time>,
    in_flight: bool,
    successes: i32,
    failures: i32,
    /// What a long enough row of answers said last.
    pub(crate) passed: Option<bool>,
    pub(crate) last_failure: String,
    /// What it said of the container before this one, which was stopped for it; empty: none was.
    pub(crate) restarted_for: String,
}

impl ProbeState {
    /// Starts anew for another container.
    ///
    /// Readiness is asked for at once, the others a period later. A startup probe so gives its container
    /// `failureThreshold` whole periods, and no program is called ill for not listening the moment it is begun.
    pub(crate) fn attach(&mut self, id: &str, kind: ProbeKind, probe: &Probe, started: Time) {
        if self.id != id {
            let delay = Duration::from_secs(u64::try_from(probe.initial_delay_seconds.unwrap_or(0)).unwrap_or(0));
            let delay = if kind == ProbeKind::Readiness { delay } else { delay.max(period(probe)) };
            let restarted_for = self.gave_up(kind).unwrap_or_default().to_owned();
            *self = Self { id: id.into(), next_at: Some(started.after(delay)), restarted_for, ..Self::default() };
        }
    }

    /// What it said when its container was stopped for it.
    pub(crate) fn gave_up(&self, kind: ProbeKind) -> Option<&str> {
        (kind != ProbeKind::Readiness && self.passed == Some(false)).then_some(self.last_failure.as_str())
    }

    /// True where an attempt is due now; it counts as begun.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        let due = !self.in_flight && self.next_at.is_some_and(|it| it <= now);
        self.in_flight |= due;
        due
    }

    /// When the next attempt is due, where none is under way.
    pub(crate) fn next_at(&self) -> Option<Time> {
        if self.in_flight { None } else { self.next_at }
    }

    /// Takes an answer in.
    pub(crate) fn answer(&mut self, probe: &Probe, verdict: &ProbeVerdict, now: Time) {
        self.in_flight = false;
        self.next_at = Some(now.after(period(probe)));
        match verdict {
            ProbeVerdict::Success | ProbeVerdict::Warning(_) => {
                self.failures = 0;
                self.last_failure.clear();
                self.successes = self.successes.saturating_add(1);
                if self.successes >= probe.success_threshold.unwrap_or(1) {
                    self.passed = Some(true);
                }
            }
            ProbeVerdict::Failure(_) | ProbeVerdict::SilentFailure(_) => {
                self.successes = 0;
                self.failures = self.failures.saturating_add(1);
                self.last_failure = match verdict {
                    ProbeVerdict::Failure(message) => message.clone(),
                    ProbeVerdict::SilentFailure(code) => format!("the command exits {code} and says nothing"),
                    _ => String::new(),
                };
                if self.failures >= probe.failure_threshold.unwrap_or(3) {
                    self.passed = Some(false);
                }
            }
            ProbeVerdict::Unknown(message) => self.last_failure.clone_from(message),
        }
    }
}

/// Begins what is due. Once the pod ends nothing is restarted, so only readiness still matters.
pub(crate) fn drive(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    is_ending: bool,
    cx: &mut Context<'_>,
) {
    let Some(running) = record.running() else { return };
    let Observed::Running { started_at } = running.state else { return };
    let (id, started) = (running.id.clone(), started_at.unwrap_or(cx.now));
    if record.is_stopping(&id) && !is_ending {
        return;
    }
    let is_started = record.is_started(context.container);
    let kinds: &[ProbeKind] = match (is_started, is_ending) {
        (false, false) => &[ProbeKind::Startup],
        (true, false) => &[ProbeKind::Liveness, ProbeKind::Readiness],
        (true, true) => &[ProbeKind::Readiness],
        (false, true) => &[],
    };
    let ip = context.pod_ips.first().map_or("", String::as_str);
    for kind in kinds {
        let Some(probe) = of(context.container, *kind) else { continue };
        let state = record.probes.entry(*kind).or_default();
        state.attach(&id, *kind, probe, started);
        if !state.begin(cx.now) {
            if let Some(next_at) = state.next_at() {
                cx.wake_at(next_at);
            }
            continue;
        }
        match action(probe, context.container, ip) {
            Ok(action) => cx.host(HostEffect::Probe {
                pod: context.who.clone(),
                container: context.container.name.clone(),
                id: id.clone(),
                probe: *kind,
                action,
                timeout_seconds: timeout_seconds(probe),
            }),
            Err(message) => answered(record, context, &id, *kind, &ProbeVerdict::Unknown(message), cx),
        }
    }
}

pub(crate) fn answered(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    id: &str,
    kind: ProbeKind,
    verdict: &ProbeVerdict,
    cx: &mut Context<'_>,
) {
    let Some(probe) = of(context.container, kind) else { return };
    let Some(state) = record.probes.get_mut(&kind).filter(|it| it.id == id) else { return };
    state.answer(probe, verdict, cx.now);
    if let Some(next_at) = state.next_at() {
        cx.wake_at(next_at);
    }
    let kind = name(kind);
    match verdict {
        ProbeVerdict::Success => {}
        ProbeVerdict::Warning(message) => {
            cx.event(context.who, context.field, Warning, "ProbeWarning", format!("{kind} probe warning: {message}"));
        }
        ProbeVerdict::Failure(message) => {
            cx.event(context.who, context.field, Warning, "Unhealthy", format!("{kind} probe failed: {message}"));
        }
        // Upstream's words end so, too.
        ProbeVerdict::SilentFailure(_) => {
            cx.event(context.who, context.field, Warning, "Unhealthy", format!("{kind} probe failed: "));
        }
        ProbeVerdict::Unknown(message) => {
            let message = format!("{kind} probe errored and resulted in unknown state: {message}");
            cx.event(context.who, context.field, Warning, "Unhealthy", message);
        }
    }
}

pub(crate) fn of(container: &Container, kind: ProbeKind) -> Option<&Probe> {
    match kind {
        ProbeKind::Startup => container.startup_probe.as_ref(),
        ProbeKind::Liveness => container.liveness_probe.as_ref(),
        ProbeKind::Readiness => container.readiness_probe.as_ref(),
    }
}

pub(crate) fn name(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Startup => "Startup",
        ProbeKind::Liveness => "Liveness",
        ProbeKind::Readiness => "Readiness",
    }
}

fn period(probe: &Probe) -> Duration {
    Duration::from_secs(u64::try_from(probe.period_seconds.unwrap_or(10)).unwrap_or(10).max(1))
}

pub(crate) fn timeout_seconds(probe: &Probe) -> u32 {
    u32::try_from(probe.timeout_seconds.unwrap_or(1)).unwrap_or(1).max(1)
}

/// What a probe does, with its port and address resolved.
pub(crate) fn action(probe: &Probe, container: &Container, pod_ip: &str) -> Result<Action, String> {
    if let Some(it) = &probe.grpc {
        let port = u16::try_from(it.port).map_err(|_| format!("invalid port number: {}", it.port))?;
        return Ok(Action::Grpc { host: pod_ip.into(), port, service: it.service.clone().unwrap_or_default() });
    }
    one_of(probe.exec.as_ref(), probe.http_get.as_ref(), probe.tcp_socket.as_ref(), container, pod_ip)
        .unwrap_or_else(|| Err(format!("missing probe handler for {}", container.name)))
}

/// What a lifecycle hook does; `None`: it has no handler.
pub(crate) fn hook_action(
    handler: &LifecycleHandler,
    container: &Container,
    pod_ip: &str,
) -> Option<Result<Action, String>> {
    if let Some(it) = &handler.sleep {
        return Some(Ok(Action::Sleep { seconds: it.seconds }));
    }
    // `LifecycleHandler.tcpSocket` is deprecated and does nothing.
    one_of(handler.exec.as_ref(), handler.http_get.as_ref(), None, container, pod_ip)
}

fn one_of(
    exec: Option<&ExecAction>,
    http: Option<&HTTPGetAction>,
    tcp: Option<&TCPSocketAction>,
    container: &Container,
    pod_ip: &str,
) -> Option<Result<Action, String>> {
    let host = |it: &Option<String>| it.clone().filter(|it| !it.is_empty()).unwrap_or_else(|| pod_ip.into());
    if let Some(it) = exec {
        return Some(Ok(Action::Exec { command: it.command.clone().unwrap_or_default() }));
    }
    if let Some(it) = http {
        let path = it.path.clone().filter(|it| !it.is_empty()).unwrap_or_else(|| "/".into());
        let headers = it.http_headers.iter().flatten().map(|it| (it.name.clone(), it.value.clone())).collect();
        let https = it.scheme.as_deref() == Some("HTTPS");
        return Some(port(&it.port, container).map(|port| Action::Http {
            https,
            host: host(&it.host),
            port,
            path: if path.starts_with('/') { path } else { format!("/{path}") },
            headers,
        }));
    }
    let it = tcp?;
    Some(port(&it.port, container).map(|port| Action::Tcp { host: host(&it.host), port }))
}

/// A number, or the number of the container's port of that name.
fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|it| it.name.as_deref() == Some(name));
            match (named, name.parse()) {
                (Some(it), _) => it.container_port,
                (None, Ok(number)) => number,
                (None, Err(_)) => return Err(format!("couldn't find port {name:?} of container {}", container.name)),
            }
        }
    };
    u16::try_from(number).ok().filter(|it| *it > 0).ok_or_else(|| format!("invalid port number: {number}"))
}
