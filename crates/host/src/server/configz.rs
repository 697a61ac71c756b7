//! `GET /configz`: what this kubelet is told, in upstream's words. Only what is in effect here is said.

use http::Response;
use serde_json::json;

use super::{Body, Refused, json_body, routes::Call};
use crate::logs::RotateLimits;

pub(super) async fn answer(call: Call) -> Result<Response<Body>, Refused> {
    let hands = call.server.hands();
    let rotation = RotateLimits::default();
    let config = json!({
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "enableServer": true,
        "port": call.server.port(),
        "authentication": {
            "x509": {},
            "webhook": { "enabled": true, "cacheTTL": "2m0s" },
            "anonymous": { "enabled": false },
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": { "cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s" },
        },
        "serverTLSBootstrap": true,
        "rotateCertificates": false,
        "streamingConnectionIdleTimeout": "4h0m0s",
        "cgroupDriver": hands.cgroups().driver(),
        "cgroupsPerQOS": true,
        "singleProcessOOMKill": !hands.kills_together(),
        "containerLogMaxSize": format!("{}Mi", rotation.bytes_max >> 20),
        "containerLogMaxFiles": rotation.files_max,
        "enableDebuggingHandlers": true,
        "enableSystemLogHandler": false,
        "enableSystemLogQuery": false,
        "enableProfilingHandler": false,
        "enableDebugFlagsHandler": false,
    });
    Ok(json_body(&json!({ "kubeletconfig": config })))
}
