//! What containers, Pods and claims of a namespace may ask for, and what they ask for when they say nothing.

use std::collections::BTreeSet;

use corten_api::resources::LIMIT_RANGES;
use corten_meta::{Quantity, Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{Object, each, fill, inner, made},
    rules::amount,
};
use serde_json::{Map, Value};

use crate::{BuiltIn, MetadataChecks, Policy, Verb, columns::CREATED_AT};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: LIMIT_RANGES,
    singular: "limitrange",
    short_names: &["limits"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.core.v1.LimitRange",
    view_of: None,
    selectable_fields: &[],
    columns: &[CREATED_AT],
    policy: &LimitRange,
};

struct LimitRange;

impl Policy for LimitRange {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| inner(it, "spec")) else { return };
        for limit in each(spec, "limits") {
            if limit.get("type").is_some_and(|it| it == "Container") {
                copy(limit, "max", "default");
                copy(limit, "default", "defaultRequest");
                copy(limit, "min", "defaultRequest");
            }
        }
    }

    /// One without a name gets a unique one (limitrangeStrategy.PrepareForCreate): its own identifier.
    fn prepare_create(&self, object: &mut Value) {
        let metadata = &mut object["metadata"];
        if metadata["name"].as_str().unwrap_or_default().is_empty() && metadata["uid"].is_string() {
            metadata["name"] = metadata["uid"].clone();
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |range| {
            let mut seen = BTreeSet::new();
            for limit in range.at("spec").list("limits") {
                let kind = limit.at("type");
                type_name(kind);
                if !seen.insert(kind.str()) {
                    kind.duplicate();
                }
                self::limit(limit);
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

/// What `to` lacks of `from`.
fn copy(limit: &mut Object, from: &str, to: &str) {
    let Some(amounts) = limit.get(from).and_then(Value::as_object).cloned() else { return };
    if amounts.is_empty() {
        return;
    }
    let Some(to) = made(limit, to) else { return };
    for (name, amount) in amounts {
        fill(to, &name, amount);
    }
}

fn type_name(kind: Cursor<'_>) {
    let reasons = field::qualified_name(kind.str());
    if reasons.is_empty()
        && !kind.str().contains('/')
        && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.str())
    {
        kind.invalid("must be a standard limit type or fully qualified");
    }
    for reason in reasons {
        kind.invalid_as(kind.str(), &reason);
    }
}

fn limit(limit: Cursor<'_>) {
    let lists = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"].map(|it| limit.at(it));
    let [max, min, default, request, ratio] = lists;
    let of_pods = limit.at("type").str() == "Pod";
    for (list, is_default) in [(max, false), (min, false), (default, true), (request, true), (ratio, false)] {
        if of_pods && is_default {
            if !list.is_empty() {
                list.forbidden("may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for (name, quantity) in list.entries() {
            amount::name(name, quantity);
        }
    }
    if limit.at("type").str() == "PersistentVolumeClaim" && !min.key("storage").exists() && !max.key("storage").exists()
    {
        limit.at("limits").missing("either minimum or maximum storage value is required, but neither was provided");
    }
    let names: BTreeSet<&str> =
        lists.into_iter().filter_map(Cursor::map).flat_map(Map::keys).map(String::as_str).collect();
    for name in names {
        amounts(name, [max, min, default, request, ratio].map(|it| it.key(name)));
    }
}

/// Reports `at`, showing `shown`, where `low` is more than `high`.
fn ordered<'v>(low: Cursor<'v>, high: Cursor<'v>, at: Cursor<'v>, shown: Cursor<'v>, low_is: &str, high_is: &str) {
    if let (Some(low), Some(high)) = (low.quantity(), high.quantity())
        && low > high
    {
        at.instead(shown).invalid(&format!("{low_is} value {low} is greater than {high_is} value {high}"));
    }
}

/// Checks the amounts of one resource against each other.
fn amounts(name: &str, [max, min, default, request, ratio]: [Cursor<'_>; 5]) {
    ordered(min, max, min, min, "min", "max");
    ordered(min, request, request, request, "min", "default request");
    ordered(request, max, request, request, "default request", "max");
    ordered(request, default, request, request, "default request", "default limit");
    ordered(min, default, default, min, "min", "default");
    ordered(default, max, default, max, "default", "max");
    if let Some(most) = ratio.quantity() {
        if most < Quantity::units(1) {
            ratio.invalid(&format!("ratio {most} is less than 1"));
        }
        if let (Some(low), Some(high)) = (min.quantity(), max.quantity())
            && !low.is_zero()
        {
            #[expect(clippy::cast_precision_loss, reason = "the bound of a ratio is a ratio (ValidateLimitRange)")]
            let (most_units, bound) =
                (most.milli_value() as f64 / 1000.0, high.milli_value() as f64 / low.milli_value() as f64);
            if most_units > bound {
                ratio.invalid(&format!("ratio {most} is greater than max/min = {bound:.6}"));
            }
        }
    }
    let may_overcommit = !name.contains('/') && !name.starts_with("hugepages-");
    if let (false, Some(limit), Some(asked)) = (may_overcommit, default.quantity(), request.quantity())
        && limit != asked
    {
        request.invalid(&format!("default value {limit} must equal to defaultRequest value {asked} in {name}"));
    }
}
