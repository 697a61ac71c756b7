//! Items of sets are compared as a whole: no two owners may have parts of one.

use corten_cel::ListKind;
use corten_schema::Cursor;

use super::parts;

const DETAIL: &str = "must be atomic as item of a list with x-kubernetes-list-type=set";

pub(super) fn validate(version: Cursor<'_>) {
    parts::structural(version.at("schema").at("openAPIV3Schema"), &mut |schema| {
        if schema.at("type").str() != "array" || schema.at("x-kubernetes-list-type").str() != ListKind::SET {
            return;
        }
        let items = schema.at("items");
        let (list, map) = (items.at("x-kubernetes-list-type"), items.at("x-kubernetes-map-type"));
        // A list is atomic where nothing is said, a map is granular.
        match items.at("type").str() {
            "array" if list.exists() && list.str() != ListKind::ATOMIC => list.invalid(DETAIL),
            "object" if map.str() != "atomic" => map.invalid(DETAIL),
            _ => {}
        }
    });
}
