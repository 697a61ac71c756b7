//! `meta.k8s.io/v1` Tables: what `kubectl get` prints, computed from the columns of a kind's row.

use corten_kinds::Kind;
use corten_meta::Time;
use serde_json::{Value, json};

use crate::{
    codec::{Include, partial},
    watch_cache::versions,
};

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// The name comes first, unless the kind has a place of its own for it.
fn begins_with_name(kind: &Kind) -> bool {
    kind.columns.iter().all(|it| it.name() != "Name")
}

/// `columnDefinitions`.
pub fn columns(kind: &Kind) -> Value {
    let name = json!({ "name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0 });
    let others = kind.columns.iter().map(|it| {
        json!({
            "name": it.name(), "type": it.column_type(), "format": it.format(), "description": it.description(),
            "priority": it.priority(),
        })
    });
    begins_with_name(kind).then_some(name).into_iter().chain(others).collect()
}

/// `object` is as it is stored, whatever version `kind` shows: cells are read from that form. A custom resource is in the version
/// of `kind`.
pub fn row(kind: &Kind, object: &Value, include: Include, now: Time) -> Value {
    let name = object["metadata"]["name"].clone();
    let name = begins_with_name(kind).then_some(name);
    let cells: Vec<Value> = name.into_iter().chain(kind.columns.iter().map(|it| it.cell(object, now))).collect();
    match include {
        Include::None => json!({ "cells": cells }),
        Include::Metadata => json!({ "cells": cells, "object": partial::of(object) }),
        Include::Object => {
            let mut object = object.clone();
            versions::from_stored(kind, &mut object);
            json!({ "cells": cells, "object": object })
        }
    }
}

/// A table of one object: the answer to a get, and a watch's event. Without columns where they were sent before.
pub fn single(kind: &Kind, object: &Value, include: Include, now: Time, with_columns: bool) -> Value {
    let columns = if with_columns { columns(kind) } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": object["metadata"]["resourceVersion"] },
        "columnDefinitions": columns,
        "rows": [row(kind, object, include, now)],
    })
}
