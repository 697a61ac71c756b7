//! Is a claim used? Its condition `Unused` says so, and since when (KEP-5541, `PersistentVolumeClaimUnusedSinceTime`).
//!
//! What uses a claim here is not what keeps one from being deleted: a pod without a node does, and one that has ended does not.

use std::collections::BTreeSet;

use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Effect, Projection, View};
use serde_json::json;

use super::projections::{Claim, UNUSED};
use crate::projections::Pod;

/// Tells whether any pod uses the claim, where that is another answer than the last. Before it is bound nobody is told: the
/// binder writes its status then (`processPVC`).
pub(super) fn told(view: &View, claim: &Claim, now: Time) -> Option<Effect> {
    let is_unused = || !view.in_namespace::<Pod>(&claim.metadata.namespace).any(|it| is_used_by(claim, it));
    is_told_of(claim).then(is_unused).filter(|it| claim.status.unused != Some(*it)).map(|it| say(claim, it, now))
}

/// The claims of which this change of a pod may be news.
pub(super) fn claims_of(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    // Which claims a pod had that is gone, or whose place another took, nobody knows any more.
    let seen = view.get::<Pod>(&pod.key()).filter(|it| it.metadata.uid == pod.uid);
    let Some(pod) = seen else { return set_free(view, &pod.namespace) };
    let claims = pod.claims().filter_map(|it| view.get::<Claim>(&Key::new(&*pod.metadata.namespace, it)));
    let is_news = |it: &&Claim| is_told_of(it) && it.status.unused != Some(!is_used_by(it, pod));
    claims.filter(is_news).map(|it| it.metadata.key()).collect()
}

/// Those that are told to be used, and that no pod of the namespace has.
fn set_free(view: &View, namespace: &str) -> Vec<Key> {
    let is_used = |it: &&Claim| is_told_of(it) && it.status.unused == Some(false);
    let claims: Vec<&Claim> = view.in_namespace::<Claim>(namespace).filter(is_used).collect();
    if claims.is_empty() {
        return Vec::new();
    }
    let pods = view.in_namespace::<Pod>(namespace).filter(|it| !it.has_ended());
    let had: BTreeSet<String> = pods.flat_map(Pod::claims).collect();
    claims.into_iter().filter(|it| !had.contains(&it.metadata.name)).map(|it| it.metadata.key()).collect()
}

fn is_told_of(claim: &Claim) -> bool {
    claim.status.phase == "Bound" && !claim.metadata.is_deleting()
}

fn is_used_by(claim: &Claim, pod: &Pod) -> bool {
    pod.uses_claim(&claim.metadata) && !pod.has_ended()
}

fn say(claim: &Claim, is_unused: bool, now: Time) -> Effect {
    let (status, reason, message) = if is_unused {
        ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    } else {
        ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    };
    let condition =
        json!({ "type": UNUSED, "status": status, "reason": reason, "message": message, "lastTransitionTime": now });
    let patch = json!({ "metadata": { "uid": claim.metadata.uid }, "status": { "conditions": [condition] } });
    let (resource, key) = (Claim::RESOURCE, claim.metadata.key());
    Effect::StrategicPatch { resource, key, subresource: Some("status"), patch }
}

#[cfg(test)]
mod tests {
    use corten_reconcile::{Wake, Watch};
    use serde_json::Value;

    use super::*;

    fn seen(claims: &[(&str, &str)], pods: &[(&str, &str, &str)]) -> View {
        let meta = |name: &str| json!({ "name": name, "namespace": "default", "uid": name });
        let claims = claims.iter().map(|(name, unused)| {
            let conditions = json!([{ "type": "Unused", "status": unused }]);
            json!({ "metadata": meta(name), "status": { "phase": "Bound", "conditions": conditions } })
        });
        let pods = pods.iter().map(|(name, claim, phase)| {
            let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
            json!({ "metadata": meta(name), "spec": { "volumes": volumes }, "status": { "phase": phase } })
        });
        let mut view = View::default();
        let mut insert = |watch: Watch, objects: Vec<Value>| {
            view.declare(&watch.resource);
            for object in objects {
                view.insert(&watch.resource, watch.decode(object.to_string().as_bytes()).expect("it has the shape"));
            }
        };
        insert(Watch::new::<Claim>(Wake::Nobody), claims.collect());
        insert(Watch::new::<Pod>(Wake::Nobody), pods.collect());
        view
    }

    #[test]
    fn a_pod_wakes_the_claims_it_is_news_of() {
        let claims = [("a", "False"), ("b", "True"), ("c", "False"), ("d", "False")];
        let pods = [("a", "a", "Running"), ("b", "b", "Pending"), ("c", "c", "Failed"), ("x", "x", "Running")];
        let view = seen(&claims, &pods);
        for (pod, uid, woken) in [
            ("a", "a", &[][..]),
            ("b", "b", &["b"]),
            ("c", "c", &["c"]),
            ("x", "x", &[]),
            // Gone, or another is in its place: what nobody has any more.
            ("gone", "gone", &["c", "d"]),
            ("a", "another", &["c", "d"]),
        ] {
            let meta =
                ObjectMeta { name: pod.into(), namespace: "default".into(), uid: uid.into(), ..Default::default() };
            let keys: Vec<String> = claims_of(&view, &meta).into_iter().map(|it| it.name.to_string()).collect();
            assert_eq!(keys, woken, "{pod} ({uid})");
        }
    }
}
