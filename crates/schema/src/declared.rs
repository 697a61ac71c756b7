//! A type of the table as expressions see it: apiserver's `SchemaDeclType` of the schema that the OpenAPI documents have.
//!
//! A type within itself is an object without fields, as upstream's `PopulateRefs` leaves it.

use corten_cel::{DeclType, ListKind, Shape as Declared};

use crate::{Apply, Field, Shape, Type, find};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type named `io.k8s.api.apps.v1.Deployment`, for whoever checks expressions; its objects are named from `name` on.
/// `None` where the table has none.
pub fn declared(table: &str, name: &str) -> Option<DeclType> {
    Some(object(find(table)?, &mut Vec::new()).named(name))
}

/// The same of a custom resource, by the schema that its definition has. Its metadata is that of every object.
pub fn declared_custom(schema: &serde_json::Value, name: &str) -> Option<DeclType> {
    let mut root = DeclType::from_schema(schema, true)?;
    if let (Declared::Object(fields), Some(metadata)) = (&mut root.shape, find(OBJECT_META)) {
        let fields = std::sync::Arc::make_mut(fields);
        if let Some(field) = fields.fields.get_mut("metadata") {
            field.of = object(metadata, &mut Vec::new());
        }
    }
    Some(root.named(name))
}

fn object(of: &'static Type, within: &mut Vec<&'static str>) -> DeclType {
    if within.contains(&of.name) {
        return DeclType::object("object", []);
    }
    within.push(of.name);
    let fields: Vec<(&str, DeclType, bool)> =
        of.fields.iter().map(|it| (it.name, field(it, within), it.required)).collect();
    within.pop();
    DeclType::object("object", fields)
}

fn field(of: &Field, within: &mut Vec<&'static str>) -> DeclType {
    match (of.shape, of.merge.apply) {
        (Shape::List(items), Apply::Set) => DeclType::list(shape(*items, within), None, ListKind::Set),
        (Shape::List(items), Apply::ByKeys(keys)) => {
            let keys = keys.iter().map(|it| (*it).to_owned()).collect();
            DeclType::list(shape(*items, within), None, ListKind::Map(keys))
        }
        (of, _) => shape(of, within),
    }
}

fn shape(of: Shape, within: &mut Vec<&'static str>) -> DeclType {
    match of {
        Shape::String => DeclType::string(None),
        Shape::Int32 | Shape::Int64 => DeclType::INT,
        Shape::Number => DeclType::DOUBLE,
        Shape::Boolean => DeclType::BOOL,
        Shape::Time | Shape::MicroTime => DeclType::TIMESTAMP,
        Shape::Bytes => DeclType::bytes(None),
        // Text or number, or anything at all: known when it runs.
        Shape::Quantity | Shape::IntOrString => DeclType::int_or_string(None),
        Shape::Any => DeclType::DYN,
        Shape::Object(of) => object(of, within),
        Shape::List(items) => DeclType::list(shape(*items, within), None, ListKind::Atomic),
        Shape::Map(values) => DeclType::map(shape(*values, within), None),
    }
}

#[cfg(test)]
mod tests {
    use corten_cel::{Env, STORED_EXPRESSIONS};
    use serde_json::json;

    use super::*;

    fn complaint(object: DeclType, expression: &str) -> String {
        let env = Env::new(STORED_EXPRESSIONS).variable("object", object);
        env.check(expression).err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_type_of_the_table_can_be_declared() {
        for it in crate::TYPES {
            assert!(declared(it.name, "T").is_some(), "{}", it.name);
        }
    }

    #[test]
    fn fields_are_known_and_others_are_not() {
        let deployment = || declared("io.k8s.api.apps.v1.Deployment", "Deployment").expect("a type of the table");
        for fine in [
            "object.spec.replicas > 1",
            "object.metadata.labels['a'] == 'b' && object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')",
            "object.spec.template.spec.containers.all(it, has(it.resources.limits) && it.resources.limits['cpu'] == '1')",
            "object.spec.strategy.rollingUpdate.maxSurge == 1",
        ] {
            assert_eq!(complaint(deployment(), fine), "", "{fine}");
        }
        let said = complaint(deployment(), "object.replicas > 1");
        assert_eq!(said, "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^");
    }

    #[test]
    fn a_custom_resource_has_the_metadata_of_every_object() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
        let lamp = || declared_custom(&schema, "Lamp").expect("a type");
        assert_eq!(
            complaint(lamp(), "object.spec.size > 1 && object.metadata.uid == 'a' && object.kind == 'Lamp'"),
            ""
        );
        assert!(complaint(lamp(), "object.spec.watts > 1").contains("undefined field 'watts'"));
    }
}
