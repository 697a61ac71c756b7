//! `min`, `max` and `maxLimitRequestRatio` of a LimitRange, for containers, Pods and volume claims.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PODS};
use corten_meta::{Quantity, Resource, aggregate};
use corten_validation::read::{items, text};
use serde_json::Value;

use crate::quota::{Amounts, Side, amounts, of_spec};

/// Everything the LimitRange has against the object, in upstream's words; several are listed in brackets.
pub fn broken(range: &Value, resource: &Resource, object: &Value) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    for limit in items(range, "/spec/limits") {
        let kind = text(limit, "/type");
        match kind {
            "Container" if *resource == PODS => {
                for container in items(object, "/spec/containers").iter().chain(items(object, "/spec/initContainers")) {
                    let resources = &container["resources"];
                    check(limit, kind, &amounts(&resources["requests"]), &amounts(&resources["limits"]), &mut found);
                }
            }
            "Pod" if *resource == PODS => {
                check(limit, kind, &of_spec(object, Side::Requests), &of_spec(object, Side::Limits), &mut found);
            }
            "PersistentVolumeClaim" if *resource == PERSISTENT_VOLUME_CLAIMS => {
                check_claim(limit, kind, &amounts(&object["spec"]["resources"]["requests"]), &mut found);
            }
            _ => {}
        }
    }
    aggregate(found)
}

fn check(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, found: &mut Vec<String>) {
    for (name, least) in amounts(&limit["min"]) {
        found.extend(minimum(&name, kind, least, requests.get(&name), limits.get(&name)));
    }
    for (name, most) in amounts(&limit["max"]) {
        found.extend(maximum(&name, kind, most, requests.get(&name), limits.get(&name)));
    }
    for (name, most) in amounts(&limit["maxLimitRequestRatio"]) {
        found.extend(ratio(&name, kind, most, requests.get(&name), limits.get(&name)));
    }
}

/// Claims have no limits.
fn check_claim(limit: &Value, kind: &str, requests: &Amounts, found: &mut Vec<String>) {
    for (name, least) in amounts(&limit["min"]) {
        found.extend(minimum(&name, kind, least, requests.get(&name), None));
    }
    for (name, most) in amounts(&limit["max"]) {
        let rule = format!("maximum {name} usage per {kind} is {most}");
        match requests.get(&name) {
            None => found.push(format!("{rule}.  No request is specified")),
            Some(request) if *request > most => found.push(format!("{rule}, but request is {request}")),
            Some(_) => {}
        }
    }
}

fn minimum(
    name: &str,
    kind: &str,
    least: Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let rule = format!("minimum {name} usage per {kind} is {least}");
    match (request, limit) {
        (None, _) => Some(format!("{rule}.  No request is specified")),
        (Some(request), _) if *request < least => Some(format!("{rule}, but request is {request}")),
        (_, Some(limit)) if *limit < least => Some(format!("{rule}, but limit is {limit}")),
        _ => None,
    }
}

fn maximum(
    name: &str,
    kind: &str,
    most: Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let rule = format!("maximum {name} usage per {kind} is {most}");
    match (request, limit) {
        (_, None) => Some(format!("{rule}.  No limit is specified")),
        (_, Some(limit)) if *limit > most => Some(format!("{rule}, but limit is {limit}")),
        (Some(request), _) if *request > most => Some(format!("{rule}, but request is {request}")),
        _ => None,
    }
}

fn ratio(
    name: &str,
    kind: &str,
    most: Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let rule = format!("{name} max limit to request ratio per {kind} is {most}");
    let Some(request) = request.filter(|it| !it.is_zero()) else {
        return Some(format!("{rule}, but no request is specified or request is 0"));
    };
    let Some(limit) = limit.filter(|it| !it.is_zero()) else {
        return Some(format!("{rule}, but no limit is specified or limit is 0"));
    };
    let (asked, given) = (i128::from(request.milli_value()), i128::from(limit.milli_value()));
    // 64 bits times as many fit into 128, and so do 64 bits times two million.
    if given.saturating_mul(1000) <= i128::from(most.milli_value()).saturating_mul(asked) {
        return None;
    }
    // Six digits after the point, as Go prints a number.
    let twice = asked.saturating_mul(2);
    let millionths = given.saturating_mul(2_000_000).saturating_add(asked).checked_div(twice).unwrap_or(0);
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    Some(format!("{rule}, but provided ratio is {whole}.{rest:06}"))
}
