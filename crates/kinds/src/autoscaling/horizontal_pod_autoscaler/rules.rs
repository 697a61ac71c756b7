//! The rules of a HorizontalPodAutoscaler.

use corten_meta::{Quantity, field};
use corten_schema::Cursor;
use corten_validation::{labels, rules};

const STABILIZATION_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;
/// The types of metrics, and the field that each has for itself.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const EITHER: &str = "must set either a target value for metric or a per-pod target";

/// The version of what is scaled names a group (ValidateAPIVersion). Autoscalers that are stored without may stay so.
pub(super) fn with_group(version: Cursor<'_>) {
    if has_no_group(version.str()) {
        version.invalid_as(version.str(), "apiVersion must specify API group");
    }
}

pub(super) fn has_no_group(version: &str) -> bool {
    !version.contains('/')
}

pub(super) fn spec(spec: Cursor<'_>, is_new: bool) {
    let (min, max) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    // From zero and to zero: see below (KEP-2021, `HPAScaleToZero`, on by default in v1.37).
    if min.exists() && min.int() < 0 {
        min.invalid("must be greater than or equal to 0");
    }
    if max.int() == 0 {
        max.missing("must be set and greater than 0");
    } else if max.int() < 0 {
        max.invalid_int("must be greater than or equal to 1");
    }
    if min.exists() && max.int() < min.int() {
        max.invalid_int("must be greater than or equal to `minReplicas`");
    }
    reference(spec.at("scaleTargetRef"));
    if is_new {
        with_group(spec.at("scaleTargetRef").at("apiVersion"));
    }
    spec.list("metrics").for_each(metric);
    let scales_from_zero = |it: Cursor<'_>| matches!(it.at("type").str(), "Object" | "External");
    if min.exists() && min.int() == 0 && !spec.list("metrics").any(scales_from_zero) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        spec.at("metrics").forbidden(detail);
    }
    for direction in ["scaleUp", "scaleDown"].map(|it| spec.at("behavior").at(it)) {
        if direction.exists() {
            scaling(direction);
        }
    }
}

fn reference(reference: Cursor<'_>) {
    rules::path_segment(reference.at("kind"));
    rules::path_segment(reference.at("name"));
    let version = reference.at("apiVersion");
    if version.str().split('/').count() > 2 {
        version.invalid(&format!("unexpected GroupVersion string: {}", version.str()));
    }
}

fn metric(metric: Cursor<'_>) {
    let kind = metric.at("type");
    if kind.is_empty() {
        kind.missing("must specify a metric source type");
    }
    kind.one_of(&TYPES);
    let given: Vec<Cursor<'_>> = SOURCES.iter().map(|it| metric.at(it.1)).filter(|it| it.exists()).collect();
    if let Some((first, (name, _))) =
        given.first().and_then(|first| SOURCES.iter().find(|it| metric.at(it.1).exists()).map(|it| (*first, *it)))
    {
        source(name, first);
    }
    let Some((_, expected)) = SOURCES.iter().find(|it| it.0 == kind.str()) else {
        // As in `validateMetricSpec`: first it is no known type, then none that says which source must be there.
        return kind.unsupported(&TYPES);
    };
    if !metric.at(expected).exists() {
        metric.at(expected).missing("must populate information for the given metric source");
    }
    if given.len() != 1 {
        for (_, other) in SOURCES.iter().filter(|it| it.1 != *expected && metric.at(it.1).exists()) {
            metric.at(other).forbidden("must populate the given metric source only");
        }
    }
}

fn source(kind: &str, source: Cursor<'_>) {
    let target = source.at("target");
    let (value, average, utilization) =
        (target.at("value"), target.at("averageValue"), target.at("averageUtilization"));
    match kind {
        "Object" | "External" => {
            if kind == "Object" {
                reference(source.at("describedObject"));
            }
            identifier(source.at("metric"));
            self::target(target);
            if !value.exists() && !average.exists() {
                average.missing(EITHER);
            }
            if kind == "External" && value.exists() && average.exists() {
                value.forbidden("may not set both a target value for metric and a per-pod target");
            }
        }
        "Pods" => {
            identifier(source.at("metric"));
            self::target(target);
            if average.quantity().is_none_or(|it| it <= Quantity::ZERO) {
                average.missing("must specify a positive target averageValue");
            }
        }
        _ => {
            if kind == "ContainerResource" && source.at("container").is_empty() {
                source.at("container").missing("must specify a container");
            }
            if source.at("name").is_empty() {
                source.at("name").missing("must specify a resource name");
            }
            self::target(target);
            match (utilization.exists(), average.exists()) {
                (false, false) => utilization.missing("must set either a target raw value or a target utilization"),
                (true, true) => average.forbidden("may not set both a target raw value and a target utilization"),
                _ => {}
            }
        }
    }
}

fn identifier(metric: Cursor<'_>) {
    let name = metric.at("name");
    if name.is_empty() {
        name.missing("must specify a metric name");
    } else {
        name.follows(field::path_segment);
    }
    if metric.at("selector").exists() {
        labels::label_selector(metric.at("selector"));
    }
}

fn target(target: Cursor<'_>) {
    let kind = target.at("type");
    if kind.is_empty() {
        kind.missing("must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.str()) {
        kind.invalid_as(kind.str(), "must be either Utilization, Value, or AverageValue");
    }
    for amount in ["value", "averageValue"].map(|it| target.at(it)) {
        if amount.quantity().is_some_and(|it| it <= Quantity::ZERO) {
            amount.invalid("must be positive");
        }
    }
    let utilization = target.at("averageUtilization");
    if utilization.exists() && utilization.int() < 1 {
        utilization.invalid("must be greater than 0");
    }
}

fn scaling(rules: Cursor<'_>) {
    let window = rules.at("stabilizationWindowSeconds");
    if window.int() < 0 {
        window.invalid("must be greater than or equal to zero");
    }
    if window.int() > STABILIZATION_SECONDS_MAX {
        window.invalid(&format!("must be less than or equal to {STABILIZATION_SECONDS_MAX}"));
    }
    corten_validation::rules::optional_one_of(rules.at("selectPolicy"), &["Disabled", "Max", "Min"]);
    if rules.at("policies").is_empty() {
        rules.at("policies").missing("must specify at least one Policy");
    }
    for policy in rules.list("policies") {
        policy.at("type").one_of(&["Percent", "Pods"]);
        for number in ["value", "periodSeconds"].map(|it| policy.at(it)) {
            if number.int() <= 0 {
                number.invalid_int("must be greater than zero");
            }
        }
        if policy.at("periodSeconds").int() > PERIOD_SECONDS_MAX {
            policy.at("periodSeconds").invalid(&format!("must be less than or equal to {PERIOD_SECONDS_MAX}"));
        }
    }
    rules.at("tolerance").non_negative_quantity();
}
