//! What one object costs, by the names quotas bound, and which names count which resource.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES};
use corten_meta::{Quantity, Resource, Time};
use corten_validation::read::{items, text};
use serde_json::Value;

use super::{
    amounts::Amounts,
    extended::{IMPLIED, Neighbours, add_extended},
    pod_amounts::{Side, of_pod},
};

const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
pub(super) const DEVICES_SUFFIX: &str = ".deviceclass.resource.k8s.io/devices";
/// Objects that upstream counted by their plain names before `count/` came.
const PLAIN: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];
/// `AllocationResultsMaxSize`: a claim for all devices may get no more than this.
const DEVICES_MAX: i64 = 32;

/// Group and plural of the resource whose objects `name` counts: `count/jobs.batch` gives `("batch", "jobs")`. `None` for a
/// name that nothing is counted by. Names of extended resources may count claims for devices, too.
pub(super) fn counted_by(name: &str) -> Option<(&str, &str)> {
    if let Some(counted) = name.strip_prefix("count/") {
        let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
        return (!is_uncounted(group, plural)).then_some((group, plural));
    }
    if let Some(plural) = PLAIN.iter().find(|it| **it == name) {
        return Some(("", plural));
    }
    if matches!(name, "services" | "services.nodeports" | "services.loadbalancers") {
        return Some(("", "services"));
    }
    let of_class = name.split_once(CLASS_SUFFIX).map(|(_, it)| it);
    if matches!(name, "persistentvolumeclaims" | "requests.storage")
        || matches!(of_class, Some("persistentvolumeclaims" | "requests.storage"))
    {
        return Some(("", "persistentvolumeclaims"));
    }
    if name.ends_with(DEVICES_SUFFIX) {
        return Some(("resource.k8s.io", "resourceclaims"));
    }
    is_pods(name).then_some(("", "pods"))
}

fn is_pods(name: &str) -> bool {
    let asked = name.strip_prefix("requests.");
    let bound = asked.or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    name == "pods" || COMPUTE.contains(&bound) || asked.unwrap_or(name).starts_with("hugepages-") || is_extended(name)
}

/// Does a quota name an extended resource (`isExtendedResourceNameForQuota`)?
pub(super) fn is_extended(name: &str) -> bool {
    name.starts_with("requests.") && (!is_native(name) || name.starts_with(IMPLIED))
}

/// Names without a domain, and those of Kubernetes itself.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Events come and go too fast to be counted.
fn is_uncounted(group: &str, plural: &str) -> bool {
    plural == "events" && matches!(group, "" | "events.k8s.io")
}

/// May a write to objects of this resource change what a quota counts, beside their creation?
pub fn is_counted_on_update(resource: &Resource) -> bool {
    *resource == SERVICES || *resource == PERSISTENT_VOLUME_CLAIMS || is_claim(resource)
}

pub(super) fn is_claim(resource: &Resource) -> bool {
    resource.group == "resource.k8s.io" && resource.plural == "resourceclaims"
}

/// What an object costs its namespace. Pods that have ended cost no more than their own object.
pub fn usage(resource: &Resource, object: &Value, now: Time, neighbours: &dyn Neighbours) -> Amounts {
    let mut usage = Amounts::new();
    if is_uncounted(&resource.group, &resource.plural) {
        return usage;
    }
    usage.insert(format!("count/{}", resource.qualified()), Quantity::units(1));
    if *resource == PODS {
        if is_alive(object, now) {
            usage.extend(of_compute(&of_pod(object, Side::Requests), &of_pod(object, Side::Limits)));
        }
    } else if *resource == SERVICES {
        service(object, &mut usage);
    } else if *resource == PERSISTENT_VOLUME_CLAIMS {
        volume_claim(object, &mut usage);
    } else if is_claim(resource) {
        device_claim(object, &mut usage);
        add_extended(object, &mut usage, neighbours, now);
    } else if resource.group.is_empty() && PLAIN.contains(&&*resource.plural) {
        usage.insert(resource.plural.to_string(), Quantity::units(1));
    }
    usage
}

