//! Worlds that are too large to be written down.

use serde_json::{Value, json};

use super::*;
/// More than is looked at of other servers.
const SERVED: usize = 503;

fn insert(view: &mut View, watch: &Watch, resource: &Resource, object: &Value) {
    view.insert(resource, watch.decode(object.to_string().as_bytes()).expect("an object"));
}

/// A namespace that goes, and so many resources of another server, of which those in the namespace hold nothing.
fn world(served: usize, last_scope: &str) -> View {
    let mut view = View::default();
    let namespace = json!({
        "metadata": { "name": "team", "uid": "team", "deletionTimestamp": "2026-11-20T11:58:00Z" },
        "spec": { "finalizers": [FINALIZER] }, "status": { "phase": "Terminating" },
    });
    let watch = Watch::new::<Namespace>(Wake::Itself);
    insert(&mut view, &watch, &resources::NAMESPACES, &namespace);
    let service = json!({
        "metadata": { "name": "v1.wardle.example.com" },
        "spec": { "group": "wardle.example.com", "version": "v1", "service": {} },
        "status": { "conditions": [{ "type": "Available", "status": "True" }] },
    });
    insert(&mut view, &served::registrations(Wake::Nobody), &resources::API_SERVICES, &service);
    let resource = |n: usize| {
        let scope = if n < 500 { "Namespaced" } else { last_scope };
        json!({ "resource": format!("kind-{n:03}"), "scope": scope, "verbs": ["list", "delete"],
                "responseKind": { "kind": "Kind" } })
    };
    let listed: Vec<Value> = (0..served).map(resource).collect();
    let group = json!({ "metadata": { "name": "wardle.example.com" },
        "versions": [{ "version": "v1", "freshness": "Current", "resources": listed }] });
    let groups = served::groups(Wake::Nobody);
    insert(&mut view, &groups, &corten_reconcile::API_GROUPS, &group);
    for resource in elsewhere::resources(&view).collect::<Vec<_>>() {
        view.declare(&resource);
        let path = resource.collection_path("team");
        let path = corten_reconcile::ApiPath { path, query: vec![("limit", "50".to_owned())] };
        view.record_fetched(&Key::cluster("team"), path, Ok(br#"{"items":[]}"#.to_vec().into()));
    }
    view
}

#[test]
fn a_namespace_waits_for_what_is_past_the_bound() {
    for (served, scope, waits) in [(500, "Namespaced", false), (SERVED, "Namespaced", true), (SERVED, "Cluster", false)]
    {
        let plan =
            Namespaces::default().reconcile(&world(served, scope), &Key::cluster("team"), Time::from_unix_seconds(0));
        let text = format!("{served} {scope}: {:?} {:?}", plan.waits, plan.effects);
        let goes = plan.effects.iter().any(|it| matches!(it, Effect::Patch { subresource: Some("finalize"), .. }));
        assert_eq!(goes, !waits, "{text}");
        assert_eq!((plan.waits.len(), plan.wake_at.is_some()), (usize::from(waits), waits), "{text}");
        for wait in plan.waits {
            assert_eq!(&*wait.reason, "ContentNotListed");
            let expected = "kind-500.wardle.example.com and 2 others of its group are not looked at: \
                            other servers have more than 500 resources";
            assert_eq!(&*wait.message, expected);
            assert!(text.contains("Failed to delete all resource types, 3 remaining: kind-500"), "{text}");
        }
    }
}
