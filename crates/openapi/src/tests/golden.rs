//! Kubernetes's own documents of the version before, where a checkout has them beside it: every path, operation and field
//! that both have must be the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::Path,
};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::super::document::V3;

/// Groups and versions that are gone since, and documents of what the server does not have.
const GONE: [&str; 5] = [
    "apis/certificates.k8s.io/v1alpha1",
    "apis/networking.k8s.io/v1beta1",
    "apis/scheduling.k8s.io/v1alpha2",
    "apis/storage.k8s.io/v1beta1",
    "logs",
];

/// Parameters of features that the server does not have.
const PARAMETERS_NOT_HERE: [&str; 3] = ["ignoreStoreReadErrorWithClusterBreakingPotential", "shardSelector", "stream"];

/// Types that became other types since, or whose required fields and defaults changed.
const CHANGED: [&str; 33] = [
    "apps.v1.ControllerRevision",
    "apps.v1.DaemonSet",
    "apps.v1.DaemonSetCondition",
    "apps.v1.Deployment",
    "apps.v1.DeploymentCondition",
    "apps.v1.ReplicaSet",
    "apps.v1.ReplicaSetCondition",
    "apps.v1.StatefulSet",
    "apps.v1.StatefulSetCondition",
    "core.v1.NodeAllocatableResourceClaimStatus",
    "flowcontrol.v1.FlowSchema",
    "flowcontrol.v1.FlowSchemaCondition",
    "flowcontrol.v1.PriorityLevelConfiguration",
    "flowcontrol.v1.PriorityLevelConfigurationCondition",
    "networking.v1.IngressRule",
    "resource.v1.Device",
    "resource.v1.DeviceClass",
    "resource.v1.NodeAllocatableResourceMapping",
    "resource.v1.ResourceClaim",
    "resource.v1.ResourceClaimTemplate",
    "resource.v1.ResourceClaimTemplateSpec",
    "resource.v1beta1.BasicDevice",
    "resource.v1beta1.DeviceClass",
    "resource.v1beta1.NodeAllocatableResourceMapping",
    "resource.v1beta1.ResourceClaim",
    "resource.v1beta1.ResourceClaimTemplate",
    "resource.v1beta1.ResourceClaimTemplateSpec",
    "resource.v1beta2.Device",
    "resource.v1beta2.DeviceClass",
    "resource.v1beta2.NodeAllocatableResourceMapping",
    "resource.v1beta2.ResourceClaim",
    "resource.v1beta2.ResourceClaimTemplate",
    "resource.v1beta2.ResourceClaimTemplateSpec",
];

/// By `apis/apps/v1`. `None`, said aloud, where there are none.
fn documents() -> Option<BTreeMap<String, Value>> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden/openapi-v3.tar.gz");
    let Ok(packed) = std::fs::read(&archive) else {
        eprintln!("skipped: there are no golden OpenAPI documents");
        return None;
    };
    let mut tar = Vec::new();
    GzDecoder::new(&*packed).read_to_end(&mut tar).expect("gzip");
    let (mut documents, mut rest) = (BTreeMap::new(), &*tar);
    // A header of 512 bytes with name and octal size, the content, padding.
    while let Some((header, after)) = rest.split_at_checked(512) {
        let end = header[..100].iter().position(|it| *it == 0).unwrap_or(100);
        let name = std::str::from_utf8(&header[..end]).expect("a name");
        let octal = std::str::from_utf8(&header[124..135]).expect("a size").trim_matches(['\0', ' ']);
        let Ok(size) = usize::from_str_radix(octal, 8) else { break };
        if let Some(name) = name.strip_prefix("v3/").and_then(|it| it.strip_suffix("_openapi.json")) {
            let document = serde_json::from_slice(&after[..size]).expect("JSON");
            documents.insert(name.replace("__", "/"), document);
        }
        rest = &after[size.div_ceil(512) * 512..];
    }
    Some(documents)
}

#[test]
fn documents_are_those_of_kubernetes() {
    let Some(golden) = documents() else { return };
    let mut gaps = BTreeSet::new();
    for (name, wanted) in golden.iter().filter(|it| !GONE.contains(&&**it.0)) {
        let Some(found) = V3.documents.get(name) else {
            gaps.insert(format!("{name} is missing"));
            continue;
        };
        let found = super::parsed(found);
        compare_paths(&wanted["paths"], &found["paths"], &mut gaps);
        compare_schemas(&wanted["components"]["schemas"], &found["components"]["schemas"], &mut gaps);
    }
    let gaps: Vec<String> = gaps.into_iter().collect();
    assert!(gaps.is_empty(), "{} gaps:\n{}", gaps.len(), gaps.join("\n"));
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn compare_paths(wanted: &Value, found: &Value, gaps: &mut BTreeSet<String>) {
    for (path, item) in members(wanted) {
        for (method, operation) in members(item) {
            let found = &found[path][method];
            if method == "parameters" {
                compare_parameters(path, operation, found, gaps);
                continue;
            }
            compare_parameters(&format!("{method} {path}"), &operation["parameters"], &found["parameters"], gaps);
            for field in
                ["description", "operationId", "tags", "x-kubernetes-action", "x-kubernetes-group-version-kind"]
            {
                if operation[field] != found[field] {
                    gaps.insert(format!("{method} {path}: {field} is {}, not {}", found[field], operation[field]));
                }
            }
            for (code, response) in members(&operation["responses"]) {
                let (wanted, found) = (&response["content"], &found["responses"][code]["content"]);
                if wanted["application/json"] != found["application/json"]
                    || wanted["application/jwk-set+json"] != found["application/jwk-set+json"]
                {
                    gaps.insert(format!("{method} {path}: the answer with {code} differs"));
                }
            }
        }
    }
}

fn compare_parameters(place: &str, wanted: &Value, found: &Value, gaps: &mut BTreeSet<String>) {
    let names = |it: &Value| -> Vec<String> {
        let names =
            it.as_array().into_iter().flatten().map(|it| {
                format!("{} in {}, {}", it["name"].as_str().unwrap_or_default(), it["in"], it["schema"]["type"])
            });
        names.filter(|it| !PARAMETERS_NOT_HERE.iter().any(|not| it.starts_with(not))).collect()
    };
    if names(wanted) != names(found) {
        gaps.insert(format!("{place}: takes {:?}, not {:?}", names(found), names(wanted)));
    }
}

fn compare_schemas(wanted: &Value, found: &Value, gaps: &mut BTreeSet<String>) {
    let is_changed = |name: &str| CHANGED.iter().any(|it| name.ends_with(it));
    for (name, schema) in members(wanted).filter(|it| !is_changed(it.0)) {
        let found = &found[name];
        for field in [
            "type",
            "format",
            "oneOf",
            "x-kubernetes-group-version-kind",
            "x-kubernetes-map-type",
            "x-kubernetes-unions",
        ] {
            if schema[field] != found[field] {
                gaps.insert(format!("{name}: {field} is {}, not {}", found[field], schema[field]));
            }
        }
        let required = |it: &Value| -> BTreeSet<String> {
            it["required"].as_array().into_iter().flatten().map(ToString::to_string).collect()
        };
        if required(schema) != required(found) {
            gaps.insert(format!("{name}: requires {:?}, not {:?}", required(found), required(schema)));
        }
        for (field, schema) in members(&schema["properties"]) {
            let found = without_description(&found["properties"][field]);
            if without_description(schema) != found {
                gaps.insert(format!("{name}.{field}: is {found}, not {schema}"));
            }
        }
    }
}

/// Words change between versions, facts seldom do.
fn without_description(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("description");
        fields.sort_keys();
    }
    schema
}
