//! Servers of others that do not answer as they should: the command that says more of them than the object that names them.

use corten_api::resources::SERVICES;
use corten_meta::Key;
use serde_json::Value;

use crate::why::{command::kubectl, fields::text, reader::Reader};

/// Nobody listens there.
const UNREACHED: [&str; 4] =
    ["connection refused", "no route to host", "network is unreachable", "no endpoints available for service"];
/// Somebody does, who is late, breaks off or broke.
const BROKEN: [&str; 8] = [
    "context deadline exceeded",
    "i/o timeout",
    ": EOF",
    "connection reset",
    "an error on the server",
    "currently unable to handle the request",
    "unable to return a response in the time allotted",
    "(HTTP 5",
];

/// The three digits that an APIService's server answered with, at the end of what is said of it.
pub(super) fn answered_code(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("bad status from ")?;
    rest.rsplit(": ").next().filter(|it| it.len() == 3 && it.bytes().all(|it| it.is_ascii_digit()))
}

/// None where the server is none of the cluster's Services, or nothing of it is known. `client` names the Service.
pub(super) async fn next(reader: &Reader<'_>, client: &Value, message: &str) -> Option<String> {
    let (namespace, name) = (text(client, "/service/namespace"), text(client, "/service/name"));
    if name.is_empty() {
        return None;
    }
    let service = reader.get(&SERVICES, &Key::new(namespace, name)).await?;
    let has = |words: &[&str]| words.iter().any(|it| message.contains(it));
    if service["spec"]["type"] == "ExternalName" {
        let yaml = kubectl(namespace, &["get", &format!("service/{name}"), "-o", "yaml"]);
        return has(&["no such host"]).then_some(yaml);
    }
    if has(&UNREACHED) {
        let of_service = format!("kubernetes.io/service-name={name}");
        return Some(kubectl(namespace, &["get", "endpointslices", "-l", &of_service]));
    }
    let is_broken = has(&BROKEN) || answered_code(message).is_some_and(|it| it.starts_with('5'));
    let selector = service["spec"]["selector"].as_object().filter(|it| is_broken && !it.is_empty())?;
    let selector: Vec<String> =
        selector.iter().map(|(label, value)| format!("{label}={}", value.as_str().unwrap_or_default())).collect();
    Some(kubectl(namespace, &["logs", "-l", &selector.join(","), "--all-containers", "--prefix", "--tail=20"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_stands_last() {
        let url = "https://10.96.0.9:443/apis/x.io/v1";
        for (message, code) in [
            (format!("failing or missing response from {url}: bad status from {url}: 404"), Some("404")),
            (format!("failing or missing response from {url}: connection refused"), None),
            (format!("bad status from {url}"), None),
        ] {
            assert_eq!(answered_code(&message), code, "{message}");
        }
    }
}
