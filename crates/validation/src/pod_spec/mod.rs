//! The spec that Pods and the templates of all workloads share: its defaults and its rules.

mod claims;
mod container;
mod defaults;
mod environment;
mod handlers;
mod names;
mod placement;
mod resources;
mod security;
mod sharing;
mod sources;
mod spec;
mod volumes;
mod warnings;

use std::collections::BTreeSet;

use corten_schema::Cursor;

use crate::labels;

pub use container::no_way_up;
pub use defaults::{default, default_requests, in_tree};
pub use names::{port_name, port_number_or_name};
pub use placement::{node_selector, toleration};
pub use resources::qos_class;
pub use volumes::source as volume_source;
pub use warnings::{Name, old_sources, warnings};
pub(crate) use warnings::{fraction, old_label, old_terms};

/// The rules of a Pod's own spec. The ports of the node whose number is still to be chosen are `open`, by their names.
pub fn validate(spec: Cursor<'_>, open: &BTreeSet<&str>) {
    spec::validate(spec, spec::Owner::Pod(open), std::iter::empty());
}

/// The rules of a template: its labels, annotations and spec.
pub fn validate_template(template: Cursor<'_>) {
    let metadata = template.at("metadata");
    // `ValidatePodTemplateSpec`: the paths do not say `metadata`.
    labels::labels(template.at("labels").instead(metadata.at("labels")));
    labels::annotations(template.at("annotations").instead(metadata.at("annotations")));
    validate_template_spec(template, std::iter::empty());
}

/// The rules of a template's spec, where a claim of each of these names becomes a volume of its Pods.
pub fn validate_template_spec<'a>(template: Cursor<'a>, claimed: impl Iterator<Item = &'a str>) {
    spec::validate(template.at("spec"), spec::Owner::Template, claimed);
    if !template.at("spec").at("ephemeralContainers").is_empty() {
        template.at("spec").at("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template");
    }
}
