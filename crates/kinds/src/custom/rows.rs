//! The rows that a definition makes: one for each version that is served, and that of the stored version.

use std::sync::Arc;

use corten_meta::Resource;
use corten_schema::structural::Structural;
use serde_json::Value;

use super::policy::CustomResource;
use crate::{Columns, CustomSchema, Kind, Names, PathColumn, PolicyRef, Scale, Schema, Subresource, Verb, ViewOf};

pub struct Rows {
    /// The version that objects are stored in, served or not.
    pub stored: Arc<Kind>,
    /// In the order of the definition.
    pub served: Vec<Arc<Kind>>,
}

/// Of a definition whose names were accepted. `None` where it is none: it has no version that is stored.
pub fn rows(definition: &Value) -> Option<Rows> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array()?;
    let stored_version = versions.iter().find(|it| it["storage"] == true)?;
    let stored = Arc::new(row(definition, stored_version, None));
    let is_leaving = definition["metadata"]["deletionTimestamp"].is_string();
    // No webhook is called: other versions would show what their author did not mean. That in which the objects are stored is
    // there, served before or not, for as long as they are to be deleted.
    let is_shown = |it: &&Value| match it["storage"] == true {
        true => it["served"] == true || is_leaving,
        false => it["served"] == true && !converts_by_webhook(definition),
    };
    let served = versions.iter().filter(is_shown).map(|version| {
        if version["storage"] == true {
            stored.clone()
        } else {
            let same_fields = version["schema"] == stored_version["schema"];
            Arc::new(row(definition, version, Some(view(&stored, same_fields))))
        }
    });
    let served = served.collect();
    Some(Rows { stored, served })
}

pub(crate) fn converts_by_webhook(definition: &Value) -> bool {
    definition["spec"]["conversion"]["strategy"] == "Webhook"
}

/// Conversion by `None` changes the head alone; what the version shown does not know is left out.
fn view(stored: &Arc<Kind>, same_fields: bool) -> ViewOf {
    let of = ViewOf { row: Some(stored.clone()), ..ViewOf::same(stored.resource.clone()) };
    ViewOf { same_fields, ..of }
}

fn row(definition: &Value, version: &Value, view_of: Option<ViewOf>) -> Kind {
    let (spec, subresources) = (&definition["spec"], &version["subresources"]);
    let names = super::names_of(definition);
    let resource = Resource {
        group: text(spec, "group").into(),
        version: text(version, "name").into(),
        kind: names.kind.clone().into(),
        plural: names.plural.clone().into(),
        namespaced: spec["scope"] == "Namespaced",
    };
    let has_status = subresources["status"].is_object();
    let schema = Arc::new(CustomSchema {
        name: schema_name(&resource),
        structural: Structural::read(&version["schema"]["openAPIV3Schema"]),
        open_api: version["schema"]["openAPIV3Schema"].to_string().into(),
        scale: Scale::read(&subresources["scale"]),
    });
    Kind {
        resource,
        singular: names.singular.into(),
        short_names: Names::Owned(names.short_names),
        categories: Names::Owned(names.categories),
        verbs: if definition["metadata"]["deletionTimestamp"].is_string() { Verb::WITHOUT_CREATE } else { Verb::ALL },
        subresources: match (has_status, subresources["scale"].is_object()) {
            (false, false) => &[],
            (true, false) => &[Subresource::Status],
            (false, true) => &[Subresource::Scale],
            (true, true) => &[Subresource::Status, Subresource::Scale],
        },
        schema: Schema::Structural(schema.clone()),
        view_of,
        selectable_fields: Names::Owned(selectable(&version["selectableFields"])),
        columns: Columns::Paths(columns(&version["additionalPrinterColumns"])),
        policy: PolicyRef::Owned(Box::new(CustomResource { schema, has_status })),
        list_kind: names.list_kind.into(),
    }
}

/// `com.example.stable.v1.CronTab` of `stable.example.com`: groups are domains, and the documents want packages
/// (openapi/builder's `definitionName`).
fn schema_name(resource: &Resource) -> String {
    let mut parts: Vec<&str> = resource.group.rsplit('.').collect();
    parts.extend([&*resource.version, &*resource.kind]);
    parts.join(".")
}

fn columns(columns: &Value) -> Vec<PathColumn> {
    let columns: Vec<_> = columns.as_array().into_iter().flatten().map(PathColumn::read).collect();
    if columns.is_empty() { vec![PathColumn::age()] } else { columns }
}

fn selectable(fields: &Value) -> Vec<String> {
    let paths = fields.as_array().into_iter().flatten().filter_map(|it| it["jsonPath"].as_str());
    paths.map(|it| it.trim_start_matches('.').to_owned()).collect()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
