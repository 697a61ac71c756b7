//! What a pod may read of itself: `fieldRef` and `resourceFieldRef`, in environments and in volumes.

use std::collections::BTreeMap;

use corten_api::{
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
    core::v1::{Container, ObjectFieldSelector, Pod, ResourceFieldSelector},
};
use corten_meta::Quantity;

use crate::{
    Config, NodeFacts,
    spec::{pod::spec_of, services::Services},
};

/// What the downward API reads beside the pod's object.
pub(crate) struct DownwardContext<'a> {
    pub(crate) config: &'a Config,
    pub(crate) facts: Option<&'a NodeFacts>,
    pub(crate) services: &'a Services,
    /// The addresses of the pod's sandbox, or the node's for a pod in the host's network.
    pub(crate) pod_ips: &'a [String],
}

/// The value of a field of the pod, or why there is none.
pub(crate) fn field(
    pod: &Pod,
    selector: &ObjectFieldSelector,
    downward_context: &DownwardContext<'_>,
) -> Result<String, String> {
    let meta = &pod.metadata;
    let path = selector.field_path.as_str();
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    if let Some((map, key)) = subscript(path) {
        let map = match map {
            "metadata.labels" => &meta.labels,
            "metadata.annotations" => &meta.annotations,
            _ => return Err(format!("fieldPath {path:?} does not support subscript")),
        };
        return Ok(map.as_ref().and_then(|it| it.get(key)).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => text(&meta.name),
        "metadata.namespace" => text(&meta.namespace),
        "metadata.uid" => text(&meta.uid),
        "metadata.labels" => lines(meta.labels.as_ref()),
        "metadata.annotations" => lines(meta.annotations.as_ref()),
        "spec.nodeName" => text(&spec_of(pod).node_name),
        "spec.serviceAccountName" => text(&spec_of(pod).service_account_name),
        "status.hostIP" => downward_context.config.node_ips.first().cloned().unwrap_or_default(),
        "status.hostIPs" => downward_context.config.node_ips.join(","),
        "status.podIP" => downward_context.pod_ips.first().cloned().unwrap_or_default(),
        "status.podIPs" => downward_context.pod_ips.join(","),
        _ => return Err(format!("unsupported fieldPath: {path}")),
    })
}

/// `metadata.labels['app']` → (`metadata.labels`, `app`).
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['")
}

/// One `key="value"` per line, as Go quotes.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let line = |(key, value): (&String, &String)| format!("{key}={}", go_quoted(value));
    map.into_iter().flatten().map(line).collect::<Vec<_>>().join("\n")
}

fn go_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            it if it.is_control() && u32::from(it) < 0x80 => quoted.push_str(&format!("\\x{:02x}", u32::from(it))),
            it => quoted.push(it),
        }
    }
    quoted.push('"');
    quoted
}

/// The value of a container's request or limit, in units of the divisor, rounded up.
pub(crate) fn resource(
    selector: &ResourceFieldSelector,
    container: &Container,
    downward_context: &DownwardContext<'_>,
) -> Result<String, String> {
    let Some((list, name)) = selector.resource.split_once('.') else {
        return Err(format!("unsupported container resource : {}", selector.resource));
    };
    let wanted = match list {
        "limits" => quantity(container, true, name).or_else(|| allocatable(name, downward_context)),
        "requests" => quantity(container, false, name),
        _ => return Err(format!("unsupported container resource : {}", selector.resource)),
    };
    let divisor = selector.divisor.as_ref().and_then(|it| it.0.parse::<Quantity>().ok());
    let divisor = divisor.filter(|it| !it.is_zero()).unwrap_or(Quantity::units(1));
    let value = wanted.unwrap_or_default();
    // CPU is counted in thousandths, all else in units: no precision is lost and nothing overflows.
    let (value, divisor) = match name {
        "cpu" => (value.milli_value(), divisor.milli_value()),
        _ => (value.value(), divisor.value()),
    };
    Ok((value.saturating_add(divisor.max(1) - 1) / divisor.max(1)).to_string())
}

/// A container's limit or request; a limit stands in for a missing request, as the API server's defaults have it.
pub(crate) fn quantity(container: &Container, limit: bool, name: &str) -> Option<Quantity> {
    let resources = container.resources.as_ref()?;
    let read = |map: &Option<BTreeMap<String, ApiQuantity>>| map.as_ref()?.get(name)?.0.parse().ok();
    if limit { read(&resources.limits) } else { read(&resources.requests).or_else(|| read(&resources.limits)) }
}

fn allocatable(name: &str, downward_context: &DownwardContext<'_>) -> Option<Quantity> {
    let facts = downward_context.facts?;
    match name {
        "cpu" => Some(Quantity::millis(
            facts.cpus.saturating_mul(1000).saturating_sub(downward_context.config.reserved_cpu_millis),
        )),
        "memory" => {
            Some(Quantity::bytes(facts.memory_bytes.saturating_sub(downward_context.config.reserved_memory_bytes)))
        }
        "ephemeral-storage" => Some(Quantity::bytes(facts.ephemeral_storage_bytes)),
        _ => None,
    }
}
