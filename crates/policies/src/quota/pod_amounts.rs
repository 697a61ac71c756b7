//! What a whole Pod asks for and may use.
//!
//! While a resize is under way the larger of asked for and given counts.

use std::collections::BTreeMap;

use corten_api::scheduling::aggregate;
use corten_validation::read::{items, text};
use serde_json::Value;

use super::amounts::{Amounts, amounts, raise};

/// `requests` or `limits` of `resources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Requests,
    Limits,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// The Pod's amounts with its overhead, as quotas count them.
pub fn of_pod(pod: &Value, side: Side) -> Amounts {
    let statuses = ["/status/containerStatuses", "/status/initContainerStatuses"];
    let mut status_of: BTreeMap<&str, &Value> = BTreeMap::new();
    for status in statuses.iter().flat_map(|it| items(pod, it)) {
        status_of.entry(text(status, "/name")).or_insert(status);
    }
    let is_infeasible = is_infeasible(pod);
    let mut sum =
        of_containers(pod, |it| with_status(it, status_of.get(text(it, "/name")).copied(), is_infeasible, side));
    override_with(&mut sum, pod, side);
    for (name, overhead) in amounts(&pod["spec"]["overhead"]) {
        match (sum.get_mut(&name), side) {
            (Some(sum), _) => *sum = sum.plus(overhead),
            (None, Side::Requests) => drop(sum.insert(name, overhead)),
            // What has no bound gets none from its overhead.
            (None, Side::Limits) => {}
        }
    }
    sum
}

/// The Pod's amounts as its spec has them, without overhead, as limit ranges see them.
pub fn of_spec(pod: &Value, side: Side) -> Amounts {
    let mut sum = of_containers(pod, |it| amounts(&it["resources"][side.name()]));
    override_with(&mut sum, pod, side);
    sum
}

fn of_containers(pod: &Value, own: impl Fn(&Value) -> Amounts) -> Amounts {
    let init = items(pod, "/spec/initContainers").iter().map(|it| (own(it), it["restartPolicy"] == "Always"));
    aggregate(items(pod, "/spec/containers").iter().map(&own), init)
}

/// What the Pod as a whole asks for goes before the sum of its containers.
fn override_with(sum: &mut Amounts, pod: &Value, side: Side) {
    for (name, amount) in amounts(&pod["spec"]["resources"][side.name()]) {
        if matches!(&*name, "cpu" | "memory") || name.starts_with("hugepages-") {
            sum.insert(name, amount);
        }
    }
}

fn with_status(container: &Value, status: Option<&Value>, is_infeasible: bool, side: Side) -> Amounts {
    let mut asked = amounts(&container["resources"][side.name()]);
    let Some(status) = status.filter(|it| it["resources"].is_object()) else { return asked };
    let given = amounts(&status["resources"][side.name()]);
    if is_infeasible {
        asked = given;
    } else {
        raise(&mut asked, &given);
    }
    if side == Side::Requests {
        raise(&mut asked, &amounts(&status["allocatedResources"]));
    }
    asked
}

/// The node said that it will never give what was asked for.
fn is_infeasible(pod: &Value) -> bool {
    let conditions = items(pod, "/status/conditions");
    conditions.iter().any(|it| it["type"] == "PodResizePending" && it["reason"] == "Infeasible")
}
