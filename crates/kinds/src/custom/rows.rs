//! The rows that a definition makes: one for each version that is served, and that of the stored version.

use std::{collections::BTreeSet, sync::Arc};

use corten_meta::Resource;
use corten_schema::structural::Structural;
use serde_json::Value;

use super::policy::CustomResource;
use crate::{
    Columns, CustomSchema, Kind, Names, PathColumn, PolicyRef, Scale, Schema, Subresource, Verb, Versions, ViewOf,
};

pub struct Rows {
    /// What a cache of the objects goes by: the version that objects are written in, served or not, with the selectable fields
    /// of all versions.
    pub stored: Arc<Kind>,
    /// In the order of the definition.
    pub served: Vec<Arc<Kind>>,
}

/// Of a definition whose names were accepted. `None` where it is none: it has no version that is stored.
pub fn rows(definition: &Value) -> Option<Rows> {
    let versions = definition["spec"]["versions"].as_array()?;
    let storage = versions.iter().position(|it| it["storage"] == true)?;
    let schemas = versions.iter().map(|it| {
        let resource = resource(definition, it);
        let schema = schema(definition, &resource, it);
        (resource, Arc::new(schema))
    });
    let all = Arc::new(Versions::new(definition, schemas.collect(), storage));
    let is_leaving = definition["metadata"]["deletionTimestamp"].is_string();
    let mut stored = row(definition, &versions[storage], &all, None);
    let fields: BTreeSet<String> = versions.iter().flat_map(|it| selectable(&it["selectableFields"])).collect();
    stored.selectable_fields = Names::Owned(fields.into_iter().collect());
    let stored = Arc::new(stored);
    // That in which the objects are written is there, served before or not, for as long as they are to be deleted.
    let is_shown = |it: &&Value| it["served"] == true || it["storage"] == true && is_leaving;
    let served = versions.iter().filter(is_shown).map(|version| {
        let is_view = version["storage"] != true;
        let view = is_view.then(|| ViewOf { row: Some(stored.clone()), ..ViewOf::same(stored.resource.clone()) });
        Arc::new(row(definition, version, &all, view))
    });
    let served = served.collect();
    Some(Rows { stored, served })
}

fn resource(definition: &Value, version: &Value) -> Resource {
    let (spec, names) = (&definition["spec"], super::names_of(definition));
    Resource {
        group: text(spec, "group").into(),
        version: text(version, "name").into(),
        kind: names.kind.into(),
        plural: names.plural.into(),
        namespaced: spec["scope"] == "Namespaced",
    }
}

fn schema(definition: &Value, resource: &Resource, version: &Value) -> CustomSchema {
    let schema = &version["schema"]["openAPIV3Schema"];
    let structural = Structural::read(schema);
    let preserves_unknown = definition["spec"]["preserveUnknownFields"] == true;
    CustomSchema {
        name: schema_name(resource),
        structural: if preserves_unknown { structural.preserving_unknown() } else { structural },
        open_api: schema.to_string().into(),
        scale: Scale::read(&version["subresources"]["scale"]),
        deprecation: deprecation(resource, version),
    }
}

fn deprecation(resource: &Resource, version: &Value) -> Option<String> {
    let is_deprecated = version["deprecated"] == true;
    let own = version["deprecationWarning"].as_str().map(str::to_owned);
    is_deprecated.then(|| own.unwrap_or_else(|| format!("{} {} is deprecated", resource.api_version(), resource.kind)))
}

fn row(definition: &Value, version: &Value, all: &Arc<Versions>, view_of: Option<ViewOf>) -> Kind {
    let subresources = &version["subresources"];
    let names = super::names_of(definition);
    let resource = resource(definition, version);
    let has_status = subresources["status"].is_object();
    let schema = all.by_name(&resource.version).expect("it is one of all").schema.clone();
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
        versions: Some(all.clone()),
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
