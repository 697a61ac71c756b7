//! The environment of a container.

use corten_meta::field;
use corten_schema::Cursor;

use super::{container, names};
use crate::rules::data_key_reasons;

const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What a volume may show; the others can change while the file stands.
const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub(super) fn validate(container: Cursor<'_>) {
    for variable in container.list("env") {
        if variable.at("name").required() {
            variable.at("name").follows(names::environment_name);
        }
        if variable.at("valueFrom").exists() {
            source(variable.at("valueFrom"), variable.at("value").str());
        }
    }
    for all in container.list("envFrom") {
        let prefix = all.at("prefix");
        if !prefix.is_empty() {
            prefix.follows(names::environment_name);
        }
        let given: Vec<Cursor<'_>> =
            ["configMapRef", "secretRef"].map(|it| all.at(it)).into_iter().filter(|it| it.exists()).collect();
        match given[..] {
            [] => all.invalid_as("", "must specify one of: `configMapRef` or `secretRef`"),
            [one] => one.at("name").follows(field::dns1123_subdomain),
            _ => all.invalid_as("", "may not have more than one field specified at a time"),
        }
    }
}

fn source(source: Cursor<'_>, value: &str) {
    let given = SOURCES.iter().filter(|it| source.at(it).exists()).count();
    if given == 0 {
        source.invalid_as(
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !value.is_empty() {
        source.invalid_as("", "may not be specified when `value` is not empty");
    } else if given > 1 {
        source.invalid_as("", "may not have more than one field specified at a time");
    }
    if source.at("fieldRef").exists() {
        field_ref(source.at("fieldRef"), &FIELDS);
    }
    if source.at("resourceFieldRef").exists() {
        resource_ref(source.at("resourceFieldRef"));
    }
    let file = source.at("fileKeyRef");
    if file.exists() {
        file.at("volumeName").required();
        if file.at("path").required() {
            container::local_path(file.at("path"));
        }
        if file.at("key").required() {
            file.at("key").follows(names::environment_name);
        }
    }
    for reference in ["configMapKeyRef", "secretKeyRef"].map(|it| source.at(it)) {
        if reference.exists() {
            reference.at("name").follows(field::dns1123_subdomain);
            if reference.at("key").required() {
                reference.at("key").follows(data_key_reasons);
            }
        }
    }
}

/// A reference to a field of the Pod from a volume.
pub(super) fn volume_field_ref(reference: Cursor<'_>) {
    field_ref(reference, &VOLUME_FIELDS);
}

fn field_ref(reference: Cursor<'_>, allowed: &[&str]) {
    let (version, path) = (reference.at("apiVersion"), reference.at("fieldPath"));
    version.required();
    if !path.required() {
        return;
    }
    match path.str().split_once('[') {
        Some((map @ ("metadata.annotations" | "metadata.labels"), key)) => {
            let key = key.trim_end_matches(']').trim_matches('\'');
            let key = if map == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            for reason in field::qualified_name(&key) {
                path.invalid(&reason);
            }
        }
        Some(_) => path.invalid("does not support subscript"),
        None if version.str() != "v1" => {
            path.invalid(&format!("error converting fieldPath: unsupported pod version: {}", version.str()));
        }
        None if !is_label(path.str()) => {
            path.invalid(&format!("error converting fieldPath: field label not supported: {}", path.str()));
        }
        None => {
            path.one_of(allowed);
        }
    }
}

/// Can fields of Pods be selected by it at all (AddFieldLabelConversionsForPod)?
fn is_label(path: &str) -> bool {
    const MORE: [&str; 7] = [
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.hostNetwork",
        "status.phase",
        "status.nominatedNodeName",
    ];
    FIELDS.contains(&path) || MORE.contains(&path)
}

pub(super) fn resource_ref(reference: Cursor<'_>) {
    let resource = reference.at("resource");
    let is_huge_pages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|it| resource.str().starts_with(it));
    if resource.required() && !is_huge_pages {
        resource.one_of(&RESOURCES);
    }
}
