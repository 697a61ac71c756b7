//! What a claim asks for: the part of ResourceClaims that their templates have, too.

use std::collections::BTreeMap;

use corten_cel::{DeviceSelector, NEW_EXPRESSIONS, SELECTOR_BYTES_MAX, SelectorError};
use corten_meta::field;
use corten_schema::Cursor;
use corten_validation::{
    fill::{Object, each, fill, inner},
    rules,
};
use serde_json::Value;

use super::names::{at_most, fully_qualified, label, not_longer};

const MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const TOLERATIONS_MAX: usize = 16;
const PARAMETERS_BYTES_MAX: usize = 10 * 1024;
const UNKNOWN_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// `ResourceClaimSpec`.
pub(super) fn default(spec: &mut Object) {
    let Some(devices) = inner(spec, "devices") else { return };
    for request in each(devices, "requests") {
        if let Some(exactly) = inner(request, "exactly") {
            default_one(exactly);
        }
        each(request, "firstAvailable").for_each(default_one);
    }
}

fn default_one(request: &mut Object) {
    fill(request, "allocationMode", "ExactCount");
    let counted = request.get("allocationMode").is_some_and(|it| it == "ExactCount");
    if counted && request.get("count").and_then(Value::as_i64).unwrap_or_default() == 0 {
        request.insert("count".into(), 1.into());
    }
    each(request, "tolerations").for_each(|it| fill(it, "operator", "Equal"));
}

/// The names of requests, each with its alternatives.
pub(super) struct Names<'a>(BTreeMap<&'a str, Vec<&'a str>>);

impl<'a> Names<'a> {
    pub(super) fn of(spec: Cursor<'a>) -> Self {
        let requests = spec.at("devices").list("requests");
        Self(
            requests
                .map(|it| (it.at("name").str(), it.list("firstAvailable").map(|it| it.at("name").str()).collect()))
                .collect(),
        )
    }

    /// A reference to one of them.
    pub(super) fn check(&self, name: Cursor<'_>) {
        let parts: Vec<&str> = name.str().split('/').collect();
        if parts.len() > 2 {
            return name.invalid(UNKNOWN_REQUEST);
        }
        for part in &parts {
            field::dns1123_label(part).iter().for_each(|it| name.invalid_as(part, it));
        }
        let found =
            self.0.get(parts[0]).is_some_and(|alternatives| parts.get(1).is_none_or(|it| alternatives.contains(it)));
        if !found {
            name.invalid(UNKNOWN_REQUEST);
        }
    }

    pub(super) fn check_all(&self, names: Cursor<'_>) {
        names.each().for_each(|it| self.check(it));
        at_most(names, MAX);
        rules::unique(names, |it| it);
    }
}

/// Upstream's words, of none at all (validateDeviceConstraint).
const NO_ATTRIBUTE: &str =
    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";

pub(super) fn validate(spec: Cursor<'_>) {
    let devices = spec.at("devices");
    let names = Names::of(spec);
    let (requests, constraints, config) = (devices.at("requests"), devices.at("constraints"), devices.at("config"));
    requests.each().for_each(request);
    at_most(requests, MAX);
    rules::unique_items(requests, |it| it.at("name"));
    for constraint in constraints.each() {
        names.check_all(constraint.at("requests"));
        let (matching, distinct) = (constraint.at("matchAttribute"), constraint.at("distinctAttribute"));
        if matching.exists() {
            fully_qualified(matching);
        } else if distinct.exists() {
            fully_qualified(distinct);
        } else {
            constraint.missing(NO_ATTRIBUTE);
        }
        if matching.exists() && distinct.exists() {
            constraint.invalid(
                "exactly one of `matchAttribute` or `distinctAttribute` is required, but multiple fields are set",
            );
        }
    }
    at_most(constraints, MAX);
    for one in config.each() {
        names.check_all(one.at("requests"));
        configuration(one);
    }
    at_most(config, MAX);
}

