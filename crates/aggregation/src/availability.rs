//! Whether a server answers, in the words of upstream's controller (`remote.AvailableConditionController`).

use std::time::Duration;

use corten_cacher::watch_cache::Caches;
use corten_webhook::NoEndpoint;

use crate::{
    backend::Backend,
    condition::Condition,
    fetch::{DocumentRequest, fetch},
};

const DEADLINE: Duration = Duration::from_secs(5);
/// Of what answers the question nothing is looked at but the code.
const BYTES_MAX: usize = 2 * 1024 * 1024;
/// Another endpoint may do better.
const ATTEMPTS: usize = 2;

fn unavailable(reason: &'static str, message: String) -> Condition {
    Condition { is_available: false, reason, message }
}

pub(crate) async fn check(backend: &Backend, caches: &Caches) -> Condition {
    backend.tidy();
    let (service, namespace) = (&backend.spec.service, &backend.spec.namespace);
    let first = match backend.endpoints(caches) {
        Err(NoEndpoint::NoService(_)) => {
            return unavailable("ServiceNotFound", format!("service/{service} in {namespace:?} is not present"));
        }
        Err(NoEndpoint::NoPort { port, .. }) => {
            let message = format!("service/{service} in {namespace:?} is not listening on port {port}");
            return unavailable("ServicePortError", message);
        }
        Err(NoEndpoint::NoSlices(_)) => {
            let message = format!("cannot find endpointslices for service/{service} in {namespace:?}");
            return unavailable("EndpointsNotFound", message);
        }
        Err(NoEndpoint::NoAddresses { port_name, .. }) => {
            let message = format!(
                "endpointslices for service/{service} in {namespace:?} have no addresses with port name {port_name:?}"
            );
            return unavailable("MissingEndpoints", message);
        }
        // Nobody checks its ports (`AvailableConditionController.sync`): what it leads to is asked.
        Err(NoEndpoint::ExternalName(host)) => format!("{host}:{}", backend.spec.port),
        Ok(addresses) => addresses[0].to_string(),
    };
    let url = format!("https://{first}{}", backend.spec.path());
    let mut failure = String::new();
    let probing = async {
        for _ in 0..ATTEMPTS {
            match probe(backend, &url).await {
                Ok(()) => return true,
                Err(reason) => failure = reason,
            }
        }
        false
    };
    let outcome = tokio::time::timeout(DEADLINE + Duration::from_secs(1), probing).await;
    match outcome {
        Ok(true) => Condition { is_available: true, reason: "Passed", message: "all checks passed".into() },
        Ok(false) => {
            let message = format!("failing or missing response from {url}: {failure}");
            unavailable("FailedDiscoveryCheck", message)
        }
        Err(_) => unavailable("FailedDiscoveryCheck", format!("timed out waiting for {url}")),
    }
}

async fn probe(backend: &Backend, url: &str) -> Result<(), String> {
    let path = backend.spec.path();
    let wanted = DocumentRequest {
        path: &path,
        accept: "application/json, */*",
        tag: "",
        deadline: DEADLINE,
        bytes_max: BYTES_MAX,
    };
    let fetched = fetch(backend, &wanted).await.map_err(|it| format!("Get {url:?}: {it}"))?;
    if fetched.code.is_success() { Ok(()) } else { Err(format!("bad status from {url}: {}", fetched.code.as_u16())) }
}
