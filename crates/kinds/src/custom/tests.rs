//! Names that meet, paths to cells, rows of versions.

use corten_meta::Time;
use serde_json::{Value, json};

use super::*;
use corten_validation::json_path::JsonPath;

use crate::{Schema, Subresource, Verb, not_structural};

#[test]
fn paths_lead_where_kubectl_would_go() {
    let object = json!({
        "metadata": { "annotations": { "a.b/c": "dotted" } },
        "spec": { "a-b": "dashed", "ports": [{ "name": "web", "port": 80 }, { "name": "tls", "port": 443 }] },
        "status": { "conditions": [{ "type": "Synced", "status": "True" }, { "type": "Ready", "status": "False" }] },
    });
    for (path, expected) in [
        (".spec.a-b", json!("dashed")),
        (".spec['a-b']", json!("dashed")),
        (r".metadata.annotations.a\.b/c", json!("dotted")),
        (".metadata.annotations['a.b/c']", json!("dotted")),
        (".spec.ports[0].port", json!(80)),
        (".spec.ports[-1].name", json!("tls")),
        (".spec.ports[1:].name", json!("tls")),
        (".spec.ports[*].port", json!(80)),
        (r#".status.conditions[?(@.type=="Ready")].status"#, json!("False")),
        (r#".status.conditions[?(@.type == 'Ready')].status"#, json!("False")),
        (".spec.ports[?(@.port > 100)].name", json!("tls")),
        (".spec.ports[?(@.port != 80)].name", json!("tls")),
        (".spec.ports[?(@.name)].port", json!(80)),
        ("..port", json!(80)),
    ] {
        let read = JsonPath::read(path).unwrap_or_else(|| panic!("{path} is a path"));
        assert_eq!(read.first(&object), Some(&expected), "{path}");
    }
    for path in [".spec.none", ".spec.ports[7]", ".spec.ports[-3]", ".spec.ports[?(@.name==1)]", ".spec.ports.port"] {
        assert_eq!(JsonPath::read(path).and_then(|it| it.first(&object).cloned()), None, "{path}");
    }
    for broken in ["", "spec", ".spec.ports[", ".spec.ports[a]", ".spec.ports[?(@.a", ".spec.ports[?(a=1)]", "..a..["] {
        assert_eq!(JsonPath::read(broken), None, "{broken}");
    }
}

fn definition(name: &str, kind: &str, short_names: &[&str]) -> Value {
    json!({
        "metadata": { "name": format!("{name}.example.com") },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": name, "singular": name, "kind": kind, "listKind": format!("{kind}List"), "shortNames": short_names },
        },
    })
}

#[test]
fn who_comes_first_keeps_the_name() {
    let now = Time::from_unix_seconds(0);
    let settled = with_names(&definition("cars", "Car", &["c"]), &[], &[], now).expect("it gets its names");
    assert!(has_condition(&settled, "NamesAccepted") && !has_condition(&settled, "Established"));
    assert_eq!(with_names(&settled, &[], &[], now), None, "it says so already");
    let others = [names_of(&settled)];
    for (definition, reason, message) in [
        (definition("carts", "Cart", &[]), "NoConflicts", "no conflicts found"),
        (definition("carts", "Cart", &["c"]), "ShortNamesConflict", r#""c" is already in use"#),
        (definition("carts", "Cart", &["cars"]), "ShortNamesConflict", r#""cars" is already in use"#),
        (definition("carts", "Car", &[]), "ListKindConflict", r#""CarList" is already in use"#),
        // Its singular is the same word, and the last is told.
        (definition("c", "Cart", &[]), "SingularConflict", r#""c" is already in use"#),
        // A list is a kind, too.
        (definition("carts", "CarList", &[]), "KindConflict", r#""CarList" is already in use"#),
    ] {
        let new = with_names(&definition, &others, &[], now).expect("it is told");
        let told = &new["status"]["conditions"][0];
        assert_eq!((told["reason"].as_str(), told["message"].as_str()), (Some(reason), Some(message)));
        assert_eq!(told["status"] == "True", reason == "NoConflicts");
        assert_eq!(new["status"]["conditions"][1]["type"], "Established");
    }
}

/// As in an etcd that an earlier Kubernetes has filled.
#[test]
fn a_schema_that_is_not_structural_is_told_until_it_is() {
    let now = Time::from_unix_seconds(0);
    let mut cars = definition("cars", "Car", &[]);
    cars["spec"]["preserveUnknownFields"] = json!(true);
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": { "description": "any" } } } });
    cars["spec"]["versions"] = json!([{ "name": "v1", "served": true, "storage": true, "schema": schema }]);
    let mut told = with_names(&cars, &[], &not_structural(&cars), now).expect("it is told");
    let condition = told["status"]["conditions"].as_array().expect("conditions").iter();
    let condition = condition.clone().find(|it| it["type"] == "NonStructuralSchema").expect("it is there");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Violations")));
    assert_eq!(
        condition["message"],
        "[spec.preserveUnknownFields: Invalid value: true: must be false, \
         spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields]"
    );
    assert_eq!(with_names(&told, &[], &not_structural(&told), now), None, "it says so already");
    told["spec"]["preserveUnknownFields"] = json!(false);
    told["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = json!("object");
    let mended = with_names(&told, &[], &not_structural(&told), now).expect("it is told");
    assert!(
        mended["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().all(|it| it["type"] != "NonStructuralSchema"))
    );
}

#[test]
fn a_name_that_is_asked_for_later_and_taken_leaves_the_old_one() {
    let now = Time::from_unix_seconds(0);
    let mut cart = with_names(&definition("carts", "Cart", &["k"]), &[], &[], now).expect("it gets its names");
    let established =
        Condition { kind: "Established", is_true: true, reason: "InitialNamesAccepted", message: String::new() };
    cart = with_condition(&cart, &established, now).expect("it is new");
    cart["spec"]["names"]["shortNames"] = json!(["c"]);
    let others = [names_of(&with_names(&definition("cars", "Car", &["c"]), &[], &[], now).expect("names"))];
    let new = with_names(&cart, &others, &[], now).expect("it is told");
    assert_eq!(names_of(&new).short_names, ["k"]);
    assert!(has_condition(&new, "Established") && !has_condition(&new, "NamesAccepted"));
}

#[test]
fn each_served_version_is_a_row_and_one_is_stored() {
    let schema = |fields: Value| json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object", "properties": fields } } } });
    let mut definition = definition("cars", "Car", &[]);
    definition["spec"]["versions"] = json!([
        { "name": "v2", "served": true, "storage": true, "schema": schema(json!({ "a": { "type": "string", "default": "x" } })),
          "subresources": { "status": {} } },
        { "name": "v1", "served": true, "storage": false, "schema": schema(json!({ "b": { "type": "string" } })),
          "additionalPrinterColumns": [{ "name": "B", "type": "string", "jsonPath": ".spec.b" }] },
        { "name": "v0", "served": false, "storage": false, "schema": schema(json!({})) },
    ]);
    let rows = rows(&definition).expect("it has a stored version");
    let versions: Vec<&str> = rows.served.iter().map(|it| &*it.resource.version).collect();
    assert_eq!((&*rows.stored.resource.version, versions), ("v2", vec!["v2", "v1"]));
    let [stored, view] = &rows.served[..] else { panic!("two are served") };
    assert!(stored.is_stored() && stored.has(Subresource::Status) && !view.is_stored() && view.subresources.is_empty());
    let columns = |kind: &crate::Kind| kind.columns.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>();
    assert_eq!((columns(stored), columns(view)), (vec!["Age".into()], vec!["B".into()]));
    assert_eq!(stored.schema.name(), "com.example.v2.Car");
    let Schema::Structural(schema) = &stored.schema else { panic!("it has a schema of its own") };
    let mut object = json!({ "metadata": { "name": "a" }, "spec": { "b": 1 } });
    schema.coerce(&mut object);
    assert_eq!(object["spec"], json!({ "a": "x" }));

    definition["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let leaving = super::rows(&definition).expect("it is still served").stored;
    assert!(!leaving.allows(Verb::Create) && leaving.allows(Verb::Delete) && leaving.is_stored());
}
