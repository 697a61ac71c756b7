//! Whether a server answers, in the words of upstream's controller (`remote.AvailableConditionController`).

use std::time::Duration;

use corten_cacher::watch_cache::Caches;
use corten_meta::Time;
use corten_webhook::NoEndpoint;
use serde_json::{Value, json};

use crate::{
    backend::Backend,
    fetch::{Wanted, fetch},
};

const DEADLINE: Duration = Duration::from_secs(5);
/// Of what answers the question nothing is looked at but the code.
const BYTES_MAX: usize = 2 * 1024 * 1024;
/// Another endpoint may do better.
const ATTEMPTS: usize = 2;

/// Of the type `Available`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) is_available: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

fn unavailable(reason: &'static str, message: String) -> Condition {
    Condition { is_available: false, reason, message }
}

pub(crate) async fn check(backend: &Backend, caches: &Caches) -> Condition {
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
        Err(refused @ NoEndpoint::ExternalName(_)) => return unavailable("FailedDiscoveryCheck", refused.to_string()),
        Ok(addresses) => addresses[0],
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
    let wanted =
        Wanted { path: &path, accept: "application/json, */*", tag: "", deadline: DEADLINE, bytes_max: BYTES_MAX };
    let fetched = fetch(backend, &wanted).await.map_err(|it| format!("Get {url:?}: {it}"))?;
    if fetched.code.is_success() { Ok(()) } else { Err(format!("bad status from {url}: {}", fetched.code.as_u16())) }
}

impl Condition {
    /// The APIService with the condition; `None` where it says so already (`SetAPIServiceCondition`).
    pub(crate) fn put_into(&self, object: &Value, now: Time) -> Option<Value> {
        let status = if self.is_available { "True" } else { "False" };
        let mut new = object.clone();
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let at = conditions.iter().position(|it| it["type"] == "Available");
        let before = at.map(|it| conditions[it].clone()).unwrap_or_default();
        if before["status"] == status && before["reason"] == self.reason && before["message"] == *self.message {
            return None;
        }
        let since = if before["status"] == status { before["lastTransitionTime"].clone() } else { json!(now) };
        let condition = json!({
            "type": "Available", "status": status, "lastTransitionTime": since,
            "reason": self.reason, "message": self.message,
        });
        match at {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
        new["status"]["conditions"] = conditions.into();
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_once_and_keeps_its_time_while_its_status_stays() {
        let at = Time::from_unix_seconds;
        let failed = |message: &str| unavailable("FailedDiscoveryCheck", message.to_owned());
        let first = failed("a").put_into(&json!({}), at(1_800_000_000)).expect("a change");
        assert_eq!(failed("a").put_into(&first, at(1_800_000_060)), None);
        let second = failed("b").put_into(&first, at(1_800_000_060)).expect("a change");
        let times = |it: &Value| it["status"]["conditions"][0]["lastTransitionTime"].clone();
        assert_eq!(times(&first), times(&second));
        let passed = Condition { is_available: true, reason: "Passed", message: "all checks passed".into() };
        let third = passed.put_into(&second, at(1_800_000_120)).expect("a change");
        assert_ne!(times(&second), times(&third));
        assert_eq!(third["status"]["conditions"].as_array().map(Vec::len), Some(1));
    }
}
