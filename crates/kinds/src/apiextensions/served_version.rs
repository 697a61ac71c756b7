//! One version of a custom resource: schema, subresources, columns.

use corten_meta::field;
use corten_schema::Cursor;

use super::{keywords, structural_schema};
use crate::ColumnType;

const WARNING_BYTES_MAX: usize = 256;
const SELECTABLE_MAX: usize = 8;

pub(super) fn validate(version: Cursor<'_>, must_be_structural: bool) {
    let reasons = field::dns1035_label(version.at("name").str());
    if !reasons.is_empty() {
        version.at("name").invalid_as(version.at("name").str(), &reasons.join(","));
    }
    let warning = version.at("deprecationWarning");
    if warning.exists() && !version.at("deprecated").bool() {
        warning.invalid("can only be set for deprecated versions");
    }
    if warning.exists() && warning.is_empty() {
        warning.invalid("must be non-empty if set");
    }
    if warning.str().len() > WARNING_BYTES_MAX {
        warning.report(corten_meta::Violation::too_long(warning.path(), WARNING_BYTES_MAX));
    }
    let schema = version.at("schema").at("openAPIV3Schema");
    if !schema.exists() {
        schema.missing("schemas are required");
    }
    if must_be_structural {
        structural_schema::validate(version);
    }
    keywords::validate(version);
    scale(version.at("subresources").at("scale"));
    version.list("additionalPrinterColumns").for_each(column);
    let selectable = version.at("selectableFields");
    for path in selectable.each().map(|it| it.at("jsonPath")) {
        path.required();
    }
    if selectable.items().len() > SELECTABLE_MAX {
        selectable.report(corten_meta::Violation::too_many(
            selectable.path(),
            selectable.items().len(),
            SELECTABLE_MAX,
        ));
    }
}

fn scale(scale: Cursor<'_>) {
    if !scale.exists() {
        return;
    }
    for (name, below) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let path = scale.at(name);
        if path.required() && !path.str().starts_with(below) {
            path.invalid(&format!("should be a json path under {}", below.trim_end_matches('.')));
        }
    }
    let selector = scale.at("labelSelectorPath");
    if !selector.is_empty() && ![".spec.", ".status."].iter().any(|it| selector.str().starts_with(it)) {
        selector.invalid("should be a json path under either .spec or .status");
    }
}

fn column(column: Cursor<'_>) {
    column.at("name").required();
    let kind = column.at("type");
    if kind.required() {
        kind.one_of(&ColumnType::NAMES);
    }
    if !column.at("format").is_empty() {
        column.at("format").one_of(&["byte", "date", "date-time", "double", "float", "int32", "int64", "password"]);
    }
    if column.at("jsonPath").required() {
        json_path(column.at("jsonPath"));
    }
}

fn json_path(path: Cursor<'_>) {
    if !path.str().starts_with('.') {
        path.invalid("must be a simple json path starting with .");
    }
}
