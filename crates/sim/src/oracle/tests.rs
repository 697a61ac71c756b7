use corten_store::Entry;
use serde_json::json;

use super::*;

/// Writes objects one after the other; a revision each.
struct OracleWriter {
    truth: Oracle,
    revision: u64,
}

impl OracleWriter {
    fn new() -> Self {
        Self { truth: Oracle::default(), revision: 1 }
    }

    fn put(&mut self, key: &str, object: &Value) -> Option<&str> {
        self.revision += 1;
        let entry = Entry {
            key: key.to_owned().into(),
            value: object.to_string().into(),
            create_revision: 1,
            mod_revision: self.revision,
            version: 1,
            lease: 0,
            unreadable: None,
        };
        let change = Change { revision: self.revision, key: entry.key.clone(), entry: Some(entry), previous: None };
        self.truth.take(vec![change], Duration::ZERO);
        self.truth.violation.as_deref()
    }

    fn pod(&mut self, name: &str, node: Option<&str>, cpu: &str, owners: usize) -> Option<&str> {
        let owner = json!({"kind": "ReplicaSet", "name": "web", "uid": "set", "controller": true});
        let container = json!({"resources": {"requests": {"cpu": cpu}}});
        let meta = json!({"name": name, "namespace": "default", "uid": name, "ownerReferences": vec![owner; owners]});
        let pod = json!({"metadata": meta, "spec": {"nodeName": node, "containers": [container]}});
        self.put(&format!("/registry/pods/default/{name}"), &pod)
    }

    fn set(&mut self, name: &str, replicas: i64) -> Option<&str> {
        let owner = json!({"kind": "Deployment", "name": "web", "uid": "deployment", "controller": true});
        let meta = json!({"name": name, "namespace": "default", "uid": "set", "ownerReferences": [owner]});
        let key = format!("/registry/replicasets/default/{name}");
        self.put(&key, &json!({"metadata": meta, "spec": {"replicas": replicas}}))
    }

    fn deployment(&mut self, replicas: i64, surge: &Value) -> Option<&str> {
        let spec = json!({"replicas": replicas, "strategy": {"rollingUpdate": {"maxSurge": surge}}});
        self.put("/registry/deployments/default/web", &json!({"metadata": {"uid": "deployment"}, "spec": spec}))
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_has_one_owner_and_one_node_for_life() {
    let mut told = OracleWriter::new();
    assert_eq!(told.pod("a", None, "1m", 1), None);
    assert_eq!(told.pod("a", Some("n1"), "1m", 1), None);
    let violation = told.pod("a", Some("n2"), "1m", 1).expect("bound twice").to_owned();
    assert!(violation.contains("was bound to n1 and then to \"n2\""), "{violation}");
    let violation = OracleWriter::new().pod("a", None, "1m", 2).expect("two owners").to_owned();
    assert!(violation.contains("has 2 controlling owners"), "{violation}");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_not_given_more_than_it_has() {
    let mut told = OracleWriter::new();
    let half = format!("{}m", node::CPU_MILLIS / 2);
    assert_eq!(told.pod("a", Some("n1"), &half, 0), None);
    assert_eq!(told.pod("b", Some("n1"), &half, 0), None);
    assert_eq!(told.pod("c", Some("n2"), &half, 0), None);
    let violation = told.pod("d", Some("n1"), "1m", 0).expect("too much").to_owned();
    assert!(violation.contains("n1 is given"), "{violation}");
}

#[tokio::test(start_paused = true)]
async fn no_more_pods_than_anybody_may_have_wanted() {
    let mut told = OracleWriter::new();
    assert_eq!(told.set("web", 2), None);
    assert_eq!(told.set("web", 1), None);
    assert_eq!(told.pod("a", None, "1m", 1), None);
    // A view may still say two.
    assert_eq!(told.pod("b", None, "1m", 1), None);
    let violation = told.pod("c", None, "1m", 1).expect("a surplus pod").to_owned();
    assert!(violation.contains("is pod 3 of /registry/replicasets/default/web, which never wanted more than 2"));

    let mut told = OracleWriter::new();
    assert_eq!(told.set("web", 2), None);
    assert_eq!(told.set("web", 1), None);
    assert_eq!(told.pod("a", None, "1m", 1), None);
    tokio::time::advance(STALENESS * 2).await;
    assert!(told.pod("b", None, "1m", 1).is_some(), "by now everybody knows");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_when_its_maker_has_given_up_may_be_one_too_many() {
    for (name, is_late) in [("in time", false), ("late", true)] {
        let mut told = OracleWriter::new();
        assert_eq!(told.set("web", 1), None);
        if is_late {
            told.truth.terms.authors.note_late(told.revision + 1);
        }
        assert_eq!(told.pod("a", None, "1m", 1), None);
        assert_eq!(told.pod("b", None, "1m", 1).is_none(), is_late, "{name}");
        assert!(told.pod("c", None, "1m", 1).is_some(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_sets_of_a_deployment_stay_within_its_surge() {
    for (surge, most) in [(json!(1), 5), (json!("25%"), 5), (json!("26%"), 6), (json!(null), 4)] {
        let mut told = OracleWriter::new();
        assert_eq!(told.deployment(4, &surge), None);
        assert_eq!(told.set("old", most - 1), None);
        assert_eq!(told.set("new", 1), None, "{surge}");
        assert!(told.set("new", 2).is_some(), "{surge}");
    }
}

#[tokio::test(start_paused = true)]
async fn revisions_only_grow() {
    let mut told = OracleWriter::new();
    assert_eq!(told.set("web", 2), None);
    told.revision = 0;
    assert!(told.set("web", 2).expect("went back").contains("the revision went back"));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_evicted_for_nobody() {
    let pod = |name: &str, priority: i64, is_evicted: bool| {
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
        let conditions = if is_evicted { vec![condition] } else { Vec::new() };
        let node = if name == "low" { "n1" } else { "" };
        json!({"metadata": {"name": name, "uid": name}, "spec": {"nodeName": node, "priority": priority},
               "status": {"conditions": conditions}})
    };
    let low = "/registry/pods/default/low";
    let mut told = OracleWriter::new();
    assert_eq!(told.put(low, &pod("low", 0, false)), None);
    assert_eq!(told.put("/registry/pods/default/same", &pod("same", 0, false)), None);
    let violation = told.put(low, &pod("low", 0, true)).expect("nobody is more important").to_owned();
    assert!(violation.contains("nobody more important waits"), "{violation}");
    let mut told = OracleWriter::new();
    assert_eq!(told.put(low, &pod("low", 0, false)), None);
    assert_eq!(told.put("/registry/pods/default/high", &pod("high", 9, false)), None);
    assert_eq!(told.put(low, &pod("low", 0, true)), None);
}
