use serde_json::json;

use super::*;

#[test]
fn paths_lead_to_fields_of_the_schema() {
    let schema = json!({ "properties": {
        "spec": { "properties": { "a": { "type": "string" }, "a.b": { "type": "integer" }, "it's": { "type": "boolean" } } },
        "labels": { "additionalProperties": { "type": "string" } },
    } });
    for (path, expected) in [
        (".spec.a", Ok("string")),
        (".spec['a.b']", Ok("integer")),
        (r".spec['it\'s']", Ok("boolean")),
        (".labels.any", Ok("string")),
        (".spec.none", Err("does not refer to a valid field")),
        (".spec.a.b", Err("does not refer to a valid field")),
        ("spec", Err("expected [ or . but got: spec")),
        (".spec.", Err(END)),
        (".spec[", Err(END)),
        (".spec['a'", Err(END)),
        (".spec[0]", Err("expected single quoted string but got 0")),
        (".spec[']", Err("expected single quoted string but got ']")),
    ] {
        let found = find(path, &schema).map(|it| it.schema["type"].as_str().unwrap_or_default());
        assert_eq!(found, expected.map_err(str::to_owned), "{path}");
    }
}