fn is_alive(pod: &Value, now: Time) -> bool {
    if matches!(text(pod, "/status/phase"), "Failed" | "Succeeded") {
        return false;
    }
    let metadata = &pod["metadata"];
    let grace = metadata["deletionGracePeriodSeconds"].as_i64();
    let deleted = metadata["deletionTimestamp"].as_str().and_then(|it| it.parse::<Time>().ok());
    let (Some(deleted), Some(grace)) = (deleted, grace) else { return true };
    // As in `QuotaV1Pod`: nobody pays for a Pod that is stuck, on a node that is lost for example.
    now <= deleted.after_seconds(grace)
}

/// The names under which quotas count a Pod's or a container's requests and limits.
pub(super) fn of_compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), Quantity::units(1))]);
    for name in COMPUTE {
        if let Some(request) = requests.get(name) {
            usage.insert(name.to_owned(), *request);
            usage.insert(format!("requests.{name}"), *request);
        }
        if let Some(limit) = limits.get(name) {
            usage.insert(format!("limits.{name}"), *limit);
        }
    }
    for (name, request) in requests {
        let is_huge = name.starts_with("hugepages-");
        if is_huge {
            usage.insert(name.clone(), *request);
        }
        let asked = format!("requests.{name}");
        if is_huge || (is_extended(&asked) && !name.starts_with("requests.")) {
            usage.insert(asked, *request);
        }
    }
    usage
}

fn service(service: &Value, usage: &mut Amounts) {
    let ports = items(service, "/spec/ports");
    let with_node_port = ports.iter().filter(|it| it["nodePort"].as_i64().is_some_and(|it| it != 0)).count();
    let allocates = service["spec"]["allocateLoadBalancerNodePorts"] != false;
    let (node_ports, load_balancers) = match text(service, "/spec/type") {
        "NodePort" => (ports.len(), 0),
        // They are not allocated yet: what counts is the intent.
        "LoadBalancer" if allocates => (ports.len(), 1),
        "LoadBalancer" => (with_node_port, 1),
        _ => (0, 0),
    };
    for (name, count) in
        [("services", 1), ("services.nodeports", node_ports), ("services.loadbalancers", load_balancers)]
    {
        usage.insert(name.to_owned(), units(count));
    }
}

fn units(count: usize) -> Quantity {
    Quantity::units(i64::try_from(count).unwrap_or(i64::MAX))
}

fn volume_claim(claim: &Value, usage: &mut Amounts) {
    let beta = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    let class = beta.unwrap_or_else(|| text(claim, "/spec/storageClassName"));
    let mut count = |name: &str, amount: Quantity| {
        usage.insert(name.to_owned(), amount);
        if !class.is_empty() {
            usage.insert(format!("{class}{CLASS_SUFFIX}{name}"), amount);
        }
    };
    count("persistentvolumeclaims", Quantity::units(1));
    let quantity = |list: &Value| list["storage"].as_str().and_then(|it| it.parse::<Quantity>().ok());
    if let Some(asked) = quantity(&claim["spec"]["resources"]["requests"]) {
        let allocated = quantity(&claim["status"]["allocatedResources"]);
        count("requests.storage", allocated.map_or(asked, |it| it.max(asked)).rounded_up());
    }
}

fn device_claim(claim: &Value, usage: &mut Amounts) {
    for request in items(claim, "/spec/devices/requests") {
        let mut most = Amounts::new();
        let choices = items(request, "/firstAvailable");
        let wanted = if choices.is_empty() { std::slice::from_ref(&request["exactly"]) } else { choices };
        for it in wanted {
            let class = text(it, "/deviceClassName");
            if class.is_empty() {
                continue;
            }
            let all = it["allocationMode"] == "All";
            let count = if all { DEVICES_MAX } else { it["count"].as_i64().unwrap_or(1) };
            super::amounts::raise(
                &mut most,
                &Amounts::from([(format!("{class}{DEVICES_SUFFIX}"), Quantity::units(count))]),
            );
        }
        super::amounts::add(usage, &most);
    }
}
