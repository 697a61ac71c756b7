//! What is told of VolumeAttachments.

use std::collections::BTreeMap;

use corten_api::resources::VOLUME_ATTACHMENTS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    exposition::{self, Samples},
    family::{Family, KindMetrics},
};

static VOLUME_ATTACHMENTS_AT: Resource = RESOURCE;

pub(crate) static VOLUME_ATTACHMENTS: KindMetrics<VolumeAttachment> = KindMetrics {
    resource: &VOLUME_ATTACHMENTS_AT,
    labels: &["volumeattachment"],
    identity: |it| vec![&it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeAttachment {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    attacher: String,
    node_name: String,
    source: Source,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    persistent_volume_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    attached: bool,
    attachment_metadata: BTreeMap<String, String>,
}

const FAMILIES: &[Family<VolumeAttachment>] = &[
    Family::gauge("kube_volumeattachment_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_volumeattachment_info",
        "Information about volumeattachment.",
        &["attacher", "node"],
        |it, out| out.add(&[&it.spec.attacher, &it.spec.node_name], 1.0),
    ),
    Family::gauge(
        "kube_volumeattachment_spec_source_persistentvolume",
        "PersistentVolume source reference.",
        &["volumename"],
        |it, out| it.spec.source.persistent_volume_name.iter().for_each(|name| out.add(&[name], 1.0)),
    ),
    Family::gauge("kube_volumeattachment_status_attached", "Information about volumeattachment.", &[], |it, out| {
        out.one(it.status.attached)
    }),
    Family::gauge("kube_volumeattachment_status_attachment_metadata", "volumeattachment metadata.", &[], metadata),
];

/// What the driver said of the attachment: a label for each of its keys, with the key's place where several would be the same label.
fn metadata(attachment: &VolumeAttachment, out: &mut Samples<'_>) {
    let mut keys: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (key, value) in &attachment.status.attachment_metadata {
        keys.entry(format!("metadata_{}", snake_case(key))).or_default().push(value);
    }
    let mut labels = BTreeMap::new();
    for (label, values) in keys {
        match &*values {
            [value] => drop(labels.insert(label, *value)),
            _ => labels.extend(values.iter().zip(1..).map(|(value, nth)| (format!("{label}_conflict{nth}"), *value))),
        }
    }
    out.add_labels(&labels, 1.0);
}

/// `devicePath` as `device_path`.
fn snake_case(key: &str) -> String {
    let (mut out, mut last) = (String::new(), '_');
    for it in exposition::label_text(key).chars() {
        if it.is_ascii_uppercase() && (last.is_ascii_lowercase() || last.is_ascii_digit()) {
            out.push('_');
        }
        out.push(it.to_ascii_lowercase());
        last = it;
    }
    out
}
