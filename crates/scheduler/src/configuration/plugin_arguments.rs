//! What a profile sets its plugins to: `pluginConfig`, with upstream's defaults and bounds.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

use super::{
    reader::{At, Reader},
    seconds,
};
use crate::{
    arguments::{
        AffinityArguments, Arguments, BalancedArguments, DeviceArguments, FitArguments, PreemptionArguments, Resources,
        Shape, SpreadArguments, Strategy,
    },
    projections::{NodeAffinity, TopologySpreadConstraint},
};

/// The arguments of all plugins.
pub(super) fn arguments(profile: &At<'_>, reader: &mut Reader) -> Arguments {
    let (mut arguments, mut named) = (Arguments::default(), BTreeSet::new());
    for at in reader.children(profile, "pluginConfig", &["name", "args"]) {
        let name = reader.text(&at, "name");
        if !named.insert(name) {
            reader.problem(&at.path("name"), &format!("repeated config for plugin {name}"));
        }
        match name {
            "NodeResourcesFit" => arguments.fit = fit(&at, reader),
            "NodeResourcesBalancedAllocation" => {
                let args = args(&at, &["resources"], reader);
                arguments.balanced = BalancedArguments { resources: resources(&args, (1, 1), reader) };
            }
            "InterPodAffinity" => {
                let args = args(&at, &["hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"], reader);
                arguments.affinity = AffinityArguments {
                    hard_weight: reader.number(&args, "hardPodAffinityWeight", 1, (0, 100)),
                    ignores_preferred_terms_of_others: reader.truth(&args, "ignorePreferredTermsOfExistingPods"),
                };
            }
            "NodeAffinity" => arguments.added_affinity = added_affinity(&at, reader),
            "PodTopologySpread" => arguments.spread = spread(&at, reader),
            "DefaultPreemption" => arguments.preemption = preemption(&at, reader),
            "VolumeBinding" => {
                let args = args(&at, &["bindTimeoutSeconds", "shape"], reader);
                arguments.volumes.bind_timeout =
                    seconds(reader.number(&args, "bindTimeoutSeconds", 600, (0, i64::MAX)));
                let given = points(&args, reader);
                if !given.0.is_empty() {
                    arguments.volumes.shape = given;
                }
            }
            "DynamicResources" => arguments.devices = devices(&at, reader),
            name => reader.problem(&at.path("name"), &format!("there are no arguments of a plugin {name:?}")),
        }
    }
    arguments
}

fn devices(at: &At<'_>, reader: &mut Reader) -> DeviceArguments {
    let args = args(at, &["filterTimeout", "bindingTimeout"], reader);
    reader.duration(&args, "filterTimeout", Duration::ZERO);
    let bind_timeout = reader.duration(&args, "bindingTimeout", DeviceArguments::default().bind_timeout);
    if bind_timeout < Duration::from_secs(1) {
        reader.problem(&args.path("bindingTimeout"), "Invalid value: must be at least 1 second");
    }
    DeviceArguments { bind_timeout }
}

fn args<'v>(at: &At<'v>, fields: &[&str], reader: &mut Reader) -> At<'v> {
    let known: Vec<&str> = fields.iter().copied().chain(["apiVersion", "kind"]).collect();
    reader.child(at, "args", &known)
}

fn fit(at: &At<'_>, reader: &mut Reader) -> FitArguments {
    let args = args(at, &["ignoredResources", "ignoredResourceGroups", "scoringStrategy"], reader);
    let ignored_groups = reader.texts(&args, "ignoredResourceGroups");
    if ignored_groups.iter().any(|it| it.contains('/')) {
        reader.problem(&args.path("ignoredResourceGroups"), "resource group name can't contain '/'");
    }
    let ignored = reader.texts(&args, "ignoredResources").into_iter().collect();
    let strategy = reader.child(&args, "scoringStrategy", &["type", "resources", "requestedToCapacityRatio"]);
    let kind = match reader.text(&strategy, "type") {
        "" | "LeastAllocated" => Strategy::LeastAllocated,
        "MostAllocated" => Strategy::MostAllocated,
        "RequestedToCapacityRatio" => Strategy::RequestedToCapacityRatio(shape(&strategy, reader)),
        other => {
            let what = format!(
                "Unsupported value: {other:?}: supported values: \"LeastAllocated\", \"MostAllocated\", \
                 \"RequestedToCapacityRatio\""
            );
            reader.problem(&strategy.path("type"), &what);
            Strategy::LeastAllocated
        }
    };
    let resources = resources(&strategy, (1, 100), reader);
    FitArguments { ignored, ignored_groups: ignored_groups.into_iter().collect(), strategy: kind, resources }
}

fn shape(strategy: &At<'_>, reader: &mut Reader) -> Shape {
    let ratio = reader.child(strategy, "requestedToCapacityRatio", &["shape"]);
    let given = points(&ratio, reader);
    if given.0.is_empty() {
        reader.problem(&ratio.path("shape"), "Required value: at least one point must be specified");
    }
    given
}

