use serde_json::json;

use super::*;

#[test]
fn structs_are_written_as_go_writes_them() {
    let shown = rule(&json!({ "rule": "self.a < 1 && true", "reason": "FieldValueInvalid" }));
    let expected = r#"{"Rule":"self.a \u003c 1 \u0026\u0026 true","Message":"","MessageExpression":"","Reason":"FieldValueInvalid","FieldPath":"","OptionalOldSelf":null}"#;
    assert_eq!(shown, expected);
    let two = |a: &Value, b: &Value| {
        versions(&json!([{ "name": "a", "served": true, "schema": a }, { "name": "b", "schema": b }]))
    };
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let alike = r#"[{"Name":"a","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"b","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]"#;
    assert_eq!(two(&schema, &schema), alike);
    let other = json!({ "openAPIV3Schema": { "properties": { "a": { "items": {}, "additionalProperties": false } } } });
    let shown = two(&schema, &other);
    for part in [
        r#""Schema":{"OpenAPIV3Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","#,
        r#""Properties":{"a":{"ID":"","#,
        r#""Items":{"Schema":{"ID":"","#,
        r#","JSONSchemas":null},"AllOf":null"#,
        r#""AdditionalProperties":{"Allows":false,"Schema":null}"#,
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn selectable_fields_stand_elsewhere_where_the_schemas_are_alike() {
    let two = |schema: Value| {
        let fields = json!([{ "jsonPath": ".spec.a" }]);
        let version = |schema: &Value| json!({ "name": "a", "schema": schema, "selectableFields": fields });
        versions(&json!([version(&json!({})), version(&schema)])).matches(".spec.a").count()
    };
    assert_eq!((two(json!({})), two(json!({ "openAPIV3Schema": {} }))), (0, 2));
}

#[test]
fn keys_of_maps_are_in_their_order() {
    let shown = schema(&json!({ "default": { "b": 1, "a": [{ "d": 1, "c": 2 }] }, "enum": [{ "y": 1, "x": 2 }] }));
    assert!(shown.contains(r#""Default":{"a":[{"c":2,"d":1}],"b":1}"#), "{shown}");
    assert!(shown.contains(r#""Enum":[{"x":2,"y":1}]"#), "{shown}");
}
