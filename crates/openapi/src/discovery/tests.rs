use serde_json::{Value, json};

use super::*;

fn get(path: &str, media_type: &'static str) -> Value {
    let found = Discovery::of(&corten_kinds::Kinds::default(), &Aggregated::default())
        .0
        .remove(&(path.to_owned(), media_type))
        .unwrap_or_else(|| panic!("{path} is served"));
    serde_json::from_slice(&found.bytes).expect("documents are JSON")
}

fn entry(list: &Value, field: &str, name: &str) -> Value {
    let found = list.as_array().expect("a list").iter().find(|it| it[field] == name);
    found.unwrap_or_else(|| panic!("{name} is listed")).clone()
}

#[test]
fn resources_are_listed_as_kubernetes_lists_them() {
    let core = get("/api/v1", JSON);
    assert_eq!(core["groupVersion"], "v1");
    for (name, expected) in [
        (
            "namespaces/finalize",
            json!({ "name": "namespaces/finalize", "singularName": "", "namespaced": false, "kind": "Namespace", "verbs": ["update"] }),
        ),
        (
            "pods/eviction",
            json!({ "name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"] }),
        ),
        (
            "pods/log",
            json!({ "name": "pods/log", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"] }),
        ),
    ] {
        assert_eq!(entry(&core["resources"], "name", name), expected);
    }
    let pods = entry(&core["resources"], "name", "pods");
    assert_eq!((&pods["shortNames"], &pods["categories"]), (&json!(["po"]), &json!(["all"])));
    let scale = entry(&get("/apis/apps/v1", JSON)["resources"], "name", "deployments/scale");
    assert_eq!((&scale["group"], &scale["kind"]), (&json!("autoscaling"), &json!("Scale")));
}

#[test]
fn groups_are_listed() {
    let groups = get("/apis", JSON);
    let version = json!({ "groupVersion": "apps/v1", "version": "v1" });
    assert_eq!(
        entry(&groups["groups"], "name", "apps"),
        json!({ "name": "apps", "versions": [version], "preferredVersion": version })
    );
    assert_eq!(get("/apis/apps", JSON)["kind"], "APIGroup");
    assert_eq!(get("/api", JSON)["versions"], json!(["v1"]));
}

#[test]
fn aggregated_discovery_says_all_at_once() {
    for (version, media_type) in AGGREGATED {
        let core = get("/api", media_type);
        assert_eq!(core["apiVersion"], format!("apidiscovery.k8s.io/{version}"));
        let pods = entry(&core["items"][0]["versions"][0]["resources"], "resource", "pods");
        assert_eq!(pods["scope"], "Namespaced");
        let eviction = entry(&pods["subresources"], "subresource", "eviction");
        assert_eq!(eviction["responseKind"], json!({ "group": "policy", "version": "v1", "kind": "Eviction" }));
        let names: Vec<_> = get("/apis", media_type)["items"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["metadata"]["name"].clone())
            .collect();
        assert!(names.contains(&json!("apps")) && !names.contains(&json!("")));
    }
}

#[test]
fn the_client_chooses_the_form() {
    let [(_, v2), (_, v2beta1)] = AGGREGATED;
    let client_go = format!("{v2},{v2beta1},application/json");
    for (accept, path, expected) in [
        ("", "/apis", Some(JSON)),
        ("*/*", "/apis", Some(JSON)),
        (&*client_go, "/apis", Some(v2)),
        (&*client_go, "/apis/apps/v1", Some(JSON)),
        ("application/json;as=APIGroupDiscoveryList;v=v2beta1;g=apidiscovery.k8s.io", "/api", Some(v2beta1)),
        ("application/json;charset=utf-8", "/api", Some(JSON)),
        ("application/vnd.kubernetes.protobuf", "/api", Some(PROTOBUF)),
        ("application/vnd.kubernetes.protobuf;q=0.5,application/json", "/api", Some(JSON)),
        ("application/vnd.kubernetes.protobuf,application/json;q=0.5", "/api/v1", Some(PROTOBUF)),
        (PROTOBUF_FORMS[1].0, "/apis", Some(PROTOBUF_FORMS[1].0)),
        (PROTOBUF_FORMS[0].0, "/apis/apps/v1", None),
        ("application/vnd.kubernetes.protobuf", "/", None),
        ("application/cbor", "/api", None),
    ] {
        let answered = Discovery::of(&corten_kinds::Kinds::default(), &Aggregated::default())
            .document(path, accept, "")
            .map(|it| it.headers()[header::CONTENT_TYPE].clone());
        match expected {
            Some(expected) => assert_eq!(answered.expect("acceptable"), expected, "{accept} for {path}"),
            None => assert_eq!(answered.expect_err("not acceptable").code, 406, "{accept} for {path}"),
        }
    }
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let first = Discovery::of(&corten_kinds::Kinds::default(), &Aggregated::default())
        .document("/apis", AGGREGATED[0].1, "")
        .expect("acceptable");
    let tag = first.headers()[header::ETAG].to_str().expect("plain text").to_owned();
    assert_eq!(
        Discovery::of(&corten_kinds::Kinds::default(), &Aggregated::default())
            .document("/apis", AGGREGATED[0].1, &tag)
            .expect("acceptable")
            .status(),
        304
    );
    assert_eq!(
        Discovery::of(&corten_kinds::Kinds::default(), &Aggregated::default())
            .document("/apis", AGGREGATED[0].1, "\"other\"")
            .expect("acceptable")
            .status(),
        200
    );
}

/// Groups and versions that are gone since the facts were written down.
const GONE: [&str; 5] = [
    "certificates.k8s.io/v1alpha1",
    "networking.k8s.io/v1beta1",
    "scheduling.k8s.io/v1alpha2",
    "storage.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha2",
];

#[test]
fn every_resource_of_kubernetes_is_listed_in_both_forms() {
    let facts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/resources.tsv");
    let Ok(facts) = std::fs::read_to_string(&facts) else {
        eprintln!("skipped: there are no facts about resources");
        return;
    };
    let mut gaps = Vec::new();
    for line in facts.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [group_version, plural, singular, kind, scope, verbs, short_names, categories] = columns[..] else {
            panic!("{line:?} has eight columns");
        };
        if GONE.contains(&group_version) {
            continue;
        }
        // A subresource's own kind may be of another group and version.
        let kind = kind.rsplit('/').next().unwrap_or_default();
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let split =
            |it: &str| -> Vec<String> { it.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect() };
        let plain = plain_entry(group, version, plural);
        let aggregated = aggregated_entry(group, version, plural);
        let namespaced = scope == "namespaced";
        let is_part = plural.contains('/');
        // The aggregated form says neither of subresources.
        let aggregated_singular = if is_part { &plain["singularName"] } else { &aggregated["singularResource"] };
        let is_aggregated_namespaced = if is_part { namespaced } else { aggregated["scope"] == "Namespaced" };
        for (what, wanted, found) in [
            ("kind", json!(kind), [&plain["kind"], &aggregated["responseKind"]["kind"]]),
            ("singular", json!(singular), [&plain["singularName"], aggregated_singular]),
            ("verbs", json!(split(verbs)), [&plain["verbs"], &aggregated["verbs"]]),
        ] {
            if found != [&wanted, &wanted] {
                gaps.push(format!("{group_version} {plural}: {what} is {} and {}, not {wanted}", found[0], found[1]));
            }
        }
        for (what, wanted) in [("shortNames", split(short_names)), ("categories", split(categories))] {
            let wanted = if wanted.is_empty() { Value::Null } else { json!(wanted) };
            if plain[what] != wanted || aggregated[what] != wanted {
                gaps.push(format!("{group_version} {plural}: {what} is {}, not {wanted}", plain[what]));
            }
        }
        if plain["namespaced"] != namespaced || is_aggregated_namespaced != namespaced {
            gaps.push(format!("{group_version} {plural}: is {}, not {scope}", aggregated["scope"]));
        }
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

fn plain_entry(group: &str, version: &str, plural: &str) -> Value {
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let Some(document) = Discovery::of(&corten_kinds::Kinds::default(), &Aggregated::default()).0.remove(&(path, JSON))
    else {
        return Value::Null;
    };
    let document: Value = serde_json::from_slice(&document.bytes).expect("documents are JSON");
    let found = document["resources"].as_array().into_iter().flatten().find(|it| it["name"] == plural);
    found.cloned().unwrap_or_default()
}

fn aggregated_entry(group: &str, version: &str, plural: &str) -> Value {
    let document = get(if group.is_empty() { "/api" } else { "/apis" }, AGGREGATED[0].1);
    let groups = document["items"].as_array().into_iter().flatten();
    let versions =
        groups.filter(|it| it["metadata"]["name"] == group).flat_map(|it| it["versions"].as_array()).flatten();
    let mut resources =
        versions.filter(|it| it["version"] == version).flat_map(|it| it["resources"].as_array()).flatten();
    let Some((parent, part)) = plural.split_once('/') else {
        return resources.find(|it| it["resource"] == plural).cloned().unwrap_or_default();
    };
    let parent = resources.find(|it| it["resource"] == parent).cloned().unwrap_or_default();
    let mut parts = parent["subresources"].as_array().into_iter().flatten();
    parts.find(|it| it["subresource"] == part).cloned().unwrap_or_default()
}

#[test]
fn groups_and_versions_come_in_the_order_that_clients_try() {
    let groups = get("/apis", JSON);
    let names: Vec<&str> =
        groups["groups"].as_array().expect("a list").iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
    for (group, versions) in
        [("autoscaling", vec!["v2", "v1"]), ("coordination.k8s.io", vec!["v1", "v1beta1", "v1alpha2"])]
    {
        let entry = entry(&groups["groups"], "name", group);
        let found: Vec<&str> =
            entry["versions"].as_array().expect("a list").iter().filter_map(|it| it["version"].as_str()).collect();
        assert_eq!(found, versions);
        assert_eq!(entry["preferredVersion"]["version"], versions[0]);
    }
}

#[test]
fn stored_forms_have_the_hashes_of_kubernetes() {
    let hash =
        |path: &str, name: &str| entry(&get(path, JSON)["resources"], "name", name)["storageVersionHash"].clone();
    assert_eq!(hash("/api/v1", "pods"), "xPOwRZ+Yhw8=");
    assert_eq!(hash("/api/v1", "events"), hash("/apis/events.k8s.io/v1", "events"));
    assert_eq!(hash("/api/v1", "bindings"), Value::Null);
}

fn elsewhere(group: &str, version: &str, group_priority: i64, is_current: bool) -> crate::AggregatedVersion {
    let (group, version) = (group.to_owned(), version.to_owned());
    crate::AggregatedVersion { group, version, group_priority, version_priority: 5, is_current, ..Default::default() }
}

#[test]
fn what_others_serve_is_listed_among_what_is_served_here() {
    let others = [
        elsewhere("early.example", "v1", 20_000, true),
        elsewhere("late.example", "v2", 1, false),
        elsewhere("late.example", "v1", 1, true),
    ];
    let mut found = Discovery::of(&corten_kinds::Kinds::default(), &Aggregated::of(others)).0;
    let mut get = |path: &str, media_type| {
        let document = found.remove(&(path.to_owned(), media_type)).expect("it is served");
        serde_json::from_slice::<Value>(&document.bytes).expect("documents are JSON")
    };
    let names = |list: &Value| -> Vec<String> {
        list.as_array().expect("a list").iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let groups = names(&get("/apis", JSON)["groups"]);
    assert_eq!(groups[..3], ["apiregistration.k8s.io", "early.example", "apps"]);
    assert_eq!(groups.last().map(String::as_str), Some("late.example"));
    assert_eq!(get("/apis/late.example", JSON)["preferredVersion"]["version"], "v2");
    let items = get("/apis", AGGREGATED[0].1)["items"].clone();
    let late = items.as_array().and_then(|it| it.last()).expect("groups");
    let said: Vec<_> =
        [0, 1].map(|it| (late["versions"][it]["version"].clone(), late["versions"][it]["freshness"].clone())).into();
    assert_eq!(said, [(json!("v2"), json!("Stale")), (json!("v1"), json!("Current"))]);
}

#[test]
fn another_server_takes_the_place_of_what_is_here() {
    let others = Aggregated::of([elsewhere("metrics.k8s.io", "v1beta1", 100, true)]);
    let found = Discovery::of(&corten_kinds::Kinds::default(), &others).0;
    assert!(!found.contains_key(&("/apis/metrics.k8s.io/v1beta1".to_owned(), JSON)));
    assert!(found.contains_key(&("/apis/metrics.k8s.io".to_owned(), JSON)));
}