fn request(request: Cursor<'_>) {
    label(request.at("name"));
    let (exactly, alternatives) = (request.at("exactly"), request.at("firstAvailable"));
    match (exactly.exists(), !alternatives.is_empty()) {
        (false, false) => request.missing("exactly one of `exactly` or `firstAvailable` is required"),
        (true, true) => {
            request.invalid("exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set")
        }
        (true, false) => one(exactly),
        (false, true) => {
            for alternative in alternatives.each() {
                label(alternative.at("name"));
                one(alternative);
            }
            at_most(alternatives, ALTERNATIVES_MAX);
            rules::unique_items(alternatives, |it| it.at("name"));
        }
    }
}

fn one(request: Cursor<'_>) {
    let class = request.at("deviceClassName");
    if class.required() {
        class.follows(field::dns1123_subdomain);
    }
    selectors(request.at("selectors"));
    let (mode, count) = (request.at("allocationMode"), request.at("count"));
    match mode.str() {
        "All" if count.int() != 0 => count.invalid("must not be specified when allocationMode is 'All'"),
        "All" => {}
        "ExactCount" if count.int() <= 0 => count.invalid("must be greater than zero"),
        "ExactCount" => {}
        _ => mode.unsupported(&["All", "ExactCount"]),
    }
    let tolerations = request.at("tolerations");
    tolerations.each().for_each(toleration);
    at_most(tolerations, TOLERATIONS_MAX);
}

pub(super) fn selectors(selectors: Cursor<'_>) {
    for selector in selectors.each() {
        let expression = selector.at("cel").at("expression");
        if !selector.at("cel").exists() {
            selector.at("cel").missing("");
        } else if expression.str().len() > SELECTOR_BYTES_MAX {
            not_longer(expression, SELECTOR_BYTES_MAX);
        } else {
            compiles(expression);
        }
    }
    at_most(selectors, MAX);
}

fn compiles(expression: Cursor<'_>) {
    match DeviceSelector::compile(expression.str(), NEW_EXPRESSIONS) {
        Ok(_) => {}
        Err(SelectorError::Invalid(message)) => expression.invalid(&message),
        Err(error @ SelectorError::TooComplex) => expression.forbidden(&error.to_string()),
    }
}

/// What a driver is told, in a claim, a class or an allocation.
pub(super) fn configuration(config: Cursor<'_>) {
    let opaque = config.at("opaque");
    if !opaque.exists() {
        return opaque.missing("");
    }
    rules::driver_name(opaque.at("driver"));
    raw(opaque.at("parameters"), PARAMETERS_BYTES_MAX);
}

/// Any JSON object.
pub(super) fn raw(value: Cursor<'_>, bytes_max: usize) {
    if !value.exists() {
        value.missing("");
    } else if value.value().to_string().len() > bytes_max {
        value.report(corten_meta::Violation::too_long(value.path(), bytes_max));
    } else if value.map().is_none() {
        value.invalid_as("<value omitted>", "parameters must be a valid JSON object");
    }
}

fn toleration(toleration: Cursor<'_>) {
    let (key, operator, value) = (toleration.at("key"), toleration.at("operator"), toleration.at("value"));
    if !key.is_empty() {
        key.follows(field::qualified_name);
    }
    match operator.str() {
        "Exists" if !value.is_empty() => value.invalid("must be empty for operator `Exists`"),
        "Exists" => {}
        "Equal" => value.follows(field::label_value),
        "" => operator.missing(""),
        _ => operator.unsupported(&["Equal", "Exists"]),
    }
    if !toleration.at("effect").is_empty() {
        toleration.at("effect").one_of(&["NoExecute", "NoSchedule", "None"]);
    }
}

/// `DeviceTaint`.
pub(super) fn taint(taint: Cursor<'_>) {
    taint.at("key").follows(field::qualified_name);
    if !taint.at("value").is_empty() {
        taint.at("value").follows(field::label_value);
    }
    rules::required_one_of(taint.at("effect"), &["NoExecute", "NoSchedule", "None"]);
}
