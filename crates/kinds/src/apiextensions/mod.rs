//! `apiextensions.k8s.io`.

mod checks;
mod completeness;
pub(crate) mod custom_resource_definition;
mod defaults;
mod field_path;
mod internal_form;
mod item_keys;
mod keywords;
mod list_items;
mod names;
mod parts;
mod pattern;
mod place;
mod rule_text;
mod rules;
mod selectable_fields;
mod served_version;
mod shown_paths;
mod structural_schema;

pub use checks::not_structural;
