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

use corten_schema::Cursor;

pub(crate) use defaults::{default, default_requests, in_tree};
pub(crate) use names::{annotations, labels, port_name, port_number_or_name};
pub(crate) use placement::{label_selector, node_selector, toleration};
pub(crate) use resources::qos_class;
pub(crate) use volumes::source as volume_source;
pub(crate) use warnings::{Name, old_sources, warnings};

/// The rules of a Pod's own spec.
pub(crate) fn validate(spec: Cursor<'_>) {
    spec::validate(spec, spec::Owner::Pod, std::iter::empty());
}

/// The rules of a template: its labels, annotations and spec.
pub(crate) fn validate_template(template: Cursor<'_>) {
    let metadata = template.at("metadata");
    // As upstream (ValidatePodTemplateSpec): the paths do not say `metadata`.
    names::labels(template.at("labels").instead(metadata.at("labels")));
    names::annotations(template.at("annotations").instead(metadata.at("annotations")));
    validate_template_spec(template, std::iter::empty());
}

/// The rules of a template's spec, where a claim of each of these names becomes a volume of its Pods.
pub(crate) fn validate_template_spec<'a>(template: Cursor<'a>, claimed: impl Iterator<Item = &'a str>) {
    spec::validate(template.at("spec"), spec::Owner::Template, claimed);
    if !template.at("spec").at("ephemeralContainers").is_empty() {
        template.at("spec").at("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template");
    }
}
