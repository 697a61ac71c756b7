use serde_json::json;

use super::*;

#[test]
fn both_forms_of_discovery_say_the_same() {
    let newer = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
            { "metadata": { "name": "other" }, "versions": [{ "version": "v1", "resources": [{ "resource": "x" }] }] },
            { "metadata": { "name": "a.example" }, "versions": [{ "version": "v1", "freshness": "Current", "resources": [{
                "resource": "flunders", "responseKind": { "group": "a.example", "version": "v1", "kind": "Flunder" },
                "scope": "Namespaced", "singularResource": "flunder", "verbs": ["get", "list"], "shortNames": ["fl"],
                "subresources": [{ "subresource": "status", "verbs": ["get"], "forged": 1,
                    "responseKind": { "group": "a.example", "version": "v1", "kind": "Flunder" } }],
                "forged": "field",
            }] }] },
        ],
    });
    let older = json!({
        "kind": "APIResourceList", "groupVersion": "a.example/v1", "resources": [
            { "name": "flunders/status", "namespaced": true, "kind": "Flunder", "verbs": ["get"] },
            { "name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder",
              "verbs": ["get", "list"], "shortNames": ["fl"] },
            { "name": "nothing/scale", "namespaced": true, "kind": "Scale", "verbs": ["get"] },
        ],
    });
    let newer = Resources::of_discovery(newer.to_string().as_bytes(), "a.example", "v1").expect("it can be read");
    let older = Resources::of_list(older.to_string().as_bytes()).expect("it can be read");
    assert!(!newer.as_ref().is_some_and(|it| format!("{it:?}").contains("forged")));
    assert_eq!(newer, Some(older));
}

#[test]
fn of_a_swagger_only_what_the_group_and_version_leads_to_is_taken() {
    let document = json!({
        "swagger": "2.0",
        "paths": {
            "/apis/a.example/v1/foos": { "get": { "responses": { "200": { "schema": { "$ref": "#/definitions/Foo" } } } } },
            "/apis/a.example/v10/foos": {},
            "/api/v1/secrets": {},
        },
        "definitions": {
            "Foo": { "properties": { "bar": { "$ref": "#/definitions/Bar" }, "self": { "$ref": "#/definitions/Foo" } } },
            "Bar": {}, "Secret": {},
        },
    });
    let swagger = Swagger::of(document.to_string().as_bytes(), "/apis/a.example/v1/").expect("it can be read");
    assert_eq!(swagger.paths.keys().collect::<Vec<_>>(), ["/apis/a.example/v1/foos"]);
    assert_eq!(swagger.definitions.keys().collect::<Vec<_>>(), ["Bar", "Foo"]);
}

#[test]
fn what_is_no_document_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in ["", "[]", "null", "\"x\"", "{\"swagger\":\"3\"}", &*deep] {
        assert!(Swagger::of(text.as_bytes(), "/apis/a/v1/").is_err(), "{}", &text[..text.len().min(20)]);
        assert!(Description::of(text.as_bytes()).is_err());
        assert!(Resources::of_list(text.as_bytes()).is_err());
        assert!(Resources::of_discovery(text.as_bytes(), "a", "v1").is_err());
    }
}

/// A document with one path, and `more` beside it.
fn swagger(path: &str, definitions: &str, more: &str) -> Result<Swagger, String> {
    let text =
        format!(r##"{{"swagger":"2.0","paths":{{"/apis/a/v1/x":{path}}},"definitions":{{{definitions}}}{more}}}"##);
    Swagger::of(text.as_bytes(), "/apis/a/v1/")
}

#[test]
fn what_is_hostile_is_passed_over_or_refused() {
    let many = |of: &str| vec![of; 1_000_000].join(",");
    let reference = r##"{"$ref":"#/definitions/Big"}"##;
    for passed_over in [
        swagger("{}", "", &format!(r#","other":[{}]"#, many("1"))),
        swagger("{}", &format!(r#""Big":[{}]"#, many("1")), ""),
        swagger("{}", "", &format!(r#","deep":{}{}"#, "[".repeat(100_000), "]".repeat(100_000))),
        swagger(r#"{"a":"[,[,{,\"[["}"#, "", ""),
    ] {
        let read = passed_over.expect("it can be read");
        assert_eq!((read.paths.len(), read.definitions.len()), (1, 0));
    }
    let names: Vec<String> = (0..=MEMBERS_MAX).map(|it| format!(r#""d{it}":{{}}"#)).collect();
    for (refused, why) in [
        (swagger(&format!("[{}]", many("1")), "", ""), "more than 200000 values belong to it"),
        (swagger(reference, &format!(r#""Big":[{}]"#, many("{}")), ""), "more than 200000 values belong to it"),
        (swagger("{}", &names.join(","), ""), "there are more than 10000 of them"),
        (swagger(&format!("{}{}", "[".repeat(1000), "]".repeat(1000)), "", ""), "it is nested too deeply"),
    ] {
        let error = refused.err().unwrap_or_default();
        assert!(error.contains(why), "{error}");
    }
    let below = r#"{"subresource":"s"}"#;
    let below = vec![below; 2000].join(",");
    let list = format!(
        r#"{{"items":[{{"metadata":{{"name":"a"}},"versions":[{{"version":"v1","resources":[{{"resource":"x","subresources":[{below}]}}]}}]}}]}}"#
    );
    assert!(Resources::of_discovery(list.as_bytes(), "a", "v1").is_err());
    assert!(Resources::of_discovery(list.as_bytes(), "a", "v2").is_ok_and(|it| it.is_none()));
}

/// What another server wrote is passed on as it is; written otherwise is what can be read, and is not too much.
#[test]
fn a_document_that_cannot_be_read_has_no_other_form() {
    let nested = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let many = format!("[0{}]", ",0".repeat(VALUES_MAX));
    for (part, has_protobuf) in
        [("1", true), (&nested, false), ("1e999", false), ("\"\\ud800\"", false), (&many, false)]
    {
        let json = format!("{{\"openapi\":\"3.0.0\",\"x-a\":{part}}}");
        let description = Description::of(json.as_bytes()).expect("it is passed on");
        assert_eq!(description.0.plain(), json);
        assert_eq!(description.0.v3_protobuf().is_some(), has_protobuf, "{part:.20}");
    }
}
