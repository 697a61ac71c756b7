//! What the node measures of itself: `/stats/summary` and the metrics.

use std::{collections::BTreeMap, io::Write, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use http::{HeaderValue, Response, header};

use super::{Body, PlainTextError, json_body, query, routes::Call, text};
use crate::CertificateTimes;
use crate::stats::{
    cadvisor, claim_volumes,
    exposition::{Sample, Text, number},
    resource,
    summary::{Rest, Source},
};

pub(super) async fn summary(call: Call) -> Result<Response<Body>, PlainTextError> {
    let hands = call.server.hands();
    let is_short = query(call.query()).iter().any(|(name, value)| name == "only_cpu_and_memory" && value == "true");
    let measured = hands.measure().await.map_err(PlainTextError::internal)?;
    let disks = if is_short { None } else { hands.recent_disk_use().await };
    let volumes = if is_short { Arc::default() } else { hands.mounter().figures().await };
    let rest = (!is_short).then(|| Rest { layout: hands.layout(), disks: disks.as_deref(), volumes: &volumes });
    Ok(json_body(&Source { node_name: hands.node_name(), measured: &measured, rest }.json()))
}

pub(super) async fn resource(call: Call) -> Result<Response<Body>, PlainTextError> {
    let measured = call.server.hands().measure().await;
    if let Err(error) = &measured {
        tracing::warn!(%error, "cannot measure what pods use");
    }
    Ok(exposition(&call, resource::text(measured.ok().as_ref())))
}

pub(super) async fn cadvisor(call: Call) -> Result<Response<Body>, PlainTextError> {
    let hands = call.server.hands();
    let measured = hands.measure().await;
    if let Err(error) = &measured {
        tracing::warn!(%error, "cannot measure what pods use");
    }
    Ok(exposition(&call, cadvisor::text(measured.ok().as_ref())))
}

pub(super) async fn probes(call: Call) -> Result<Response<Body>, PlainTextError> {
    let counted = call.server.hands().counters().probes();
    let mut text = Text::default();
    let samples = counted.iter().map(|(it, n)| {
        let labels = [
            ("container", &*it.container),
            ("namespace", &*it.namespace),
            ("pod", &*it.pod),
            ("pod_uid", &*it.uid),
            ("probe_type", it.kind),
            ("result", it.result),
        ];
        Sample::new(&labels, number(*n))
    });
    let help = "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.";
    text.metric("prober_probe_total", "counter", help, samples);
    Ok(exposition(&call, text.into_string()))
}

/// The kubelet's own.
pub(super) async fn own(call: Call) -> Result<Response<Body>, PlainTextError> {
    let hands = call.server.hands();
    let mut text = Text::default();
    let name = [("node", hands.node_name())];
    let help = "[ALPHA] The node's name. The count is always 1.";
    text.metric("kubelet_node_name", "gauge", help, [Sample::new(&name, 1.0)]);
    if let Ok(sandboxes) = hands.cri().list_pod_sandboxes(None).await {
        let ready = sandboxes.iter().filter(|it| it.state == i32::from(crate::cri::PodSandboxState::Ready)).count();
        let help = "[ALPHA] Number of pods that have a running pod sandbox";
        text.metric("kubelet_running_pods", "gauge", help, [Sample::new(&[], count(ready))]);
    }
    if let Ok(containers) = hands.cri().list_containers(None).await {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for it in &containers {
            *states.entry(state(it.state)).or_default() += 1;
        }
        let samples: Vec<_> =
            states.iter().map(|(state, n)| Sample::new(&[("container_state", *state)], count(*n))).collect();
        text.metric("kubelet_running_containers", "gauge", "[ALPHA] Number of containers currently running", samples);
    }
    claim_volumes::write(&mut text, &hands.mounter().figures().await);
    hands.counters().write(&mut text);
    hands.mounter().operations().tallies().iter().for_each(|it| text.tally(it));
    call.server.measures().tallies().iter().for_each(|it| text.tally(it));
    certificates(&mut text, call.server.measures().certificates());
    Ok(exposition(&call, text.into_string() + &call.server.measures().process()))
}

fn certificates(text: &mut Text, times: CertificateTimes) {
    for (name, whose, seconds) in [
        ("kubelet_certificate_manager_client_ttl_seconds", "client", times.client),
        ("kubelet_certificate_manager_server_ttl_seconds", "serving", times.server),
    ] {
        let help = format!(
            "[ALPHA] In how many seconds the kubelet's {whose} certificate ends, negative where it has; +Inf where there is none."
        );
        text.metric(name, "gauge", &help, [Sample::new(&[], seconds.map_or(f64::INFINITY, whole))]);
    }
}

#[expect(clippy::cast_precision_loss, reason = "no certificate lasts for 2^53 seconds")]
fn whole(seconds: i64) -> f64 {
    seconds as f64
}

fn state(state: i32) -> &'static str {
    match crate::cri::ContainerState::try_from(state) {
        Ok(crate::cri::ContainerState::Created) => "created",
        Ok(crate::cri::ContainerState::Running) => "running",
        Ok(crate::cri::ContainerState::Exited) => "exited",
        _ => "unknown",
    }
}

fn count(n: usize) -> f64 {
    number(u64::try_from(n).unwrap_or(u64::MAX))
}

fn exposition(call: &Call, body: String) -> Response<Body> {
    let accepted = call.request.headers().get(header::ACCEPT_ENCODING).and_then(|it| it.to_str().ok());
    let is_compressed = accepted.is_some_and(|it| it.split(',').any(|it| it.trim() == "gzip"));
    let mut response = Response::new(text(if is_compressed { compressed(&body) } else { body.into_bytes() }));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn compressed(body: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(body.as_bytes()).and_then(|()| encoder.finish());
    written.expect("writing to memory does not fail")
}
