//! The spec that Pods and the templates of all workloads share: its defaults and its rules.

mod container;
mod defaults;
mod environment;
mod handlers;
mod names;
mod placement;
mod resources;
mod security;
mod spec;
mod volumes;

use corten_schema::Cursor;

pub(crate) use defaults::{default, default_requests};
pub(crate) use placement::label_selector;
pub(crate) use resources::qos_class;

/// The rules of a Pod's own spec.
pub(crate) fn validate(spec: Cursor<'_>) {
    spec::validate(spec, spec::Owner::Pod);
}

/// The rules of a template: its labels, annotations and spec.
pub(crate) fn validate_template(template: Cursor<'_>) {
    let metadata = template.at("metadata");
    names::labels(metadata.at("labels"));
    names::annotations(metadata.at("annotations"));
    spec::validate(template.at("spec"), spec::Owner::Template);
    if !template.at("spec").at("ephemeralContainers").is_empty() {
        template.at("spec").at("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template");
    }
}
