//! Asks a storage driver to attach a volume to a node, and says whether it did.

use corten_api::resources::VOLUME_ATTACHMENTS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{read::text, rules};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, boolean, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: VOLUME_ATTACHMENTS,
    singular: "volumeattachment",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.storage.v1.VolumeAttachment",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Attacher", "The driver.", |object, _| json!(text(object, "/spec/attacher"))),
        column("PV", "The volume.", |object, _| json!(text(object, "/spec/source/persistentVolumeName"))),
        column("Node", "The node.", |object, _| json!(text(object, "/spec/nodeName"))),
        boolean("Attached", "Is it attached?", |object, _| {
            json!(object["status"]["attached"].as_bool().unwrap_or_default())
        }),
        AGE,
    ],
    policy: &VolumeAttachment,
};

struct VolumeAttachment;

const METADATA_BYTES_MAX: usize = 256 * 1024;

impl Policy for VolumeAttachment {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |attachment| {
            let spec = attachment.at("spec");
            rules::driver_name(spec.at("attacher"));
            source(spec.at("source"));
            spec.at("nodeName").follows(field::dns1123_subdomain);
            status(attachment.at("status"));
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |attachment| rules::immutable(attachment.at("spec"), &old["spec"]))
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |attachment| status(attachment.at("status")))
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

fn source(source: Cursor<'_>) {
    let (inline, volume) = (source.at("inlineVolumeSpec"), source.at("persistentVolumeName"));
    match (inline.exists(), volume.exists()) {
        (false, false) => source.missing("must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
        (true, true) => source.forbidden("must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
        (false, true) => {
            if volume.is_empty() {
                volume.missing("must specify non empty persistentVolumeName");
            }
            volume.follows(field::dns1123_subdomain);
        }
        (true, false) => {}
    }
}

fn status(status: Cursor<'_>) {
    let metadata = status.at("attachmentMetadata");
    let bytes: usize = metadata.entries().map(|(key, value)| key.len() + value.str().len()).sum();
    if bytes > METADATA_BYTES_MAX {
        metadata.report(Violation::too_long(metadata.path(), METADATA_BYTES_MAX));
    }
}
