//! The spec of a PersistentVolumeClaim: of a claim's own, and of those that Pods and StatefulSets make from a template.

use corten_meta::field;
use corten_schema::Cursor;

use crate::{fill::means_the_same, labels::label_selector, rules::amount};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub fn validate(spec: Cursor<'_>) {
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        modes.missing("at least 1 access mode is required");
    }
    if spec.at("selector").exists() {
        label_selector(spec.at("selector"));
    }
    access_modes(modes);
    let requests = spec.at("resources").at("requests");
    let storage = requests.key("storage");
    if storage.exists() {
        amount::positive(storage);
    } else {
        spec.at("resources").key("storage").missing("");
    }
    if !spec.at("storageClassName").is_empty() {
        spec.at("storageClassName").follows(field::dns1123_subdomain);
    }
    if spec.at("volumeMode").exists() {
        spec.at("volumeMode").one_of(&["Block", "Filesystem"]);
    }
    let (old, new) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    for source in [old, new].into_iter().filter(|it| it.exists()) {
        data_source(source);
    }
    if old.exists() && new.exists() && new.at("namespace").is_empty() && !means_the_same(old.value(), new.value()) {
        spec.invalid("must match dataSourceRef");
    }
    if !spec.at("volumeAttributesClassName").is_empty() {
        spec.at("volumeAttributesClassName").follows(field::dns1123_subdomain);
    }
}

fn data_source(source: Cursor<'_>) {
    source.at("name").required();
    source.at("kind").required();
    let group = source.at("apiGroup");
    if group.is_empty() {
        let kind = source.at("kind").str();
        if kind != "PersistentVolumeClaim" {
            source.invalid_as(kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
        }
    } else {
        group.follows(field::dns1123_subdomain);
    }
}

/// The access modes of a volume or a claim.
pub fn access_modes(modes: Cursor<'_>) {
    for mode in modes.each() {
        if !MODES.contains(&mode.str()) {
            modes.instead(mode).unsupported(&MODES);
        }
    }
    let has_single = modes.each().any(|it| it.str() == "ReadWriteOncePod");
    if has_single && modes.each().any(|it| it.str() != "ReadWriteOncePod") {
        modes.forbidden("may not use ReadWriteOncePod with other access modes");
    }
}