/// Points from 0 to 10 become scores from 0 to 100.
fn points(at: &At<'_>, reader: &mut Reader) -> Shape {
    let mut points: Vec<(i64, i64)> = Vec::new();
    for at in reader.children(at, "shape", &["utilization", "score"]) {
        let utilization = reader.number(&at, "utilization", 0, (0, 100));
        if points.last().is_some_and(|it| it.0 >= utilization) {
            let what = "utilization values must be sorted in increasing order";
            reader.problem(&at.path("utilization"), &format!("Invalid value: {utilization}: {what}"));
            break;
        }
        points.push((utilization, reader.number(&at, "score", 0, (0, 10)) * 10));
    }
    Shape(points)
}

fn resources(at: &At<'_>, weights: (i64, i64), reader: &mut Reader) -> Resources {
    let found = reader.children(at, "resources", &["name", "weight"]);
    let mut resources: Vec<(String, i64)> = Vec::new();
    for it in found {
        let name = reader.text(&it, "name").to_owned();
        let weight = match it.get("weight").and_then(Value::as_i64) {
            Some(0) => 1,
            _ => reader.number(&it, "weight", 1, weights),
        };
        if name.is_empty() || resources.iter().any(|it| it.0 == name) {
            reader.problem(&it.path("name"), &format!("Invalid value: {name:?}: each resource is named once"));
        }
        resources.push((name, weight));
    }
    if resources.is_empty() { Resources::default() } else { Resources(resources) }
}

fn added_affinity(at: &At<'_>, reader: &mut Reader) -> NodeAffinity {
    const FIELDS: &[&str] = &[
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        "matchExpressions",
        "matchFields",
        "key",
        "operator",
        "values",
        "weight",
        "preference",
    ];
    let args = args(at, &["addedAffinity"], reader);
    let Some(value) = args.get("addedAffinity") else { return NodeAffinity::default() };
    reader.only_fields(value, &args.path("addedAffinity"), FIELDS);
    serde_json::from_value(value.clone()).unwrap_or_else(|error| {
        reader.problem(&args.path("addedAffinity"), &error.to_string());
        NodeAffinity::default()
    })
}

fn spread(at: &At<'_>, reader: &mut Reader) -> SpreadArguments {
    let args = args(at, &["defaultConstraints", "defaultingType"], reader);
    let mut constraints = Vec::new();
    for it in reader.children(&args, "defaultConstraints", &["maxSkew", "topologyKey", "whenUnsatisfiable"]) {
        let topology_key = reader.text(&it, "topologyKey").to_owned();
        let when_unsatisfiable = reader.text(&it, "whenUnsatisfiable").to_owned();
        if topology_key.is_empty() {
            reader.problem(&it.path("topologyKey"), "Required value: can not be empty");
        }
        if !matches!(&*when_unsatisfiable, "DoNotSchedule" | "ScheduleAnyway") {
            let what = format!(
                "Unsupported value: {when_unsatisfiable:?}: supported values: \"DoNotSchedule\", \"ScheduleAnyway\""
            );
            reader.problem(&it.path("whenUnsatisfiable"), &what);
        }
        let max_skew = reader.number(&it, "maxSkew", 0, (1, i64::from(i32::MAX)));
        if it.get("maxSkew").is_none() {
            reader.problem(&it.path("maxSkew"), "Invalid value: 0: must be greater than zero");
        }
        constraints.push(TopologySpreadConstraint {
            max_skew,
            topology_key,
            when_unsatisfiable,
            ..TopologySpreadConstraint::default()
        });
    }
    match reader.text(&args, "defaultingType") {
        "List" => SpreadArguments { is_of_system: false, constraints },
        "" | "System" => {
            if !constraints.is_empty() {
                let what = "Invalid value: when .defaultingType is not set or is \"System\", there must be none";
                reader.problem(&args.path("defaultConstraints"), what);
            }
            SpreadArguments::default()
        }
        other => {
            let what = format!("Unsupported value: {other:?}: supported values: \"System\", \"List\"");
            reader.problem(&args.path("defaultingType"), &what);
            SpreadArguments::default()
        }
    }
}

fn preemption(at: &At<'_>, reader: &mut Reader) -> PreemptionArguments {
    let args = args(at, &["minCandidateNodesPercentage", "minCandidateNodesAbsolute"], reader);
    let percent = reader.number(&args, "minCandidateNodesPercentage", 10, (0, 100));
    let least = reader.number(&args, "minCandidateNodesAbsolute", 100, (0, i64::from(i32::MAX)));
    if percent == 0 && least == 0 {
        reader.problem(
            &args.path("minCandidateNodesPercentage"),
            "cannot be zero at the same time as minCandidateNodesAbsolute",
        );
    }
    PreemptionArguments {
        candidates_percent_min: usize::try_from(percent).unwrap_or(10),
        candidates_min: usize::try_from(least).unwrap_or(100),
    }
}
