//! `POST /checkpoint/NAMESPACE/POD/CONTAINER?timeout=SECONDS`: an archive of the container's memory and of what it has changed.
//!
//! The answer names the archive, which stays until somebody removes it. It holds whatever secret the container held.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::json;

use super::{Body, PlainTextError, containers, json_body, query, routes::Call};
use crate::perform;

pub(super) async fn answer(call: Call) -> Result<Response<Body>, PlainTextError> {
    let (namespace, name, container) = (call.name(0), call.name(1), call.container());
    let not_found = |message: String| PlainTextError::new(StatusCode::NOT_FOUND, message);
    let found =
        call.server.cluster().pod(namespace.to_owned(), name.to_owned()).await.map_err(PlainTextError::internal)?;
    let pod = containers::Pod(found.ok_or_else(|| not_found("pod does not exist".to_owned()))?);
    if !pod.has_container(container) {
        return Err(not_found(format!("container {container} does not exist")));
    }
    let within = timeout(call.query()).map_err(not_found)?;
    let hands = call.server.hands();
    let failed = |why: String| {
        PlainTextError::internal(format!("checkpointing of {namespace}/{name}/{container} failed ({why})"))
    };
    let file = file_name(namespace, name, container, jiff::Timestamp::now());
    let location = hands.layout().checkpoints().join(file);
    let running = containers::running(hands.cri(), namespace, name, pod.uid(), container).await;
    let running = running.map_err(|it| failed(it.message))?;
    let written = hands.cri().checkpoint_container(&running.id, &location, within).await;
    written.map_err(|it| failed(perform::rpc(&it).message))?;
    Ok(json_body(&json!({"items": [location]})))
}

/// As in the kubelet's `checkpoint`, a time that is no number is not found; without one the runtime is waited for as for
/// anything.
fn timeout(text: &str) -> Result<Duration, String> {
    let Some((_, seconds)) = query(text).into_iter().find(|it| it.0 == "timeout") else { return Ok(Duration::ZERO) };
    let seconds: i64 = seconds.parse().map_err(|_| "cannot parse value of timeout parameter".to_owned())?;
    Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Named as by the kubelet's `CheckpointContainer`.
fn file_name(namespace: &str, name: &str, container: &str, now: jiff::Timestamp) -> String {
    format!("checkpoint-{name}_{namespace}-{container}-{}.tar", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_upstream() {
        for (text, expected) in [
            ("", Ok(Duration::ZERO)),
            ("x=1", Ok(Duration::ZERO)),
            ("timeout=10", Ok(Duration::from_secs(10))),
            ("timeout=-1", Ok(Duration::ZERO)),
            ("timeout=soon", Err("cannot parse value of timeout parameter".to_owned())),
        ] {
            assert_eq!(timeout(text), expected, "{text}");
        }
        let now = "2026-01-02T03:04:05.678Z".parse().expect("a time");
        assert_eq!(file_name("ns", "web", "app", now), "checkpoint-web_ns-app-2026-01-02T03:04:05Z.tar");
    }
}
